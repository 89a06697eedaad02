"""The words that flow through a crawl, frozen, and the numbers of the Sitemap protocol.

    str -> Url -> Visit -> Lease -> Response | Broken -> Outcome -> Entry -> files

Values only: they say what happened, never what to do, and no method here does I/O. Reasons are enums whose value
is the stable code used in state, logs and reports, and whose `says` is the sentence shown to people. What is made for
every page or link is a named tuple: a frozen dataclass takes four times as long to make.
"""

from dataclasses import dataclass
from typing import NamedTuple, TypeAlias, assert_never

from crawler.model.facts import Lastmod
from crawler.model.reasons import Cause, Why
from crawler.parse.url import Url

HTML = frozenset({"text/html", "application/xhtml+xml"})


class Pattern(NamedTuple):
    """What the text of a URL has in common with others that may be a crawler trap."""

    kind: str  # calendar or query
    text: str
    family: str  # the patterns of one place: the queries of one path, the calendars of one origin
    named: bool = False  # for URLs that another page names as canonical, or redirects to: judged apart


@dataclass(frozen=True, slots=True)
class Listed:
    """Goes into the sitemap."""

    lastmod: Lastmod | None = None


@dataclass(frozen=True, slots=True)
class Unlisted:
    """Known, and left out on purpose."""

    why: Why
    detail: str = ""  # the canonical URL, the robots.txt line, the content type…


@dataclass(frozen=True, slots=True)
class Moved:
    """The server sent us elsewhere; the new place is a visit of its own."""

    to: Url


@dataclass(frozen=True, slots=True)
class Later:
    """The server asked for patience; the frontier offers the URL again."""

    until: float  # seconds since the epoch
    cause: Cause
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Failed:
    """Asked for, and no page came."""

    cause: Cause
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Kept:
    """Failed in a way that may pass, and listed all the same: it is in the last publication, and stays for a while."""

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
    """The words for people behind an outcome's code."""
    kind, _, reason = outcome_code.partition(":")
    if kind == "listed":
        return "in the sitemap"
    if kind == "moved":
        return "redirects to another URL"
    if kind == "kept":
        return f"stays in the sitemap for now: {Cause.of(reason).says}"
    return (Why.of(reason) if kind == "unlisted" else Cause.of(reason)).says
