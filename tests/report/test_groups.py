"""Groups of equal texts: the same as counting them, in a few bytes each."""

import tracemalloc
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler.report.groups import Groups, Texts, value_of

WORDS = st.lists(st.tuples(st.sampled_from(["a", "b"]), st.text(max_size=2)))


@given(WORDS)
def test_groups_are_the_texts_that_occur_more_than_once(pages: list[tuple[str, str]]) -> None:
    groups, counts = Groups(), Counter(pages)
    for words in pages:
        groups.add(value_of(*words, 1))
    groups.close()
    assert groups.pages == sum(count for count in counts.values() if count > 1)
    met = set[int]()
    for words in pages:
        group = groups.group(value_of(*words, 1))
        assert (group[1] if group else 1) == counts[words]
        if group:
            assert groups.is_first(group[0]) == (group[0] not in met)
            met.add(group[0])
    assert len(met) == sum(count > 1 for count in counts.values())


def test_closing_takes_little_more_memory_than_the_hashes() -> None:
    groups = Groups()
    tracemalloc.start()
    try:
        for number in range(50_000):
            groups.add(value_of(str(number // 2)))
        added, _ = tracemalloc.get_traced_memory()
        tracemalloc.reset_peak()
        groups.close()
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert groups.pages == 50_000
    assert added < 12 * 50_000
    assert peak - added < 20 * 50_000


@pytest.mark.parametrize(
    ("pages", "texts", "titles"),
    [
        ([("1", "=b", "b"), ("2", "c", "b")], [[0, 1]], []),
        ([("1", "=b", "b"), ("2", "c", "b"), ("3", "c", "d")], [[0, 1, 2]], []),
        ([("1", "=b", "b"), ("2", "=b", "b"), ("3", "c", "d")], [[0, 1]], []),
        ([("1", "=b", "b"), ("1", "c", "b"), ("1", "=e", "e")], [[0, 1]], [[0, 1, 2]]),
        ([("1", "=b", "b"), ("1", "c", "b"), ("1", "c", "d")], [[0, 1, 2]], []),
        # What is read of the same bytes may differ, as noise of the last run is left out.
        ([("1", "c", "b"), ("2", "d", "b"), ("3", "d", "e"), ("4", "c", "f")], [[0, 1, 2, 3]], []),
        ([("1", "", ""), ("1", "", "")], [], [[0, 1]]),
        ([("", "c", ""), ("", "c", "")], [[0, 1]], []),
    ],
)
def test_pages_with_the_same_bytes_have_one_text(
    pages: list[tuple[str, str, str]], texts: list[list[int]], titles: list[list[int]]
) -> None:
    same = Texts()
    for page in pages:
        same.add("https://a.example", *page)
    same.add("https://b.example", *pages[0])  # of another host
    same.close()
    for place, expected in enumerate((texts, titles)):
        found: dict[int, list[int]] = {}
        for number, page in enumerate(pages):
            if group := same.of("https://a.example", *page)[place]:
                found.setdefault(group[0], []).append(number)
        assert sorted(found.values()) == expected
