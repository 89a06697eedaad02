"""What the findings of a run are compared with: those of the run that was published last before it.

A finding is the same in two runs if its code and its URL are. The next run packs what that run had, before it
changes anything: what was linked, listed or redirected then is no longer known afterwards. Of groups of
duplicates and of files, only what was mended is told like this; missing dates and what concerns the site as a
whole are not compared.
"""

import zlib
from array import array
from base64 import b64decode, b64encode
from bisect import bisect_left
from collections.abc import Collection, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import accumulate, chain, pairwise
from typing import Final

from crawler.report.catalogue import BROKEN_FILES, COMPARED, GROUPED, Code

CHECK: Final = "check-external"
_WITH: Final = {
    **{code: "hreflang" for code in Code if code.value.startswith("hreflang-")},
    Code.IMAGES_CUT: "images",
    **dict.fromkeys((Code.HASH_ROUTES, Code.NEEDS_SCRIPTS, Code.NOT_RENDERED), "render"),
    **dict.fromkeys((Code.BROKEN_EXTERNAL, Code.CANONICAL_BROKEN), CHECK),
}
"""The settings without which a complete run has no such finding."""


def sought(settings: Iterable[tuple[str, str]], *, checked: bool) -> frozenset[Code]:
    """The codes that a run can tell. `settings`: those that are not the default; `checked`: links to other
    sites were.
    """
    chosen = {name for name, _ in settings} - {CHECK} | ({CHECK} if checked else set())
    return frozenset(code for code in COMPARED | GROUPED if code not in _WITH or _WITH[code] in chosen)


def files_sought(settings: Iterable[tuple[str, str]], *, checked: bool) -> Sequence[str]:
    """The kinds of files for which a run asked, by the same."""
    chosen = dict(settings)
    names = chosen.get("check-files", "images").split(",") if checked else ()
    return [kind for kind in BROKEN_FILES if kind in names and (kind != "images" or kind in chosen)]


def packed(ids: Collection[int]) -> str:
    """The ids of URLs as a short text."""
    steps = array("I", (after - before for before, after in pairwise(chain((0,), sorted(ids)))))
    return b64encode(zlib.compress(steps.tobytes())).decode()


def packed_groups(pages: Sequence[tuple[int, int]]) -> str:
    """Pages of groups as a short text: the id of each, in their order, and that of the first of its group."""
    steps = array("I", (page - first for page, first in pages))
    return f"{packed([page for page, _ in pages])} {b64encode(zlib.compress(steps.tobytes())).decode()}"


def packed_files(urls: Iterable[str]) -> str:
    """The URLs of files as a short text."""
    return b64encode(zlib.compress("\n".join(urls).encode())).decode()


def unpacked(text: str) -> "array[int]":
    """The ids, sorted. Raises `ValueError`."""
    return array("I", accumulate(array("I", _bytes(text))))


def _bytes(text: str) -> bytes:
    try:
        return zlib.decompress(b64decode(text))
    except zlib.error as error:
        raise ValueError(str(error)) from None


class EarlierFindings:
    """The findings of the earlier run, by code: the ids of their URLs."""

    def __init__(self, found: Mapping[str, str]) -> None:
        """`found`: as in the note. A code that is not in it was not sought."""
        known = {code.value: code for code in COMPARED | GROUPED}
        texts = {known[name]: text.partition(" ") for name, text in found.items() if name in known}
        self._ids = {code: unpacked(ids) for code, (ids, _, _) in texts.items()}
        self._steps = {code: array("I", _bytes(steps)) for code, (_, _, steps) in texts.items() if steps}
        self._found = found
        self._any = bytearray(1 + max((ids[-1] for ids in self._ids.values() if ids), default=0))
        for ids in self._ids.values():
            for number in ids:
                self._any[number] = 1

    @property
    def pages(self) -> Sequence[int]:
        """The ids of all URLs that had any."""
        return [number for number, had in enumerate(self._any) if had]

    def sought(self, code: Code) -> bool:
        """Whether that run could tell."""
        return code in self._ids

    def has(self, code: Code, number: int) -> bool:
        """Whether a URL had the finding."""
        return self._place(code, number) is not None

    def group(self, code: Code, number: int) -> int | None:
        """The group of pages in which a page was that has the finding: the id of the first of them."""
        place, steps = self._place(code, number), self._steps.get(code)
        return None if place is None or steps is None else number - steps[place]

    def files(self, kind: str, code: Code) -> Sequence[str]:
        """The files of a kind that had the finding."""
        text = self._found.get(f"{kind} {code.value}")
        return _bytes(text).decode().split("\n") if text else ()

    def _place(self, code: Code, number: int) -> int | None:
        ids: Sequence[int] = self._ids.get(code, ())
        place = bisect_left(ids, number)
        return place if place < len(ids) and ids[place] == number else None

    def of(self, number: int) -> AbstractSet[Code]:
        """The findings of a URL."""
        if number >= len(self._any) or not self._any[number]:
            return frozenset()
        return {code for code in self._ids if self.has(code, number)}
