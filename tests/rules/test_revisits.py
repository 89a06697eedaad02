"""Which known pages a partial run visits: laws of the order, and the estimate of how often a page changes."""

from dataclasses import dataclass
from datetime import UTC, datetime
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler.model.facts import Facts
from crawler.parse.url import Url
from crawler.rules.revisits import (
    FEWEST,
    MOST,
    Announcements,
    Revisit,
    Sighting,
    Version,
    Watched,
    batch,
    hubs,
    plan,
    portion,
)

DAY = 86_400.0
NOW = 1_800_000_000.0
MAX_AGE = 30 * DAY


@dataclass(frozen=True)
class Known:
    """A page, in days."""

    age: float = 1.0
    watched: float = 100.0
    visits: int = 50
    changes: int = 0
    urgent: bool = False
    visited: int = 7
    was_announced: bool = False
    is_announced: bool = False
    gone: bool = False
    via: int | None = None  # the page that led to it
    changed: float | None = None  # days since the last change

    def row(self, number: int) -> Revisit:
        last = NOW - self.age * DAY
        first = last - self.watched * DAY
        url = Url(f"http://site.example/{number}")
        announced = self.was_announced or self.is_announced, self.is_announced
        seen = self.urgent, self.visits, self.changes, first, last, self.visited
        return Revisit(number, url, *seen, *announced, self.gone, depth=1)

    def choice(self, number: int) -> tuple[object, ...]:
        changed = None if self.changed is None else NOW - self.changed * DAY
        return *self.row(number)[:-2], self.via, changed


def order(*pages: Known, most: int = 1_000, now: float = NOW) -> list[int]:
    rows = [page.choice(number) for number, page in enumerate(pages)]
    return plan(rows, now, MAX_AGE, most)


@pytest.mark.parametrize(
    ("first", "then"),
    [
        (Known(changes=5), Known(changes=4)),
        (Known(age=3), Known(age=2)),
        (Known(age=4, changes=1), Known(age=1, changes=2)),
        (Known(urgent=True), Known(age=20, changes=40)),
        (Known(age=30), Known(age=29, changes=50)),
        (Known(age=90), Known(age=30, changes=50)),
        (Known(visits=2, changes=2, watched=4), Known(visits=50, changes=1, watched=100)),
        (Known(age=0, visited=3), Known(age=0, visited=4)),
        (Known(age=-400), Known(age=29, changes=50)),  # visited when the clock was wrong
    ],
)
def test_which_of_two_pages_is_visited_first(first: Known, then: Known) -> None:
    assert order(then, first) == [1, 0]
    assert order(first, then) == [0, 1]


RIGHT = [Known(changes=1, was_announced=True)] * 10 + [Known()] * 100
ALWAYS = [Known(changes=n < 10, was_announced=True) for n in range(110)]
NEVER = [Known(changes=n < 10) for n in range(110)]


@pytest.mark.parametrize(
    ("others", "is_first"),
    [
        (RIGHT, True),
        (RIGHT[8:], True),
        (ALWAYS, False),
        (NEVER, False),
        ([Known(was_announced=True)] * 100 + [Known(changes=1)] * 10, False),
        ([], False),
    ],
)
def test_announced_page_is_first_where_that_was_right(others: list[Known], is_first: bool) -> None:
    """It was visited yesterday, the last one two days ago."""
    pages = [Known(is_announced=True), *others, Known(age=2)]
    places = order(*pages)
    assert (places.index(0) < places.index(len(pages) - 1)) is is_first


@given(st.integers(0, 50), st.integers(0, 50), st.integers(0, 500), st.integers(0, 500))
def test_announcements_raise_and_their_absence_lowers(
    right: int, unsaid: int, wrong: int, quiet: int
) -> None:
    announcements = Announcements()
    for page, pages in (
        (Known(changes=1, was_announced=True), right),
        (Known(changes=1), unsaid),
        (Known(was_announced=True), wrong),
        (Known(), quiet),
        (Known(changes=1, is_announced=True), 1_000),
    ):
        announcements.add(page.row(0).history, pages)
    absent, present = announcements.ratios()
    assert 0.0 < absent <= 1.0 <= present
    if right == 0:
        assert (absent, present) == pytest.approx((1.0, 1.0))


known = st.builds(
    Known,
    age=st.integers(0, 60),
    watched=st.integers(0, 400),
    visits=st.integers(0, 50),
    changes=st.just(0),
    urgent=st.booleans(),
    visited=st.integers(1, 9),
    was_announced=st.booleans(),
    is_announced=st.booleans(),
    gone=st.booleans(),
    via=st.none() | st.integers(1, 3),
    changed=st.none() | st.integers(0, 60),
).flatmap(
    lambda page: st.integers(0, page.visits).map(lambda changes: Known(**vars(page) | {"changes": changes}))
)


@given(st.lists(known, max_size=30), st.integers(0, 30), st.integers(0, 2**32), st.floats(-600, 600))
def test_choice_depends_neither_on_order_nor_on_seconds(
    pages: list[Known], most: int, seed: int, late: float
) -> None:
    rows = [page.choice(number) for number, page in enumerate(pages)]
    found = plan(rows, NOW, MAX_AGE, most)
    assert len(found) == min(most, len(pages)) == len(set(found))
    Random(seed).shuffle(rows)
    assert plan(rows, NOW + late, MAX_AGE, most) == found
    all_of_them = plan(rows, NOW, MAX_AGE, len(rows))
    assert all_of_them[: len(found)] == found, "a larger budget only adds pages"


@pytest.mark.parametrize("days", [-4_000, -400, -4])
def test_a_clock_that_is_set_back_chooses_pages_in_turn(days: float) -> None:
    """The last visits, or the first ones too, are in the future."""
    pages = [Known(age=number % 3, watched=-100.0 * (number % 2), visited=9 - number) for number in range(9)]
    assert order(*pages, now=NOW + days * DAY) == list(range(8, -1, -1))
    assert hubs([page.row(number) for number, page in enumerate(pages)], NOW + days * DAY, 100)


@pytest.mark.parametrize(
    ("changed", "first"),
    [([], [1, 2, 0]), ([5.0] * 4, [1, 2, 0]), ([1.5], [1, 0, 2]), ([1.5, 1.5, 5.0], [0, 1, 2])],
)
def test_pages_beside_those_that_changed_come_earlier(changed: list[float], first: list[int]) -> None:
    """The first page is in a list of five, and seen two days ago; of the others some changed since, or before."""
    beside = [Known(age=1, via=7, changed=at) for at in [*changed, *[None] * 4][:4]]
    pages = [Known(age=2, via=7), Known(age=7, via=8), Known(age=5, via=8)]
    assert [page for page in order(*pages, *beside) if page < 3] == first


def test_what_changed_in_a_visit_says_nothing_of_that_night() -> None:
    """Each of the pages of a list has been visited when the others had changed."""
    listed = [Known(age=2, via=7, changed=2) for _ in range(9)]
    assert order(Known(age=2, via=7), *listed, Known(age=3))[-2:] == [10, 0]


def test_what_changed_lately_is_visited_sooner() -> None:
    """That wears off within weeks."""
    changed = [Known(age=1, changed=age) for age in (40, 31, 8, 3, 1.2)]
    assert order(*changed) == [4, 3, 2, 1, 0]
    assert order(*changed, Known(age=1.1)) == [4, 3, 2, 5, 1, 0]


@pytest.mark.parametrize("age", [9, 31, 90])
def test_what_was_not_found_is_asked_for_seldom(age: int) -> None:
    assert order(Known(age=age, gone=True), Known(age=age / 9)) == [1, 0]
    assert order(Known(age=age, gone=True), Known(age=age / 11)) == [0, 1]


def test_new_site_visits_all_in_turn_without_preferring_a_folder() -> None:
    pages = [Known(age=1, watched=0, visits=0) for _ in range(1_000)]
    found = order(*pages, most=100)
    assert sum(number < 500 for number in found) in range(35, 66)


def test_hubs_are_few_and_those_that_may_have_changed() -> None:
    pages = [
        Known(watched=50, visits=50, changes=number % 2).row(number)._replace(found=2 + number)
        for number in range(100)
    ]
    found = hubs(pages, NOW, 80)
    assert len(found) == 10
    assert all(page.changes for page in found)
    assert [page.found for page in found] == sorted((page.found for page in found), reverse=True)
    assert hubs([Known(watched=3_000, visits=2_000).row(0)._replace(found=9)], NOW, 80) == []
    assert len(hubs([Known(changes=5).row(0)._replace(found=9)], NOW, 1)) == 1


def test_more_hubs_are_visited_where_others_led_to_new_pages() -> None:
    quiet = [Known(watched=50, visits=50).row(number)._replace(found=2) for number in range(100)]
    assert hubs(quiet, NOW, 80) == []
    assert hubs(quiet, NOW, 80, asked=10, led=0) == []
    assert len(hubs(quiet, NOW, 80, asked=10, led=1)) == 20
    assert len(hubs(quiet, NOW, 80, asked=28, led=27)) == 2
    assert hubs(quiet, NOW, 80, asked=31, led=27) == []
    assert len(hubs(quiet, NOW, None, asked=10, led=1)) == 100
    steady = [Known(watched=3_000, visits=2_000).row(0)._replace(found=9)]
    assert hubs(steady, NOW, 80, asked=13, led=13) == []


def test_what_this_run_saw_to_have_changed_counts() -> None:
    pages = [Known(age=2, via=7).choice(0), Known(age=5, via=8).choice(1)]
    assert plan(pages, NOW, MAX_AGE, 2) == [1, 0]
    for changed, first in ((NOW - DAY, [0, 1]), (NOW - 3 * DAY, [1, 0]), (None, [1, 0])):
        assert plan(pages, NOW, MAX_AGE, 2, [Sighting(7, NOW, changed, 2)]) == first


@pytest.mark.parametrize(
    ("left", "budget", "most"),
    [
        (None, None, None), (40, None, 40), (40, 40, 20), (41, 60, 21), (15, 60, 15), (10, 20, 10), (11, 20, 6),
        (1_000, 1_000, 500), (500, 1_000, 250), (9_000, 10_000, 4_500), (5_000, 10_000, 5_000),
    ],
)  # fmt: skip
def test_known_pages_are_chosen_in_halves(left: int | None, budget: int | None, most: int | None) -> None:
    assert portion(left, budget) == most


@pytest.mark.parametrize(
    ("left", "wanted"), [(None, MOST), (0, 0), (1, 1), (FEWEST, FEWEST), (200, 100), (100_000, MOST)]
)
def test_known_pages_are_released_in_portions(left: int | None, wanted: int) -> None:
    assert batch(left) == wanted


HEADER = datetime(2026, 1, 2, tzinfo=UTC)
AT = int(HEADER.timestamp())


@pytest.mark.parametrize(
    ("before", "now", "is_changed"),
    [
        (Version("a", "1", None), Facts(200, content="a", digest="2"), False),
        (Version("a", "1", AT), Facts(200, content="b", digest="1", header=HEADER), True),
        (Version(None, "1", None), Facts(200, digest="2"), True),
        (Version(None, "1", None), Facts(200, digest="1"), False),
        (Version(None, "1", AT), Facts(200, digest="2", header=HEADER), False),
        (Version(None, "1", AT + 1), Facts(200, digest="2", header=HEADER), True),
        (Version("a", None, None), Facts(200, digest="2"), None),
    ],
)
def test_when_a_page_has_changed(before: Version, now: Facts, is_changed: bool | None) -> None:
    assert before.is_changed(now) is is_changed


def test_what_visits_have_seen() -> None:
    page = Watched().after(10.0, None)
    assert page == Watched(0, 0, 10.0, 10.0)
    page = page.after(20.0, is_changed=True).after(30.0, is_changed=False).after(40.0, None)
    assert page == Watched(2, 1, 10.0, 40.0)
