"""The rounds of a crawl: when the URLs of a pattern that may be a crawler trap are fetched.

They are held until no other URL is open. Then each pattern with an unfinished batch releases its next URLs;
once the whole batch was read, it is decided whether the pattern continues. All decisions are computed from
the rows, so the set of fetched URLs depends only on the site, not on the order of responses or on
interruptions. The rule is in `traps`. Each method is called within a transaction.
"""

from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from typing import Final, NamedTuple

from crawler.frontier.database import Database
from crawler.frontier.patterns import READ, SHOWN, PatternTable, stored_traps
from crawler.frontier.visits import move
from crawler.model.trap import Trap
from crawler.ports import Round
from crawler.rules.record import HELD, LEASED, LISTED, QUEUED, SETTLED
from crawler.rules.traps import FIRST_BATCH, GROWN, due

# Patterns with held URLs: one index lookup for each, however many URLs it has. Sorted, and therefore read
# completely before the first row is changed.
WAITING: Final = f"""
WITH RECURSIVE held (trap) AS (
    SELECT min(trap) FROM visit WHERE state = {HELD}
    UNION ALL
    SELECT (SELECT min(trap) FROM visit WHERE state = {HELD} AND trap > held.trap)
        FROM held WHERE held.trap IS NOT NULL
)
SELECT f.id, f.batch_left, t.proven, t.id, t.batch_left, t.kind, t.pattern, t.longest, t.longest_before,
    t.rounds_growing
FROM held JOIN trap AS t ON t.id = held.trap JOIN trap AS f ON f.id = t.family
WHERE t.run = :run ORDER BY f.id, t.pattern
"""

DUE: Final = f"SELECT count(*) FROM visit WHERE state BETWEEN {QUEUED} AND {LEASED} AND depth <= :depth"

DECIDABLE: Final = """
SELECT id, family, pattern, batch - batch_left, batch_round FROM trap
WHERE run = :run AND NOT closed AND batch_left <= 0
"""

# The next `:most` URLs of a pattern.
NEXT: Final = f"""
SELECT id FROM visit WHERE state = {HELD} AND trap = :trap AND depth <= :depth ORDER BY sample LIMIT :most
"""
RELEASE: Final = f"UPDATE visit SET state = {QUEUED} WHERE id @any(ids)"
RELEASED: Final = "UPDATE url SET round = :round WHERE id @any(ids)"

# URLs of the last publication are fetched even from closed patterns, once no other URL is left.
PUBLISHED: Final = f"""
SELECT id, host, depth, trap, sample, {QUEUED}, NULL, NULL, NULL FROM known
WHERE run = :run AND state = {SETTLED} AND outcome = 'unlisted:trap' AND depth <= :depth AND attempts = 0
AND trap IS NOT NULL AND published >= (SELECT max(number) FROM publication WHERE run < :run)
"""

# The held URLs of a pattern that have more than `:longer` characters.
BARRED: Final = f"""
SELECT v.id, v.host, v.depth, v.trap, v.sample, {SETTLED}, 'unlisted:trap', CAST(:detail AS text),
    CAST(:now AS double precision)
FROM visit AS v JOIN url AS u ON u.id = v.id
    WHERE v.state = {HELD} AND v.trap = :trap AND length(u.url) > :longer
"""

# The number of contents that only pages after round `:since` have, up to `:enough`. `:bare`: the content of
# `BARE`.
CONTENTS: Final = f"""
SELECT count(*) FROM (
    SELECT 1 FROM known
    WHERE trap @any(traps) AND run = :run AND state = {SETTLED} AND outcome IN ({SHOWN})
    AND (content IS NULL OR content IS DISTINCT FROM CAST(:bare AS text))
    GROUP BY coalesce(content, url) HAVING min(coalesce(round, 0)) > :since LIMIT :enough
) AS shown
"""

_NAMED_BY: Final = f"""
FROM (
    SELECT trap, links FROM known
    WHERE trap @any(traps) AND round > :since AND run = :run AND state = {SETTLED}
        AND ({READ} OR outcome = 'moved')
) AS p @each(p.links) JOIN known AS u ON u.id = j.value
WHERE u.run = :run AND u.found > :since AND u.host IS NOT NULL AND u.outcome NOT LIKE 'failed:%'
"""

# The number of pages outside all patterns that only those pages link to, up to `:enough`.
LINKS_OUT: Final = f"""
SELECT count(*) FROM (
    SELECT DISTINCT coalesce(u.content, CAST(u.id AS text)) {_NAMED_BY} AND u.trap IS NULL LIMIT :enough
) AS named
"""

# The number of pages that they link to, by pattern of another family.
LINKS_TO_PATTERNS: Final = f"""
SELECT u.trap, count(DISTINCT u.id) {_NAMED_BY} AND u.trap IN
    (SELECT id FROM trap WHERE id = u.trap AND NOT closed AND family <> :family)
GROUP BY u.trap
"""

# New content and new links that only one pattern has: counts by pattern.
ALONE: Final = f"""
SELECT trap, sum(news) FROM (
    SELECT min(trap) AS trap, 1 AS news FROM known
    WHERE trap @any(traps) AND round > :since AND run = :run AND state = {SETTLED}
    AND outcome IN ({SHOWN}) AND (content IS NULL OR content IS DISTINCT FROM CAST(:bare AS text))
    GROUP BY coalesce(content, url) HAVING min(trap) = max(trap)
    UNION ALL
    SELECT min(p.trap), 1 {_NAMED_BY} AND u.trap IS NULL GROUP BY u.id HAVING min(p.trap) = max(p.trap)
) AS alone GROUP BY trap
"""

# The content of the path of a family without a query.
BARE: Final = f"""
SELECT u.content FROM trap AS f JOIN known AS u ON u.@key = f.bare
WHERE f.id = :id AND f.kind = 'query' AND u.run = :run AND u.outcome = '{LISTED}'
"""

CONTINUE: Final = """
UPDATE trap SET batch = 2 * batch, batch_left = 2 * batch, batch_round = :round, proven = true WHERE id = :id
"""

EXAMPLE: Final = f"""
SELECT u.url FROM visit AS v JOIN url AS u ON u.id = v.id
    WHERE v.state = {HELD} AND v.trap = :trap ORDER BY v.sample LIMIT 1
"""
HELD_URLS: Final = (
    f"SELECT count(*) FROM (SELECT 1 FROM visit WHERE state = {HELD} AND trap = :trap LIMIT :most) AS held"
)


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

    def __init__(self, db: Database, patterns: PatternTable) -> None:
        self._db, self._patterns = db, patterns

    def advance(self, depth: int) -> Round:
        """Decide on the batches that were read, and release the next URLs, down to `depth`."""
        if self._db.is_retry and (due := self._db.count(DUE, {"depth": depth})):
            return Round(due)  # the round was committed, and the answer was lost
        closed = self._decide()
        released = self._release(depth, closed)
        if not released:
            published = self._db.all(PUBLISHED, {"run": self._db.run, "depth": depth})
            released = move(self._db, published)
        if released:
            self._patterns.next_round()
        return Round(released, closed)

    def _decide(self) -> list[Trap]:
        decidable = [_Decidable(*row) for row in self._db.all(DECIDABLE, {"run": self._db.run})]
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
        told = {trap.pattern: trap for trap in stored_traps(self._db, len(shut) + 1_000)} if shut else {}
        return [told[one.pattern] for one in shut if one.pattern in told]

    def _end_batch(self, one: _Decidable, *, goes_on: bool) -> None:
        if goes_on:
            self._db.do(
                CONTINUE,
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
            "traps": self._db.dialect.all_of(self._unproven(family.trap)),
            "run": self._db.run, "since": family.batch_round,
            "bare": self._content_without_query(family.trap),
        }  # fmt: skip
        read = dict(self._db.all("SELECT id, fetched FROM trap WHERE family = :id", {"id": family.trap}))
        return [trap for trap, found in self._db.all(ALONE, given) if found > due(read[trap])]

    def _bar(self, trap: int, detail: str, longer: int) -> None:
        given = {"trap": trap, "detail": detail, "now": self._db.now(), "longer": longer}
        move(self._db, self._db.all(BARRED, given))

    def _stays_open(self, one: _Decidable) -> bool:
        """Whether a batch brought enough new content."""
        members = [one.trap] if one.family is not None else self._unproven(one.trap)
        family = one.trap if one.family is None else one.family
        enough = due(one.size)
        found = self._count_new(members, one.batch_round, enough, self._content_without_query(family))
        if found >= enough:
            return True
        given = {
            "traps": self._db.dialect.all_of(members),
            "run": self._db.run,
            "since": one.batch_round,
            "family": family,
        }
        for trap, count in self._db.all(LINKS_TO_PATTERNS, given):
            if self._brings_new_content(trap):
                found += count
        return found >= enough

    def _count_new(self, members: list[int], since: int, enough: int, bare: str | None) -> int:
        """Number of new contents, and of new pages outside all patterns: up to `enough`."""
        given = {
            "traps": self._db.dialect.all_of(members),
            "run": self._db.run,
            "since": since,
            "enough": enough,
        }
        found: int = self._db.one(CONTENTS, given | {"bare": bare})[0]
        return found if found >= enough else found + self._db.one(LINKS_OUT, given)[0]

    def _brings_new_content(self, trap: int) -> bool:
        """Whether links into a pattern count as new: only if it has new content itself.

        Two that only link to each other have none.
        """
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
        row = self._db.one_or_none(BARE, {"id": family, "run": self._db.run})
        return row[0] if row else None

    def _release(self, depth: int, closed: list[Trap]) -> int:
        waiting = (_Waiting(*row) for row in self._db.all(WAITING, {"run": self._db.run}))
        released = 0
        for _, members in groupby(waiting, key=lambda one: one.family):
            for trap, most in _shares(self._growing(members, closed), self._size):
                given = {"trap": trap, "depth": depth, "most": most}
                released += self._release_next(given)
        return released

    def _release_next(self, given: dict[str, int]) -> int:
        ids = [number for (number,) in self._db.all(NEXT, given)]
        if ids:
            them = {"ids": self._db.dialect.all_of(ids)}
            self._db.do(RELEASE, them)
            self._db.do(RELEASED, them | {"round": self._patterns.round + 1})
        return len(ids)

    def _growing(self, members: Iterable[_Waiting], closed: list[Trap]) -> Iterator[_Waiting]:
        """All members; if the longest URL of a pattern grew from round to round, longer ones are barred."""
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
        example = self._db.one(EXAMPLE, {"trap": one.trap})[0]
        self._bar(one.trap, growing, one.longest_before)
        self._patterns.store_traps([Trap(one.kind, growing, example)])
        return Trap(one.kind, growing, example)

    def _size(self, one: _Waiting) -> int:
        """How many of its URLs are held, counted up to the size of a batch."""
        return self._db.count(HELD_URLS, {"trap": one.trap, "most": FIRST_BATCH})


def _shares(members: Iterable[_Waiting], size: Callable[[_Waiting], int]) -> Iterator[tuple[int, int]]:
    """How many URLs each pattern of one family may release.

    A pattern that brought new content has its own batch. The others share the rest of the family's batch: if
    that is less than one URL each, the patterns with the most URLs come first.
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
