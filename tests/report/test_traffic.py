"""The counters of requests: what a worker takes is what the main process adds, and nothing else is added."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler.report.traffic import BOUNDS, CLASSES, Traffic
from crawler.workers.channel import MALFORMED

ANSWERS = st.lists(
    st.tuples(st.none() | st.integers(0, 1_000), st.integers(0, 10**9), st.floats(0, 1_000)), max_size=20
)


def counted(answers: list[tuple[int | None, int, float]]) -> Traffic:
    traffic = Traffic()
    for status, size, seconds in answers:
        traffic.answered(status, size, seconds)
        traffic.retried()
    return traffic


def plain(traffic: Traffic) -> tuple[Any, ...]:
    return dict(traffic.requests), traffic.bytes, traffic.retries, traffic.within


@given(ANSWERS, ANSWERS)
def test_what_is_taken_is_added_once(ours: list[Any], theirs: list[Any]) -> None:
    main, worker = counted(ours), counted(theirs)
    main.add(json.loads(json.dumps(worker.take())))
    main.add(worker.take())
    assert plain(main) == plain(counted(ours + theirs))
    assert sum(main.requests.values()) == sum(main.within) == len(ours + theirs)
    assert set(main.requests) <= set(CLASSES)


GOOD: list[Any] = [{"2xx": 1}, 5, 0, 0.5, [1, *[0] * (len(BOUNDS) - 1)]]


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (0, {"evil\n": 1}), (0, {"2xx": -1}), (0, {"2xx": True}), (0, {"2xx": 1.5}), (0, []), (0, None),
        (1, -1), (1, 2**60), (1, "5"), (1, float("nan")), (2, None),
        (3, -1.0), (3, float("nan")), (3, float("inf")), (3, "1"), (3, None),
        (4, [1]), (4, [-1] * len(BOUNDS)), (4, "x" * len(BOUNDS)), (4, None), (4, {}),
    ],
)  # fmt: skip
def test_an_invalid_message_of_a_worker_is_refused_as_a_whole(place: int, value: Any) -> None:
    traffic = Traffic()
    with pytest.raises(MALFORMED):
        traffic.add([*GOOD[:place], value, *GOOD[place + 1 :]])
    assert plain(traffic) == plain(Traffic())


@pytest.mark.parametrize("taken", [None, [], GOOD[:4], [*GOOD, 1], 7], ids=str)
def test_another_shape_is_refused(taken: Any) -> None:
    with pytest.raises(MALFORMED):
        Traffic().add(taken)
