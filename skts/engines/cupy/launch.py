"""Launches: arguments are checked against what the source of a kernel declares, and converted."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import cupy as cp
import numpy as np

from .signatures import Parameter, members_of, parameters_of

__all__ = ["Copy", "Kernel", "Launches"]

#: Which time launches become a graph: at the first the kernels may have to be loaded, which a graph
#: cannot, and making one takes 0.1 to 0.2 ms, as long as it spares in one or two times.
WORTH_A_GRAPH = 3
#: The types of C++ by those of NumPy.
TYPES = {
    "bool": np.bool_,
    "unsigned char": np.uint8,
    "int": np.int32,
    "unsigned": np.uint32,
    "long long": np.int64,
    "unsigned long long": np.uint64,
    "float": np.float32,
    "double": np.float64,
}
#: Pointers to vectors take arrays of what these consist of.
VECTORS = {
    f"{name}{size}": type
    for name, type in (("int", np.int32), ("float", np.float32), ("double", np.float64))
    for size in (2, 4)
}
#: How `struct` packs the members of a structure, by types of C++; pointers as addresses.
PACKED = {
    "bool": "?",
    "unsigned char": "B",
    "int": "i",
    "unsigned": "I",
    "long long": "q",
    "unsigned long long": "Q",
    "float": "f",
    "double": "d",
}
#: What a generated function does to an argument, by the kind of its parameter: whatever is as most
#: launches give it is checked in place, everything else by the converter of the parameter.
POINTER = """
    if {a} is not None and ({a}.__class__ is not array or {a}.dtype is not {a}_dtype):
        {a} = convert_{a}({a})"""
OPAQUE_POINTER = """
    if {a} is not None and {a}.__class__ is not array:
        {a} = convert_{a}({a})"""
ADDRESS = """
    {a} = 0 if {a} is None else {a}.data.ptr"""
INTEGER = """
    if {a}.__class__ is int and {low} <= {a} <= {high}:
        {a} = {a}_type({a})
    elif {a}.__class__ is not {a}_type:
        {a} = convert_{a}({a})"""
FLOAT = """
    if {a}.__class__ is float:
        {a} = {a}_type({a})
    elif {a}.__class__ is not {a}_type:
        {a} = convert_{a}({a})"""
STRUCTURE = """
    {a} = convert_{a}({a})"""


class Kernel:
    """A kernel that is launched by calling it.

    Every argument must fit the parameter of the kernel's source: arrays lie on the device and have
    items of the size that a pointer points to, None is the null pointer, Python's and NumPy's
    numbers become exactly the type of the parameter, structures come as dictionaries of their
    members or as arrays of one element. Where arguments are given by the names of their parameters,
    and for members, arrays must have the type that a pointer points to; where all go by their
    places, items of that size, whose bits a kernel may read as it likes.

    Parameters
    ----------
    function : cupy.RawKernel
        The compiled function.
    file, name : str
        Where it comes from, see `load_kernel`.
    """

    def __init__(self, function: cp.RawKernel, file: str, name: str) -> None:
        self.function = function
        self.title = f"{file}: {name.partition('<')[0]}"
        parameters = parameters_of(file, name)
        self.names = tuple(parameter.name for parameter in parameters)
        self.by_name, self.by_place = (
            _convert_all(self.title, file, parameters, exact) for exact in (True, False)
        )

    def __call__(
        self,
        grid: tuple[int, ...] | int,
        block: tuple[int, ...] | int,
        arguments: Iterable[Any] = (),
        /,
        *,
        shared_mem: int = 0,
        **named: Any,
    ) -> None:
        """Launch the kernel.

        Parameters
        ----------
        grid, block : int or tuple of int
            Blocks, and threads of each.
        arguments : iterable, default ()
            Arguments of the first parameters.
        shared_mem : int, default 0
            Bytes of dynamic shared memory.
        **named
            Arguments of the other parameters, by name.

        Raises
        ------
        TypeError
            If an argument is missing, unknown, or does not fit its parameter.
        """
        self.function(
            (grid,) if isinstance(grid, int) else grid,
            (block,) if isinstance(block, int) else block,
            self._converted(tuple(arguments), named),
            shared_mem=shared_mem,
        )

    def ready(
        self,
        grid: tuple[int, ...] | int,
        block: tuple[int, ...] | int,
        *,
        shared_mem: int = 0,
        **named: Any,
    ) -> Callable[[], None]:
        """Return a launch whose arguments are checked and converted now, once for all its calls."""
        return partial(
            self.function,
            (grid,) if isinstance(grid, int) else grid,
            (block,) if isinstance(block, int) else block,
            self._converted((), named),
            shared_mem=shared_mem,
        )

    def _converted(self, given: tuple[Any, ...], named: dict[str, Any]) -> tuple[Any, ...]:
        """Arguments as the function takes them."""
        convert = self.by_place
        if named:
            convert, rest = self.by_name, self.names[len(given) :]
            try:
                values = given + tuple([named[name] for name in rest])
            except KeyError:
                raise self._refusal(given, named) from None
            if len(named) != len(rest):
                raise self._refusal(given, named)
            given = values
        elif len(given) != len(self.names):
            raise self._refusal(given, named)
        return convert(given)

    def _refusal(self, given: tuple[Any, ...], named: dict[str, Any]) -> TypeError:
        """Return the error that says which arguments are missing or unknown."""
        rest = self.names[len(given) :]
        missing = [name for name in rest if name not in named]
        unknown = [name for name in named if name not in self.names]
        twice = [name for name in self.names[: len(given)] if name in named]
        for what, names in (("misses", missing), ("has no", unknown), ("got twice", twice)):
            if names:
                return TypeError(f"{self.title} {what} {', '.join(names)}.")
        return TypeError(f"{self.title} takes {len(self.names)} arguments and got {len(given)}.")


def _convert_all(
    title: str, file: str, parameters: Sequence[Parameter], exact: bool, addresses: bool = False
) -> Callable[[Sequence[Any]], tuple[Any, ...]]:
    """Return a function that checks and converts arguments, given in the order of the parameters.

    Its text is made for the parameters: a search of some milliseconds launches a hundred kernels of
    fifteen arguments, and a call of Python for each would take longer than the launch. With
    `addresses`, pointers become numbers.
    """
    places = [f"a{i}" for i in range(len(parameters))]
    known: dict[str, Any] = {"array": cp.ndarray}
    together = f"({''.join(f'{a}, ' for a in places)})"
    body = f"{together} = given"
    for a, parameter in zip(places, parameters, strict=True):
        _, type, pointer = parameter
        known[f"convert_{a}"] = _converter(title, file, parameter, exact)
        low = high = 0
        if pointer and (item := TYPES.get(type) or VECTORS.get(type)) is None:
            text = OPAQUE_POINTER
        elif pointer:
            text, known[f"{a}_dtype"] = POINTER, np.dtype(item)
        elif (number := TYPES.get(type)) is None:
            text = STRUCTURE
        else:
            known[f"{a}_type"] = number
            text = FLOAT if issubclass(number, np.floating) else INTEGER
            low, high = _range(number) if text is INTEGER else (0, 0)
        if pointer and addresses:
            text += ADDRESS
        body += text.format(a=a, low=low, high=high)
    text = f"def convert(given):\n    {body}\n    return {together}\n"
    exec(compile(text, f"<arguments of {title}>", "exec"), known)
    made: Callable[[Sequence[Any]], tuple[Any, ...]] = known["convert"]
    return made


class Launches:
    """Launches that follow each other again and again: one graph, once that pays.

    A graph is launched in a few microseconds, whatever is in it. It begins when the stream is done
    with what it was given before, as launches do. To make it takes as long as some times without.

    Parameters
    ----------
    launches : sequence of callable
        Launches that are `Kernel.ready`, and instances of `Copy`. What they work on has to stay
        where it is.
    """

    def __init__(self, launches: Sequence[Callable[[], None]]) -> None:
        self.launches = tuple(launches)
        self._graph: Any = None
        self._times = 0

    def __call__(self) -> None:
        """Launch all."""
        self._times += 1
        if self._times == WORTH_A_GRAPH and hasattr(cp.cuda.Stream, "begin_capture"):
            self._graph = self._capture()
        if self._graph is not None:
            self._graph.launch(cp.cuda.get_current_stream())
            return
        for launch in self.launches:
            launch()

    def _capture(self) -> Any:
        """Make the graph, on a stream of its own, undisturbed by what other threads do."""
        with cp.cuda.Stream(non_blocking=True) as stream:
            stream.begin_capture(cp.cuda.runtime.streamCaptureModeThreadLocal)
            try:
                for launch in self.launches:
                    launch()
            finally:
                graph = stream.end_capture()
        return graph


class Copy:
    """A copy between the device and pinned memory of the host, made by calling it.

    It is given to the current stream: the host waits for that before it reads or writes again.

    Parameters
    ----------
    to, source : ndarray or cupy.ndarray
        One on the device, one on the host, of as many bytes, C-contiguous.
    """

    def __init__(self, to: np.ndarray | cp.ndarray, source: np.ndarray | cp.ndarray) -> None:
        if to.nbytes != source.nbytes or not (to.flags.c_contiguous and source.flags.c_contiguous):
            raise ValueError("A copy needs two contiguous arrays of one size.")
        runtime = cp.cuda.runtime
        to_host = isinstance(to, np.ndarray)
        self.kind = runtime.memcpyDeviceToHost if to_host else runtime.memcpyHostToDevice
        # held, so that the addresses stay theirs
        self.arrays = to, source
        self.places = _address(to), _address(source)

    def __call__(self) -> None:
        """Copy."""
        size, stream = self.arrays[0].nbytes, cp.cuda.get_current_stream().ptr
        cp.cuda.runtime.memcpyAsync(*self.places, size, self.kind, stream)


def _address(array: np.ndarray | cp.ndarray) -> int:
    """Where an array lies."""
    place: int = array.ctypes.data if isinstance(array, np.ndarray) else array.data.ptr
    return place


def _converter(title: str, file: str, parameter: Parameter, exact: bool) -> Callable[[Any], Any]:
    """Return what checks and converts the argument of a parameter."""
    name, type, pointer = parameter
    title = f"{title}: {name}"
    if pointer:
        return _pointer(title, type, exact)
    number = TYPES.get(type)
    if number is None:
        return _structure(title, file, type)
    return _float(title, number) if issubclass(number, np.floating) else _integer(title, number)


def _pointer(title: str, type: str, exact: bool) -> Callable[[Any], Any]:
    """Return the converter of a pointer: it takes an array of the device, or None."""
    # of a structure of the source nothing is known
    fitting = _fitting(type, exact) if type in TYPES or type in VECTORS else None
    array = cp.ndarray

    def convert(value: Any) -> Any:
        if isinstance(value, array):
            if fitting is None or value.dtype.char in fitting:
                return value
            raise TypeError(f"{title} is {type}*, and the array is of {value.dtype}.")
        if value is None or (isinstance(value, (int, np.integer)) and value == 0):
            return None
        raise TypeError(f"{title} is {type}*, and {_kind(value)} is no array of the device.")

    return convert


def _fitting(type: str, exact: bool) -> frozenset[str]:
    """Letters of the types that a pointer takes: with `exact` what it says, else its size."""
    item = np.dtype(TYPES.get(type) or VECTORS[type])
    sizes = {item.itemsize, item.itemsize * (int(type[-1]) if type in VECTORS else 1)}
    every = {np.dtype(code) for code in "?bBhHiIlLqQefdFD"}
    if not exact:
        return frozenset(dtype.char for dtype in every if dtype.itemsize in sizes)
    # signs do not matter, nor whether a byte is a truth value, nor what a pair of numbers is called
    kinds = "iu" if item.kind in "iu" else item.kind
    return frozenset(
        dtype.char
        for dtype in every
        if (dtype.kind in kinds and dtype.itemsize == item.itemsize)
        or (item.itemsize == dtype.itemsize == 1)
        or (dtype.kind == "c" and item.kind == "f" and type[-1] == "2" and dtype.itemsize in sizes)
    )


def _range(number: type) -> tuple[int, int]:
    """Return the least and the largest number of an integer type."""
    return (0, 1) if number is np.bool_ else (np.iinfo(number).min, np.iinfo(number).max)


def _integer(title: str, number: type) -> Callable[[Any], Any]:
    """Return the converter of an integer: it takes integers within its range, and truth values."""
    low, high = _range(number)

    def convert(value: Any) -> Any:
        if not isinstance(value, (int, np.integer, np.bool_)):
            raise TypeError(f"{title} is an integer, and got {_kind(value)}.")
        value = int(value)
        if not low <= value <= high:
            raise TypeError(f"{title} holds {low} to {high}, and got {value}.")
        return number(value)

    return convert


def _float(title: str, number: type) -> Callable[[Any], Any]:
    """Return the converter of a floating-point number: it takes numbers."""

    def convert(value: Any) -> Any:
        if isinstance(value, (float, int, np.floating, np.integer)):
            return number(value)
        raise TypeError(f"{title} is a number, and got {_kind(value)}.")

    return convert


def _structure(title: str, file: str, type: str) -> Callable[[Any], Any]:
    """Return the converter of a structure: it takes its members by name, or an array of one.

    CuPy gets its bytes as a number of NumPy: of an array it would ask the address, which takes
    longer than the launch.
    """
    members = members_of(file, type)
    plain = all(member.pointer or member.type in TYPES for member in members)
    names = tuple(member.name for member in members if plain)
    values = _convert_all(title, file, members if plain else (), True, addresses=True)
    pack = _packing(members if plain else ()).pack

    def convert(value: Any) -> Any:
        if value.__class__ is np.void and value.dtype.names is None:
            return value
        if value.__class__ is dict and names:
            try:
                given = [value[name] for name in names]
            except KeyError as missing:
                raise TypeError(f"{title} misses {missing.args[0]}.") from None
            if len(value) != len(given):
                raise TypeError(f"{title} has no {min(value.keys() - set(names))}.")
            return np.void(pack(*values(given)))
        if isinstance(value, (np.ndarray, np.void)) and value.size == 1:
            return np.void(value.tobytes())
        raise TypeError(f"{title} is a {type}, an array of one element, and got {_kind(value)}.")

    return convert


def _packing(members: Sequence[Parameter]) -> struct.Struct:
    """How members lie in a structure of C++: each at a multiple of its size, the end too."""
    letters = ["P" if member.pointer else PACKED[member.type] for member in members]
    # none of a type at the end only moves the end
    ends = [f"0{letter}" for letter in sorted(set(letters))]
    return struct.Struct("@" + "".join(letters + ends))


def _kind(value: Any) -> str:
    """How messages name an argument."""
    return f"{value.__class__.__module__}.{value.__class__.__qualname__}".removeprefix("builtins.")
