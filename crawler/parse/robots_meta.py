"""Indexing directives of `X-Robots-Tag` and meta robots (Google's robots meta tag specification)."""

import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Final

from msgspec import Struct

from crawler.parse.headers import LONGEST_FIELD_READ
from crawler.parse.late import late

_AGENT: Final = late(r"\s*([A-Za-z0-9_.*-]+)\s*:(.*)", re.DOTALL)
# Directives with a value after a colon, which must not be taken for the name of an agent.
_VALUED: Final = frozenset({"unavailable_after", "max-snippet", "max-image-preview", "max-video-preview"})

LONGEST_DATE: Final = 64  # characters


class Directives(Struct, frozen=True):
    """The directives for robots. `|` combines them: the strictest wins."""

    noindex: bool = False
    nofollow: bool = False
    noimageindex: bool = False

    def __or__(self, other: "Directives") -> "Directives":
        return Directives(
            self.noindex or other.noindex,
            self.nofollow or other.nofollow,
            self.noimageindex or other.noimageindex,
        )


def directives(content: str) -> Directives:
    """The content of a meta robots element; `none` means both, unknown words are ignored."""
    words = {word.strip().lower() for word in content[:LONGEST_FIELD_READ].replace(";", ",").split(",")}
    none = "none" in words
    return Directives(none or "noindex" in words, none or "nofollow" in words, "noimageindex" in words)


def unavailable_after(content: str) -> datetime | None:
    """When a page stops being indexed, by `unavailable_after`; the earliest if there are several.

    In any of the forms that Google names: RFC 822, RFC 850 and ISO 8601. Without a zone it is UTC.
    """
    pieces, found = content[:LONGEST_FIELD_READ].split(","), []
    for place, piece in enumerate(pieces):
        name, colon, value = piece.partition(":")
        if colon and name.strip().lower() == "unavailable_after":
            # A comma may follow the day of the week.
            found += [_moment(value) or _moment(",".join([value, *pieces[place + 1 : place + 2]]))]
    return min(filter(None, found), default=None)


def _moment(text: str) -> datetime | None:
    text = text.strip()
    if len(text) > LONGEST_DATE:
        return None
    from email.utils import parsedate_to_datetime  # noqa: PLC0415 - takes long to import, and few pages say it

    for read in (datetime.fromisoformat, parsedate_to_datetime):
        try:
            at = read(text)
            return at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
        except (ValueError, TypeError, IndexError, OverflowError):
            continue
    return None


def addressed(values: Iterable[str]) -> Iterator[tuple[str, str]]:
    """What X-Robots-Tag fields say, each with the name of the agent that it is for, in lower case; `*`: all.

    `agent: rule, rule` applies to that agent only, up to the next name or the end of the field.
    """
    for value in values:
        name, rules = "*", list[str]()
        for rule in value[:LONGEST_FIELD_READ].split(","):
            match = _AGENT.fullmatch(rule)
            if match and match[1].lower() not in _VALUED:
                yield name, ",".join(rules)
                name, rules = match[1].lower(), [match[2]]
            else:
                rules.append(rule)
        yield name, ",".join(rules)
