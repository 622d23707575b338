"""Arrays whose references are not counted.

Numba counts the references of an array whenever it is unpacked from a tuple, put into one, sliced,
or given to a function that is not compiled into its caller. Each count is an atomic operation of
some twenty cycles, and where the loops or exits of a function are many the compiler does not see
which of them belong together. A function that is called for each candidate spent more time with
them than with its sort.
"""

from __future__ import annotations

from typing import Any, TypeVar

from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, overload

__all__ = ["borrowed"]

Values = TypeVar("Values")


def borrowed(values: Values) -> Values:
    """Return an array, or a tuple with arrays, whose references are not counted.

    For arguments of the function that calls this: whoever gave them holds them until it returns.
    Never for an array that it made itself, which would be freed after its last use by name.
    """
    return values


def _without_owner(context: Any, builder: Any, kind: Any, value: Any) -> Any:
    """Leave out the owners of arrays, whose references would be counted."""
    if isinstance(kind, types.Array):
        array = context.make_array(kind)(context, builder, value)
        array.meminfo = cgutils.get_null_value(array.meminfo.type)
        return array._getvalue()
    if isinstance(kind, types.BaseTuple):
        parts = cgutils.unpack_tuple(builder, value, len(kind))
        parts = [_without_owner(context, builder, *each) for each in zip(kind, parts, strict=True)]
        return context.make_tuple(builder, kind, parts)
    return value


@intrinsic
def _borrowed(typing_context, values):
    """Return the same values without owners."""

    def codegen(context, builder, signature, args):
        return _without_owner(context, builder, signature.args[0], args[0])

    return values(values), codegen


@overload(borrowed)
def _in_kernels(values):
    """Return what kernels call."""
    return lambda values: _borrowed(values)
