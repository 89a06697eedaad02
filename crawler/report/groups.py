"""Finds texts that occur more than once among very many, in eight bytes for each of them.

Texts are compared by a 64-bit hash: among a million, the probability of any collision is one in 30 million.
"""

from array import array
from bisect import bisect_left
from itertools import groupby
from typing import Final

PARTS: Final = 16  # sorted one at a time: as numbers of Python, hashes take five times the memory
_SHIFT: Final = 60  # bits of a hash below those that name its part


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
