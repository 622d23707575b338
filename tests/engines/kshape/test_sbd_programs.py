"""Transforms and kernels of k-Shape: what is chosen covers the work, and compiles without a GPU."""

from __future__ import annotations

from math import prod

import pytest

from skts.engines.cupy.kshape import programs
from skts.engines.cupy.kshape.programs import (
    HELD,
    RADICES,
    choose_gram,
    choose_transform,
    factorings,
    kernels,
    thread_counts,
)


@pytest.mark.parametrize("limit", [64 * 1024, 99 * 1024, 227 * 1024])
@pytest.mark.parametrize("n_timepoints", [*range(1, 40), 56, 97, 128, 600, 1000, 1531, 2048, 5000])
def test_the_chosen_transform_has_room_for_all_shifts(n_timepoints, limit):
    transform = choose_transform(n_timepoints, limit)
    if transform is None:
        # the series alone fill the shared memory, or the registers of a block
        assert 16 * 2 * n_timepoints * 9 / 8 > limit - 4096 or n_timepoints > 4096
        return
    assert transform.n >= 2 * n_timepoints - 1
    assert prod(transform.radices) == transform.n
    assert set(transform.radices) <= set(RADICES)
    assert transform.shared_bytes <= limit
    threads = transform.threads
    assert threads & (threads - 1) == 0 if threads <= 32 else threads % 32 == 0
    assert threads * transform.batch % 32 == 0
    assert threads * transform.batch <= 1024
    for radix in transform.radices:
        assert -(-(transform.n // radix) // threads) * radix <= max(HELD, 16)


def test_factorings_are_all_there():
    assert set(factorings(12)) == {(12,), (6, 2), (4, 3), (3, 2, 2)}
    assert not list(factorings(11))


def test_threads_are_powers_of_two_within_a_warp_or_whole_warps():
    assert thread_counts(1) == [1]
    assert thread_counts(130) == [1, 2, 4, 8, 16, 32, 64]
    assert thread_counts(10_000)[-1] == 1024


@pytest.mark.parametrize("size", [1, 31, 56, 300, 600, 1024, 5000, 10_240])
def test_the_chosen_product_covers_the_points(size):
    kernel = choose_gram(size)
    assert kernel.columns * kernel.threads >= size
    assert kernel.threads <= 512
    # they are held in registers: more threads come before more columns
    assert kernel.columns <= 8 or kernel.threads == 512


def test_members_of_too_many_points_have_no_kernel():
    assert choose_gram(10_241) is None


def test_instances_of_usual_lengths_are_checked():
    checked = set(kernels()["kshape/correlate.cu"])
    for n in (8, 56, 128, 600, 1024):
        assert set(choose_transform(n).names) <= checked
    assert all("gram<" in name for size in (100, 600) for name in choose_gram(size).names)
    assert {n for size in (100, 600) for n in choose_gram(size).names} <= set(
        kernels()["kshape/centers.cu"]
    )


@pytest.mark.slow  # instances of usual lengths are compiled beside the other kernels, by .ci/run
@pytest.mark.parametrize("arch", [75, 80, 90])
def test_kernels_compile(arch):
    compile = pytest.importorskip(
        "skts.engines.cupy.compile", reason="NVRTC is not installed"
    ).compile_program
    names = kernels()
    for file in ("kshape/labels.cu", "kshape/centers.cu", "kshape/short.cu"):
        assert compile(file, names[file], arch) > 1000
    few = [name for n in (8, 56, 600) for name in choose_transform(n).names]
    assert compile("kshape/correlate.cu", few, arch) > 1000


@pytest.mark.parametrize("n_timepoints", [1, 2, 7, 60, 333])
def test_transforms_are_looked_for_among_lengths_up_to_a_third_longer(monkeypatch, n_timepoints):
    """Longer ones would not be chosen, and to look at them takes seconds."""
    looked, factorings = [], programs.factorings

    def noted(n, *largest):
        looked.append(n)
        return factorings(n, *largest)

    monkeypatch.setattr(programs, "factorings", noted)
    found = choose_transform.__wrapped__(n_timepoints)
    least = max(2, 2 * n_timepoints - 1)
    assert least <= found.n <= max(looked) <= least * 4 / 3 + 1


@pytest.mark.parametrize("n_timepoints", [20, 60, 97, 333, 1000])
def test_a_transform_for_which_there_is_just_room_has_its_whole_batch(n_timepoints):
    """2048 bytes are left to the system; with one byte less a block holds half as many pairs."""
    found = choose_transform(n_timepoints)
    room = found.shared_bytes + 2048
    assert choose_transform(n_timepoints, room) == found
    less = choose_transform(n_timepoints, room - 1)
    assert less is None or less.shared_bytes <= found.shared_bytes - 1
