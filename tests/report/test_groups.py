"""Groups of equal texts: the same as counting them, in a few bytes each."""

import tracemalloc
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from crawler.report.groups import Groups

WORDS = st.lists(st.tuples(st.sampled_from(["a", "b"]), st.text(max_size=2)))


@given(WORDS)
def test_groups_are_the_texts_that_occur_more_than_once(pages: list[tuple[str, str]]) -> None:
    groups, counts = Groups(), Counter(pages)
    for words in pages:
        groups.add(*words)
    groups.close()
    assert groups.pages == sum(count for count in counts.values() if count > 1)
    met = set[int]()
    for words in pages:
        group = groups.group(*words)
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
            groups.add(str(number // 2))
        added, _ = tracemalloc.get_traced_memory()
        tracemalloc.reset_peak()
        groups.close()
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert groups.pages == 50_000
    assert added < 12 * 50_000
    assert peak - added < 20 * 50_000
