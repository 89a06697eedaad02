"""The outcome of a URL: listed, unlisted, moved, failed, kept, or to be tried later.

Each has a stable code, used in state, logs and reports, and a sentence for people. The types of the fields
bound what a worker process may send as the outcome of a visit.
"""

from typing import Annotated, TypeAlias, assert_never

from msgspec import Meta, Struct

from crawler.model.facts import Lastmod, Moment
from crawler.model.reasons import Cause, Why
from crawler.parse.url import ReceivedUrl

HTML = frozenset({"text/html", "application/xhtml+xml"})
Detail = Annotated[str, Meta(max_length=1_000_000)]  # of a Location header, after percent-encoding


class Pattern(Struct, frozen=True):
    """A pattern of URLs that may be a crawler trap."""

    kind: str  # calendar or query
    text: str
    named: bool = False  # canonicals and redirect targets, which are judged separately


class EndedVisit(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag=True):
    """The base of all outcomes. In a message: the name of the class, then the values of its fields."""


class Listed(EndedVisit, frozen=True):
    """In the sitemap."""

    lastmod: Lastmod | None = None
    detail: Detail = ""  # the canonicals that are ignored, and why


class Unlisted(EndedVisit, frozen=True):
    """Deliberately left out of the sitemap."""

    why: Why
    detail: Detail = ""  # the canonical URL, the robots.txt line, the content type…


class Moved(EndedVisit, frozen=True):
    """A redirect; its target is a visit of its own."""

    to: ReceivedUrl


class Later(EndedVisit, frozen=True):
    """To be visited again later: the server asked to wait."""

    until: Moment  # seconds since the epoch
    cause: Cause
    detail: Detail = ""


class Failed(EndedVisit, frozen=True):
    """Requested, but no page was received."""

    cause: Cause
    detail: Detail = ""


class Kept(EndedVisit, frozen=True):
    """Failed for now, but listed: a published page stays in the sitemap for a while."""

    cause: Cause
    detail: Detail = ""
    lastmod: Lastmod | None = None  # the date it was published with


VisitOutcome: TypeAlias = Listed | Unlisted | Moved | Later | Failed
"""What a visit may end with; `Kept` is decided later."""
Outcome: TypeAlias = VisitOutcome | Kept


def code(outcome: Outcome) -> str:
    """The stable code: `listed`, `unlisted:noindex`, `moved`, `later:…`, `failed:dns`, `kept:dns`."""
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
