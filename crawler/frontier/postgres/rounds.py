"""The rounds of the PostgreSQL frontier: when the URLs of a pattern that may be a crawler trap are asked for.

They are held until nothing else is open. Then each pattern that still has part of its batch to go releases its next
URLs; once a batch was read whole, it is decided whether the pattern goes on. All of it is told from the rows, so what is
asked for is a function of the site, and of nothing else: not of the order of arrival, nor of deaths in between. The rule
is in `traps`. Each method is called within a transaction.
"""

from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from typing import NamedTuple

from crawler.frontier.postgres.database import Database
from crawler.frontier.postgres.patterns import READ, SHOWN, PatternTable
from crawler.model.trap import Trap
from crawler.ports import Round
from crawler.rules.traps import BATCH, GROWN, due

# Patterns with URLs that are held: one step of the index for each, however many URLs there are. Sorted, and so read whole
# before the first of them is touched.
WAITING = """
WITH RECURSIVE held (trap) AS (
    SELECT min(trap) FROM visit WHERE state = -1
    UNION ALL
    SELECT (SELECT min(trap) FROM visit WHERE state = -1 AND trap > held.trap) FROM held WHERE held.trap IS NOT NULL
)
SELECT f.id, f.rest, t.proven, t.id, t.rest, t.kind, t.pattern, t.reach, t.longest, t.rising
FROM held JOIN trap AS t ON t.id = held.trap JOIN trap AS f ON f.id = t.family
WHERE t.run = :run ORDER BY f.id, t.pattern
"""

DUE = "SELECT count(*) FROM visit WHERE state IN (0, 1, 2) AND depth <= :depth"

DECIDABLE = """
SELECT id, family, pattern, batch - rest, since FROM trap
WHERE run = :run AND NOT closed AND rest <= 0
"""

RELEASE = """
WITH released AS (
    UPDATE visit SET state = 0 WHERE id = ANY (ARRAY(
        SELECT id FROM visit WHERE state = -1 AND trap = :trap AND depth <= :depth ORDER BY sample LIMIT :most
    )) RETURNING id
)
UPDATE url SET round = :round FROM released WHERE url.id = released.id
"""

# What the last publication listed is looked at all the same, once nothing else is left to be asked for.
RELEASE_PUBLISHED = """
WITH released AS (
    SELECT * FROM known
    WHERE run = :run AND state = 3 AND outcome = 'unlisted:trap' AND depth <= :depth AND attempts = 0 AND trap IS NOT NULL
    AND published >= (SELECT max(number) FROM publication WHERE run < :run)
),
opened AS (
    INSERT INTO visit (id, host, depth, trap, sample, state) SELECT id, host, depth, trap, sample, 0 FROM released
)
UPDATE page SET outcome = NULL, detail = NULL, settled = NULL FROM released WHERE page.id = released.id
"""

BAR = """
WITH barred AS (
    DELETE FROM visit USING url AS u WHERE u.id = visit.id AND visit.state = -1 AND visit.trap = :trap AND length(u.url) > :longer
    RETURNING visit.id
)
INSERT INTO page (id, outcome, detail, settled) SELECT id, 'unlisted:trap', :detail, :now FROM barred
ON CONFLICT (id) DO UPDATE SET outcome = excluded.outcome, detail = excluded.detail, settled = excluded.settled, learned = NULL
"""

CONTENTS = f"""
SELECT count(*) FROM (
    SELECT 1 FROM known
    WHERE trap = ANY (:traps::bigint[]) AND run = :run AND state = 3 AND outcome IN ({SHOWN})
    AND (content IS NULL OR content IS DISTINCT FROM :bare::text)
    GROUP BY coalesce(content, url) HAVING min(coalesce(round, 0)) > :since LIMIT :enough
) AS shown
"""

_NAMED_BY = f"""
FROM (
    SELECT trap, links FROM known
    WHERE trap = ANY (:traps::bigint[]) AND round > :since AND run = :run AND state = 3
    AND ({READ} OR outcome = 'moved')
) AS p CROSS JOIN LATERAL unnest(p.links) AS j JOIN known AS u ON u.id = j
WHERE u.run = :run AND u.found > :since AND u.host IS NOT NULL
AND u.outcome NOT LIKE 'failed:%'
"""

LINKS_OUT = f"""
SELECT count(*) FROM (SELECT DISTINCT coalesce(u.content, u.id::text) {_NAMED_BY} AND u.trap IS NULL LIMIT :enough) AS named
"""

LINKS_TO_PATTERNS = f"""
SELECT u.trap, count(DISTINCT u.id) {_NAMED_BY} AND u.trap IN
    (SELECT id FROM trap WHERE id = u.trap AND NOT closed AND family <> :family)
GROUP BY u.trap
"""

# What one pattern alone shows or leads to, of those that nothing was known of: by pattern.
ALONE = f"""
SELECT trap, sum(news) FROM (
    SELECT min(trap) AS trap, 1 AS news FROM known
    WHERE trap = ANY (:traps::bigint[]) AND round > :since AND run = :run AND state = 3
    AND outcome IN ({SHOWN}) AND (content IS NULL OR content IS DISTINCT FROM :bare::text)
    GROUP BY coalesce(content, url) HAVING min(trap) = max(trap)
    UNION ALL
    SELECT min(p.trap), 1 {_NAMED_BY} AND u.trap IS NULL GROUP BY u.id HAVING min(p.trap) = max(p.trap)
) AS alone GROUP BY trap
"""


class _Waiting(NamedTuple):
    """A pattern of which URLs are held."""

    family: int
    family_rest: int  # pages of the family's batch
    proven: int
    trap: int
    rest: int  # pages of its batch
    kind: str
    pattern: str
    reach: int
    longest: int
    rising: int


class _Decidable(NamedTuple):
    """A pattern or family whose batch was read."""

    trap: int
    family: int | None
    pattern: str
    size: int
    since: int


class Rounds:
    """The rounds of the run at work."""

    def __init__(self, db: Database, patterns: PatternTable) -> None:
        self._db, self._patterns = db, patterns

    def advance(self, depth: int) -> Round:
        """Decide on the batches that were read, and release the next URLs, not deeper than `depth`."""
        if self._db.is_retry and (due := self._db.count(DUE, {"depth": depth})):
            return Round(due)  # the round was committed, and the answer was lost
        closed = self._decide()
        released = self._release(depth, closed) or self._db.do(
            RELEASE_PUBLISHED, {"run": self._db.run, "depth": depth}
        )
        if released:
            self._patterns.next_round()
        return Round(released, closed)

    def _decide(self) -> list[Trap]:
        decidable = [_Decidable(*row) for row in self._db.all(DECIDABLE, {"run": self._db.run})]
        # All are judged before any is closed: their order must not matter.
        goes_on = {one.trap: self._goes_on(one) for one in decidable}
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
                "UPDATE trap SET batch = 2 * batch, rest = 2 * batch, since = :since, proven = true WHERE id = :id",
                {"since": self._patterns.round, "id": one.trap},
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
        """Of a family that closes, the patterns that brought news all the same: what they had was too few pages."""
        given = {
            "traps": self._unproven(family.trap), "run": self._db.run, "since": family.since,
            "bare": self._bare(family.trap),
        }  # fmt: skip
        read = dict(self._db.all("SELECT id, asked FROM trap WHERE family = :id", {"id": family.trap}))
        return [trap for trap, news in self._db.all(ALONE, given) if news > due(read[trap])]

    def _bar(self, trap: int, detail: str, longer: int) -> None:
        self._db.do(BAR, {"trap": trap, "detail": detail, "now": self._db.now(), "longer": longer})

    def _goes_on(self, one: _Decidable) -> bool:
        """Whether a batch brought news enough."""
        members = [one.trap] if one.family is not None else self._unproven(one.trap)
        family = one.trap if one.family is None else one.family
        enough = due(one.size)
        news = self._direct_news(members, one.since, enough, self._bare(family))
        if news >= enough:
            return True
        given = {"traps": members, "run": self._db.run, "since": one.since, "family": family}
        for trap, count in self._db.all(LINKS_TO_PATTERNS, given):
            if self._is_worth_a_link(trap):
                news += count
        return news >= enough

    def _direct_news(self, members: list[int], since: int, enough: int, bare: str | None) -> int:
        """Contents, and pages outside of all patterns: up to `enough`."""
        given = {"traps": members, "run": self._db.run, "since": since, "enough": enough}
        news: int = self._db.one(CONTENTS, given | {"bare": bare})[0]
        return news if news >= enough else news + self._db.one(LINKS_OUT, given)[0]

    def _is_worth_a_link(self, trap: int) -> bool:
        """Whether a pattern brings news by itself, so that a link into it is news: two that name each other bring none."""
        family, size, since = self._db.one(
            "SELECT family, batch - rest, since FROM trap WHERE id = :id", {"id": trap}
        )
        return size == 0 or self._direct_news([trap], since, due(size), self._bare(family)) >= due(size)

    def _unproven(self, family: int) -> list[int]:
        return [
            row[0]
            for row in self._db.all("SELECT id FROM trap WHERE family = :id AND NOT proven", {"id": family})
        ]

    def _bare(self, family: int) -> str | None:
        """What the path of a family shows without a query."""
        row = self._db.one_or_none(
            """SELECT u.content FROM trap AS f JOIN known AS u ON u.fp = f.bare
               WHERE f.id = :id AND f.kind = 'query' AND u.run = :run AND u.outcome = 'listed'""",
            {"id": family, "run": self._db.run},
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
        """All of them; where the longest URL grew from round to round, those that are longer still are barred."""
        for one in members:
            rising = one.rising + 1 if one.reach > one.longest else 0
            if rising > GROWN:
                closed.append(self._cut(one))
            elif (rising, one.reach) != (one.rising, one.longest):
                self._db.do(
                    "UPDATE trap SET rising = :rising, longest = :longest WHERE id = :id",
                    {"rising": rising, "longest": one.reach, "id": one.trap},
                )
            yield one

    def _cut(self, one: _Waiting) -> Trap:
        growing = f"{one.pattern} growing from page to page"
        example = self._db.one(
            "SELECT url FROM known AS k WHERE state = -1 AND trap = :trap ORDER BY sample LIMIT 1",
            {"trap": one.trap},
        )[0]
        self._bar(one.trap, growing, one.longest)
        self._patterns.store_traps([Trap(one.kind, growing, example)])
        return Trap(one.kind, growing, example)

    def _size(self, one: _Waiting) -> int:
        """How many of its URLs are held; no more than a batch is looked at."""
        query = "SELECT count(*) FROM (SELECT 1 FROM visit WHERE state = -1 AND trap = :trap LIMIT :limit) AS held"
        return int(self._db.one(query, {"trap": one.trap, "limit": BATCH})[0])


def _shares(members: Iterable[_Waiting], size: Callable[[_Waiting], int]) -> Iterator[tuple[int, int]]:
    """How many URLs each pattern of one family may release.

    A pattern that brought news has a batch of its own. The others share what is left of the family's: where it is less
    than one for each, those with the most URLs come first.
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
