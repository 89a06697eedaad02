"""The table of phases: what may follow what, and that nothing else can."""

import pytest

from crawler.engine.course import Course, Limits
from crawler.engine.crawl import Crawl
from crawler.model.phases import TRANSITIONS, VISITING, Event, Phase, after
from crawler.model.run import Interruption, StopReason
from crawler.report.stats import Stats
from tests.waiting import Clock

LAST = {Phase.ENDED, Phase.PUBLISHING}
ALLOWED = {
    Phase.OPENING: "LEADS FOLLOWS COMPLETE STOPPED LOST",
    Phase.FOLLOWING: "LEADS COMPLETE STOPPED LOST",
    Phase.ARRIVING: "SETTLED STOPPED LOST",
    Phase.SEEDING: "SETTLED STOPPED LOST",
    Phase.CRAWLING: "SETTLED STOPPED LOST",
    Phase.DRAINING: "QUIET LOST",
    Phase.FINISHING: "DONE LOST",
    Phase.WAITING: "LEADS DONE LOST",
    Phase.CLOSING: "DONE LOST",
    Phase.ENDED: "",
    Phase.PUBLISHING: "",
}


@pytest.mark.parametrize("event", Event)
@pytest.mark.parametrize("phase", Phase)
def test_every_event_has_a_transition_or_is_refused(phase: Phase, event: Event) -> None:
    if event.name in ALLOWED[phase].split():
        assert isinstance(after(phase, event), Phase)
    else:
        with pytest.raises(ValueError, match=f"{event.name} cannot happen in the phase {phase.name}"):
            after(phase, event)


def test_every_phase_but_the_last_has_a_step() -> None:
    assert Crawl.STEPS.keys() == set(Phase) - LAST
    assert set(TRANSITIONS) == set(Phase)


def reachable(start: Phase, without: Event | None = None) -> set[Phase]:
    found, new = set[Phase](), {start}
    while new:
        found |= new
        steps = {to for phase in new for event, to in TRANSITIONS[phase].items() if event is not without}
        new = steps - found
    return found


def test_every_phase_is_reached_and_leads_to_the_end() -> None:
    assert reachable(Phase.OPENING) == set(Phase) - {Phase.PUBLISHING}
    for phase in set(Phase) - LAST:
        assert Phase.ENDED in reachable(phase, without=Event.LOST)


@pytest.mark.parametrize("phase", sorted(VISITING - {Phase.DRAINING}))
def test_a_stop_ends_every_phase_in_which_pages_are_requested(phase: Phase) -> None:
    assert after(phase, Event.STOPPED) is Phase.DRAINING


def test_who_stopped_or_completed_a_crawl_never_begins_it_again() -> None:
    walking = {Phase.ARRIVING, Phase.SEEDING, Phase.CRAWLING}
    assert not reachable(Phase.DRAINING) & walking
    assert not reachable(Phase.FINISHING, without=Event.LOST) & walking


def course(clock: Clock, **limits: float) -> Course:
    made = Course(Limits(**limits), Stats(clock), clock)  # type: ignore[arg-type]
    made.begin()
    return made


def test_limits_are_reached_once_and_time_counts_first() -> None:
    clock = Clock()
    made = course(clock, max_pages=3, max_time=10.0)
    assert made.reached(2) is None
    assert made.reached(3) is StopReason.MAX_PAGES
    clock.now = 10.0
    assert made.reached(3) is StopReason.MAX_TIME
    assert made.stop(Interruption(StopReason.MAX_TIME))
    assert made.reached(3) is None
    assert made.time_left == float("inf"), "the requests in flight have their own time"


def test_first_reason_counts_but_the_user_may_end_the_wait() -> None:
    made = course(Clock())
    assert made.stop(Interruption(StopReason.MAX_PAGES))
    assert not made.stop(Interruption(StopReason.ASKED, "interrupted"))
    assert made.stats.stopping == "max-pages"
    made.enter(Phase.WAITING)
    assert not made.stop(Interruption(StopReason.FAILING, "every request to http://x fails"))
    assert made.stop(Interruption(StopReason.ASKED, "interrupted"))
    assert made.stats.stopping == "interrupted"


def test_phases_without_requests_are_not_shown() -> None:
    made = course(Clock())
    assert made.stats.phase == "robots.txt"
    shown = []
    for phase in Phase:
        made.enter(phase)
        shown.append(made.stats.phase)
    assert list(dict.fromkeys(shown)) == [
        "robots.txt", "following", "arriving", "sitemaps", "crawling", "publishing",
    ]  # fmt: skip


@pytest.mark.parametrize("reason", StopReason)
def test_interruptions_survive_the_state(reason: StopReason) -> None:
    for interruption in (Interruption(reason), Interruption(reason, "a “reason”")):
        assert Interruption.read(interruption.written()) == interruption
