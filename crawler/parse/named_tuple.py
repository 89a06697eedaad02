"""`typing.NamedTuple` whose classes cost a sixth to make, as a start makes sixty of them.

The standard library compiles a constructor for each class. Here, classes with as many fields share its code,
and all share their methods. From Python 3.14 on, which evaluates annotations late, it is
`typing.NamedTuple` itself. Pure.
"""

import sys
from typing import TYPE_CHECKING, Any

__all__ = ["NamedTuple"]

if TYPE_CHECKING or sys.version_info >= (3, 14):
    from typing import NamedTuple
else:
    from collections import _tuplegetter
    from functools import cache
    from types import CodeType, FunctionType

    @cache
    def _constructor(fields: int) -> CodeType:
        names = ", ".join(f"field_{number}" for number in range(fields))
        return eval(f"lambda _cls, {names}: _new(_cls, ({names},))").__code__  # noqa: S307 - no input

    class _Methods(tuple):
        __slots__ = ()

        @classmethod
        def _make(cls, values: Any) -> Any:
            made = tuple.__new__(cls, values)
            if len(made) != len(cls._fields):
                raise TypeError(f"Expected {len(cls._fields)} arguments, got {len(made)}")
            return made

        def _replace(self, /, **changed: Any) -> Any:
            made = tuple.__new__(type(self), map(changed.pop, self._fields, self))
            if changed:
                raise ValueError(f"Got unexpected field names: {list(changed)}")
            return made

        def _asdict(self) -> dict[str, Any]:
            return dict(zip(self._fields, self, strict=True))

        def __repr__(self) -> str:
            shown = ", ".join(f"{name}={value!r}" for name, value in self._asdict().items())
            return f"{type(self).__name__}({shown})"

        def __getnewargs__(self) -> tuple[Any, ...]:
            return tuple(self)

    class _Maker(type):
        """The metaclass of `NamedTuple` alone: what it makes of a `class` statement is a plain class."""

        def __new__(mcs, name: str, _: Any, body: dict[str, Any]) -> Any:
            fields = tuple(body["__annotations__"])
            defaults = {field: body[field] for field in fields if field in body}
            code = _constructor(len(fields)).replace(
                co_varnames=("_cls", *fields), co_name="__new__", co_qualname=f"{name}.__new__"
            )
            new = FunctionType(code, {"_new": tuple.__new__}, "__new__", tuple(defaults.values()))
            body |= {field: _tuplegetter(at, None) for at, field in enumerate(fields)}
            body |= {"__new__": new, "__slots__": (), "__match_args__": fields}
            body |= {"_fields": fields, "_field_defaults": defaults}
            return type(name, (_Methods,), body)

    NamedTuple = type.__new__(_Maker, "NamedTuple", (), {})
