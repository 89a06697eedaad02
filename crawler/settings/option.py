"""What is declared of one setting: its help, its parser, and the names that follow from its field.

`sections` declares the settings themselves.
"""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from os import PathLike, fspath
from typing import Any, Final, get_args, get_origin

import msgspec
from msgspec import Struct

from crawler.errors import ConfigError
from crawler.settings.values import Kind, T


class Option(Struct, frozen=True):
    """The help and parser of one field."""

    help: str
    kind: Kind[Any]
    short: str | None = None
    flag: bool = True  # False: no flag of its own (the start URLs are arguments)
    secret: bool = False  # never shown


def option(
    default: T, text: str, kind: Kind[T], short: str | None = None, *, flag: bool = True, secret: bool = False
) -> T:
    """A field of a section. mypy checks that kind, default and annotation agree."""
    return dataclasses.field(default=default, metadata={"option": Option(text, kind, short, flag, secret)})


# What a section has from `Section`: to write these methods for each takes 7 % of a start of the program.
SHARED: Final[Mapping[str, bool]] = {"init": False, "repr": False, "eq": False, "match_args": False}


@dataclass(**SHARED)
class Section:
    """The base of all sections, which are frozen. Values of other types are refused; a path is a text, a list
    is a tuple.
    """

    def __init__(self, **values: Any) -> None:
        given = vars(self)
        for item in dataclasses.fields(self):
            given[item.name] = values.pop(item.name, item.default)
        if values:
            raise TypeError(f"{type(self).__name__} has no field {', '.join(values)}")
        self._check()

    def __setattr__(self, name: str, value: object) -> None:
        raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")

    def __delattr__(self, name: str) -> None:
        raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash((type(self), *vars(self).values()))

    def __repr__(self) -> str:
        values = ", ".join(f"{name}={value!r}" for name, value in vars(self).items())
        return f"{type(self).__name__}({values})"

    def _check(self) -> None:
        for item in dataclasses.fields(self):
            value = getattr(self, item.name)
            try:
                msgspec.convert(_plain(value), item.type)
            except msgspec.ValidationError:
                name = f"Settings.{type(self).__name__.lower()}.{item.name}"
                raise ConfigError(f"{name}: must be {_words(item.type)}, not {_kind(value)}.") from None


def _plain(value: object) -> object:
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    return fspath(value) if isinstance(value, PathLike) else value


def _kind(value: object) -> str:
    name = type(value).__name__
    if not isinstance(value, list | tuple):
        return name
    return f"{name} of {' and '.join(sorted({type(one).__name__ for one in value}))}"


_WORDS: Final[Mapping[Any, str]] = {
    bool: "True or False", int: "a whole number", float: "a number", str: "a text", type(None): "None",
}  # fmt: skip


def _words(kind: Any) -> str:
    if get_origin(kind) is tuple:
        return f"a tuple of {get_args(kind)[0].__name__}, as in (…,)"
    return " or ".join(_WORDS[one] for one in get_args(kind) or [kind])


class Setting(Struct, frozen=True):
    """One setting: section, Python name, option and default."""

    section: str
    field: str
    option: Option
    default: object

    @property
    def name(self) -> str:
        """Its name as a flag and in TOML: `max-depth`."""
        return self.field.replace("_", "-")

    @property
    def table(self) -> str:
        """The name of its table in TOML."""
        return self.name if self.option.kind.tables else self.section

    @property
    def heading(self) -> str:
        """The line above it in TOML: `[scope]`, `[[rule]]`."""
        return f"[[{self.table}]]" if self.option.kind.tables else f"[{self.table}]"

    @property
    def label(self) -> str:
        """As it is named to people: `--max-depth`, `[[rule]]`."""
        return self.heading if self.option.kind.tables else f"--{self.name}"

    def of(self, settings: object) -> Any:
        """Its value in `Settings`."""
        return getattr(getattr(settings, self.section), self.field)

    @property
    def env(self) -> str:
        """Its environment variable: `SITEMAP_CRAWLER_MAX_DEPTH`."""
        return "SITEMAP_CRAWLER_" + self.field.upper()
