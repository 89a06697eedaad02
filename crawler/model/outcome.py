"""The outcome of a URL: listed, unlisted, moved, failed, kept, or to be tried later.

Each has a stable code, used in state, logs and reports, and a sentence for people. Values made for every page or link
are named tuples: a frozen dataclass takes four times as long to create.
"""

from dataclasses import dataclass
from typing import NamedTuple, TypeAlias, assert_never

from crawler.model.facts import Lastmod
from crawler.model.reasons import Cause, Why
from crawler.parse.url import Url

HTML = frozenset({"text/html", "application/xhtml+xml"})


class Pattern(NamedTuple):
    """A pattern of URLs that may be a crawler trap."""

    kind: str  # calendar or query
    text: str
    family: str  # groups related patterns: the queries of one path, the calendars of one origin
    named: bool = False  # canonicals and redirect targets, which are judged separately


@dataclass(frozen=True, slots=True)
class Listed:
    """In the sitemap."""

    lastmod: Lastmod | None = None


@dataclass(frozen=True, slots=True)
class Unlisted:
    """Deliberately left out of the sitemap."""

    why: Why
    detail: str = ""  # the canonical URL, the robots.txt line, the content type…


@dataclass(frozen=True, slots=True)
class Moved:
    """A redirect; its target is a visit of its own."""

    to: Url


@dataclass(frozen=True, slots=True)
class Later:
    """To be visited again later: the server asked to wait."""

    until: float  # seconds since the epoch
    cause: Cause
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Failed:
    """Requested, but no page was received."""

    cause: Cause
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Kept:
    """Failed for now, but listed: a published page stays in the sitemap for a while."""

    cause: Cause
    detail: str = ""
    lastmod: Lastmod | None = None  # the date it was published with


Outcome: TypeAlias = Listed | Unlisted | Moved | Later | Failed | Kept


def code(outcome: Outcome) -> str:
    """The stable code of an outcome: `listed`, `unlisted:noindex`, `moved`, `later:…`, `failed:dns`, `kept:dns`."""
    match outcome:
        case Listed():
            return "listed"
        case Unlisted(why):
            return f"unlisted:{why.value}"
        case Moved():
            return "moved"
        case Later(_, cause):
            return f"later:{cause.value}"
        case Failed(cause):
            return f"failed:{cause.value}"
        case Kept(cause):
            return f"kept:{cause.value}"
        case _:
            assert_never(outcome)


def says(outcome_code: str) -> str:
    """The sentence for an outcome's code."""
    kind, _, reason = outcome_code.partition(":")
    if kind == "listed":
        return "in the sitemap"
    if kind == "moved":
        return "redirects to another URL"
    if kind == "kept":
        return f"stays in the sitemap for now: {Cause.of(reason).says}"
    return (Why.of(reason) if kind == "unlisted" else Cause.of(reason)).says
