"""Settings that are tables of their own in TOML, `[[rule]]` and `[[section]]`, and their keys.

They are parsed from TOML or JSON text. Which rule applies to a URL, and in which section it is, is decided in
`rules.page_rules`.
"""

import json
import re
from collections.abc import Mapping
from typing import Any, Final, Generic, TypeVar

from msgspec import NODEFAULT, Struct
from msgspec.structs import asdict, fields, replace

from crawler.parse.late import late
from crawler.settings.values import ABSENT, CHOICE, NUMBER, PATTERN, SWITCH, InvalidValue, Kind

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
        needed = [item.name for item in fields(self.table) if item.default is NODEFAULT]
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


CHANGEFREQ: Final = CHOICE("always", "hourly", "daily", "weekly", "monthly", "yearly", "never")
PRIORITY: Final = NUMBER(0, 1)


class PageRule(Struct, frozen=True):
    """A rule. Its fields are the keys of `[[rule]]`."""

    match: str  # a pattern, as in --include
    changefreq: str | None = None  # None: that of --changefreq
    priority: float | None = None  # None: that of --priority
    list: bool = True
    follow: bool = True

    def __str__(self) -> str:
        """The keys that are not the default, for people."""
        given = [f"{name} = {json.dumps(value)}" for name, value in given_keys(self).items()]
        return ", ".join(given)


RULE_KEYS: Final[Keys] = {
    "match": (PATTERN, "/blog/*", "which pages: a glob on path and query, or re:REGEX"),
    "changefreq": (
        ABSENT(CHANGEFREQ),
        "weekly",
        "changefreq to write for them, instead of --changefreq (search engines ignore it)",
    ),
    "priority": (
        ABSENT(PRIORITY),
        0.8,
        "priority to write for them, from 0.0 to 1.0, instead of --priority (search engines ignore it)",
    ),
    "list": (SWITCH, True, "false: do not list them"),
    "follow": (SWITCH, True, "false: do not follow their links"),
}
PAGE_RULES: Final[Kind[tuple[PageRule, ...]]] = Tables("rule", PageRule, RULE_KEYS).kind()


LONGEST_NAME: Final = 40  # characters of a name
MOST_SECTIONS: Final = 100
_NAME: Final = late(rf"[a-z](?:[a-z0-9-]{{0,{LONGEST_NAME - 2}}}[a-z0-9])?", re.ASCII)


class SitemapSection(Struct, frozen=True):
    """A section. Its fields are the keys of `[[section]]`."""

    name: str
    match: str  # a pattern, as in --include


def _name(value: object) -> str:
    if not isinstance(value, str) or not _NAME.fullmatch(value):
        raise ValueError(f"must be at most {LONGEST_NAME} lower-case letters, digits and '-', a letter first")
    return value


SECTION_KEYS: Final[Keys] = {
    "name": (Kind("NAME", _name), "blog", "name of its files: sitemap-NAME-00001.xml.gz"),
    "match": (PATTERN, "/blog/*", "which pages: a glob on path and query, or re:REGEX"),
}
_TABLES: Final = Tables("section", SitemapSection, SECTION_KEYS).kind()


def _read_sections(value: object) -> tuple[SitemapSection, ...]:
    sections = _TABLES.read(value)
    if len(sections) > MOST_SECTIONS:
        raise ValueError(f"must be at most {MOST_SECTIONS} sections")
    names = [section.name for section in sections]
    for number, name in enumerate(names):
        if name in names[:number]:
            raise InvalidValue(name, "is the name of two sections", f" {number + 1} name")
    return sections


SITEMAP_SECTIONS: Final[Kind[tuple[SitemapSection, ...]]] = replace(_TABLES, read=_read_sections)
