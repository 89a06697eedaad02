"""What a visit brought, and a lease closed with it."""

from typing import NamedTuple

from crawler.model.facts import Facts
from crawler.model.lease import Lease
from crawler.model.outcome import Outcome
from crawler.model.visit import Link, Visit


class Verdict(NamedTuple):
    """What the judge makes of a reply."""

    outcome: Outcome
    facts: Facts | None = None
    links: tuple[Link, ...] = ()
    unchanged: bool = False  # a 304: the links are those that the frontier remembers
    truncated: bool = False  # the page has more links, or bytes of them, than are looked at


class Seen(NamedTuple):
    """What a visit brought."""

    verdict: Verdict
    truncated: bool = False  # the page has more links than are looked at


class Settlement(NamedTuple):
    """A lease closed, and the visits it led to."""

    lease: Lease
    verdict: Verdict
    found: tuple[Visit, ...] = ()
    listable: bool = True  # False: the scope lists no such page, whatever it answers
