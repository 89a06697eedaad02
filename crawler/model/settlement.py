"""The result of a lease: the verdict on a visit and its settlement, or the reason why there was no visit."""

from collections.abc import Mapping, Sequence
from enum import Enum
from types import MappingProxyType
from typing import NamedTuple

from msgspec import Struct

from crawler.model.facts import Facts, LabelledUrl
from crawler.model.outcome import Outcome
from crawler.model.visit import Lease, Links, Visit
from crawler.parse.url import Url


class Verdict(Struct, frozen=True):
    """The judge's decision on a reply."""

    outcome: Outcome
    facts: Facts | None = None
    links: Links = Links()
    unchanged: bool = False  # a 304: the links in the frontier are still valid
    truncated: bool = False  # the page has more links than are read
    # Those of `links` that nobody can click: the canonical, the redirect target, those of link elements.
    named: tuple[Url, ...] = ()
    features: Mapping[str, tuple[LabelledUrl, ...]] = MappingProxyType({})
    """What each optional feature read of the page; a 304 leaves what is stored."""


class VisitResult(Struct, frozen=True):
    """The result of a visit."""

    verdict: Verdict
    truncated: bool = False  # the page has more links than are read


class WhyUnvisited(Enum):
    """Why a leased URL is not visited now. The value is used in the log."""

    ENDING = "the crawl ends"
    ROBOTS_FIRST = "robots.txt took its slot"
    HOST_PAUSED = "its host asked for a pause"
    VOID = "this process was silent for too long, and others may have taken it"


class Unvisited(Struct, frozen=True):
    """A lease that was not used: the page was not requested, and will be leased again."""

    lease: Lease
    why: WhyUnvisited


class LinkNumbers(Struct, frozen=True):
    """The links of a page by the record numbers of their URLs, in order; 0 stands for the next of
    `Settlement.found`.
    """

    followed: Sequence[int] = ()
    avoided: Sequence[int] = ()  # linked only with nofollow


class Settlement(Struct, frozen=True):
    """A closed lease, and what its page led to: visits of URLs that may be new, and the numbers of known
    ones.
    """

    lease: Lease
    verdict: Verdict
    found: tuple[Visit, ...] = ()  # also what is known of `verdict.named`
    listable: bool = True  # False: the scope never lists this URL
    links: LinkNumbers | None = None  # None: only those in `found`


class KnownUrl(NamedTuple):
    """The record of a URL: its number may stand for a link from now on."""

    number: int
    # False: a followed link could still change the record, as only a seed, nofollow links or redirects led to
    # it;
    # the number may stand for links with nofollow only.
    settled: bool = True


class Settled(Struct, frozen=True):
    """The result of `Queue.settle`."""

    new: int  # visits that were not known, without filtered and held ones
    # Of each visit in `found`, of all settlements in order; None if its lease was stale.
    known: Sequence[KnownUrl | None] = ()
