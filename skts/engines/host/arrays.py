"""Two works of NumPy in code that is compiled sooner than Numba's."""

from __future__ import annotations

from .kernels import kernel

__all__ = ["kth_smallest", "put"]


@kernel
def put(values, out):
    """Write the numbers of an array to the front of another one.

    With ``out[: values.size] = values`` Numba compiles the text of an error message, too, which
    takes a second.
    """
    for k in range(len(values)):
        out[k] = values[k]


@kernel
def kth_smallest(values, k):
    """Return the k-th smallest number, counted from 0; the numbers are put in another order.

    The same as ``np.partition(values, k)[k]``, which Numba compiles for three seconds: Hoare's
    "Find" (Communications of the ACM 4, 1961), with the median of three as its pivot. There are
    no NaNs.
    """
    low, high = 0, values.size - 1
    while low < high:
        one, two, three = values[low], values[(low + high) // 2], values[high]
        pivot = max(min(one, two), min(max(one, two), three))
        i, j = low, high
        while i <= j:
            while values[i] < pivot:
                i += 1
            while pivot < values[j]:
                j -= 1
            if i <= j:
                values[i], values[j] = values[j], values[i]
                i, j = i + 1, j - 1
        if j < k < i:
            break
        if k <= j:
            high = j
        else:
            low = i
    return values[k]
