"""Which URL goes into which file, the same from run to run: ranges of the sorted URLs, as the leaves of a B-tree.

A file that is full splits in two halves; one that is nearly empty joins its neighbour; all others keep their range, so
that one new page changes one file. A number keeps its range or gets a larger one, never less: halves are numbered anew,
so that an index which still names the whole never leads to a half. Files and bytes are for `write`.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Final

SMALL: Final = 8  # a leaf below an eighth of the limits looks for a neighbour
ROOM: Final = 0.75  # of the limits that two joined leaves may fill


@dataclass(frozen=True, slots=True)
class Shard:
    """A file's number, and the text from which on URLs belong to it, up to the next shard's."""

    number: int
    first: str = ""


@dataclass
class Leaf:
    """The lines of one file, as they will stand there: tens of thousands are in hand. `size`: their bytes."""

    shard: Shard
    lines: list[bytes] = field(default_factory=list)
    size: int = 0

    def add(self, lines: Sequence[bytes]) -> None:
        """More lines, in order."""
        self.lines += lines
        self.size += sum(map(len, lines))


@dataclass(frozen=True, slots=True)
class Limits:
    """Of one file: lines, and the bytes of all of them together."""

    lines: int
    size: int

    def hold(self, lines: int, size: int) -> bool:
        """Whether a file can be that large."""
        return lines <= self.lines and size <= self.size


class Shards:
    """Lines go in by `add`, in order of their URL; leaves come out once nothing can change them."""

    def __init__(
        self,
        old: Sequence[Shard],
        limits: Limits,
        url_of: Callable[[bytes], str],
        taken: Collection[int] = (),
    ) -> None:
        """`old`: the shards of the last publication; none begins anew and fills each file.

        `url_of`: the URL in a line. `taken`: numbers that no new leaf may have, beside those of `old`.
        """
        self._limits, self._url_of = limits, url_of
        self._coming = sorted({shard.first: shard for shard in old}.values(), key=lambda shard: shard.first)[
            ::-1
        ]
        self._is_new = not old
        self._taken = {shard.number for shard in old}.union(taken)
        self._numbers = (number for number in count(1) if number not in self._taken)
        first = self._coming.pop() if self._coming else Shard(next(self._numbers))
        self._leaf = Leaf(Shard(first.number))
        self._waiting: Leaf | None = None

    def add(self, url: str, line: bytes) -> Iterable[Leaf]:
        """One more line, with its URL."""
        leaf = self._leaf
        size = leaf.size + len(line)
        comes = bool(self._coming) and url >= self._coming[-1].first
        if comes or not self._limits.hold(len(leaf.lines) + 1, size):
            return self._turning(url, line)
        leaf.lines.append(line)
        leaf.size = size
        return ()

    def _turning(self, url: str, line: bytes) -> Iterator[Leaf]:
        """A line that does not belong into the leaf at hand, or finds no room there."""
        while self._coming and url >= self._coming[-1].first:
            yield from self._turn(Leaf(self._coming.pop()))
        leaf = self._leaf
        if not self._limits.hold(len(leaf.lines) + 1, leaf.size + len(line)):
            yield from self._turn(self._split(leaf, url))
        self._leaf.add([line])

    def finish(self) -> Iterator[Leaf]:
        """No more lines."""
        yield from self._turn(Leaf(Shard(0)))
        if self._waiting:
            yield self._waiting

    def _split(self, leaf: Leaf, url: str) -> Leaf:
        """A new leaf behind a full one, with half of its lines; where all is new, with none, and for `url`."""
        if leaf.shard.number in self._taken:
            leaf.shard = replace(leaf.shard, number=next(self._numbers))
        keep = len(leaf.lines) if self._is_new else (len(leaf.lines) + 1) // 2
        moved = leaf.lines[keep:]
        del leaf.lines[keep:]
        leaf.size -= sum(map(len, moved))
        new = Leaf(Shard(next(self._numbers), self._url_of(moved[0]) if moved else url))
        new.add(moved)
        return new

    def _turn(self, following: Leaf) -> Iterator[Leaf]:
        """The leaf at hand is over. It joins the one before it, or takes its place in waiting."""
        leaf, self._leaf = self._leaf, following
        if not leaf.lines:
            return
        before = self._waiting
        if before and self._should_join(before, leaf):
            before.add(leaf.lines)
            leaf, self._waiting = before, None
        elif before:
            yield before
            self._waiting = None
        if self._may_join(leaf):
            self._waiting = leaf
        else:
            yield leaf  # at once, so that no more than two files are ever held

    def _should_join(self, one: Leaf, other: Leaf) -> bool:
        if self._is_new or not (self._is_small(one) or self._is_small(other)):
            return False
        lines, size = len(one.lines) + len(other.lines), one.size + other.size
        return lines <= self._limits.lines * ROOM and size <= self._limits.size * ROOM

    def _may_join(self, leaf: Leaf) -> bool:
        """Whether a leaf to come could still join this one."""
        return not self._is_new and len(leaf.lines) <= self._limits.lines * ROOM

    def _is_small(self, leaf: Leaf) -> bool:
        return len(leaf.lines) * SMALL <= self._limits.lines and leaf.size * SMALL <= self._limits.size
