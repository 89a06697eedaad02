"""Text of a page that changes from run to run while its content does not: counters, random picks, times.

Nothing is known of the language or the markup: a piece of text that changed in three runs in a row, in its
place, is noise from then on; one that was the same by chance after two changes goes on with its row.
The place is its position among the pieces, counted from the start or, behind what was added, from the end. Of
a page without a date of its own, digests of the pieces are stored when it is first seen: so its first change
shows where it was. Of a piece that changes now and then it is remembered that it has: whether that is noise,
all pages of the site tell (`lastmod.restless`).

Before the pieces stands what became of the page in the last run, a `LastChange`, and digests of the pieces
that were new in it and of those that were gone, by which pages are found that changed in the same way at
once (`lastmod.is_noisy`), over some nights (`rolled_out`), or one after the other (`shown_in_turn`). Of
a page that did not change since, most of these digits stay, with the number of quiet runs. Pure.
"""

import re
from base64 import b64decode, b64encode
from collections import Counter
from collections.abc import Iterable, Sequence
from enum import StrEnum
from itertools import chain, groupby, takewhile
from struct import error as StructError  # noqa: N812
from struct import iter_unpack, pack
from typing import Final
from zlib import crc32

from msgspec import Struct
from msgspec.structs import replace

from crawler.parse.extract import LABEL

RUNS: Final = 3  # in a row
WIDTH: Final = 5  # characters for a piece: four hex digits of its digest, and the changes in a row
HEAD: Final = 8  # characters before the pieces
WAY: Final = 6  # digits of what was new and gone that stay
_NO_TEXT: Final = crc32(b"[]")
_NO_NEWS: Final = "0000000"
UNKNOWN_WAY: Final = "0000"  # their beginning, if nothing is known
TEXTS: Final = 1 << 14  # digests of what is new
GONE: Final = 1 << 13  # and of what is gone: with whether that is a large part, both are seven hex digits
MOST_RUNS: Final = 20  # in which changes in place are counted
QUIET_RUNS: Final = 10  # without a change, after which a page without noise is as one that is new
SMALL_PART: Final = 4  # one piece of so many; more is the content of a page that is replaced now and then
LONG_QUIET_RUNS: Final = 40  # the same, of a page with a piece that has changed in its place


class LastChange(StrEnum):
    """What is known of the last change of a page."""

    UNKNOWN = "="  # nothing, or the page did not change
    FIRST = "?"  # a small part of it changed, and nothing had changed in its place since it is watched
    NEW = "+"  # it changed in size, in a large part, or in places where it had not changed before
    REPEATED = "~"  # it changed where it had changed in the run before, or beside new noise
    AGAIN = "^"  # a small part of it changed, where it had changed since it is watched
    LEARNED = "!"  # noise was recognised: the changes of the runs before were no changes either
    NOISE = "-"  # only noise changed
    LABEL = ":"  # a label, as the state of what the page is about, was replaced for the first time


_QUIET: Final = "0123456789abcdefghijklmnopqrstuvwxyzABCDE"  # a digit, for up to `LONG_QUIET_RUNS`
_STORED: Final = re.compile(
    r"(?:=[0-9a-f]{6}[0-9a-zA-E]|[?+~^!:-][0-9a-f]{7})(?:[0-9a-f]{4}[0-5])+", re.ASCII
)
STILL: Final = f"{LastChange.UNKNOWN}*"  # before digests, two bytes each, in base64: no piece has changed
# Beside its changes in a row: it has changed before; it is new, or may be.
_HAS_CHANGED: Final = RUNS + 1
_NEW: Final = RUNS + 2


class Piece(Struct, frozen=True):
    """A piece of text: its digest, in how many runs in a row it changed, `RUNS` at most, and whether it was
    another one in its place since it is watched.
    """

    digest: int
    changes: int
    has_changed: bool = False

    @classmethod
    def read(cls, text: str) -> "Piece":
        digest, digit = int(text[:-1], 16), int(text[-1])
        if digit > RUNS:
            return cls(digest, int(digit == _NEW), has_changed=digit == _HAS_CHANGED)
        return cls(digest, digit, has_changed=digit > 0)

    def __str__(self) -> str:
        """As `read` takes it."""
        digit = self.changes
        if self.changes == 0 and self.has_changed:
            digit = _HAS_CHANGED
        elif self.changes == 1 and not self.has_changed:
            digit = _NEW
        return f"{self.digest:04x}{digit}"

    @property
    def is_noise(self) -> bool:
        """Whether changes of it are no changes of the page."""
        return self.changes == RUNS


def version(
    known: str | None, watched: str | None, content: str | None, pieces: Sequence[int]
) -> tuple[str | None, str | None]:
    """The version of a page, and what is watched of it from now on.

    `known`, `watched`: the same of the last run. `content`: its fingerprint now, with digests of its
    `pieces` if it differs from `known`. A page on which only noise changed has the version that it had.
    """
    if known is None or content is None:
        return content, _still(pieces if content else ())
    if content == known:
        return content, unchanged(watched)
    if not pieces:
        return content, None
    before = _read(watched)
    if not before:  # any of them may have changed
        return content, _written(LastChange.UNKNOWN, [Piece(digest, 1) for digest in pieces])
    now = [
        Piece(digest, 1) if old is None else _changed(old, digest)
        for old, digest in zip(_in_place(before, pieces), pieces, strict=True)
    ]
    is_same = len(before) == len(now) and all(
        one.is_noise or one.digest == old.digest for old, one in zip(before, now, strict=True)
    )
    if is_same:
        change = LastChange.LEARNED if _learns(zip(before, now, strict=True)) else LastChange.NOISE
        way = watched[1 : WAY + 1] if watched and change == LastChange.NOISE else "0" * WAY
        return known, _written(change, now, f"{way}0")
    change = _kind(before, now)
    # Many pages have the same labels, whenever each of them got its own.
    news = _NO_NEWS if change == LastChange.LABEL else _news(before, now)
    return content, _written(change, now, news)


def _kind(before: Sequence[Piece], now: Sequence[Piece]) -> LastChange:
    """Where a page changed that did."""
    if len(before) != len(now):
        return LastChange.NEW
    every = groupby(zip(before, now, strict=True), lambda pair: pair[0].digest != pair[1].digest)
    parts = [list(part) for is_changed, part in every if is_changed]
    if all(all(one.changes > 1 for _, one in part) or _learns(part) or _is_beside(part) for part in parts):
        return LastChange.REPEATED
    pairs = list(chain.from_iterable(parts))
    if all(old.digest & one.digest & LABEL and not old.has_changed for old, one in pairs):
        return LastChange.LABEL
    if SMALL_PART * len(pairs) > len(now):
        return LastChange.NEW
    if all(old.has_changed for old, _ in pairs):
        return LastChange.AGAIN
    return LastChange.NEW if any(old.has_changed for old in before) else LastChange.FIRST


def _learns(pairs: Iterable[tuple[Piece, Piece]]) -> bool:
    """Whether noise is recognised in a part: what else changed in it was the same by chance before."""
    return any(one.is_noise and not old.is_noise for old, one in pairs)


def _is_beside(pairs: Sequence[tuple[Piece, Piece]]) -> bool:
    """Whether what changed is beside noise, and had changed before: it was the same by chance."""
    return any(old.is_noise for old, _ in pairs) and all(old.has_changed for old, _ in pairs)


def has_restless(watched: str | None) -> bool:
    """Whether some piece of a page has changed in its place."""
    return any(piece.has_changed for piece in _read(watched))


def unchanged(watched: str | None) -> str | None:
    """What is watched of a page that did not change: for a while it is remembered what it showed."""
    if not watched or watched.startswith(STILL):
        return watched
    some = [_rested(piece) for piece in _read(watched)]
    if not some:
        return None
    quiet = _QUIET.index(watched[WAY + 1]) + 1 if watched.startswith(LastChange.UNKNOWN) else 1
    most = LONG_QUIET_RUNS if any(piece.has_changed for piece in some) else QUIET_RUNS
    if quiet >= most and not any(piece.is_noise for piece in some):
        return _still([piece.digest for piece in some])
    return _written(LastChange.UNKNOWN, some, f"{watched[1 : WAY + 1]}{_QUIET[min(quiet, most)]}")


def _news(before: Sequence[Piece], now: Sequence[Piece]) -> str:
    """Digests of the pieces that are new and of those that are gone, but for noise, wherever they stand."""
    then, after = (Counter(piece.digest for piece in some if not piece.is_noise) for some in (before, now))
    parts = after - then, then - after
    new, gone = (crc32(repr(sorted(part.elements())).encode()) for part in parts)
    large = SMALL_PART * max(part.total() for part in parts) > len(now)
    return f"{(new % TEXTS * GONE + gone % GONE) * 2 + large:07x}"


def new_and_gone(news: str) -> tuple[int, int]:
    """Digests of what is new and of what is gone, of those seven digits."""
    new, gone = divmod(int(news, 16) // 2, GONE)
    return new % GONE, gone


def texts(news: str) -> tuple[int, int]:
    """The same, 0 for no text."""
    new, gone = new_and_gone(news)
    return new * (new != _NO_TEXT % GONE), gone * (gone != _NO_TEXT % GONE)


def is_large(news: str) -> bool:
    """Whether that is a large part of the page."""
    return int(news, 16) % 2 == 1


def _rested(piece: Piece) -> Piece:
    return piece if piece.is_noise else replace(piece, changes=0)


def _changed(old: Piece, digest: int) -> Piece:
    if digest == old.digest:
        return old if old.changes == RUNS - 1 else _rested(old)
    return Piece(digest, min(RUNS, old.changes + 1), has_changed=True)


def _in_place(before: Sequence[Piece], pieces: Sequence[int]) -> list[Piece | None]:
    """For each of the pieces, the one that was in its place; None if it was added."""
    most = min(len(before), len(pieces))
    if len(before) == len(pieces):
        return list(before)
    front = _alike(before, pieces, most)
    back = _alike(before[::-1], pieces[::-1], most - front)
    rest = before[len(before) - back :]
    return [*before[:front], *[None] * (len(pieces) - front - back), *rest]


def _alike(before: Sequence[Piece], pieces: Sequence[int], most: int) -> int:
    """How many pieces, from the first on, are the same but for noise."""
    pairs = zip(before[:most], pieces, strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0].is_noise or pair[0].digest == pair[1], pairs))


def _read(text: str | None) -> list[Piece]:
    """The pieces; none if the text is not ours, as it came from a process that reads hostile markup."""
    if text and text.startswith(STILL):
        try:
            return [Piece(digest, 0) for (digest,) in iter_unpack(">H", b64decode(text[len(STILL) :]))]
        except (ValueError, StructError):
            return []
    if not _STORED.fullmatch(text or ""):
        return []
    return [Piece.read((text or "")[at : at + WIDTH]) for at in range(HEAD, len(text or ""), WIDTH)]


def _still(digests: Sequence[int]) -> str | None:
    """Of a page on which nothing has changed."""
    return STILL + b64encode(pack(f">{len(digests)}H", *digests)).decode() if digests else None


def _written(change: LastChange, pieces: Sequence[Piece], news: str = _NO_NEWS) -> str | None:
    """None: there is nothing to be watched."""
    if not pieces:
        return None
    return change + news + "".join(map(str, pieces))
