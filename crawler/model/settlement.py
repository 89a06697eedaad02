"""The result of a lease: the verdict on a visit and its settlement, or the reason why there was no visit."""

from enum import Enum
from typing import NamedTuple

from crawler.model.facts import Facts
from crawler.model.lease import Lease
from crawler.model.outcome import Outcome
from crawler.model.visit import Link, Visit
from crawler.parse.url import Url


class Verdict(NamedTuple):
    """The judge's decision on a reply."""

    outcome: Outcome
    facts: Facts | None = None
    links: tuple[Link, ...] = ()
    unchanged: bool = False  # a 304: the links in the frontier are still valid
    truncated: bool = False  # the page has more links than are read
    named: tuple[Url, ...] = ()  # those of `links` that are only named: the canonical, the redirect target


class Seen(NamedTuple):
    """The result of a visit."""

    verdict: Verdict
    truncated: bool = False  # the page has more links than are read


class WhyUnvisited(Enum):
    """Why a leased URL is not visited now. The value is used in the log."""

    ENDING = "the crawl ends"
    ROBOTS_FIRST = "robots.txt took its slot"
    HOST_PAUSED = "its host asked for a pause"


class Unvisited(NamedTuple):
    """A lease that was not used: the page was not requested, and will be leased again."""

    lease: Lease
    why: WhyUnvisited


class Settlement(NamedTuple):
    """A closed lease, and the visits that its page led to."""

    lease: Lease
    verdict: Verdict
    found: tuple[Visit, ...] = ()
    listable: bool = True  # False: the scope never lists this URL
