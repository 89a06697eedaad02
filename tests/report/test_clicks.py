"""The shortest ways from the start URLs, compared with a walk that keeps everything in memory."""

from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as st

from crawler.model.rows import LinksRow
from crawler.report.clicks import BATCH, Clicks

IDS = st.integers(1, 12)
GRAPHS = st.dictionaries(
    IDS,
    st.builds(LinksRow, st.lists(st.integers(-14, 14).filter(bool)), st.one_of(st.just(0), IDS)),
)


def walked(starts: list[int], graph: Mapping[int, LinksRow]) -> Clicks:
    clicks = Clicks(starts)
    while due := clicks.take():
        assert len(due) <= BATCH
        clicks.add({number: graph[number] for number in due if number in graph})
    return clicks


def relaxed(starts: list[int], graph: Mapping[int, LinksRow]) -> Mapping[int, int]:
    """Bellman and Ford: every edge as often as there are pages."""
    far = dict.fromkeys(starts, 0)
    for _ in range(13):
        for number, row in graph.items():
            if number in far:
                edges = [(row.redirect, 0)] if row.redirect else [(to, 1) for to in row.links if to > 0]
                for to, cost in edges:
                    far[to] = min(far.get(to, 99), far[number] + cost)
    return far


@given(st.lists(IDS, max_size=3), GRAPHS)
def test_clicks_are_the_shortest_ways(starts: list[int], graph: dict[int, LinksRow]) -> None:
    clicks, far = walked(starts, graph), relaxed(starts, graph)
    assert [clicks.of(number) for number in range(1, 13)] == [far.get(number) for number in range(1, 13)]


def test_a_redirect_is_no_click_and_nofollow_leads_nowhere() -> None:
    graph = {1: LinksRow([2, -5]), 2: LinksRow((), 3), 3: LinksRow([4])}
    clicks = walked([1], graph)
    assert [clicks.of(number) for number in (1, 2, 3, 4, 5)] == [0, 1, 1, 2, None]


def test_a_long_chain_is_walked_once() -> None:
    graph = {number: LinksRow([number + 1]) for number in range(1, 5_000)}
    clicks = walked([1], graph)
    assert clicks.of(5_000) == 4_999
    assert clicks.of(5_001) is None
