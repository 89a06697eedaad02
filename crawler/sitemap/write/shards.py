"""Assigns URLs to files, stable from run to run: each file is a range of the sorted URLs, like the leaves of
a B-tree.

A full file splits into halves, a nearly empty one is merged with its neighbour, and all others keep their
range, so that one new page changes one file. The range of a file number may grow but never shrink: halves get
new numbers, so that an old index never leads to only half of its URLs. Files are written by `writer`.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import count
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

SMALL_LEAF: Final = 8  # a leaf below an eighth of the limits is merged with a neighbour
FILLED: Final = 0.75  # share of the limits that two merged leaves may fill


class Shard(Struct, frozen=True):
    """A file's number, and the first text of its range, which ends where the next shard begins."""

    number: int
    first: str = ""


class OldFiles(Struct, frozen=True):
    """The files of the last publication that new ones take the place of.

    `shards`: their ranges; if there are none, files are filled one after the other. `taken`: numbers that
    must not be used for new files, besides those of `shards`.
    """

    shards: Sequence[Shard] = ()
    taken: Collection[int] = ()


NO_FILES: Final = OldFiles()


class Leaf(Struct, eq=False):
    """The lines of one file, in memory. `size`: their bytes."""

    shard: Shard
    lines: list[bytes] = field(default_factory=list)
    size: int = 0

    def add(self, lines: Sequence[bytes]) -> None:
        self.lines += lines
        self.size += sum(map(len, lines))


class FileLimits(Struct, frozen=True):
    """The limits of one file: lines, and their total bytes."""

    lines: int
    size: int

    def hold(self, lines: int, size: int) -> bool:
        return lines <= self.lines and size <= self.size


class Shards:
    """Distributes lines to leaves: `add` them in the order of their URLs; final leaves are returned."""

    def __init__(self, old: OldFiles, limits: FileLimits, url_of: Callable[[bytes], str]) -> None:
        """`url_of`: returns the URL in a line."""
        self._limits, self._url_of = limits, url_of
        by_first = {shard.first: shard for shard in old.shards}
        self._coming = sorted(by_first.values(), key=lambda shard: shard.first, reverse=True)
        self._is_new = not old.shards
        self._taken = {shard.number for shard in old.shards}.union(old.taken)
        self._numbers = (number for number in count(1) if number not in self._taken)
        first = self._coming.pop() if self._coming else Shard(next(self._numbers))
        self._leaf = Leaf(Shard(first.number))
        self._waiting: Leaf | None = None

    def add(self, url: str, line: bytes) -> Iterable[Leaf]:
        leaf = self._leaf
        size = leaf.size + len(line)
        comes = bool(self._coming) and url >= self._coming[-1].first
        if comes or not self._limits.hold(len(leaf.lines) + 1, size):
            return self._turning(url, line)
        leaf.lines.append(line)
        leaf.size = size
        return ()

    def _turning(self, url: str, line: bytes) -> Iterator[Leaf]:
        """Adds a line that is outside the range of the current leaf, or does not fit into it."""
        while self._coming and url >= self._coming[-1].first:
            yield from self._turn(Leaf(self._coming.pop()))
        # The second half of a leaf may be nearly all of its bytes: then it is split again.
        while self._leaf.lines and not self._limits.hold(
            len(self._leaf.lines) + 1, self._leaf.size + len(line)
        ):
            yield from self._turn(self._split(self._leaf, url))
        self._leaf.add([line])

    def finish(self) -> Iterator[Leaf]:
        """Returns the remaining leaves."""
        yield from self._turn(Leaf(Shard(0)))
        if self._waiting:
            yield self._waiting

    def _split(self, leaf: Leaf, url: str) -> Leaf:
        """A leaf after a full one, with half of its lines; without old shards an empty one from `url` on."""
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
        """Ends the current leaf: merges it with the waiting one, or makes it the waiting one."""
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
            yield leaf  # at once, so that at most two files are in memory

    def _should_join(self, one: Leaf, other: Leaf) -> bool:
        if self._is_new or not (self._is_small(one) or self._is_small(other)):
            return False
        lines, size = len(one.lines) + len(other.lines), one.size + other.size
        return lines <= self._limits.lines * FILLED and size <= self._limits.size * FILLED

    def _may_join(self, leaf: Leaf) -> bool:
        """Whether the next leaf may be merged with this one."""
        return not self._is_new and len(leaf.lines) <= self._limits.lines * FILLED

    def _is_small(self, leaf: Leaf) -> bool:
        return (
            len(leaf.lines) * SMALL_LEAF <= self._limits.lines and leaf.size * SMALL_LEAF <= self._limits.size
        )
