"""Which texts occur more than once among very many, in eight bytes for each of them.

Texts are told apart by a hash of 64 bits: among a million, two that only seem the same are one chance in 30 million.
"""

from array import array
from bisect import bisect_left
from itertools import groupby


class Groups:
    """First every text is added, then `close` is called, and then each can be asked for."""

    def __init__(self) -> None:
        self._hashes = array("Q")
        self._repeated = array("Q")
        self._sizes = array("I")
        self._met = bytearray()

    def add(self, *words: str) -> None:
        """One more page with these."""
        self._hashes.append(_hash(words))

    def close(self) -> None:
        """Nothing more is added."""
        for value, same in groupby(sorted(self._hashes)):
            size = sum(1 for _ in same)
            if size > 1:
                self._repeated.append(value)
                self._sizes.append(size)
        self._hashes = array("Q")
        self._met = bytearray(len(self._sizes))

    @property
    def pages(self) -> int:
        """All that share their words with another."""
        return sum(self._sizes)

    def group(self, *words: str) -> tuple[int, int] | None:
        """The group of these words and how many are in it; None if nobody shares them."""
        value = _hash(words)
        place = bisect_left(self._repeated, value)
        if place == len(self._repeated) or self._repeated[place] != value:
            return None
        return place, self._sizes[place]

    def is_first(self, group: int) -> bool:
        """Whether this is asked of the group for the first time."""
        known, self._met[group] = self._met[group], 1
        return not known


def _hash(words: tuple[str, ...]) -> int:
    return hash(words) & 0xFFFF_FFFF_FFFF_FFFF
