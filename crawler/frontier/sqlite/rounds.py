"""The rounds of the SQLite frontier: when the URLs of a pattern that may be a crawler trap are asked for.

They are held until nothing else is open. Then each pattern that still has part of its batch to go releases its next
URLs; once a batch was read whole, it is decided whether the pattern goes on. All of it is told from the rows, so what is
asked for is a function of the site, and of nothing else: not of the order of arrival, nor of deaths in between. The rule
is in `traps`. Each method is called within a transaction of the ledger's.
"""

import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from hashlib import blake2b
from itertools import groupby
from typing import Any, Final, NamedTuple

from crawler.model.outcome import Pattern
from crawler.model.reasons import Why
from crawler.model.trap import Trap
from crawler.parse.url import Url, target
from crawler.ports import Round
from crawler.rules.traps import BATCH, FAMILY_BATCH, GROWN, due

CACHED: Final = 20_000  # patterns whose rows are remembered

# Pages: what was read, and counts. An error tells nothing of its pattern. SHOWN: those that count as content.
_SHOWN: Final = "'listed', 'unlisted:no-list', 'unlisted:excluded', 'unlisted:scheme', 'unlisted:too-long'"
# HTML that is not listed, as only other types are, is read for its links all the same.
_READ: Final = f"""(
    outcome IN ({_SHOWN}, 'unlisted:canonical', 'unlisted:noindex')
    OR (outcome = 'unlisted:type' AND detail IN ('text/html', 'application/xhtml+xml'))
)"""
_BARRED: Final = f"unlisted:{Why.TRAP.value}"

COUNT = f"""
UPDATE trap SET asked = asked + n.pages, rest = rest - n.pages
FROM (
    SELECT trap AS id, count(*) AS pages FROM url
    WHERE id IN (SELECT value FROM json_each(:ids)) AND round IS NOT NULL AND {_READ} GROUP BY trap
) AS n WHERE trap.id = n.id
"""
COUNT_FAMILY = f"""
UPDATE trap SET asked = asked + n.pages, rest = rest - n.pages
FROM (
    SELECT t.family AS id, count(*) AS pages FROM url JOIN trap AS t ON t.id = url.trap
    WHERE url.id IN (SELECT value FROM json_each(:ids)) AND round IS NOT NULL AND {_READ} AND NOT t.proven GROUP BY t.family
) AS n WHERE trap.id = n.id
"""

# Patterns with URLs that are held: one step of the index for each, however many URLs there are. Sorted, and so read whole
# before the first of them is touched.
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
RIPE = """
SELECT id, family, pattern, batch - rest, since FROM trap INDEXED BY ripe
WHERE run = :run AND closed = 0 AND rest <= 0
"""
RELEASE = """
UPDATE url SET state = 0, round = :round WHERE id IN (
    SELECT id FROM url WHERE state = -1 AND trap = :trap AND depth <= :depth ORDER BY sample LIMIT :most
)
"""
# What the last publication listed is looked at all the same, once nothing else is left to be asked for.
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
    WHERE trap IN (SELECT value FROM json_each(:traps)) AND run = :run AND state = 3 AND outcome IN ({_SHOWN})
    AND (content IS NULL OR content IS NOT :bare)
    GROUP BY coalesce(content, url) HAVING min(coalesce(round, 0)) > :since LIMIT :enough
)
"""
_NAMED_BY = f"""
FROM (
    SELECT trap, links FROM url INDEXED BY patterned
    WHERE trap IN (SELECT value FROM json_each(:traps)) AND round > :since AND run = :run AND state = 3
    AND ({_READ} OR outcome = 'moved')
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

# What one pattern alone shows or leads to, of those that nothing was known of: by pattern.
ALONE = f"""
SELECT trap, sum(news) FROM (
    SELECT min(trap) AS trap, 1 AS news FROM url INDEXED BY patterned
    WHERE trap IN (SELECT value FROM json_each(:traps)) AND round > :since AND run = :run AND state = 3
    AND outcome IN ({_SHOWN}) AND (content IS NULL OR content IS NOT :bare)
    GROUP BY coalesce(content, url) HAVING min(trap) = max(trap)
    UNION ALL
    SELECT min(p.trap), 1 {_NAMED_BY} AND u.trap IS NULL GROUP BY u.id HAVING min(p.trap) = max(p.trap)
) GROUP BY trap
"""

# A page of a closed pattern is listed if no other page of its family shows the same, or if it is the first that does.
REPEATS = """
UPDATE url SET outcome = 'unlisted:trap', detail = 'shows what ' || r.best || ' shows'
FROM (
    SELECT id, closed, url, first_value(url) OVER (
        PARTITION BY family, content ORDER BY closed, waited, named DESC, url
    ) AS best
    FROM (
        SELECT u.id, u.url, u.content, f.pattern AS family, t.closed, u.round IS NOT NULL AS waited, t.named
        FROM trap AS f JOIN trap AS t ON t.family = f.id JOIN url AS u ON u.trap = t.id
        WHERE f.run = :run AND u.run = :run AND u.outcome = 'listed' AND u.content IS NOT NULL AND f.pattern IN (
            SELECT f.pattern FROM trap AS f JOIN trap AS t ON t.family = f.id WHERE t.run = :run AND t.closed
        )
        UNION ALL
        SELECT u.id, u.url, u.content, f.pattern, -1, 0, 0
        FROM trap AS f JOIN url AS u ON u.url = substr(f.pattern, 1, instr(f.pattern, '?') - 1)
        WHERE f.run = :run AND f.family IS NULL AND f.batch > 0 AND NOT f.named AND f.kind = 'query'
        AND u.run = :run AND u.outcome = 'listed' AND u.content IS NOT NULL
    )
) AS r
WHERE url.id = r.id AND r.closed = 1 AND r.best <> r.url
"""

TOLD = """
SELECT t.kind, t.pattern, coalesce(t.example, (SELECT min(u.url) FROM url AS u WHERE u.trap = t.id AND u.run = t.run),
    (SELECT min(u.url) FROM trap AS m JOIN url AS u ON u.trap = m.id WHERE m.family = t.id AND u.run = t.run), '')
FROM trap AS t LEFT JOIN trap AS f ON f.id = t.family
WHERE t.run = :run AND t.closed AND NOT coalesce(f.closed, 0) ORDER BY t.pattern, t.named LIMIT :most
"""


class Place(NamedTuple):
    """Where a URL of a pattern goes."""

    trap: int
    sample: int
    closed: bool


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


class _Ripe(NamedTuple):
    """A pattern or family whose batch was read."""

    trap: int
    family: int | None
    pattern: str
    size: int
    since: int


class Rounds:
    """The rounds of one run. `clock`: seconds since the epoch."""

    def __init__(self, db: sqlite3.Connection, clock: Callable[[], float]) -> None:
        self._db, self._clock = db, clock
        self._places: dict[Pattern, tuple[int, bool]] = {}
        self._reach: dict[int, int] = {}  # by pattern: its longest URL
        self._round: int | None = None
        self.run = 0

    def begin(self, run: int) -> None:
        """Go on with that run."""
        self.forget()
        self.run = run

    def forget(self) -> None:
        """What was remembered may have been rolled back."""
        self._places.clear()
        self._reach.clear()
        self._round = None

    @property
    def round(self) -> int:
        """How many rounds there were: what is found now is found in this one."""
        if self._round is None:
            self._round = int(self._one("SELECT round FROM run WHERE number = ?", (self.run,))[0])
        return self._round

    # -- a URL comes in -----------------------------------------------------------------------------------

    def place(self, url: Url, pattern: Pattern) -> Place:
        """Where a URL that was found goes; its pattern is made known."""
        known = self._places.get(pattern)
        if known is None:
            if len(self._places) >= CACHED:
                self._places.clear()
                self._reach.clear()
            known = self._places[pattern] = self._row(pattern)
        if len(url) > self._reach.get(known[0], 0):
            self._reach[known[0]] = len(url)
            self._do("UPDATE trap SET reach = max(reach, ?) WHERE id = ?", (len(url), known[0]))
        return Place(known[0], sample(url), known[1])

    def _row(self, pattern: Pattern) -> tuple[int, bool]:
        kind, text, family, named = pattern
        parent, closed = self._made((None, kind, family, named, FAMILY_BATCH, 0))
        trap, shut = self._made((parent, kind, text, named, BATCH, closed))
        return trap, shut

    def _made(self, row: tuple[int | None, str, str, bool, int, int | bool]) -> tuple[int, bool]:
        self._do(
            "INSERT OR IGNORE INTO trap (run, since, family, kind, pattern, named, batch, rest, closed) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (self.run, self.round, *row[:5], *row[4:]),
        )
        found = self._one(
            "SELECT id, closed FROM trap WHERE run = ? AND pattern = ? AND named = ?",
            (self.run, row[2], row[3]),
        )
        return found[0], bool(found[1])

    def count(self, settled: Sequence[int]) -> None:
        """Pages that were settled, by the numbers of their records: those of a pattern count towards its batch."""
        given = {"ids": json.dumps(settled)}
        self._do(COUNT, given)
        self._do(COUNT_FAMILY, given)

    # -- a barrier: nothing is open ------------------------------------------------------------------------

    def advance(self, depth: int) -> Round:
        """Decide on the batches that were read, and release the next URLs, not deeper than `depth`."""
        closed = self._decide()
        released = self._release(depth, closed) or self._do(
            RELEASE_PUBLISHED, {"run": self.run, "depth": depth}
        )
        if released:
            self._do("UPDATE run SET round = round + 1 WHERE number = ?", (self.run,))
            self._round = None
        return Round(released, closed)

    def _decide(self) -> list[Trap]:
        ripe = [_Ripe(*row) for row in self._all(RIPE, {"run": self.run})]
        # All are judged before any is closed: their order must not matter.
        goes_on = {one.trap: self._goes_on(one) for one in ripe}
        for one in ripe:
            if one.family is not None:
                self._end_batch(one, goes_on=goes_on[one.trap])
        for one in ripe:
            if one.family is None:
                self._end_batch(one, goes_on=goes_on[one.trap])
        shut = [one for one in ripe if not goes_on[one.trap]]
        if shut:
            self._places.clear()
        told = {trap.pattern: trap for trap in self.told(len(shut) + 1_000)} if shut else {}
        return [told[one.pattern] for one in shut if one.pattern in told]

    def _end_batch(self, one: _Ripe, *, goes_on: bool) -> None:
        if goes_on:
            self._do(
                "UPDATE trap SET batch = 2 * batch, rest = 2 * batch, since = ?, proven = 1 WHERE id = ?",
                (self.round, one.trap),
            )
            return
        closing = [(one.trap, one.pattern)]
        if one.family is None:
            for trap in self._spared(one):
                self._do("UPDATE trap SET proven = 1 WHERE id = ?", (trap,))
            closing += self._all(
                "SELECT id, pattern FROM trap WHERE family = ? AND proven = 0 AND closed = 0", (one.trap,)
            )
        for trap, pattern in closing:
            self._do("UPDATE trap SET closed = 1 WHERE id = ?", (trap,))
            self._bar(trap, pattern, 0)

    def _spared(self, family: _Ripe) -> list[int]:
        """Of a family that closes, the patterns that brought news all the same: what they had was too few pages."""
        given = {
            "traps": json.dumps(self._unproven(family.trap)), "run": self.run, "since": family.since,
            "bare": self._bare(family.trap),
        }  # fmt: skip
        read = dict(self._all("SELECT id, asked FROM trap WHERE family = ?", (family.trap,)))
        return [trap for trap, news in self._all(ALONE, given) if news > due(read[trap])]

    def _bar(self, trap: int, detail: str, longer: int) -> None:
        self._do(BAR, {"trap": trap, "detail": detail, "now": self._clock(), "longer": longer})

    def _goes_on(self, one: _Ripe) -> bool:
        """Whether a batch brought news enough."""
        members = [one.trap] if one.family is not None else self._unproven(one.trap)
        family = one.trap if one.family is None else one.family
        enough = due(one.size)
        news = self._direct_news(members, one.since, enough, self._bare(family))
        if news >= enough:
            return True
        given = {"traps": json.dumps(members), "run": self.run, "since": one.since, "family": family}
        for trap, count in self._db.execute(LINKS_TO_PATTERNS, given).fetchall():
            if self._is_worth_a_link(trap):
                news += count
        return news >= enough

    def _direct_news(self, members: list[int], since: int, enough: int, bare: str | None) -> int:
        """Contents, and pages outside of all patterns: up to `enough`."""
        given = {"traps": json.dumps(members), "run": self.run, "since": since, "enough": enough}
        news: int = self._one(CONTENTS, given | {"bare": bare})[0]
        return news if news >= enough else news + self._one(LINKS_OUT, given)[0]

    def _is_worth_a_link(self, trap: int) -> bool:
        """Whether a pattern brings news by itself, so that a link into it is news: two that name each other bring none."""
        family, size, since = self._one("SELECT family, batch - rest, since FROM trap WHERE id = ?", (trap,))
        return size == 0 or self._direct_news([trap], since, due(size), self._bare(family)) >= due(size)

    def _unproven(self, family: int) -> list[int]:
        return [row[0] for row in self._all("SELECT id FROM trap WHERE family = ? AND proven = 0", (family,))]

    def _bare(self, family: int) -> str | None:
        """What the path of a family shows without a query."""
        row = self._db.execute(
            """SELECT u.content FROM trap AS f JOIN url AS u ON u.url = substr(f.pattern, 1, instr(f.pattern, '?') - 1)
               WHERE f.id = ? AND f.kind = 'query' AND u.run = ? AND u.outcome = 'listed'""",
            (family, self.run),
        ).fetchone()
        return row[0] if row else None

    def _release(self, depth: int, closed: list[Trap]) -> int:
        waiting = (_Waiting(*row) for row in self._db.execute(WAITING, {"run": self.run}))
        released = 0
        for _, members in groupby(waiting, key=lambda one: one.family):
            for trap, most in _shares(self._growing(members, closed), self._size):
                given = {"round": self.round + 1, "trap": trap, "depth": depth, "most": most}
                released += self._do(RELEASE, given)
        return released

    def _growing(self, members: Iterable[_Waiting], closed: list[Trap]) -> Iterator[_Waiting]:
        """All of them; where the longest URL grew from round to round, those that are longer still are barred."""
        for one in members:
            rising = one.rising + 1 if one.reach > one.longest else 0
            if rising > GROWN:
                closed.append(self._cut(one))
            elif (rising, one.reach) != (one.rising, one.longest):
                self._do(
                    "UPDATE trap SET rising = ?, longest = ? WHERE id = ?", (rising, one.reach, one.trap)
                )
            yield one

    def _cut(self, one: _Waiting) -> Trap:
        growing = f"{one.pattern} growing from page to page"
        example = self._one("SELECT url FROM url WHERE state = -1 AND trap = ? ORDER BY sample", (one.trap,))[
            0
        ]
        self._bar(one.trap, growing, one.longest)
        self.tell([Trap(one.kind, growing, example)])
        return Trap(one.kind, growing, example)

    def _size(self, one: _Waiting) -> int:
        """How many of its URLs are held; no more than a batch is looked at."""
        query = "SELECT count(*) FROM (SELECT 1 FROM url WHERE state = -1 AND trap = ? LIMIT ?)"
        return int(self._one(query, (one.trap, BATCH))[0])

    # -- the end, and what is told -------------------------------------------------------------------------

    def unlist_repeats(self) -> int:
        """Of the pages of closed patterns, those that show what another page of their family shows. How many."""
        if not self._one("SELECT EXISTS (SELECT 1 FROM trap WHERE run = ? AND closed)", (self.run,))[0]:
            return 0
        return self._do(REPEATS, {"run": self.run})

    def tell(self, traps: Sequence[Trap]) -> None:
        """Keep traps that show by the text of a URL."""
        self._db.executemany(
            "INSERT OR IGNORE INTO trap (run, kind, pattern, example, closed) VALUES (?, ?, ?, ?, 1)",
            [(self.run, trap.kind, trap.pattern, trap.example) for trap in traps],
        )

    def told(self, most: int) -> list[Trap]:
        """The traps of this run."""
        return [Trap(*row) for row in self._all(TOLD, {"run": self.run, "most": most})]

    # -- SQLite -------------------------------------------------------------------------------------------

    def _do(self, sql: str, given: Any) -> int:
        return self._db.execute(sql, given).rowcount

    def _one(self, sql: str, given: Any) -> tuple[Any, ...]:
        row: tuple[Any, ...] = self._db.execute(sql, given).fetchone()
        return row

    def _all(self, sql: str, given: Any) -> list[tuple[Any, ...]]:
        return self._db.execute(sql, given).fetchall()


def sample(url: str) -> int:
    """The place of a URL among those of its pattern, by a hash: a batch is a sample of what waits.

    In the order of the text, whoever adds links to a site could put all of theirs before its own. The origin does not
    count: a copy of a site is crawled as the site is.
    """
    return int.from_bytes(blake2b(target(url).encode("utf-8", "surrogatepass"), digest_size=8).digest()) >> 1


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
