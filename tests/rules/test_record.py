"""The record of one URL: the order of arrival changes nothing, and a rule applied twice no more than once."""

from itertools import permutations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from msgspec.structs import replace

from crawler.model.outcome import Failed, Listed, Outcome, Unlisted
from crawler.model.reasons import Cause, Source, Why
from crawler.rules.dated import Datable, Distrust, first_date
from crawler.rules.record import (
    AVERTED,
    DAY,
    DUPLICATE,
    HELD,
    LEASED,
    LISTED,
    NOFOLLOW,
    QUEUED,
    SETTLED,
    TOO_DEEP,
    TOO_MANY_REDIRECTS,
    Earlier,
    Failing,
    RunTime,
    SortOrder,
    Way,
    averted,
    found_again,
    found_in_new_run,
    interval_of,
    patience_by_code,
    sort_orders,
    stays_unlisted,
)
from crawler.settings.sections import keys

DEEPEST = 3  # URLs deeper than that are found as `TOO_DEEP`
ALL = tuple(Source)
NOTHING = Datable(None, None, None, None, None, None, None, None)
UNDATED = NOTHING._replace(
    content="a", published_content="a", dated_content="a", settled=9.0, first_visit=7.0
)

numbers = st.integers(0, 3)
texts = st.none() | st.sampled_from("abc")
moments = st.none() | st.integers(0, 9)


@st.composite
def finds(draw: st.DrawFn) -> Way:
    """A path as a page leads to it, not visited yet."""
    depth, is_nofollow = draw(st.integers(0, 6)), draw(st.booleans())
    outcome = NOFOLLOW if is_nofollow else TOO_DEEP if depth > DEEPEST else None
    state = QUEUED if outcome is None else SETTLED
    return Way(depth, draw(numbers), draw(st.none() | st.integers(1, 9)), state, outcome)


def deciding(path: Way) -> tuple[object, ...]:
    """What matters of a path: all but the page that it was found on; of nofollow links, only that."""
    return (NOFOLLOW,) if path.is_nofollow else (path.depth, path.hops, path.state, path.outcome)


@given(st.lists(finds(), min_size=1, max_size=4))
def test_order_in_which_paths_are_found_does_not_matter(paths: list[Way]) -> None:
    results = set()
    for order in permutations(paths):
        known = order[0]
        for path in order[1:]:
            known = found_again(known, path)
        results.add(deciding(known))
    assert len(results) == 1


@given(finds(), finds(), finds())
def test_found_again_is_associative_and_idempotent(a: Way, b: Way, c: Way) -> None:
    assert deciding(found_again(found_again(a, b), c)) == deciding(found_again(a, found_again(b, c)))
    assert found_again(a, a) == a
    assert found_again(found_again(a, b), b) == found_again(a, b)


@given(finds(), finds())
def test_best_of_two_paths_is_no_worse_than_either(known: Way, found: Way) -> None:
    best = found_again(known, found)
    assert best.is_nofollow == (known.is_nofollow and found.is_nofollow)
    for path in (known, found):
        if not path.is_nofollow:
            assert (best.depth, best.hops) <= (path.depth, path.hops)
            assert best.outcome is None or path.outcome is not None, "a URL that may be visited stays so"


@given(st.sampled_from([LISTED, DUPLICATE, "failed:dns", "moved"]), finds())
def test_settled_page_keeps_its_outcome_when_it_is_found_again(outcome: str, found: Way) -> None:
    known = Way(5, 2, 7, SETTLED, outcome)
    again = found_again(known, found)
    assert (again.state, again.outcome, again.depth, again.via) == (SETTLED, outcome, 5, 7)


@pytest.mark.parametrize("state", [HELD, LEASED])
def test_depth_of_a_url_counts_until_it_is_leased(state: int) -> None:
    again = found_again(Way(5, 2, 7, state), Way(1, 0, 8))
    assert again == (Way(1, 0, 8, state) if state == HELD else Way(5, 0, 7, state))


def test_url_with_too_many_redirects_is_due_by_a_shorter_path() -> None:
    known = Way(2, 9, None, SETTLED, TOO_MANY_REDIRECTS)
    assert found_again(known, Way(4, 3, 8)) == Way(2, 3, 8, QUEUED, None)
    assert found_again(known, Way(1, 9, 8)) == replace(known, via=8)


earlier = st.builds(
    Earlier,
    st.sampled_from([LISTED, DUPLICATE, "failed:dns"]),
    texts, moments, moments, texts, texts, moments, moments,
)  # fmt: skip


@given(earlier, st.booleans())
def test_run_that_was_not_published_leaves_no_known_content(page: Earlier, was_published: bool) -> None:
    assume(not was_published or page.outcome != LISTED or page.content is None)
    assert found_in_new_run(page, was_published=was_published)[4:8] == page[4:8]


@given(earlier)
def test_run_found_again_unpublished_changes_nothing_more(page: Earlier) -> None:
    """A run that is begun, abandoned and begun again leaves what the first beginning left."""
    once = found_in_new_run(found_in_new_run(page, was_published=True), was_published=False)
    assert found_in_new_run(once, was_published=False) == once


@given(earlier)
def test_undated_content_does_not_replace_dated_content(page: Earlier) -> None:
    after = found_in_new_run(page, was_published=True)
    if page.lastmod is None and page.dated_lastmod is not None and page.content != page.dated_content:
        assert (after.dated_content, after.dated_lastmod) == (page.dated_content, page.dated_lastmod)
    elif page.outcome == LISTED and page.content:
        assert after.dated_content == after.published_content == page.content
        assert after.dated_lastmod == page.lastmod


# -- settled and kept
# -----------------------------------------------------------------------------------------

CODES = sorted({*patience_by_code(100.0), LISTED, "failed:not-found"})
times = st.floats(0, 300)


@given(st.lists(st.tuples(times, st.sampled_from([0.0, 50.0]), st.booleans()), max_size=5))
def test_first_failure_since_the_last_response_counts(visits: list[tuple[float, float, bool]]) -> None:
    failing, expected = None, list[tuple[float, int]]()
    for run, (now, patience, answered) in enumerate(visits):
        at = RunTime(now, run, DAY)
        failing = at.failing(failing, patience, answered=answered)
        assert failing == at.failing(failing, patience, answered=answered), "the same visit again"
        expected = [] if answered else [*expected, (now, run)] if patience else expected
        assert failing == (Failing(min(expected)[0], expected[0][1]) if expected else None)


@given(st.sampled_from(CODES), st.none() | times, times, st.booleans(), st.floats(0, 100))
def test_keeping_is_idempotent_and_can_be_taken_back(
    code: str, since: float | None, now: float, is_published: bool, keep: float
) -> None:
    """After a kill between two pages, or with other settings in the next session, the same is decided."""
    one, at, failing = patience_by_code(keep).get(code), RunTime(now, 5, DAY), Failing.read(since, 3)
    assume(one is not None)
    assert one
    kept = one.outcome(failing, at, is_published=is_published)
    again = patience_by_code(keep)[kept]
    assert again.outcome(failing, at, is_published=is_published) == kept
    assert patience_by_code(0.0)[kept].outcome(failing, at, is_published=is_published) == one.failed
    assert (kept == one.kept) == (is_published and failing is not None and at.lasted(failing) < one.seconds)


@given(
    st.integers(1, 9), st.sampled_from([DAY, 7 * DAY]), st.integers(0, 9), st.floats(-1000 * DAY, 1000 * DAY)
)
def test_wrong_clock_of_one_run_ends_no_patience(days: int, every: float, wrong: int, error: float) -> None:
    """A page fails in every run; the clock of one of them is ahead, or behind."""
    starts, failing, keep = [0.0, every, 2 * every], None, days * DAY
    for run in range(3, 3 + days):
        now = run * every + (error if run - 3 == wrong else 0.0)
        starts = [*starts, now][-10:]
        at = RunTime(now, run, interval_of(starts))
        failing = at.failing(failing, keep, answered=False)
        assert at.lasted(failing) <= (run - 2) * every, "a run counts for one interval"
        is_over = at.lasted(failing) >= keep
        assert not is_over or (run - 2) * every >= keep


@pytest.mark.parametrize("every", [DAY / 24, DAY, 7 * DAY])
def test_patience_ends_when_its_time_has_passed(every: float) -> None:
    """Pages that fail in every run leave in time, however often the site is crawled."""
    failing, run, starts = None, 3, [0.0, every, 2 * every]
    while RunTime(run * every, run, interval_of(starts)).lasted(failing) < 7 * DAY:
        starts.append(run * every)
        failing = RunTime(run * every, run, interval_of(starts)).failing(failing, 7 * DAY, answered=False)
        run += 1
    assert run * every == 3 * every + 7 * DAY


# -- dated
# ----------------------------------------------------------------------------------------------------

datable = st.builds(Datable, moments, moments, st.none() | times, texts, texts, texts, moments, moments)
distrusts = st.builds(
    Distrust,
    st.booleans(),
    st.booleans(),
    st.lists(st.tuples(numbers, st.integers(4, 9)), max_size=2).map(tuple),
)


@given(datable, distrusts, st.sets(st.sampled_from(ALL)))
def test_date_comes_from_a_source_that_is_wanted_and_trusted(
    page: Datable, distrust: Distrust, sources: set[Source]
) -> None:
    date = page.date(tuple(sources), distrust)
    if date is None:
        is_same = page.content is not None and page.content == page.dated_content
        assert Source.PAGE not in sources or page.stated is None or is_same or distrust.stated
        return
    at, source = date
    assert source in sources
    assert not (source is Source.HEADER and (distrust.header or distrust.is_build(at)))
    assert at == {Source.HEADER: page.header, Source.PAGE: page.stated}.get(source, at)
    assert page._replace(stated=None).date([Source.HEADER], distrust) in {None, (page.header, Source.HEADER)}


@given(datable)
def test_page_without_history_has_the_date_of_its_own_response(page: Datable) -> None:
    """What is stored when a page is settled is its date already, as long as nothing is distrusted.

    The date in a sitemap is only known in the end.
    """
    new = page._replace(published_content=None, dated_content=None, sitemap_date=None)
    assert new.date(ALL, Distrust()) == first_date(ALL, page.header, page.stated)


SAID = NOTHING._replace(
    content="a", published_content="a", dated_content="a", settled=9e5, dated_lastmod=2 * DAY, first_visit=4e5
)


@pytest.mark.parametrize(
    ("page", "is_doubtful"),
    [
        (SAID._replace(dated_header=2 * DAY, header=3 * DAY), True),
        (SAID._replace(dated_header=2 * DAY, header=2 * DAY), False),
        (SAID._replace(dated_header=2 * DAY, header=None), False),
        (SAID._replace(dated_header=2 * DAY, header=3 * DAY, dated_stated=2 * DAY, stated=2 * DAY), False),
        (SAID._replace(dated_header=2 * DAY, header=3 * DAY, content="b"), False),
        (SAID._replace(dated_header=1, header=3 * DAY), False),
        (SAID._replace(dated_stated=2 * DAY, stated=3 * DAY), True),
        (SAID._replace(dated_stated=2 * DAY, stated=2 * DAY + 9), False),
        (SAID._replace(sitemap_date=3 * DAY), True),
        (SAID._replace(sitemap_date=2 * DAY), False),
        (SAID._replace(sitemap_date=3 * DAY, first_visit=float(DAY), changes=1), False),
        (SAID._replace(sitemap_date=3 * DAY, first_visit=float(DAY)), True),
        (SAID, False),
    ],
)
def test_what_moved_alone_was_never_true(page: Datable, is_doubtful: bool) -> None:
    assert page.has_moved_alone is Distrust().withdraws(page) is is_doubtful


def test_a_withdrawn_date_is_not_believed_again() -> None:
    page = Earlier(LISTED, "a", 7, None, "a", "a", 5, 5, 8, 5)
    assert found_in_new_run(page, was_published=True)[5:] == ("a", None, 0, 8, 0)
    assert found_in_new_run(page._replace(header=5), was_published=True).dated_header == 5, (
        "others were wrong"
    )
    assert not SAID._replace(dated_lastmod=None, dated_header=0, header=5).date(ALL, Distrust())


@pytest.mark.parametrize(
    ("page", "distrust", "date"),
    [
        (NOTHING, Distrust(), None),
        (NOTHING._replace(header=5, stated=3), Distrust(), (5, Source.HEADER)),
        (NOTHING._replace(header=5, stated=3), Distrust(header=True), (3, Source.PAGE)),
        (NOTHING._replace(header=5, stated=3), Distrust(builds=((4, 6),)), (3, Source.PAGE)),
        (NOTHING._replace(content="a", published_content="b", settled=7.9), Distrust(), (7, Source.HISTORY)),
        (NOTHING._replace(content="a", published_content="b", settled=7.9), Distrust(changes=True), None),
        (NOTHING._replace(content="a", published_content="a", settled=7.9), Distrust(), None),
        (NOTHING._replace(content="a", dated_content="a", dated_lastmod=2), Distrust(), (2, Source.HISTORY)),
        (NOTHING._replace(content="a", dated_content="a", dated_lastmod=5), Distrust(builds=((4, 6),)), None),
        (
            Datable(8, None, 9.0, "a", "a", "a", dated_lastmod=2, dated_header=7),
            Distrust(),
            (2, Source.HISTORY),
        ),
        (UNDATED._replace(header=8), Distrust(), None),  # to come when the content was first seen
        (UNDATED._replace(stated=8), Distrust(), None),
        (UNDATED._replace(sitemap_date=8), Distrust(), None),
        (UNDATED._replace(header=6), Distrust(), (6, Source.HEADER)),
        (UNDATED._replace(stated=6), Distrust(), (6, Source.PAGE)),
        (UNDATED._replace(sitemap_date=6), Distrust(), (6, Source.SITEMAP)),
        (UNDATED._replace(header=8, dated_lastmod=9), Distrust(), (8, Source.HEADER)),
    ],
)
def test_dates_of_pages(page: Datable, distrust: Distrust, date: tuple[int, Source] | None) -> None:
    assert page.date(ALL, distrust, since=9.0) == date


# -- one of several
# -------------------------------------------------------------------------------------------

urls = st.text("ab/", min_size=1, max_size=3)
pairs = st.builds(
    SortOrder,
    st.integers(1, 6),
    st.integers(1, 2),
    urls,
    numbers,
    st.sampled_from(["", "o", "s"]),
    st.booleans(),
)


@given(st.lists(pairs, max_size=6, unique_by=lambda pair: (pair.id, pair.place)), st.data())
def test_sort_orders_have_the_shortest_base_that_is_proven(
    all_pairs: list[SortOrder], data: st.DataObject
) -> None:
    found = sort_orders(all_pairs)
    assert sort_orders(data.draw(st.permutations(all_pairs))) == found
    proven = {(pair.host, pair.sorting) for pair in all_pairs if pair.is_reordered}
    for number, base in found.items():
        own = [
            pair
            for pair in all_pairs
            if pair.id == number and (not pair.sorting or (pair.host, pair.sorting) in proven)
        ]
        assert base == min(own, key=lambda pair: pair.place).base


@pytest.mark.parametrize(
    ("before", "now", "again"),
    [
        ({}, {"timeout": 9.0}, set()),
        ({"timeout": 5.0, "max-body": 7}, {"timeout": 5.0, "max-body": 7}, set()),
        ({"timeout": 5.0, "max-body": 7}, {"timeout": 4.0, "max-body": 6}, set()),
        (
            {"timeout": 5.0, "max-body": 7},
            {"timeout": 6.0, "max-body": 6},
            {"failed:timeout", "kept:timeout"},
        ),
        ({"max-redirects": 5}, {"max-redirects": 6}, {"failed:redirects", "kept:redirects"}),
    ],
)
def test_failures_that_a_larger_limit_may_avert_are_asked_again(
    before: dict[str, float], now: dict[str, float], again: set[str]
) -> None:
    assert averted(before, now) == again


def test_limits_are_settings_that_are_numbers() -> None:
    defaults = {key.name: key.default for key in keys()}
    assert all(isinstance(defaults[name], int | float) for name in AVERTED)


@pytest.mark.parametrize(
    ("was", "outcome", "is_changed", "stays"),
    [
        ("unlisted:duplicate", Listed(), False, True),
        ("unlisted:soft-404", Listed(), False, True),
        ("unlisted:soft-404", Listed(), True, False),
        ("unlisted:soft-404", Listed(), None, False),
        ("unlisted:duplicate", Unlisted(Why.NOINDEX), False, False),
        ("unlisted:duplicate", Failed(Cause.NOT_FOUND), False, False),
        ("unlisted:noindex", Listed(), False, False),
        ("listed", Listed(), False, False),
        (None, Listed(), None, False),
    ],
)
def test_only_an_unchanged_page_stays_one_of_several(
    was: str | None, outcome: Outcome, is_changed: bool | None, stays: bool
) -> None:
    assert stays_unlisted(was, outcome, is_changed) is stays
