"""One `[[rule]]` of the settings: what applies to the pages whose path and query match a pattern.

Declares its keys. Which rule applies to a URL is decided in `rules.page_rules`.
"""

import json
from typing import Final

from msgspec import Struct

from crawler.settings.tables import Keys, Tables, given_keys
from crawler.settings.values import ABSENT, CHOICE, NUMBER, PATTERN, SWITCH, Kind

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


KEYS: Final[Keys] = {
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
PAGE_RULES: Final[Kind[tuple[PageRule, ...]]] = Tables("rule", PageRule, KEYS).kind()
