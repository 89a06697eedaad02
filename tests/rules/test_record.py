"""The record of one URL: the order of arrival changes nothing, and a rule applied twice no more than once."""

from itertools import permutations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from crawler.model.reasons import Source
from crawler.rules.record import (
    DUPLICATE,
    HELD,
    LEASED,
    LISTED,
    NOFOLLOW,
    QUEUED,
    SETTLED,
    TOO_DEEP,
    TOO_MANY_REDIRECTS,
    Datable,
    Distrust,
    Earlier,
    Patterned,
    SortOrder,
    Twin,
    Way,
    failing_since,
    first_date,
    found_again,
    found_in_new_run,
    patience_by_code,
    repeats,
    sort_orders,
    stays_known,
    twins,
)

DEEPEST = 3  # URLs deeper than that are found as `TOO_DEEP`
ALL = tuple(Source)
NOTHING = Datable(None, None, None, None, None, None, None, None)

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
    assert found_again(known, Way(1, 9, 8)) == known._replace(via=8)


earlier = st.builds(
    Earlier,
    st.sampled_from([LISTED, DUPLICATE, "failed:dns"]),
    texts, moments, moments, texts, texts, moments, moments,
)  # fmt: skip


@given(earlier, st.booleans())
def test_run_that_was_not_published_leaves_no_known_content(page: Earlier, was_published: bool) -> None:
    assume(not was_published or page.outcome != LISTED or page.content is None)
    assert found_in_new_run(page, was_published=was_published)[4:] == page[4:]


@given(earlier)
def test_run_found_again_unpublished_changes_nothing_more(page: Earlier) -> None:
    """A run that is begun, abandoned and begun again leaves what the first beginning left."""
    once = found_in_new_run(found_in_new_run(page, was_published=True), was_published=False)
    assert found_in_new_run(once, was_published=False) == once


@given(earlier)
def test_undated_content_does_not_replace_dated_content(page: Earlier) -> None:
    after = found_in_new_run(page, was_published=True)
    if page.lastmod is None and page.dated_lastmod is not None:
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
    failing, expected = None, list[float]()
    for now, patience, answered in visits:
        failing = failing_since(failing, patience, now, answered=answered)
        assert failing == failing_since(failing, patience, now, answered=answered), "the same visit again"
        expected = [] if answered else [*expected, now] if patience else expected
        assert failing == min(expected, default=None)


@given(st.sampled_from(CODES), st.none() | times, times, st.booleans(), st.floats(0, 100))
def test_keeping_is_idempotent_and_can_be_taken_back(
    code: str, failing: float | None, now: float, is_published: bool, keep: float
) -> None:
    """After a kill between two pages, or with other settings in the next session, the same is decided."""
    one = patience_by_code(keep).get(code)
    assume(one is not None and (failing is None or failing <= now))
    assert one
    kept = one.outcome(failing, now, is_published=is_published)
    again = patience_by_code(keep)[kept]
    assert again.outcome(failing, now, is_published=is_published) == kept
    assert patience_by_code(0.0)[kept].outcome(failing, now, is_published=is_published) == one.failed
    assert (kept == one.kept) == (
        is_published and stays_known(failing, one.seconds, now) and failing is not None
    )


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
        assert Source.PAGE not in sources or page.stated is None
        return
    at, source = date
    assert source in sources
    assert not (source is Source.HEADER and (distrust.header or distrust.is_build(at)))
    assert at == {Source.HEADER: page.header, Source.PAGE: page.stated}.get(source, at)
    assert page._replace(stated=None).date([Source.HEADER], distrust) in {None, (page.header, Source.HEADER)}


@given(datable)
def test_page_without_history_has_the_date_of_its_own_response(page: Datable) -> None:
    """What is stored when a page is settled is its date already, as long as nothing is distrusted."""
    new = page._replace(published_content=None, dated_content=None)
    assert new.date(ALL, Distrust()) == first_date(ALL, page.header, page.stated)


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
    ],
)
def test_dates_of_pages(page: Datable, distrust: Distrust, date: tuple[int, Source] | None) -> None:
    assert page.date(ALL, distrust) == date


# -- one of several
# -------------------------------------------------------------------------------------------

urls = st.text("ab/", min_size=1, max_size=3)
twin_rows = st.builds(
    Twin, st.integers(1, 6), urls, st.tuples(st.sampled_from("mn"), st.sampled_from("xy")), st.booleans()
)
pattern_rows = st.builds(
    Patterned, st.integers(1, 6), urls, st.tuples(numbers, st.sampled_from("xy")),
    st.sampled_from([-1, 0, 1]), st.booleans(), st.booleans(),
)  # fmt: skip


def distinct(rows: list[Twin] | list[Patterned]) -> bool:
    return len({row.id for row in rows}) == len({row.url for row in rows}) == len(rows)


@given(st.lists(twin_rows, max_size=6).filter(distinct))
def test_one_page_of_a_group_is_listed_in_any_order(pages: list[Twin]) -> None:
    found = twins(pages)
    assert twins(reversed(pages)) == found
    left = [page for page in pages if page.id not in found]
    assert twins(left) == {}, "applied again"
    assert {page.group for page in left} == {page.group for page in pages}
    assert set(found.values()) <= {page.url for page in left}


@given(st.lists(pattern_rows, max_size=6).filter(distinct), st.data())
def test_pages_of_closed_patterns_repeat_others_in_any_order(
    pages: list[Patterned], data: st.DataObject
) -> None:
    found = repeats(pages)
    assert repeats(data.draw(st.permutations(pages))) == found
    assert all(page.closed == 1 for page in pages if page.id in found)
    stopped = data.draw(st.sets(st.sampled_from(sorted(found)))) if found else set()
    left = [page for page in pages if page.id not in stopped]
    rest = repeats(left)
    assert {**rest, **{number: found[number] for number in stopped}} == found, (
        "killed after any write, and applied again"
    )


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
