"""Shape-based distances on the GPU: spectra of series, correlations with centres, labels."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import NamedTuple, Self

import cupy as cp
import cupyx
import numpy as np

from ...core.constants import SHORT_CENTERS, SHORT_SERIES
from ...families.kshape.distances import Assignment
from ...families.kshape.shapes import Shapes
from ..launch import Launches
from ..loading import blocks_for, load_kernel, multiprocessors
from ..transfers import LARGE, Staged, bring, read_number, to_host
from .programs import SHORT, SHORT_CAPABILITY, Transform, choose_transform, short_kernel

__all__ = [
    "DeviceAssignment",
    "DeviceShapes",
    "NearestCenters",
    "Spectra",
    "assign_in_parts",
    "distances",
    "is_short",
    "nearest",
    "short_distances",
    "spectra",
    "transform_for",
    "upload",
]

THREADS = 256
#: Pairs of series of one call of cuFFT: always as many, so that no transform depends on the split.
FFT_BATCH = 64
#: Short series that are compared at a time, where there are twice as many: their results travel
#: while the next are compared.
PART = 2**19


class DeviceShapes(NamedTuple):
    """Series on the device: values (n_series, n_channels, n_timepoints) and norms, float64."""

    values: cp.ndarray
    norms: cp.ndarray


class Spectra(NamedTuple):
    """Spectra of pairs of series (n_pairs, n_channels, n), or of single ones."""

    values: cp.ndarray
    transform: Transform | None


def upload(shapes: Shapes) -> DeviceShapes:
    """Copy series to the device."""
    return DeviceShapes(cp.asarray(shapes.values), cp.asarray(shapes.norms))


def fft_length(n_timepoints: int) -> int:
    """Points of a transform of cuFFT: no prime factor above 7."""
    n = 2 * n_timepoints - 1
    while True:
        rest = n
        for prime in (2, 3, 5, 7):
            while rest % prime == 0:
                rest //= prime
        if rest == 1:
            return n
        n += 1


def transform_for(n_timepoints: int) -> Transform | None:
    """The fused transform that fits this device, None where the series are too long for it."""
    limit = cp.cuda.Device().attributes["MaxSharedMemoryPerBlockOptin"]
    return choose_transform(n_timepoints, int(limit))


def transform_length(n_timepoints: int) -> int:
    """Points of the transforms of series."""
    transform = transform_for(n_timepoints)
    return fft_length(n_timepoints) if transform is None else transform.n


@cache
def _roots(n: int, device: int) -> cp.ndarray:
    """exp(2 pi i k / n), correctly rounded but for a few."""
    angle = 2 * np.pi * np.arange(n, dtype=np.longdouble) / n
    return cp.asarray((np.cos(angle) + 1j * np.sin(angle)).astype(np.complex128))


def spectra(shapes: DeviceShapes, *, paired: bool) -> Spectra:
    """Transform series, two by two (one the real, one the imaginary part) or one by one."""
    n_series, n_channels, length = shapes.values.shape
    step = 2 if paired else 1
    n_pairs = -(-n_series // step)
    transform = transform_for(length)
    if transform is None:
        n = fft_length(length)
        out = cp.empty((n_pairs, n_channels, n), np.complex128)
        block = cp.zeros((FFT_BATCH, n_channels, n), np.complex128)
        for start in range(0, n_pairs, FFT_BATCH):
            stop = min(start + FFT_BATCH, n_pairs)
            block[:] = 0
            for which in range(step):
                rows = shapes.values[step * start + which : step * stop : step]
                part = block.imag if which else block.real
                part[: len(rows), :, :length] = rows
            out[start:stop] = cp.fft.fft(block, axis=2)[: stop - start]
        return Spectra(out, None)
    out = cp.empty((n_pairs, n_channels, transform.n), np.complex128)
    _transforming(shapes.values, transform, step, out)()
    return Spectra(out, transform)


def _transforming(
    values: cp.ndarray, transform: Transform, step: int, out: cp.ndarray
) -> Callable[[], None]:
    """The launch of ``spectra``."""
    n_series, n_channels, length = values.shape
    kernel = load_kernel(transform.file, transform.names[0], transform.shared_bytes)
    return kernel.ready(
        (-(-len(out) // transform.batch), n_channels),
        (transform.threads, transform.batch),
        values=values,
        n_series=n_series,
        n_channels=n_channels,
        length=length,
        step=step,
        roots=_roots(transform.n, cp.cuda.Device().id),
        out=out,
        shared_mem=transform.shared_bytes,
    )


def distances(
    series: Spectra,
    norms: cp.ndarray,
    centers: Spectra,
    center_norms: cp.ndarray,
    doubts: cp.ndarray,
    length: int,
) -> tuple[cp.ndarray, cp.ndarray]:
    """Distances and shifts of paired series and single centres, (n_series, n_centers) each.

    Shifts that errors of the NCC with a centre, at most its `doubts`, could change are `UNCLEAR`.
    """
    n_series, n_centers = norms.size, center_norms.size
    found = cp.empty((n_series, n_centers))
    shifts = cp.empty((n_series, n_centers), np.int32)
    n_pairs, n_channels, n = series.values.shape
    transform = series.transform
    if transform is None:
        block = cp.zeros((FFT_BATCH, n), np.complex128)
        for start in range(0, n_pairs, FFT_BATCH):
            stop = min(start + FFT_BATCH, n_pairs)
            for center in range(n_centers):
                product = series.values[start:stop] * centers.values[center].conj()
                block[: stop - start] = product.sum(axis=1) if n_channels > 1 else product[:, 0]
                values = cp.fft.ifft(block, axis=1, norm="forward")
                load_kernel("kshape/labels.cu", "longest")(
                    stop - start,
                    THREADS,
                    correlations=values,
                    n=n,
                    length=length,
                    first_series=2 * start,
                    n_series=n_series,
                    norms=norms,
                    center_norms=center_norms,
                    doubts=doubts,
                    center=center,
                    n_centers=n_centers,
                    distances=found,
                    shifts=shifts,
                )
        return found, shifts
    _correlating(series, norms, centers, center_norms, doubts, length, found, shifts)()
    return found, shifts


def _correlating(
    series: Spectra,
    norms: cp.ndarray,
    centers: Spectra,
    center_norms: cp.ndarray,
    doubts: cp.ndarray,
    length: int,
    found: cp.ndarray,
    shifts: cp.ndarray,
) -> Callable[[], None]:
    """The launch of ``correlate``; its arguments are those of `distances`, and where it writes."""
    n_pairs, n_channels, _ = series.values.shape
    n_series, n_centers = found.shape
    transform = series.transform
    assert transform is not None
    blocks = -(-n_pairs // transform.batch)
    # few series: the centres go to several blocks
    enough = 4 * multiprocessors()
    groups = min(n_centers, max(1, -(-enough // blocks)))
    per_block = -(-n_centers // groups)
    kernel = load_kernel(transform.file, transform.names[1], transform.shared_bytes)
    return kernel.ready(
        (blocks, -(-n_centers // per_block)),
        (transform.threads, transform.batch),
        spectra=series.values,
        norms=norms,
        n_series=n_series,
        n_channels=n_channels,
        length=length,
        centers=centers.values,
        center_norms=center_norms,
        doubts=doubts,
        n_centers=n_centers,
        per_block=per_block,
        roots=_roots(transform.n, cp.cuda.Device().id),
        distances=found,
        shifts=shifts,
        shared_mem=transform.shared_bytes,
    )


def is_short(shapes: Shapes) -> bool:
    """Whether this device compares series by `short_distances`, without their spectra."""
    if shapes.n_channels > 1 or shapes.n_timepoints > SHORT:
        return False
    return int(cp.cuda.Device().compute_capability) >= SHORT_CAPABILITY


def short_distances(
    series: DeviceShapes, centers: DeviceShapes, doubts: cp.ndarray
) -> tuple[cp.ndarray, cp.ndarray]:
    """Distances and shifts of short series and centres, as `distances` finds them."""
    n_series, n_centers = series.norms.size, centers.norms.size
    found = cp.empty((n_series, n_centers))
    shifts = cp.empty((n_series, n_centers), np.int32)
    _correlating_short(series, centers, doubts, found, shifts)()
    return found, shifts


def _correlating_short(
    series: DeviceShapes,
    centers: DeviceShapes,
    doubts: cp.ndarray,
    found: cp.ndarray,
    shifts: cp.ndarray,
) -> Callable[[], None]:
    """The launch of ``correlate_short``."""
    (n_series, n_centers), length = found.shape, series.values.shape[2]
    return load_kernel("kshape/short.cu", short_kernel(length)).ready(
        (blocks_for(n_series, SHORT_SERIES), blocks_for(n_centers, SHORT_CENTERS)),
        128,
        values=series.values,
        norms=series.norms,
        n_series=n_series,
        length=length,
        centers=centers.values,
        center_norms=centers.norms,
        doubts=doubts,
        n_centers=n_centers,
        distances=found,
        shifts=shifts,
    )


class DeviceAssignment(NamedTuple):
    """The centre of each series, on the device, as in `Assignment`.

    Attributes
    ----------
    packed : cupy.ndarray of uint8
        The memory of all the others, which comes to the host in one transfer.
    labels, shifts : cupy.ndarray of int32
        Centres and shifts.
    distances : cupy.ndarray of float64
        Distances.
    n_unclear : cupy.ndarray of int32
        How many shifts are `UNCLEAR`, one number.
    """

    packed: cp.ndarray
    labels: cp.ndarray
    shifts: cp.ndarray
    distances: cp.ndarray
    n_unclear: cp.ndarray

    @classmethod
    def empty(cls, n_series: int) -> Self:
        """Return memory for so many series; none is unclear yet."""
        packed = cp.empty(16 * n_series + 8, np.uint8)
        distances = packed[: 8 * n_series].view(np.float64)
        labels, shifts = packed[8 * n_series : -8].view(np.int32).reshape(2, n_series)
        packed[-8:].fill(0)
        return cls(packed, labels, shifts, distances, packed[-8:-4].view(np.int32))

    def bring(self) -> tuple[Assignment, int]:
        """Bring all to the host; labels and shifts stay with the user."""
        n = self.labels.size
        if self.packed.nbytes < LARGE:
            packed = bring(self.packed)
            labels, shifts = packed[8 * n : -8].view(np.int32).reshape(2, n).copy()
            distances = packed[: 8 * n].view(np.float64)
            return Assignment(labels, shifts, distances), int(packed[-8:-4].view(np.int32)[0])
        found = Assignment(bring(self.labels), bring(self.shifts), to_host(self.distances))
        return found, read_number(self.n_unclear)


def nearest(found: cp.ndarray, shifts: cp.ndarray, doubts: cp.ndarray) -> DeviceAssignment:
    """Label, shift and distance of each series; the shift is `UNCLEAR` where either is."""
    made = DeviceAssignment.empty(len(found))
    _choosing(found, shifts, doubts, *made[1:])()
    return made


def _choosing(
    found: cp.ndarray,
    shifts: cp.ndarray,
    doubts: cp.ndarray,
    labels: cp.ndarray,
    label_shifts: cp.ndarray,
    label_distances: cp.ndarray,
    n_unclear: cp.ndarray,
) -> Callable[[], None]:
    """The launch of ``nearest``."""
    n_series, n_centers = found.shape
    return load_kernel("kshape/labels.cu", "nearest").ready(
        blocks_for(n_series, THREADS),
        THREADS,
        distances=found,
        shifts=shifts,
        doubts=doubts,
        n_series=n_series,
        n_centers=n_centers,
        labels=labels,
        label_shifts=label_shifts,
        label_distances=label_distances,
        n_unclear=n_unclear,
    )


def assign_in_parts(
    series: DeviceShapes, centers: DeviceShapes, doubts: cp.ndarray
) -> tuple[DeviceAssignment, Assignment, int]:
    """Assign many short series: results of a part travel while the next one is compared.

    Returns
    -------
    made : DeviceAssignment
        The answer on the device.
    found : Assignment
        The same on the host, as `DeviceAssignment.bring` brings it.
    n_unclear : int
        How many shifts are `UNCLEAR`.
    """
    n_series, n_centers = series.norms.size, centers.norms.size
    made, done = DeviceAssignment.empty(n_series), []
    pairs = cp.empty((PART, n_centers)), cp.empty((PART, n_centers), np.int32)
    for start in range(0, n_series, PART):
        rows = slice(start, min(start + PART, n_series))
        found, shifts = (one[: rows.stop - start] for one in pairs)
        some = DeviceShapes(series.values[rows], series.norms[rows])
        _correlating_short(some, centers, doubts, found, shifts)()
        answer = made.labels[rows], made.shifts[rows], made.distances[rows]
        _choosing(found, shifts, doubts, *answer, made.n_unclear)()
        done.append((rows, cp.cuda.get_current_stream().record()))
    labels, shifts = np.empty(n_series, np.int32), np.empty(n_series, np.int32)
    assigned = Assignment(labels, shifts, cupyx.empty_pinned(n_series, np.float64))
    with cp.cuda.Stream(non_blocking=True) as copies:
        for rows, event in done:
            event.synchronize()
            for here, there in zip(assigned, made[1:4], strict=True):
                there[rows].get(stream=copies, out=here[rows])
    return made, assigned, read_number(made.n_unclear)


class NearestCenters:
    """Finds the nearest centres of the same few series again and again: one graph, two transfers.

    Parameters
    ----------
    compared : Spectra or DeviceShapes
        The series as they are compared, the latter where they are short.
    norms : cupy.ndarray of shape (n_series,)
        Their norms.
    shape : tuple of int
        That of the centres: how many, channels, points.
    """

    def __init__(
        self, compared: Spectra | DeviceShapes, norms: cp.ndarray, shape: tuple[int, int, int]
    ) -> None:
        self.compared = compared
        n_series, n_centers = norms.size, shape[0]
        self.staged = Staged(
            centers=(shape, np.float64),
            norms=((n_centers,), np.float64),
            doubts=((n_centers,), np.float64),
            n_unclear=((1,), np.int32),
            labels=((n_series,), np.int32),
            shifts=((n_series,), np.int32),
            distances=((n_series,), np.float64),
        )
        there = self.staged.there
        centers, doubts = DeviceShapes(there["centers"], there["norms"]), there["doubts"]
        pairs = cp.empty((n_series, n_centers)), cp.empty((n_series, n_centers), np.int32)
        if isinstance(compared, DeviceShapes):
            correlating = [_correlating_short(compared, centers, doubts, *pairs)]
        else:
            transform = compared.transform
            assert transform is not None
            spectra = cp.empty((n_centers, shape[1], transform.n), np.complex128)
            made = Spectra(spectra, transform)
            correlating = [
                _transforming(centers.values, transform, 1, spectra),
                _correlating(compared, norms, made, centers.norms, doubts, shape[2], *pairs),
            ]
        answer = (there[name] for name in ("labels", "shifts", "distances", "n_unclear"))
        launches: list[Callable[[], None]] = [
            self.staged.send("centers", "n_unclear"),
            *correlating,
            _choosing(*pairs, doubts, *answer),
            self.staged.fetch("n_unclear", "distances"),
        ]
        self.launches = Launches(launches)

    def find(self, centers: Shapes, doubts: np.ndarray) -> tuple[Assignment, int]:
        """Return the nearest centre of each series, and how many shifts are `UNCLEAR`."""
        here = self.staged.here
        here["centers"][...], here["norms"][...] = centers.values, centers.norms
        here["doubts"][...], here["n_unclear"][...] = doubts, 0
        self.launches()
        cp.cuda.get_current_stream().synchronize()
        found = Assignment(*(here[name].copy() for name in ("labels", "shifts", "distances")))
        return found, int(here["n_unclear"][0])
