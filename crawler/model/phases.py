"""The phases of a crawl as a table: where a member of a run is, what can happen there, and what follows.

It says nothing about how: `engine.crawl` does the work of each phase. What is not in the table cannot happen,
and raises.
"""

from collections.abc import Mapping
from enum import Enum, StrEnum, auto
from types import MappingProxyType
from typing import Final


class Phase(StrEnum):
    """What a member of a crawl does. The value is shown to the user, for phases that are shown."""

    OPENING = "robots.txt"  # asks whether it leads
    FOLLOWING = "following"  # another member leads: visits what that one releases
    ARRIVING = "arriving"  # leads: visits the start URLs and where they redirect
    SEEDING = "sitemaps"  # leads: reads sitemaps and --input while pages are visited
    CRAWLING = "crawling"  # leads: visits everything else, one level after the other
    DRAINING = "draining"  # stopped: settles the requests in flight
    FINISHING = "finishing"  # leads, and everything is settled: applies the rules over all pages
    WAITING = "waiting"  # stopped: until it leads, or the leader has ended the run
    CLOSING = "closing"  # stopped, and leads: what an unfinished run leaves for the next one
    ENDED = "ended"
    PUBLISHING = "publishing"  # after the crawl


class Event(Enum):
    """What ends a phase."""

    LEADS = auto()  # this member leads the run
    FOLLOWS = auto()  # another one does
    COMPLETE = auto()  # this member leads a run in which only publication is left
    SETTLED = auto()  # nothing is due or leased in this phase any more
    STOPPED = auto()  # there is a `model.run.StopReason`
    LOST = auto()  # another member took over the leadership
    QUIET = auto()  # nothing is in flight, or it took too long
    DONE = auto()


_LEADING: Final = {Event.STOPPED: Phase.DRAINING, Event.LOST: Phase.OPENING}
TRANSITIONS: Final[Mapping[Phase, Mapping[Event, Phase]]] = MappingProxyType({
    Phase.OPENING: {
        Event.LEADS: Phase.ARRIVING,
        Event.FOLLOWS: Phase.FOLLOWING,
        Event.COMPLETE: Phase.FINISHING,
        Event.STOPPED: Phase.DRAINING,
        Event.LOST: Phase.OPENING,
    },
    Phase.FOLLOWING: {
        Event.LEADS: Phase.ARRIVING,
        Event.COMPLETE: Phase.FINISHING,
        Event.STOPPED: Phase.DRAINING,
        Event.LOST: Phase.OPENING,
    },
    Phase.ARRIVING: _LEADING | {Event.SETTLED: Phase.SEEDING},
    Phase.SEEDING: _LEADING | {Event.SETTLED: Phase.CRAWLING},
    Phase.CRAWLING: _LEADING | {Event.SETTLED: Phase.FINISHING},
    Phase.DRAINING: {Event.QUIET: Phase.WAITING, Event.LOST: Phase.DRAINING},
    Phase.FINISHING: {Event.DONE: Phase.ENDED, Event.LOST: Phase.OPENING},
    Phase.WAITING: {Event.LEADS: Phase.CLOSING, Event.DONE: Phase.ENDED, Event.LOST: Phase.WAITING},
    Phase.CLOSING: {Event.DONE: Phase.ENDED, Event.LOST: Phase.WAITING},
    Phase.ENDED: {},
    Phase.PUBLISHING: {},
})  # fmt: skip

VISITING: Final = frozenset({
    Phase.OPENING, Phase.FOLLOWING, Phase.ARRIVING, Phase.SEEDING, Phase.CRAWLING, Phase.DRAINING,
})  # fmt: skip
"""Phases in which pages are in flight."""
SHOWN_PHASES: Final = frozenset(
    {Phase.FOLLOWING, Phase.ARRIVING, Phase.SEEDING, Phase.CRAWLING, Phase.PUBLISHING}
)
"""Phases that the user sees; in the others, the last one of these goes on for them."""


def after(phase: Phase, event: Event) -> Phase:
    """The phase that follows. Raises `ValueError` for an event that cannot happen in this phase."""
    following = TRANSITIONS[phase].get(event)
    if following is None:
        raise ValueError(f"{event.name} cannot happen in the phase {phase.name}")
    return following
