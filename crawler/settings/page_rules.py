"""One `[[rule]]` of the settings: what applies to the pages whose path and query match a pattern.

Parses rules from TOML tables or JSON text, and formats them. Which rule applies to a URL is decided in
`rules.page_rules`.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

from crawler.settings.values import ABSENT, CHOICE, NUMBER, PATTERN, SWITCH, InvalidValue, Kind

CHANGEFREQ: Final = CHOICE("always", "hourly", "daily", "weekly", "monthly", "yearly", "never")
PRIORITY: Final = NUMBER(0, 1)


@dataclass(frozen=True, slots=True)
class PageRule:
    """A rule. Its fields are the keys of `[[rule]]`."""

    match: str  # a pattern, as in --include
    changefreq: str | None = None  # None: that of --changefreq
    priority: float | None = None  # None: that of --priority
    list: bool = True
    follow: bool = True

    def __str__(self) -> str:
        """The keys that are not the default, for people."""
        given = [f"{name} = {json.dumps(value)}" for name, value in _given(self).items()]
        return ", ".join(given)


KEYS: Final[Mapping[str, tuple[Kind[Any], object, str]]] = {
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
"""By key: how it is read, an example, and its help."""


def _read(value: object) -> tuple[PageRule, ...]:
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            value = None
    if not isinstance(value, list | tuple):
        raise ValueError("must be tables: [[rule]] with a match; in the environment, a JSON array of objects")  # noqa: TRY004 - the only error of a `Kind`
    return tuple(_rule(rule, number) for number, rule in enumerate(value, 1))


def _rule(given: object, number: int) -> PageRule:
    values = asdict(given) if isinstance(given, PageRule) else given
    if not isinstance(values, Mapping):
        raise InvalidValue(given, "must be a table with the key match", f" {number}")
    for name in values:
        if name not in KEYS:
            raise InvalidValue(name, f"is not a key of a rule ({', '.join(KEYS)})", f" {number}")
    if "match" not in values:
        raise InvalidValue("", "must not be missing", f" {number} match")
    return PageRule(**{name: _value(name, value, number) for name, value in values.items()})


def _value(name: str, value: object, number: int) -> Any:
    try:
        return KEYS[name][0].read(value)
    except ValueError as error:
        raise InvalidValue(value, str(error), f" {number} {name}") from None


def _given(rule: PageRule) -> dict[str, Any]:
    """The keys of a rule that are not the default."""
    plain = asdict(PageRule(rule.match))
    return {name: value for name, value in asdict(rule).items() if name == "match" or value != plain[name]}


def _show(rules: tuple[PageRule, ...]) -> str:
    return json.dumps([_given(rule) for rule in rules]) if rules else ""


PAGE_RULES: Final[Kind[tuple[PageRule, ...]]] = Kind("RULES", _read, _show, many=True, tables=True)
