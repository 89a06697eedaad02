"""The look for doubtful places: what it keeps of each page while it counts."""

import tracemalloc
from collections.abc import Iterator
from typing import Any

from crawler.frontier import duplicates

PAGES = 20_000
SHOP = "https://a.example/shop/"


class OfOneFolder:
    """A database of pages, each with a title of its own, to which their folder leads."""

    run = 1

    def chunks(self, _sql: str, _given: object) -> Iterator[list[tuple[Any, ...]]]:
        for first in range(0, PAGES, 100):
            numbers = range(first, first + 100)
            yield [(n, f"{SHOP}{n}.html", f"About {self._name(n)}", None, SHOP, "listed") for n in numbers]

    def _name(self, number: int) -> str:
        return "".join(chr(ord("a") + int(digit)) for digit in str(number))


def test_a_look_keeps_few_bytes_of_a_page() -> None:
    tracemalloc.start()
    try:
        db: Any = OfOneFolder()
        assert duplicates.doubtful_places(db, {}, frozenset(), alike=True, only_dated=False) == {}
        highest = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert highest < 8 * duplicates.HASHES + 60 * PAGES
