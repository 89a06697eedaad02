"""What listed pages have in common: equal texts, and one date. Pure; a few bytes for each page."""

from array import array
from bisect import bisect_left
from itertools import groupby
from typing import Final

FEWEST_DATED: Final = 10  # pages that may have one date by chance
PARTS: Final = 16  # sorted one at a time: as numbers of Python, hashes take five times the memory
_SHIFT: Final = 60  # bits of a hash below those that name its part


class SameDate:
    """Whether all listed pages have one date, which then says nothing: `add` that of each page."""

    def __init__(self) -> None:
        self._date: int | None = None
        self._count, self._is_one = 0, True

    def add(self, date: int | None) -> None:
        """Add the date of a page, in seconds since the epoch."""
        self._date = date if not self._count else self._date
        self._is_one = self._is_one and date == self._date
        self._count += 1

    def result(self) -> int | None:
        """The date that all have, if there are enough of them."""
        return self._date if self._is_one and self._count >= FEWEST_DATED else None


class Groups:
    """Groups of equal texts: `add` every text, call `close`, then look up each with `group`."""

    def __init__(self) -> None:
        self._hashes = _parts()
        self._repeated = array("Q")
        self._sizes = array("I")
        self._seen = bytearray()

    def add(self, *words: str) -> None:
        """Add a page with these words."""
        value = _hash(words)
        self._hashes[value >> _SHIFT].append(value)

    def close(self) -> None:
        """End adding."""
        for part in self._hashes:
            for value, same in groupby(sorted(part)):
                size = sum(1 for _ in same)
                if size > 1:
                    self._repeated.append(value)
                    self._sizes.append(size)
        self._hashes = _parts()
        self._seen = bytearray(len(self._sizes))

    @property
    def pages(self) -> int:
        """Number of pages that share their words with another."""
        return sum(self._sizes)

    def group(self, *words: str) -> tuple[int, int] | None:
        """The group of these words, and its number of pages; None if only one page has them."""
        value = _hash(words)
        place = bisect_left(self._repeated, value)
        if place == len(self._repeated) or self._repeated[place] != value:
            return None
        return place, self._sizes[place]

    def is_first(self, group: int) -> bool:
        """Whether this is the first call for the group."""
        known, self._seen[group] = self._seen[group], 1
        return not known


def _parts() -> "list[array[int]]":
    return [array("Q") for _ in range(PARTS)]


def _hash(words: tuple[str, ...]) -> int:
    return hash(words) & 0xFFFF_FFFF_FFFF_FFFF
