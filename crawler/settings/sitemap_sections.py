"""One `[[section]]` of the settings: pages whose URLs stand in sitemap files of their own.

Declares its keys. Which section a URL is in is decided in `rules.page_rules`.
"""

import re
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from crawler.parse.late import late
from crawler.settings.tables import Keys, Tables
from crawler.settings.values import PATTERN, InvalidValue, Kind

LONGEST: Final = 40  # characters of a name
MOST: Final = 100
_NAME: Final = late(rf"[a-z](?:[a-z0-9-]{{0,{LONGEST - 2}}}[a-z0-9])?", re.ASCII)


class SitemapSection(Struct, frozen=True):
    """A section. Its fields are the keys of `[[section]]`."""

    name: str
    match: str  # a pattern, as in --include


def _name(value: object) -> str:
    if not isinstance(value, str) or not _NAME.fullmatch(value):
        raise ValueError(f"must be at most {LONGEST} lower-case letters, digits and '-', a letter first")
    return value


KEYS: Final[Keys] = {
    "name": (Kind("NAME", _name), "blog", "name of its files: sitemap-NAME-00001.xml.gz"),
    "match": (PATTERN, "/blog/*", "which pages: a glob on path and query, or re:REGEX"),
}
_TABLES: Final = Tables("section", SitemapSection, KEYS).kind()


def _read(value: object) -> tuple[SitemapSection, ...]:
    sections = _TABLES.read(value)
    if len(sections) > MOST:
        raise ValueError(f"must be at most {MOST} sections")
    names = [section.name for section in sections]
    for number, name in enumerate(names):
        if name in names[:number]:
            raise InvalidValue(name, "is the name of two sections", f" {number + 1} name")
    return sections


SITEMAP_SECTIONS: Final[Kind[tuple[SitemapSection, ...]]] = replace(_TABLES, read=_read)
