"""What listed pages have in common: texts and titles. Pure; a few bytes for each page."""

from array import array
from bisect import bisect_left
from collections.abc import Iterable
from itertools import groupby
from typing import Final

from crawler.parse.extract import BYTES

PARTS: Final = 16  # sorted one at a time: as numbers of Python, hashes take five times the memory
_SHIFT: Final = 60  # bits of a hash below those that name its part


class Groups:
    """Groups of equal values: `add` that of every page, call `close`, then look up each with `group`."""

    def __init__(self) -> None:
        self._hashes = _parts()
        self._repeated = array("Q")
        self._sizes = array("I")
        self._seen = bytearray()

    def add(self, value: int) -> None:
        """Add a page with this value, as of `value_of`."""
        self._hashes[value >> _SHIFT].append(value)

    def close(self) -> None:
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
        return sum(self._sizes)

    def group(self, value: int) -> tuple[int, int] | None:
        """The group of this value, and its number of pages; None if only one page has it."""
        place = bisect_left(self._repeated, value)
        if place == len(self._repeated) or self._repeated[place] != value:
            return None
        return place, self._sizes[place]

    def __len__(self) -> int:
        """Number of groups."""
        return len(self._sizes)

    def is_first(self, group: int) -> bool:
        """Whether this is the first call for the group."""
        known, self._seen[group] = self._seen[group], 1
        return not known


class Texts:
    """Groups of pages with one text, or one title: `add` every page, call `close`, then ask for each.

    All have a digest of their bytes, and only some the fingerprint of their text. Pages with the same bytes
    have one text, even if their fingerprints differ, as noise of earlier runs may be left out of these.
    """

    def __init__(self) -> None:
        self.texts, self.titles, self._both = Groups(), Groups(), Groups()
        self._contents, self._digests, self._titles = array("Q"), array("Q"), array("Q")
        self._same_bytes, self._read = Groups(), array("Q")  # the text of each of these groups; 0: not known
        self._joined: dict[int, int] = {}  # texts that are one, though they have several fingerprints

    def add(self, site: str, title: str, content: str, digest: str) -> None:
        """Add a page. `content`: the fingerprint of its text, or after "=" its digest; empty: not known."""
        text = value_of(site, content)
        self._contents.append(text)
        self._digests.append(value_of(site, BYTES + digest) if digest else text)
        self._titles.append(value_of(site, title))

    def close(self) -> None:
        _fill(self._same_bytes, self._digests)
        self._read = array("Q", [0]) * len(self._same_bytes)
        for digest, text in zip(self._digests, self._contents, strict=True):
            if text != digest and (found := self._same_bytes.group(digest)):
                known = self._read[found[0]] = self._read[found[0]] or text
                if (one := self._one(known)) != (other := self._one(text)):
                    self._joined[other] = one
        pages = zip(self._digests, self._contents, strict=True)
        texts = array("Q", (self._text(digest, text) for digest, text in pages))
        _fill(self.texts, texts)
        _fill(self.titles, self._titles)
        both = zip(texts, self._titles, strict=True)
        _fill(self._both, (value_of(text, title) for text, title in both))
        self._contents, self._digests, self._titles = array("Q"), array("Q"), array("Q")

    def _text(self, digest: int, text: int) -> int:
        found = self._same_bytes.group(digest)
        return self._one((found and self._read[found[0]]) or text)

    def _one(self, text: int) -> int:
        while text in self._joined:
            text = self._joined[text]
        return text

    def of(self, site: str, title: str, content: str, digest: str) -> "tuple[Group | None, Group | None]":
        """The group of pages with the text of this one, and that of pages with its title. Where all pages
        with a title have one text, that is the group.
        """
        text = value_of(site, content)
        text = self._text(value_of(site, BYTES + digest) if digest else text, text)
        titled = value_of(site, title)
        same_title = self.titles.group(titled)
        if same_title and text and (both := self._both.group(value_of(text, titled))):
            same_title = None if both[1] == same_title[1] else same_title
        return self.texts.group(text), same_title


Group = tuple[int, int]
"""The number of a group, and how many pages it has."""


def _fill(groups: Groups, values: Iterable[int]) -> None:
    for value in filter(None, values):
        groups.add(value)
    groups.close()


def _parts() -> "list[array[int]]":
    return [array("Q") for _ in range(PARTS)]


def value_of(*words: str | int) -> int:
    """What stands for these words: 0 if the last of them is empty."""
    return hash(words) & 0xFFFF_FFFF_FFFF_FFFF if words[-1] else 0
