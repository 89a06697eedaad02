"""The shortest way from the start URLs to every page: a breadth-first walk over the followed links of a run.

The caller reads the links of the pages that `take` gives, and passes them to `add`. Memory grows by a few
bytes per URL. How a crawl happened to find a page says nothing of this: with a sitemap, it found all at once.
"""

from array import array
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from crawler.model.rows import LinksRow

BATCH: Final = 2_000  # pages whose links are read together
_FAR: Final = 2**32 - 1  # not reached


def numbers(size: int, value: int = 0) -> "array[int]":
    """An array of `size` numbers, four bytes each."""
    return array("I", [value]) * size


class Clicks:
    """The walk, and then its distances. A redirect is no click; a link with nofollow leads nowhere."""

    def __init__(self, starts: Iterable[int]) -> None:
        """`starts`: ids of the start URLs."""
        self._far = numbers(1024, _FAR)
        self._here, self._next, self._clicks = array("I"), array("I"), 0
        for number in starts:
            self._reach(number, 0, self._here)

    def take(self) -> Sequence[int]:
        """The next pages whose links are to be added; none at the end."""
        while self._here or self._next:
            if not self._here:
                self._here, self._next = self._next, array("I")
                self._clicks += 1
            taken = self._here[-BATCH:]
            del self._here[-BATCH:]
            # Those that a redirect has brought nearer since were taken before.
            if due := [number for number in taken if self._far[number] == self._clicks]:
                return due
        return ()

    def add(self, rows: Mapping[int, LinksRow]) -> None:
        for row in rows.values():
            if row.redirect:
                self._reach(row.redirect, self._clicks, self._here)
                continue
            for number in row.links:
                if number > 0:
                    self._reach(number, self._clicks + 1, self._next)

    def _reach(self, number: int, clicks: int, queue: "array[int]") -> None:
        if (missing := number + 1 - len(self._far)) > 0:
            self._far.extend(numbers(max(missing, len(self._far)), _FAR))
        if clicks < self._far[number]:
            self._far[number] = clicks
            queue.append(number)

    def of(self, number: int) -> int | None:
        """The clicks to a URL; None if links do not lead to it."""
        clicks = self._far[number] if number < len(self._far) else _FAR
        return None if clicks == _FAR else clicks
