"""A bounded memory of URLs known in this run: it swallows the links that every page repeats.

Two generations of a plain dict: what is asked for stays young, what is not falls out. Forgetting is always
safe, since the database knows better.
"""

from crawler.urls import Url


class Known:
    """URL to record number; below zero when the URL is known from nofollow links only."""

    def __init__(self, size: int = 50_000) -> None:
        self._size = size
        self._young: dict[Url, int] = {}
        self._old: dict[Url, int] = {}

    def add(self, url: Url, number: int, *, aside: bool) -> None:
        """Remember."""
        if len(self._young) >= self._size:
            self._old, self._young = self._young, {}
        self._young[url] = -number if aside else number

    def _lookup(self, url: Url) -> int | None:
        number = self._young.get(url)
        if number is None and (number := self._old.get(url)) is not None:
            self.add(url, abs(number), aside=number < 0)
        return number

    def __contains__(self, url: Url) -> bool:
        """Whether the URL is remembered as known in this run."""
        return self._lookup(url) is not None

    def get(self, url: Url) -> int | None:
        """Its record number."""
        number = self._lookup(url)
        return None if number is None else abs(number)

    def is_aside(self, url: Url) -> bool:
        """Whether only nofollow links were seen."""
        return (self._lookup(url) or 0) < 0

    def clear(self) -> None:
        """Forget all."""
        self._young, self._old = {}, {}
