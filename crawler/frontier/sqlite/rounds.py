"""The rounds of the SQLite frontier: when the URLs of a pattern that may be a crawler trap are fetched.

They are held until no other URL is open. Then each pattern with an unfinished batch releases its next URLs; once the whole
batch was read, it is decided whether the pattern continues. All decisions are computed from the rows, so the set of fetched
URLs depends only on the site, not on the order of responses or on interruptions. The rule is in `traps`. Each method is
called within a transaction.
"""

import json
from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from typing import NamedTuple

from crawler.frontier.sqlite.database import Database
from crawler.frontier.sqlite.patterns import READ, SHOWN, PatternTable
from crawler.model.trap import Trap
from crawler.ports import Round
from crawler.rules.traps import BATCH, GROWN, due

# Patterns with held URLs: one index lookup for each, however many URLs it has. Sorted, and therefore read completely before
# the first row is changed.
WAITING = """
WITH RECURSIVE held (trap) AS (
    SELECT min(trap) FROM url WHERE state = -1
    UNION ALL
    SELECT (SELECT min(trap) FROM url WHERE state = -1 AND trap > held.trap) FROM held WHERE held.trap IS NOT NULL
)
SELECT f.id, f.rest, t.proven, t.id, t.rest, t.kind, t.pattern, t.reach, t.longest, t.rising
FROM held JOIN trap AS t ON t.id = held.trap JOIN trap AS f ON f.id = t.family
WHERE t.run = :run ORDER BY f.id, t.pattern
"""

DECIDABLE = """
SELECT id, family, pattern, batch - rest, since FROM trap INDEXED BY ripe
WHERE run = :run AND closed = 0 AND rest <= 0
"""

RELEASE = """
UPDATE url SET state = 0, round = :round WHERE id IN (
    SELECT id FROM url WHERE state = -1 AND trap = :trap AND depth <= :depth ORDER BY sample LIMIT :most
)
"""

# URLs of the last publication are fetched even from closed patterns, once no other URL is left.
RELEASE_PUBLISHED = """
UPDATE url SET state = 0, outcome = NULL, detail = NULL, settled = NULL
WHERE run = :run AND state = 3 AND outcome = 'unlisted:trap' AND depth <= :depth AND attempts = 0 AND trap IS NOT NULL
AND published >= (SELECT max(number) FROM publication WHERE run < :run)
"""

BAR = """
UPDATE url SET state = 3, outcome = 'unlisted:trap', detail = :detail, settled = :now, learned = NULL
WHERE state = -1 AND trap = :trap AND length(url) > :longer
"""

CONTENTS = f"""
SELECT count(*) FROM (
    SELECT 1 FROM url INDEXED BY patterned
    WHERE trap IN (SELECT value FROM json_each(:traps)) AND run = :run AND state = 3 AND outcome IN ({SHOWN})
    AND (content IS NULL OR content IS NOT :bare)
    GROUP BY coalesce(content, url) HAVING min(coalesce(round, 0)) > :since LIMIT :enough
)
"""

_NAMED_BY = f"""
FROM (
    SELECT trap, links FROM url INDEXED BY patterned
    WHERE trap IN (SELECT value FROM json_each(:traps)) AND round > :since AND run = :run AND state = 3
    AND ({READ} OR outcome = 'moved')
) AS p, json_each(p.links) AS j, url AS u
WHERE u.id = j.value AND u.run = :run AND u.found > :since AND u.host IS NOT NULL
AND u.outcome NOT LIKE 'failed:%'
"""

LINKS_OUT = f"""
SELECT count(*) FROM (SELECT DISTINCT coalesce(u.content, u.id) {_NAMED_BY} AND u.trap IS NULL LIMIT :enough)
"""

LINKS_TO_PATTERNS = f"""
SELECT u.trap, count(DISTINCT u.id) {_NAMED_BY} AND u.trap IN
    (SELECT id FROM trap WHERE id = u.trap AND closed = 0 AND family <> :family)
GROUP BY u.trap
"""

# New content and new links that only one pattern has: counts by pattern.
ALONE = f"""
SELECT trap, sum(news) FROM (
    SELECT min(trap) AS trap, 1 AS news FROM url INDEXED BY patterned
    WHERE trap IN (SELECT value FROM json_each(:traps)) AND round > :since AND run = :run AND state = 3
    AND outcome IN ({SHOWN}) AND (content IS NULL OR content IS NOT :bare)
    GROUP BY coalesce(content, url) HAVING min(trap) = max(trap)
    UNION ALL
    SELECT min(p.trap), 1 {_NAMED_BY} AND u.trap IS NULL GROUP BY u.id HAVING min(p.trap) = max(p.trap)
) GROUP BY trap
"""


class _Waiting(NamedTuple):
    """A pattern with held URLs."""

    family: int
    family_rest: int  # pages left in the family's batch
    proven: int
    trap: int
    rest: int  # pages left in its own batch
    kind: str
    pattern: str
    reach: int
    longest: int
    rising: int


class _Decidable(NamedTuple):
    """A pattern or family whose whole batch was read."""

    trap: int
    family: int | None
    pattern: str
    size: int
    since: int


class Rounds:
    """The rounds of the current run."""

    def __init__(self, db: Database, patterns: PatternTable) -> None:
        self._db, self._patterns = db, patterns

    def advance(self, depth: int) -> Round:
        """Decide on the batches that were read, and release the next URLs, down to `depth`."""
        closed = self._decide()
        released = self._release(depth, closed) or self._db.do(
            RELEASE_PUBLISHED, {"run": self._db.run, "depth": depth}
        )
        if released:
            self._patterns.next_round()
        return Round(released, closed)

    def _decide(self) -> list[Trap]:
        decidable = [_Decidable(*row) for row in self._db.all(DECIDABLE, {"run": self._db.run})]
        # All are judged before any is closed, so that their order does not matter.
        goes_on = {one.trap: self._goes_on(one) for one in decidable}
        for one in decidable:
            if one.family is not None:
                self._end_batch(one, goes_on=goes_on[one.trap])
        for one in decidable:
            if one.family is None:
                self._end_batch(one, goes_on=goes_on[one.trap])
        shut = [one for one in decidable if not goes_on[one.trap]]
        if shut:
            self._patterns.forget()
        told = {trap.pattern: trap for trap in self._patterns.stored_traps(len(shut) + 1_000)} if shut else {}
        return [told[one.pattern] for one in shut if one.pattern in told]

    def _end_batch(self, one: _Decidable, *, goes_on: bool) -> None:
        if goes_on:
            self._db.do(
                "UPDATE trap SET batch = 2 * batch, rest = 2 * batch, since = ?, proven = 1 WHERE id = ?",
                (self._patterns.round, one.trap),
            )
            return
        closing = [(one.trap, one.pattern)]
        if one.family is None:
            for trap in self._spared(one):
                self._db.do("UPDATE trap SET proven = 1 WHERE id = ?", (trap,))
            closing += self._db.all(
                "SELECT id, pattern FROM trap WHERE family = ? AND proven = 0 AND closed = 0", (one.trap,)
            )
        for trap, pattern in closing:
            self._db.do("UPDATE trap SET closed = 1 WHERE id = ?", (trap,))
            self._bar(trap, pattern, 0)

    def _spared(self, family: _Decidable) -> list[int]:
        """The patterns of a closing family that brought new content themselves, though with too few pages."""
        given = {
            "traps": json.dumps(self._unproven(family.trap)), "run": self._db.run, "since": family.since,
            "bare": self._bare(family.trap),
        }  # fmt: skip
        read = dict(self._db.all("SELECT id, asked FROM trap WHERE family = ?", (family.trap,)))
        return [trap for trap, news in self._db.all(ALONE, given) if news > due(read[trap])]

    def _bar(self, trap: int, detail: str, longer: int) -> None:
        self._db.do(BAR, {"trap": trap, "detail": detail, "now": self._db.now(), "longer": longer})

    def _goes_on(self, one: _Decidable) -> bool:
        """Whether a batch brought enough new content."""
        members = [one.trap] if one.family is not None else self._unproven(one.trap)
        family = one.trap if one.family is None else one.family
        enough = due(one.size)
        news = self._direct_news(members, one.since, enough, self._bare(family))
        if news >= enough:
            return True
        given = {"traps": json.dumps(members), "run": self._db.run, "since": one.since, "family": family}
        for trap, count in self._db.all(LINKS_TO_PATTERNS, given):
            if self._is_worth_a_link(trap):
                news += count
        return news >= enough

    def _direct_news(self, members: list[int], since: int, enough: int, bare: str | None) -> int:
        """Number of new contents, and of new pages outside all patterns: up to `enough`."""
        given = {"traps": json.dumps(members), "run": self._db.run, "since": since, "enough": enough}
        news: int = self._db.one(CONTENTS, given | {"bare": bare})[0]
        return news if news >= enough else news + self._db.one(LINKS_OUT, given)[0]

    def _is_worth_a_link(self, trap: int) -> bool:
        """Whether links into a pattern count as new: it has new content itself. Two that only link to each other do not."""
        family, size, since = self._db.one(
            "SELECT family, batch - rest, since FROM trap WHERE id = ?", (trap,)
        )
        return size == 0 or self._direct_news([trap], since, due(size), self._bare(family)) >= due(size)

    def _unproven(self, family: int) -> list[int]:
        return [
            row[0] for row in self._db.all("SELECT id FROM trap WHERE family = ? AND proven = 0", (family,))
        ]

    def _bare(self, family: int) -> str | None:
        """The content of a family's path without a query."""
        row = self._db.one_or_none(
            """SELECT u.content FROM trap AS f JOIN url AS u ON u.url = substr(f.pattern, 1, instr(f.pattern, '?') - 1)
               WHERE f.id = ? AND f.kind = 'query' AND u.run = ? AND u.outcome = 'listed'""",
            (family, self._db.run),
        )
        return row[0] if row else None

    def _release(self, depth: int, closed: list[Trap]) -> int:
        waiting = (_Waiting(*row) for row in self._db.all(WAITING, {"run": self._db.run}))
        released = 0
        for _, members in groupby(waiting, key=lambda one: one.family):
            for trap, most in _shares(self._growing(members, closed), self._size):
                given = {"round": self._patterns.round + 1, "trap": trap, "depth": depth, "most": most}
                released += self._db.do(RELEASE, given)
        return released

    def _growing(self, members: Iterable[_Waiting], closed: list[Trap]) -> Iterator[_Waiting]:
        """All members; if the longest URL of a pattern grew from round to round, even longer ones are barred."""
        for one in members:
            rising = one.rising + 1 if one.reach > one.longest else 0
            if rising > GROWN:
                closed.append(self._cut(one))
            elif (rising, one.reach) != (one.rising, one.longest):
                self._db.do(
                    "UPDATE trap SET rising = ?, longest = ? WHERE id = ?", (rising, one.reach, one.trap)
                )
            yield one

    def _cut(self, one: _Waiting) -> Trap:
        growing = f"{one.pattern} growing from page to page"
        example = self._db.one(
            "SELECT url FROM url WHERE state = -1 AND trap = ? ORDER BY sample", (one.trap,)
        )[0]
        self._bar(one.trap, growing, one.longest)
        self._patterns.store_traps([Trap(one.kind, growing, example)])
        return Trap(one.kind, growing, example)

    def _size(self, one: _Waiting) -> int:
        """How many of its URLs are held, counted up to the size of a batch."""
        query = "SELECT count(*) FROM (SELECT 1 FROM url WHERE state = -1 AND trap = ? LIMIT ?)"
        return int(self._db.one(query, (one.trap, BATCH))[0])


def _shares(members: Iterable[_Waiting], size: Callable[[_Waiting], int]) -> Iterator[tuple[int, int]]:
    """How many URLs each pattern of one family may release.

    A pattern that brought new content has its own batch. The others share the rest of the family's batch: if that is less
    than one URL each, the patterns with the most URLs come first.
    """
    unproven: list[_Waiting] = []
    for one in members:
        if one.proven:
            yield one.trap, max(0, one.rest)
        else:
            unproven.append(one)
    if not unproven:
        return
    rest = max(0, unproven[0].family_rest)
    if len(unproven) > rest:
        unproven.sort(key=lambda one: (-size(one), one.pattern))
        unproven = unproven[:rest]
    for one in unproven:
        yield one.trap, max(0, min(one.rest, rest // len(unproven)))
