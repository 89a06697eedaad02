"""The patterns of URLs that may be crawler traps in the SQLite frontier: which URLs they have, counts, and reported traps.

`rounds` decides when their URLs are fetched; `rules.trap_patterns` recognises patterns.
"""

import json
from collections.abc import Sequence
from hashlib import blake2b
from typing import Final, NamedTuple

from crawler.frontier.sqlite.database import Database
from crawler.model.outcome import Pattern
from crawler.model.trap import Trap
from crawler.parse.url import Url, target
from crawler.rules.traps import BATCH, FAMILY_BATCH

CACHED: Final = 20_000  # most patterns whose rows are cached

# Pages that were read and count towards a batch; errors do not. SHOWN: pages that count as content.
SHOWN: Final = "'listed', 'unlisted:no-list', 'unlisted:excluded', 'unlisted:scheme', 'unlisted:too-long'"
# HTML pages are read for their links even if only other content types are listed.
READ: Final = f"""(
    outcome IN ({SHOWN}, 'unlisted:canonical', 'unlisted:noindex')
    OR (outcome = 'unlisted:type' AND detail IN ('text/html', 'application/xhtml+xml'))
)"""

COUNT = f"""
UPDATE trap SET asked = asked + n.pages, rest = rest - n.pages
FROM (
    SELECT trap AS id, count(*) AS pages FROM url
    WHERE id IN (SELECT value FROM json_each(:ids)) AND round IS NOT NULL AND {READ} GROUP BY trap
) AS n WHERE trap.id = n.id
"""

COUNT_FAMILY = f"""
UPDATE trap SET asked = asked + n.pages, rest = rest - n.pages
FROM (
    SELECT t.family AS id, count(*) AS pages FROM url JOIN trap AS t ON t.id = url.trap
    WHERE url.id IN (SELECT value FROM json_each(:ids)) AND round IS NOT NULL AND {READ} AND NOT t.proven GROUP BY t.family
) AS n WHERE trap.id = n.id
"""

# A page of a closed pattern is listed if it is the only one, or the first, of its family with its content.
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

MAX_REPORTED = """
SELECT t.kind, t.pattern, coalesce(t.example, (SELECT min(u.url) FROM url AS u WHERE u.trap = t.id AND u.run = t.run),
    (SELECT min(u.url) FROM trap AS m JOIN url AS u ON u.trap = m.id WHERE m.family = t.id AND u.run = t.run), '')
FROM trap AS t LEFT JOIN trap AS f ON f.id = t.family
WHERE t.run = :run AND t.closed AND NOT coalesce(f.closed, 0) ORDER BY t.pattern, t.named LIMIT :most
"""


class Position(NamedTuple):
    """The pattern of a URL, the position of the URL in it, and whether the pattern is closed."""

    trap: int
    sample: int
    closed: bool


class PatternTable:
    """The rows of patterns in the current run."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self._places: dict[Pattern, tuple[int, bool]] = {}
        self._reach: dict[int, int] = {}  # by pattern: its longest URL
        self._round: int | None = None
        db.on_forget(self.forget)

    def forget(self) -> None:
        """Clear the caches."""
        self._places.clear()
        self._reach.clear()
        self._round = None

    @property
    def round(self) -> int:
        """The number of the current round, in which URLs found now are recorded."""
        if self._round is None:
            self._round = int(self._db.one("SELECT round FROM run WHERE number = ?", (self._db.run,))[0])
        return self._round

    def next_round(self) -> None:
        """Start another round."""
        self._db.do("UPDATE run SET round = round + 1 WHERE number = ?", (self._db.run,))
        self._round = None

    def place(self, url: Url, pattern: Pattern) -> Position:
        """Position a URL that was found; its pattern is added if it is new."""
        known = self._places.get(pattern)
        if known is None:
            if len(self._places) >= CACHED:
                self._places.clear()
                self._reach.clear()
            known = self._places[pattern] = self._row(pattern)
        if len(url) > self._reach.get(known[0], 0):
            self._reach[known[0]] = len(url)
            self._db.do("UPDATE trap SET reach = max(reach, ?) WHERE id = ?", (len(url), known[0]))
        return Position(known[0], sample(url), known[1])

    def _row(self, pattern: Pattern) -> tuple[int, bool]:
        kind, text, family, named = pattern
        parent, closed = self._made((None, kind, family, named, FAMILY_BATCH, 0))
        trap, shut = self._made((parent, kind, text, named, BATCH, closed))
        return trap, shut

    def _made(self, row: tuple[int | None, str, str, bool, int, int | bool]) -> tuple[int, bool]:
        self._db.do(
            "INSERT OR IGNORE INTO trap (run, since, family, kind, pattern, named, batch, rest, closed) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (self._db.run, self.round, *row[:5], *row[4:]),
        )
        found = self._db.one(
            "SELECT id, closed FROM trap WHERE run = ? AND pattern = ? AND named = ?",
            (self._db.run, row[2], row[3]),
        )
        return found[0], bool(found[1])

    def count(self, settled: Sequence[int]) -> None:
        """Count settled pages, given by record number, towards the batches of their patterns."""
        given = {"ids": json.dumps(settled)}
        self._db.do(COUNT, given)
        self._db.do(COUNT_FAMILY, given)

    def unlist_repeats(self) -> int:
        """Unlist pages of closed patterns with the same content as another page of their family. Returns how many."""
        if not self._db.one("SELECT EXISTS (SELECT 1 FROM trap WHERE run = ? AND closed)", (self._db.run,))[
            0
        ]:
            return 0
        return self._db.do(REPEATS, {"run": self._db.run})

    def store_traps(self, traps: Sequence[Trap]) -> None:
        """Store traps that are recognised by the text of a URL."""
        self._db.many(
            "INSERT OR IGNORE INTO trap (run, kind, pattern, example, closed) VALUES (?, ?, ?, ?, 1)",
            [(self._db.run, trap.kind, trap.pattern, trap.example) for trap in traps],
        )

    def stored_traps(self, most: int) -> list[Trap]:
        """The traps of this run."""
        return [Trap(*row) for row in self._db.all(MAX_REPORTED, {"run": self._db.run, "most": most})]


def sample(url: str) -> int:
    """The position of a URL in its pattern, by a hash: a batch is a sample of the held URLs.

    If URLs were sorted by text, spam links could all be sorted before the site's own. The origin is not part of the hash,
    so a copy of a site is crawled like the site.
    """
    return int.from_bytes(blake2b(target(url).encode("utf-8", "surrogatepass"), digest_size=8).digest()) >> 1
