"""Finds texts that occur more than once among very many, in eight bytes for each of them.

Texts are compared by a 64-bit hash: among a million, the probability of any collision is one in 30 million.
"""

from array import array
from bisect import bisect_left
from itertools import groupby


class Groups:
    """Groups of equal texts: `add` every text, call `close`, then look up each with `group`."""

    def __init__(self) -> None:
        self._hashes = array("Q")
        self._repeated = array("Q")
        self._sizes = array("I")
        self._met = bytearray()

    def add(self, *words: str) -> None:
        """Add a page with these words."""
        self._hashes.append(_hash(words))

    def close(self) -> None:
        """End adding."""
        for value, same in groupby(sorted(self._hashes)):
            size = sum(1 for _ in same)
            if size > 1:
                self._repeated.append(value)
                self._sizes.append(size)
        self._hashes = array("Q")
        self._met = bytearray(len(self._sizes))

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
        known, self._met[group] = self._met[group], 1
        return not known


def _hash(words: tuple[str, ...]) -> int:
    return hash(words) & 0xFFFF_FFFF_FFFF_FFFF
