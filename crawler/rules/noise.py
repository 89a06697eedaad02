"""Text of a page that changes from run to run while its content does not: counters, random picks, times.

Nothing is known of the language or the markup: a piece of text that changed in three runs in a row, in its
place, is noise from then on; one that was the same by chance after two changes goes on with its row.
The place is its position among the pieces, counted from the start or, behind what was added, from the end. A
page that did not change is not watched, so that honest sites store nothing.

Before the pieces stands what became of the page in the last run, a `LastChange`, and a digest of the pieces
that were new in it, by which pages are found on which the same block changed. Pure.
"""

import re
from collections import Counter
from collections.abc import Sequence
from enum import StrEnum
from itertools import takewhile
from typing import Final, NamedTuple
from zlib import crc32

RUNS: Final = 3  # in a row
WIDTH: Final = 5  # characters for a piece: four hex digits of its digest, and the changes in a row
HEAD: Final = 8  # characters before the pieces
QUIET_RUNS: Final = 10  # without a change, after which a page without noise is no longer watched


class LastChange(StrEnum):
    """What is known of the last change of a page."""

    UNKNOWN = "="  # nothing, or the page did not change
    NEW = "+"  # it changed in places where it had not changed in the run before
    REPEATED = "~"  # it changed where it had changed in the run before
    LEARNED = "!"  # noise was recognised: the changes of the runs before were no changes either
    NOISE = "-"  # only noise changed


_STORED: Final = re.compile(r"(?:=\d{7}|[+~!-][0-9a-f]{7})(?:[0-9a-f]{4}[0-9])+", re.ASCII)


class Piece(NamedTuple):
    """A piece of text: its digest, and in how many runs in a row it changed, `RUNS` at most."""

    digest: int
    changes: int

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
    before = _read(watched)
    if known is None or content is None:
        return content, None
    if content == known:
        return content, unchanged(watched)
    if not pieces:
        return content, None
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
        is_learned = any(one.is_noise and not old.is_noise for old, one in zip(before, now, strict=True))
        return known, _written(LastChange.LEARNED if is_learned else LastChange.NOISE, now)
    is_repeated = len(before) == len(now) and all(
        one.changes > 1 for old, one in zip(before, now, strict=True) if one.digest != old.digest
    )
    return content, _written(LastChange.REPEATED if is_repeated else LastChange.NEW, now, _news(before, now))


def unchanged(watched: str | None) -> str | None:
    """What is watched of a page that did not change: for a while it is remembered what it showed."""
    some = [_still(piece) for piece in _read(watched)]
    if not (watched and some):
        return None
    quiet = int(watched[1:HEAD]) + 1 if watched.startswith(LastChange.UNKNOWN) else 1
    if quiet >= QUIET_RUNS and not any(piece.is_noise for piece in some):
        return None
    return _written(LastChange.UNKNOWN, some, f"{min(quiet, QUIET_RUNS):07}")


def _news(before: Sequence[Piece], now: Sequence[Piece]) -> str:
    """A digest of the pieces that are new or gone, but for noise, wherever they stand."""
    then, after = (Counter(piece.digest for piece in some if not piece.is_noise) for some in (before, now))
    found = sorted((after - then).elements()), sorted((then - after).elements())
    return f"{crc32(repr(found).encode()):08x}"[1:]


def _still(piece: Piece) -> Piece:
    return piece if piece.is_noise else piece._replace(changes=0)


def _changed(old: Piece, digest: int) -> Piece:
    if digest == old.digest:
        return old if old.changes == RUNS - 1 else _still(old)
    return Piece(digest, min(RUNS, old.changes + 1))


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
    if not _STORED.fullmatch(text or ""):
        return []
    cut = ((text or "")[at : at + WIDTH] for at in range(HEAD, len(text or ""), WIDTH))
    return [Piece(int(one[:-1], 16), min(RUNS, int(one[-1]))) for one in cut]


def _written(change: LastChange, pieces: Sequence[Piece], news: str = "0000000") -> str | None:
    """None: there is nothing to be watched."""
    if not pieces:
        return None
    return change + news + "".join(f"{piece.digest:04x}{piece.changes}" for piece in pieces)
