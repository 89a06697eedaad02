"""A bounded memory of URLs known in this run: it swallows the links that every page repeats.

Two generations of a plain dict: what is asked for stays young, what is not falls out. Forgetting is always
safe, since the database knows better.
"""

from collections.abc import Iterable
from typing import Final

from crawler.parse.url import Url

WEIGHT: Final = 16_000_000  # characters of URLs in a generation: above what the links of one page may have


class SeenCache:
    """URL to record number; below zero when another way to the URL would be news (see `schema.KNOWN`)."""

    def __init__(self, size: int = 50_000) -> None:
        self._size, self._weight = size, 0
        self._young: dict[Url, int] = {}
        self._old: dict[Url, int] = {}

    def add(self, url: Url, number: int, *, filtered: bool) -> None:
        """Remember."""
        if len(self._young) >= self._size or self._weight >= WEIGHT:
            self._old, self._young, self._weight = self._young, {}, 0
        self._weight += len(url)
        self._young[url] = -number if filtered else number

    def number(self, url: Url) -> int:
        """Its record number, below zero when another way to it would be news; zero when it is not remembered."""
        number = self._young.get(url)
        if number is None:
            number = self._old.get(url, 0)
            if number:
                self.add(url, abs(number), filtered=number < 0)
        return number

    def numbers(self, urls: Iterable[Url]) -> list[int]:
        """The same of many."""
        young = self._young.get
        return [young(url) or self.number(url) for url in urls]

    def clear(self) -> None:
        """Forget all."""
        self._young, self._old, self._weight = {}, {}, 0
