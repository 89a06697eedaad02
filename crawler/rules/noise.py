"""Text of a page that changes from run to run while its content does not: counters, random picks, times.

Nothing is known of the language or the markup: a piece of text that changed in three runs in a row, in its
place, is noise from then on. The place is its position among the pieces, counted from the start or, behind
what was added, from the end. A page that did not change is not watched, so that honest sites store nothing.
Pure.
"""

from collections.abc import Sequence
from itertools import takewhile
from typing import Final, NamedTuple

RUNS: Final = 3  # in a row
WIDTH: Final = 5  # characters for a piece: four hex digits of its digest, and the changes in a row


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
        return content, _written([_still(piece) for piece in before])
    if not pieces:
        return content, None
    if not before:  # any of them may have changed
        return content, _written([Piece(digest, 1) for digest in pieces])
    now = [
        Piece(digest, 1) if old is None else _changed(old, digest)
        for old, digest in zip(_in_place(before, pieces), pieces, strict=True)
    ]
    is_same = len(before) == len(now) and all(
        one.is_noise or one.digest == old.digest for old, one in zip(before, now, strict=True)
    )
    return known if is_same else content, _written(now)


def _still(piece: Piece) -> Piece:
    return piece if piece.is_noise else piece._replace(changes=0)


def _changed(old: Piece, digest: int) -> Piece:
    return _still(old) if digest == old.digest else Piece(digest, min(RUNS, old.changes + 1))


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
    cut = [(text or "")[at : at + WIDTH] for at in range(0, len(text or ""), WIDTH)]
    try:
        return [Piece(int(one[:-1], 16), min(RUNS, int(one[-1]))) for one in cut]
    except ValueError:
        return []


def _written(pieces: Sequence[Piece]) -> str | None:
    """None: none of them changed, and there is nothing to be watched."""
    if not any(piece.changes for piece in pieces):
        return None
    return "".join(f"{piece.digest:04x}{piece.changes}" for piece in pieces)
