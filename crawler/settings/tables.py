"""Settings that are tables of their own in TOML, as `[[rule]]`: parses them, from TOML or JSON text.

What the keys mean is declared with each kind of table: `page_rules`, `sitemap_sections`.
"""

import json
from collections.abc import Mapping
from typing import Any, Generic, TypeVar

from msgspec import NODEFAULT, Struct
from msgspec.structs import asdict, fields

from crawler.settings.values import InvalidValue, Kind

Keys = Mapping[str, tuple[Kind[Any], object, str]]
"""By key: how it is read, an example, and its help."""


T = TypeVar("T", bound=Struct)
"""One table: its fields are the keys; those without a default are needed."""


def given_keys(table: Struct) -> dict[str, Any]:
    """The keys of a table that are not the default."""
    values = {item.name: (getattr(table, item.name), item.default) for item in fields(table)}
    return {name: value for name, (value, default) in values.items() if value != default}


class Tables(Struct, Generic[T], frozen=True):
    """Any number of tables of one kind."""

    name: str
    table: type[T]
    keys: Keys

    def kind(self) -> Kind[tuple[T, ...]]:
        """How the setting is read and shown."""
        return Kind(f"{self.name.upper()}S", self._read, self._show, many=True, tables=True)

    def _read(self, value: object) -> tuple[T, ...]:
        if isinstance(value, str):
            try:
                value = json.loads(value)
            except ValueError:
                value = None
        if not isinstance(value, list | tuple):
            words = f"[[{self.name}]] with a {next(iter(self.keys))}"
            raise ValueError(f"must be tables: {words}; in the environment, a JSON array of objects")  # noqa: TRY004 - the only error of a `Kind`
        return tuple(self._one(given, number) for number, given in enumerate(value, 1))

    def _one(self, given: object, number: int) -> T:
        values = asdict(given) if isinstance(given, self.table) else given
        needed = [name for name in self.keys if name in _needed(self.table)]
        if not isinstance(values, Mapping):
            raise InvalidValue(given, f"must be a table with the key {needed[0]}", f" {number}")
        for name in values:
            if name not in self.keys:
                words = f"is not a key of a {self.name} ({', '.join(self.keys)})"
                raise InvalidValue(name, words, f" {number}")
        for name in needed:
            if name not in values:
                raise InvalidValue("", "must not be missing", f" {number} {name}")
        return self.table(**{name: self._value(name, value, number) for name, value in values.items()})

    def _value(self, name: str, value: object, number: int) -> Any:
        try:
            return self.keys[name][0].read(value)
        except ValueError as error:
            raise InvalidValue(value, str(error), f" {number} {name}") from None

    def _show(self, given: tuple[T, ...]) -> str:
        return json.dumps([given_keys(table) for table in given]) if given else ""


def _needed(table: type[Struct]) -> set[str]:
    """The keys that have no default."""
    return {item.name for item in fields(table) if item.default is NODEFAULT}
