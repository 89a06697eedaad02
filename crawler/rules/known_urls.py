"""A bounded cache of the URLs known in this run, with their record numbers: links to them need no `Visit`.

Two generations of a plain dict: an entry that is used moves to the newer one, others are dropped with the
older one. Dropping an entry is always safe, since the frontier has every URL. Only numbers of a committed
transaction are added.
"""

from collections.abc import Sequence
from typing import Final

from crawler.parse.url import Url

# Characters of URLs in a generation: more than the links of one page can have.
GENERATION_CHARACTERS: Final = 16_000_000


class KnownUrls:
    """URL to record number, as in `Settled.numbers`: negative if a further link to the URL could still change
    its row.
    """

    def __init__(self, size: int = 50_000) -> None:
        self._size, self._weight = size, 0
        self._young: dict[Url, int] = {}
        self._old: dict[Url, int] = {}

    def add(self, url: Url, number: int) -> None:
        """Caches a URL; its number may be negative."""
        if len(self._young) >= self._size or self._weight >= GENERATION_CHARACTERS:
            self._old, self._young, self._weight = self._young, {}, 0
        self._weight += len(url)
        self._young[url] = number

    def number(self, url: Url) -> int:
        """Its record number, negative if a further link could still change its row; zero if it is not cached."""
        number = self._young.get(url)
        if number is None:
            number = self._old.get(url, 0)
            if number:
                self.add(url, number)
        return number

    def numbers(self, urls: Sequence[Url]) -> Sequence[int]:
        """`number` of each URL."""
        numbers = list(map(self._young.get, urls))
        if None not in numbers:
            return numbers  # type: ignore[return-value]
        return [number or self.number(url) for url, number in zip(urls, numbers, strict=True)]
