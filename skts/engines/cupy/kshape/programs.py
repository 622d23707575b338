"""The CUDA programs of k-Shape: which transform suits a length, which instances there are.

Imports nothing of CUDA, so that `compile` checks every kernel on a machine without a GPU.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

__all__ = [
    "CENTER_KERNELS",
    "FEW",
    "LABEL_KERNELS",
    "SHORT",
    "SHORT_CAPABILITY",
    "GramKernel",
    "Transform",
    "kernels",
    "choose_gram",
    "choose_transform",
    "short_kernel",
]

#: Kernels of ``labels.cu``, and those of ``centers.cu`` that have one instance.
LABEL_KERNELS = ("longest", "nearest", "count", "scatter", "bounds")
CENTER_KERNELS = ("collect", "extend", "combine", "moments", "align")
#: Series up to which labels and shifts travel between host and device with all else of a step.
FEW = 2**16
#: Points of series of one channel that are compared by products of matrices, at most, on devices
#: that multiply matrices of float64: of compute capability 8.0 or more.
SHORT, SHORT_CAPABILITY = 64, 80
#: Additions and multiplications of a butterfly of each radix, a value.
RADICES = {2: 2.0, 3: 4.0, 4: 4.0, 5: 6.4, 6: 6.7, 7: 9.4, 8: 6.5, 9: 9.4, 10: 9.2}
RADICES |= {12: 9.0, 15: 11.2, 16: 9.0}
#: Radices whose butterflies need more registers than there are, and by how much that slows a pass.
SLOWER = {6: 1.2, 7: 1.3, 9: 1.3, 10: 1.3, 12: 1.3, 15: 1.3}
#: Cost of a pass beside its butterflies, for each value: a write, a read, a turn, waiting.
PASS = 14.0
#: Values that a thread may hold; more would not stay in registers.
HELD = 20
#: Blocks of more threads than this leave a thread 64 registers, and room for fewer values.
WIDE = 512
HELD_WIDE = 10
#: Threads that a block has at least, if there is work for them.
BLOCK = 128


class Transform(NamedTuple):
    """A transform of ``correlate.cu`` and its launch shape.

    Attributes
    ----------
    n : int
        Points, N.
    threads : int
        Threads of a transform, T: a power of two up to 32, or a multiple of 32.
    batch : int
        Transforms of a block, B.
    radices : tuple of int
        Radix of each pass.
    """

    n: int
    threads: int
    batch: int
    radices: tuple[int, ...]

    file: str = "kshape/correlate.cu"

    @property
    def arguments(self) -> str:
        """Template arguments."""
        return ", ".join(map(str, (self.n, self.threads, self.batch, *self.radices)))

    @property
    def names(self) -> tuple[str, str]:
        """C++ names of the instances for spectra and for correlations."""
        return f"spectra<{self.arguments}>", f"correlate<{self.arguments}>"

    @property
    def shared_bytes(self) -> int:
        """Dynamic shared memory of a block; nothing where one pass does."""
        if len(self.radices) == 1:
            return 0
        last = self.n - 1
        return 16 * self.batch * (last + last // 8 + 1)


def factorings(n: int, largest: int = 16) -> Iterator[tuple[int, ...]]:
    """All ways to write n as a product of radices, descending."""
    if n == 1:
        yield ()
    for radix in RADICES:
        if radix <= largest and n % radix == 0:
            for rest in factorings(n // radix, radix):
                yield (radix, *rest)


def thread_counts(n: int) -> list[int]:
    """Numbers of threads that a transform of n points may have."""
    counts = [1, 2, 4, 8, 16, *range(32, 1025, 32)]
    return [threads for threads in counts if threads <= max(1, n // 2)]


@cache
def choose_transform(n_timepoints: int, shared_limit: int = 232_448) -> Transform | None:
    """Choose the transform that has room for all shifts of two series.

    Parameters
    ----------
    n_timepoints : int
        Points of a series.
    shared_limit : int, default 232448
        Bytes of shared memory that a block may have: 227 KiB on the largest GPUs.

    Returns
    -------
    Transform or None
        The cheapest by a count of operations; None where none fits.
    """
    least = max(2, 2 * n_timepoints - 1)
    best: tuple[float, Transform] | None = None
    for n in range(least, least + least // 3 + 2):
        if 16 * n > shared_limit - 2048:
            break
        if best is not None and n * 2 * PASS > best[0] * 2:
            break
        for radices in factorings(n):
            for threads in thread_counts(n):
                found = _cost(n, threads, radices)
                if found is None or (best is not None and found >= best[0]):
                    continue
                batch = max(1, BLOCK // threads)
                transform = Transform(n, threads, batch, radices)
                while transform.shared_bytes > shared_limit - 2048 and transform.batch > 1:
                    transform = transform._replace(batch=transform.batch // 2)
                if transform.shared_bytes <= shared_limit - 2048:
                    best = found, transform
    return None if best is None else best[1]


def _cost(n: int, threads: int, radices: tuple[int, ...]) -> float | None:
    """Operations of a transform, idle threads counted; None where a thread cannot hold its values.

    Parameters
    ----------
    n, threads : int
        Points and threads.
    radices : tuple of int
        Radix of each pass.
    """
    cost, most = 0.0, 0
    for radix in radices:
        held = -(-(n // radix) // threads) * radix
        if held > (HELD if threads <= WIDE else HELD_WIDE) and n > 16:
            return None
        cost += threads * held * (RADICES[radix] + PASS) * SLOWER.get(radix, 1.0)
        most = max(most, held)
    # more values leave fewer warps; wide blocks wait longer
    crowded = 1.0 if most <= 10 else 1.15 if most <= 16 else 1.6
    return cost * crowded * (1 + 0.01 * max(0, threads // 32 - 8))


class GramKernel(NamedTuple):
    """An instance of the kernel ``gram`` of ``centers.cu``.

    Attributes
    ----------
    columns : int
        Points of a thread, K.
    threads : int
        Threads of a block, T.
    """

    columns: int
    threads: int

    file: str = "kshape/centers.cu"

    @property
    def names(self) -> tuple[str, str]:
        """C++ names of the instances for products and for sums."""
        rows = 4 if self.columns <= 5 else 2 if self.columns <= 10 else 1
        shape = f"{self.columns}, {self.threads}, {rows}"
        return f"gram<{shape}, false>", f"gram<{shape}, true>"


def choose_gram(size: int) -> GramKernel | None:
    """Choose the kernel for members of `size` points; None where there are too many."""
    for threads in (32, 64, 128, 256, 512):
        columns = -(-size // threads)
        if columns <= (8 if threads < 512 else 20):
            return GramKernel(columns, threads)
    return None


def short_kernel(n_timepoints: int) -> str:
    """Name of the kernel of ``short.cu`` for series of so many points."""
    return f"correlate_short<{-(-n_timepoints // 4)}>"


def kernels() -> dict[str, list[str]]:
    """List some of the instances of each source file, for the compile check."""
    lengths = (1, 2, 3, 8, 56, 100, 128, 600, 1024, 2709, 3053, 3750, 4000, 5000)
    transforms = [choose_transform(n) for n in lengths]
    grams = [choose_gram(size) for size in (100, 600, 1024, 2709, 3750, 5000, 10_000)]
    return {
        "kshape/correlate.cu": sorted(
            name for t in transforms if t is not None for name in t.names
        ),
        "kshape/short.cu": [short_kernel(n) for n in (3, 8, 24, 56, 64)],
        "kshape/labels.cu": list(LABEL_KERNELS),
        "kshape/centers.cu": sorted({name for g in grams if g is not None for name in g.names})
        + list(CENTER_KERNELS),
    }
