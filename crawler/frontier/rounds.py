"""The rounds of a crawl: when the URLs of a pattern that may be a crawler trap are fetched. For all backends.

They are held until no other URL is open. Then each pattern with an unfinished batch releases its next URLs; once the whole
batch was read, it is decided whether the pattern continues. All decisions are computed from the rows, so the set of fetched
URLs depends only on the site, not on the order of responses or on interruptions. The rule is in `traps`. Each method is
called within a transaction.
"""

from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from typing import NamedTuple

from crawler.frontier.patterns import PatternTable
from crawler.frontier.tables import Tables
from crawler.model.trap import Trap
from crawler.ports import Round
from crawler.rules.traps import BATCH, GROWN, due


class Statements(NamedTuple):
    """The statements of a backend. `:traps` are patterns, `:bare` is the content of `bare`."""

    waiting: str  # `_Waiting`: patterns with held URLs, by family and pattern
    decidable: str  # `_Decidable`
    release: str  # the next `:most` URLs of the pattern `:trap`
    release_published: str  # URLs of the last publication that are barred
    bar: str  # unlists the held URLs of a pattern that have more than `:longer` characters
    contents: str  # number of contents that only pages after round `:since` have, up to `:enough`
    links_out: str  # number of pages outside all patterns that only those pages link to, up to `:enough`
    links_to_patterns: str  # number of pages that they link to, by pattern of another family
    alone: str  # number of new contents and links that only one pattern has, by pattern
    bare: str  # content of the path of the family `:id` without a query
    example: str  # a held URL of a pattern
    held: str  # number of held URLs of a pattern, up to `:most`


class _Waiting(NamedTuple):
    """A pattern with held URLs."""

    family: int
    family_batch_left: int  # pages left in the family's batch
    proven: int
    trap: int
    batch_left: int  # pages left in its own batch
    kind: str
    pattern: str
    longest: int  # characters of its longest URL
    longest_before: int  # the same before the last round
    rounds_growing: int  # consecutive rounds in which that length grew


class _Decidable(NamedTuple):
    """A pattern or family whose whole batch was read."""

    trap: int
    family: int | None
    pattern: str
    size: int
    batch_round: int  # the round in which the batch was released


class Rounds:
    """The rounds of the current run."""

    def __init__(self, db: Tables, patterns: PatternTable, statements: Statements) -> None:
        self._db, self._patterns, self._statements = db, patterns, statements

    def advance(self, depth: int) -> Round:
        """Decide on the batches that were read, and release the next URLs, down to `depth`."""
        closed = self._decide()
        released = self._release(depth, closed) or self._db.do(
            self._statements.release_published, {"run": self._db.run, "depth": depth}
        )
        if released:
            self._patterns.next_round()
        return Round(released, closed)

    def _decide(self) -> list[Trap]:
        decidable = [
            _Decidable(*row) for row in self._db.all(self._statements.decidable, {"run": self._db.run})
        ]
        # All are judged before any is closed, so that their order does not matter.
        goes_on = {one.trap: self._stays_open(one) for one in decidable}
        for one in decidable:
            if one.family is not None:
                self._end_batch(one, goes_on=goes_on[one.trap])
        for one in decidable:
            if one.family is None:
                self._end_batch(one, goes_on=goes_on[one.trap])
        shut = [one for one in decidable if not goes_on[one.trap]]
        if shut:
            self._patterns.note_closing()
        told = {trap.pattern: trap for trap in self._patterns.stored_traps(len(shut) + 1_000)} if shut else {}
        return [told[one.pattern] for one in shut if one.pattern in told]

    def _end_batch(self, one: _Decidable, *, goes_on: bool) -> None:
        if goes_on:
            self._db.do(
                "UPDATE trap SET batch = 2 * batch, batch_left = 2 * batch, batch_round = :round, proven = true WHERE id = :id",
                {"round": self._patterns.round, "id": one.trap},
            )
            return
        closing = [(one.trap, one.pattern)]
        if one.family is None:
            for trap in self._spared(one):
                self._db.do("UPDATE trap SET proven = true WHERE id = :id", {"id": trap})
            closing += self._db.all(
                "SELECT id, pattern FROM trap WHERE family = :id AND NOT proven AND NOT closed",
                {"id": one.trap},
            )
        for trap, pattern in closing:
            self._db.do("UPDATE trap SET closed = true WHERE id = :id", {"id": trap})
            self._bar(trap, pattern, 0)

    def _spared(self, family: _Decidable) -> list[int]:
        """The patterns of a closing family that brought new content themselves, though with too few pages."""
        given = {
            "traps": self._db.ids(self._unproven(family.trap)), "run": self._db.run, "since": family.batch_round,
            "bare": self._content_without_query(family.trap),
        }  # fmt: skip
        read = dict(self._db.all("SELECT id, fetched FROM trap WHERE family = :id", {"id": family.trap}))
        return [
            trap for trap, found in self._db.all(self._statements.alone, given) if found > due(read[trap])
        ]

    def _bar(self, trap: int, detail: str, longer: int) -> None:
        self._db.do(
            self._statements.bar, {"trap": trap, "detail": detail, "now": self._db.now(), "longer": longer}
        )

    def _stays_open(self, one: _Decidable) -> bool:
        """Whether a batch brought enough new content."""
        members = [one.trap] if one.family is not None else self._unproven(one.trap)
        family = one.trap if one.family is None else one.family
        enough = due(one.size)
        found = self._count_new(members, one.batch_round, enough, self._content_without_query(family))
        if found >= enough:
            return True
        given = {
            "traps": self._db.ids(members),
            "run": self._db.run,
            "since": one.batch_round,
            "family": family,
        }
        for trap, count in self._db.all(self._statements.links_to_patterns, given):
            if self._brings_new_content(trap):
                found += count
        return found >= enough

    def _count_new(self, members: list[int], since: int, enough: int, bare: str | None) -> int:
        """Number of new contents, and of new pages outside all patterns: up to `enough`."""
        given = {"traps": self._db.ids(members), "run": self._db.run, "since": since, "enough": enough}
        found: int = self._db.one(self._statements.contents, given | {"bare": bare})[0]
        return found if found >= enough else found + self._db.one(self._statements.links_out, given)[0]

    def _brings_new_content(self, trap: int) -> bool:
        """Whether links into a pattern count as new: only if it has new content itself. Two that only link to each other have none."""
        family, size, since = self._db.one(
            "SELECT family, batch - batch_left, batch_round FROM trap WHERE id = :id", {"id": trap}
        )
        return size == 0 or self._count_new(
            [trap], since, due(size), self._content_without_query(family)
        ) >= due(size)

    def _unproven(self, family: int) -> list[int]:
        rows = self._db.all("SELECT id FROM trap WHERE family = :id AND NOT proven", {"id": family})
        return [row[0] for row in rows]

    def _content_without_query(self, family: int) -> str | None:
        """The content of a family's path without a query."""
        row = self._db.one_or_none(self._statements.bare, {"id": family, "run": self._db.run})
        return row[0] if row else None

    def _release(self, depth: int, closed: list[Trap]) -> int:
        waiting = (_Waiting(*row) for row in self._db.all(self._statements.waiting, {"run": self._db.run}))
        released = 0
        for _, members in groupby(waiting, key=lambda one: one.family):
            for trap, most in _shares(self._growing(members, closed), self._size):
                given = {"round": self._patterns.round + 1, "trap": trap, "depth": depth, "most": most}
                released += self._db.do(self._statements.release, given)
        return released

    def _growing(self, members: Iterable[_Waiting], closed: list[Trap]) -> Iterator[_Waiting]:
        """All members; if the longest URL of a pattern grew from round to round, even longer ones are barred."""
        for one in members:
            rounds = one.rounds_growing + 1 if one.longest > one.longest_before else 0
            if rounds > GROWN:
                closed.append(self._cut(one))
            elif (rounds, one.longest) != (one.rounds_growing, one.longest_before):
                self._db.do(
                    "UPDATE trap SET rounds_growing = :rounds, longest_before = :longest WHERE id = :id",
                    {"rounds": rounds, "longest": one.longest, "id": one.trap},
                )
            yield one

    def _cut(self, one: _Waiting) -> Trap:
        growing = f"{one.pattern} growing from page to page"
        example = self._db.one(self._statements.example, {"trap": one.trap})[0]
        self._bar(one.trap, growing, one.longest_before)
        self._patterns.store_traps([Trap(one.kind, growing, example)])
        return Trap(one.kind, growing, example)

    def _size(self, one: _Waiting) -> int:
        """How many of its URLs are held, counted up to the size of a batch."""
        return self._db.count(self._statements.held, {"trap": one.trap, "most": BATCH})


def _shares(members: Iterable[_Waiting], size: Callable[[_Waiting], int]) -> Iterator[tuple[int, int]]:
    """How many URLs each pattern of one family may release.

    A pattern that brought new content has its own batch. The others share the rest of the family's batch: if that is less
    than one URL each, the patterns with the most URLs come first.
    """
    unproven: list[_Waiting] = []
    for one in members:
        if one.proven:
            yield one.trap, max(0, one.batch_left)
        else:
            unproven.append(one)
    if not unproven:
        return
    left = max(0, unproven[0].family_batch_left)
    if len(unproven) > left:
        unproven.sort(key=lambda one: (-size(one), one.pattern))
        unproven = unproven[:left]
    for one in unproven:
        yield one.trap, max(0, min(one.batch_left, left // len(unproven)))
