"""How Numba sees cell policies: each is a type of its own, whose methods are compiled into kernels.

A kernel that takes a policy as its argument is compiled once for each class and kept on disk like
every other instance: the type is named by the class and by the state of its source (`stamp_of`), so
that another process finds the instance again, and none that holds an older version of the methods.
"""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable
from dataclasses import fields
from functools import cached_property
from typing import Any, TypeVar, cast

from numba import typeof, types
from numba.core import cgutils
from numba.core.imputils import impl_ret_borrowed
from numba.core.typing.templates import AttributeTemplate
from numba.extending import (
    NativeValue,
    infer_getattr,
    lower_getattr_generic,
    models,
    overload_method,
    register_model,
    unbox,
)

from ...host import stamp_of

__all__ = ["class_of", "compiles"]

#: Classes by the names of their types, which hold no class, so that they are the same on disk.
_classes: dict[str, type] = {}

Kind = TypeVar("Kind", bound=type)


class CellType(types.Type):
    """A policy: its class, and the types of its fields.

    Parameters
    ----------
    policy : str
        Name of the class and the state of its source.
    members : tuple of (str, Type)
        Its fields.
    """

    def __init__(self, policy: str, members: tuple[tuple[str, types.Type], ...]) -> None:
        self.policy, self.members = policy, members
        super().__init__(name=f"Cell({policy}, {members})")


@register_model(CellType)
class _Model(models.StructModel):
    def __init__(self, manager: Any, fe_type: CellType) -> None:
        super().__init__(manager, fe_type, list(fe_type.members))


@infer_getattr
class _Fields(AttributeTemplate):
    key = CellType

    def generic_resolve(self, typ: CellType, attr: str) -> types.Type | None:
        return dict(typ.members).get(attr)


@lower_getattr_generic(CellType)
def _field(context, builder, typ, value, attr):
    struct = cgutils.create_struct_proxy(typ)(context, builder, value=value)
    return impl_ret_borrowed(context, builder, dict(typ.members)[attr], getattr(struct, attr))


@unbox(CellType)
def _unbox(typ, obj, c):
    struct = cgutils.create_struct_proxy(typ)(c.context, c.builder)
    for name, member in typ.members:
        value = c.pyapi.object_getattr_string(obj, name)
        setattr(struct, name, c.unbox(member, value).value)
        c.pyapi.decref(value)
    return NativeValue(struct._getvalue())


def class_of(cell: CellType) -> type:
    """Return the class of a policy that a kernel is compiled for."""
    return _classes[cell.policy]


def compiles(base: Kind) -> Kind:
    """Let kernels take objects of a class and of those derived from it, and call its methods.

    Parameters
    ----------
    base : type
        A frozen dataclass. Subclasses define its methods anew, with arguments of the same names.

    Returns
    -------
    type
        The class.
    """
    methods = [
        name for name, value in vars(base).items() if callable(value) and not name.startswith("_")
    ]
    names: dict[type, str] = {}

    def type_of(cell: Any) -> CellType:
        kind = type(cell)
        if kind not in names:
            stamp = stamp_of(*(getattr(kind, name) for name in methods))
            digest = hashlib.sha256(repr(stamp).encode()).hexdigest()[:16]
            names[kind] = f"{kind.__module__}.{kind.__qualname__} {digest}"
            _classes[names[kind]] = kind
        return CellType(
            names[kind],
            tuple((each.name, typeof(getattr(cell, each.name))) for each in fields(cell)),
        )

    # Numba looks for an attribute of this name
    cached, marked = cached_property(type_of), cast(Any, base)
    cached.__set_name__(base, "_numba_type_")
    marked._numba_type_ = cached
    for name in methods:
        _let_kernels_call(name, inspect.signature(getattr(base, name)))
    return base


def _let_kernels_call(name: str, signature: inspect.Signature) -> None:
    """Have the method of a policy's class compiled where a kernel calls it."""

    def method(self: CellType, *args: Any) -> Callable[..., Any]:
        found: Callable[..., Any] = getattr(_classes[self.policy], name)
        return found

    # Numba looks at the names of arguments, and finds those of the base
    cast(Any, method).__signature__ = signature
    # not strict: annotations need not be those of the base
    overload_method(CellType, name, strict=False, jit_options={"error_model": "numpy"})(method)
