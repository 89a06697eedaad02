"""The patterns of URLs in the PostgreSQL frontier that may be crawler traps: where a URL lies, what was read, what is told.

When their URLs are asked for is for `rounds`; how a pattern shows is for `rules.trap_patterns`.
"""

from collections.abc import Sequence
from hashlib import blake2b
from typing import Final, NamedTuple

from crawler.frontier.postgres.database import Database
from crawler.frontier.postgres.rows import fp
from crawler.model.outcome import Pattern
from crawler.model.trap import Trap
from crawler.parse.url import Url, target
from crawler.rules.traps import BATCH, FAMILY_BATCH

CACHED: Final = 20_000  # patterns whose rows are remembered

# Pages: what was read, and counts. An error tells nothing of its pattern. SHOWN: those that count as content.
SHOWN: Final = "'listed', 'unlisted:no-list', 'unlisted:excluded', 'unlisted:scheme', 'unlisted:too-long'"
# HTML that is not listed, as only other types are, is read for its links all the same.
READ: Final = f"""(
    outcome IN ({SHOWN}, 'unlisted:canonical', 'unlisted:noindex')
    OR (outcome = 'unlisted:type' AND detail IN ('text/html', 'application/xhtml+xml'))
)"""

COUNT = f"""
UPDATE trap SET asked = asked + n.pages, rest = rest - n.pages
FROM (
    SELECT trap AS id, count(*) AS pages FROM known
    WHERE id = ANY (:ids::bigint[]) AND round IS NOT NULL AND {READ} GROUP BY trap
) AS n WHERE trap.id = n.id
"""

COUNT_FAMILY = f"""
UPDATE trap SET asked = asked + n.pages, rest = rest - n.pages
FROM (
    SELECT t.family AS id, count(*) AS pages FROM known JOIN trap AS t ON t.id = known.trap
    WHERE known.id = ANY (:ids::bigint[]) AND round IS NOT NULL AND {READ} AND NOT t.proven GROUP BY t.family
) AS n WHERE trap.id = n.id
"""

# A page of a closed pattern is listed if no other page of its family shows the same, or if it is the first that does.
REPEATS = """
UPDATE page SET outcome = 'unlisted:trap', detail = 'shows what ' || r.best || ' shows'
FROM (
    SELECT id, closed, url, first_value(url) OVER (
        PARTITION BY family, content ORDER BY closed, waited, named DESC, url
    ) AS best
    FROM (
        SELECT u.id, u.url, u.content, f.pattern AS family, t.closed::integer AS closed, (u.round IS NOT NULL)::integer AS waited, t.named::integer AS named
        FROM trap AS f JOIN trap AS t ON t.family = f.id JOIN known AS u ON u.trap = t.id
        WHERE f.run = :run AND u.run = :run AND u.outcome = 'listed' AND u.content IS NOT NULL AND f.pattern IN (
            SELECT f.pattern FROM trap AS f JOIN trap AS t ON t.family = f.id WHERE t.run = :run AND t.closed
        )
        UNION ALL
        SELECT u.id, u.url, u.content, f.pattern, -1, 0, 0
        FROM trap AS f JOIN known AS u ON u.fp = f.bare
        WHERE f.run = :run AND f.family IS NULL AND f.batch > 0 AND NOT f.named AND f.kind = 'query'
        AND u.run = :run AND u.outcome = 'listed' AND u.content IS NOT NULL
    ) AS shown
) AS r
WHERE page.id = r.id AND r.closed = 1 AND r.best <> r.url
"""

MAX_REPORTED = """
SELECT t.kind, t.pattern, coalesce(t.example, (SELECT min(u.url) FROM url AS u WHERE u.trap = t.id AND u.run = t.run),
    (SELECT min(u.url) FROM trap AS m JOIN url AS u ON u.trap = m.id WHERE m.family = t.id AND u.run = t.run), '')
FROM trap AS t LEFT JOIN trap AS f ON f.id = t.family
WHERE t.run = :run AND t.closed AND NOT coalesce(f.closed, false) ORDER BY t.pattern, t.named LIMIT :most
"""

FIND = "SELECT id, closed FROM trap WHERE run = :run AND pattern = :pattern AND named = :named"

MAKE = """
INSERT INTO trap (run, since, family, kind, pattern, named, bare, batch, rest, closed)
VALUES (:run, :since, :family, :kind, :pattern, :named, :bare::uuid, :batch, :batch, :closed) ON CONFLICT DO NOTHING
"""

TELL = """
INSERT INTO trap (run, kind, pattern, example, closed) VALUES (:run, :kind, :pattern, :example, true) ON CONFLICT DO NOTHING
"""


class Position(NamedTuple):
    """Where a URL of a pattern goes."""

    trap: int
    sample: int
    closed: bool


class PatternTable:
    """The rows of patterns, of the run at work."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self._places: dict[Pattern, tuple[int, bool]] = {}
        self._reach: dict[int, int] = {}  # by pattern: its longest URL
        self._round: int | None = None
        self._closings = 0
        db.on_forget(self.forget)

    def forget(self) -> None:
        """What was remembered may be wrong now."""
        self._places.clear()
        self._reach.clear()
        self._round = None

    def refresh(self) -> None:
        """Forget what the leader changed: it decides on patterns, and begins rounds."""
        now, closings = self._db.one(
            "SELECT round, closings FROM run WHERE number = :run", {"run": self._db.run}
        )
        if closings != self._closings:
            self.forget()
        self._round, self._closings = now, closings

    def note_closing(self) -> None:
        """Patterns were closed: what members remember of them is void."""
        self._db.do("UPDATE run SET closings = closings + 1 WHERE number = :run", {"run": self._db.run})
        self.forget()

    @property
    def round(self) -> int:
        """How many rounds there were: what is found now is found in this one."""
        if self._round is None:
            self._round = int(
                self._db.one("SELECT round FROM run WHERE number = :run", {"run": self._db.run})[0]
            )
        return self._round

    def next_round(self) -> None:
        """Another round has begun."""
        self._db.do("UPDATE run SET round = round + 1 WHERE number = :run", {"run": self._db.run})
        self._round = None

    def place(self, url: Url, pattern: Pattern) -> Position:
        """Where a URL that was found goes; its pattern is made known."""
        known = self._places.get(pattern)
        if known is None:
            if len(self._places) >= CACHED:
                self._places.clear()
                self._reach.clear()
            known = self._places[pattern] = self._row(pattern)
        if len(url) > self._reach.get(known[0], 0):
            self._reach[known[0]] = len(url)
            self._db.do(
                "UPDATE trap SET reach = :reach WHERE id = :id AND reach < :reach",
                {"reach": len(url), "id": known[0]},
            )
        return Position(known[0], sample(url), known[1])

    def _row(self, pattern: Pattern) -> tuple[int, bool]:
        kind, text, family, named = pattern
        parent, closed = self._made(None, kind, family, named, FAMILY_BATCH, closed=False)
        return self._made(parent, kind, text, named, BATCH, closed=closed)

    def _made(
        self, family: int | None, kind: str, pattern: str, named: bool, batch: int, *, closed: bool
    ) -> tuple[int, bool]:
        key = {"run": self._db.run, "pattern": pattern, "named": named}
        found = self._db.one_or_none(FIND, key)
        if found is None:
            bare = fp(pattern.partition("?")[0]) if family is None and "?" in pattern else None
            more = {"family": family, "kind": kind, "bare": bare, "batch": batch, "closed": closed}
            self._db.do(MAKE, key | more | {"since": self.round})
            found = self._db.one(FIND, key)
        return found[0], found[1]

    def count(self, settled: Sequence[int]) -> None:
        """Pages that were settled, by the numbers of their records: those of a pattern count towards its batch."""
        given = {"ids": list(settled)}
        self._db.do(COUNT, given)
        self._db.do(COUNT_FAMILY, given)

    def unlist_repeats(self) -> int:
        """Of the pages of closed patterns, those that show what another page of their family shows. How many."""
        if not self._db.one(
            "SELECT EXISTS (SELECT 1 FROM trap WHERE run = :run AND closed)", {"run": self._db.run}
        )[0]:
            return 0
        return self._db.do(REPEATS, {"run": self._db.run})

    def store_traps(self, traps: Sequence[Trap]) -> None:
        """Keep traps that show by the text of a URL."""
        for trap in traps:
            told = {"kind": trap.kind, "pattern": trap.pattern, "example": trap.example}
            self._db.do(TELL, told | {"run": self._db.run})

    def stored_traps(self, most: int) -> list[Trap]:
        """The traps of this run."""
        return [Trap(*row) for row in self._db.all(MAX_REPORTED, {"run": self._db.run, "most": most})]


def sample(url: str) -> int:
    """The place of a URL among those of its pattern, by a hash: a batch is a sample of what waits.

    In the order of the text, whoever adds links to a site could put all of theirs before its own. The origin does not
    count: a copy of a site is crawled as the site is.
    """
    return int.from_bytes(blake2b(target(url).encode("utf-8", "surrogatepass"), digest_size=8).digest()) >> 1
