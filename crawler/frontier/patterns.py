"""The patterns of URLs that may be crawler traps: which URLs they have, counts, and reported traps.

`rounds` decides when their URLs are fetched; `rules.traps` recognises patterns. The leader decides on
patterns and begins rounds; other members refresh what they cached.
"""

from collections.abc import Sequence
from hashlib import blake2b
from typing import Final, NamedTuple

from crawler.frontier.database import Database
from crawler.model.outcome import Pattern
from crawler.model.trap import Trap
from crawler.parse.url import Url, target
from crawler.rules.record import LISTED
from crawler.rules.traps import FAMILY_BATCH, FIRST_BATCH, MAX_REPORTED

CACHED: Final = 20_000  # most patterns whose rows are cached

# Pages that were read and count towards a batch; errors do not. SHOWN: pages that count as content.
SHOWN: Final = f"'{LISTED}', 'unlisted:no-list', 'unlisted:excluded', 'unlisted:scheme', 'unlisted:too-long'"
# HTML pages are read for their links even if only other content types are listed.
READ: Final = f"""(
    outcome IN ({SHOWN}, 'unlisted:canonical', 'unlisted:noindex')
    OR (outcome = 'unlisted:type' AND detail IN ('text/html', 'application/xhtml+xml'))
)"""

_TRAPS: Final = """
SELECT t.kind, t.pattern, coalesce(t.example, (SELECT min(u.url)
    FROM url AS u WHERE u.trap = t.id AND u.run = t.run),
    (SELECT min(u.url) FROM trap AS m JOIN url AS u ON u.trap = m.id
        WHERE m.family = t.id AND u.run = t.run), '')
FROM trap AS t LEFT JOIN trap AS f ON f.id = t.family
WHERE t.run = :run AND t.closed AND NOT coalesce(f.closed, false) ORDER BY t.pattern, t.named LIMIT :most
"""

_STORE: Final = """
INSERT INTO trap (run, kind, pattern, example, closed) VALUES (:run, :kind, :pattern, :example,
    true) ON CONFLICT DO NOTHING
"""


class Position(NamedTuple):
    """The pattern of a URL, the position of the URL in it, and whether the pattern is closed."""

    trap: int
    sample: int
    closed: bool


class NewPattern(NamedTuple):
    """A pattern that may be new."""

    family: int | None  # None: a family itself
    kind: str
    pattern: str
    named: bool
    batch: int
    closed: bool


_FIND: Final = "SELECT id, closed FROM trap WHERE run = :run AND pattern = :pattern AND named = :named"

_ADD: Final = """
INSERT INTO trap (run, batch_round, family, kind, pattern, named, bare, batch, batch_left, closed)
VALUES (:run, :round, :family, :kind, :pattern, :named, CAST(:bare AS @key_type), :batch, :batch, :closed)
ON CONFLICT DO NOTHING
"""

_SETTLED: Final = f"u.id @any(ids) AND u.round IS NOT NULL AND {READ}"
_COUNT: Final = f"""
UPDATE trap SET fetched = fetched + n.pages, batch_left = batch_left - n.pages
FROM (SELECT u.trap AS id, count(*) AS pages
    FROM known AS u WHERE {_SETTLED} GROUP BY u.trap) AS n WHERE trap.id = n.id
"""
_COUNT_FAMILY: Final = f"""
UPDATE trap SET fetched = fetched + n.pages, batch_left = batch_left - n.pages
FROM (
    SELECT t.family AS id, count(*) AS pages FROM known AS u JOIN trap AS t ON t.id = u.trap
    WHERE {_SETTLED} AND NOT t.proven GROUP BY t.family
) AS n WHERE trap.id = n.id
"""


class PatternTable:
    """The rows of patterns in the current run."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self._closings = 0
        self._places: dict[Pattern, tuple[int, bool]] = {}
        self._longest: dict[int, int] = {}  # by pattern: its longest URL
        self._round: int | None = None
        db.on_forget(self.forget)

    def forget(self) -> None:
        """Clear the caches."""
        self._places.clear()
        self._longest.clear()
        self._round = None

    def refresh(self) -> None:
        """Clear the caches if the leader has closed patterns or begun a round."""
        if not self._db.is_shared:
            return
        now, closings = self._db.one(
            "SELECT round, closings FROM run WHERE number = :run", {"run": self._db.run}
        )
        if closings != self._closings:
            self.forget()
        self._round, self._closings = now, closings

    def note_closing(self) -> None:
        """Patterns were closed: the caches of all members are out of date."""
        self._db.do("UPDATE run SET closings = closings + 1 WHERE number = :run", {"run": self._db.run})
        self.forget()

    @property
    def round(self) -> int:
        """The number of the current round, in which URLs found now are recorded."""
        if self._round is None:
            self._round = self._db.count("SELECT round FROM run WHERE number = :run", {"run": self._db.run})
        return self._round

    def next_round(self) -> None:
        """Start another round."""
        self._db.do("UPDATE run SET round = round + 1 WHERE number = :run", {"run": self._db.run})
        self._round = None

    def place(self, url: Url, pattern: Pattern) -> Position:
        """Position a URL that was found; its pattern is added if it is new."""
        known = self._places.get(pattern)
        if known is None:
            if len(self._places) >= CACHED:
                self._places.clear()
                self._longest.clear()
            known = self._places[pattern] = self._row(pattern)
        if len(url) > self._longest.get(known[0], 0):
            self._longest[known[0]] = len(url)
            self._db.do(
                "UPDATE trap SET longest = :longest WHERE id = :id AND longest < :longest",
                {"longest": len(url), "id": known[0]},
            )
        return Position(known[0], sample(url), known[1])

    def _row(self, pattern: Pattern) -> tuple[int, bool]:
        kind, text, family, named = pattern
        parent, closed = self._added(NewPattern(None, kind, family, named, FAMILY_BATCH, closed=False))
        return self._added(NewPattern(parent, kind, text, named, FIRST_BATCH, closed=closed))

    def _added(self, new: NewPattern) -> tuple[int, bool]:
        """The number of a pattern, which is added unless it is known, and whether it is closed."""
        key = {"run": self._db.run, "pattern": new.pattern, "named": new.named}
        found = self._db.one_or_none(_FIND, key)
        if found is None:
            is_query = new.family is None and "?" in new.pattern
            bare = self._db.dialect.key_of(new.pattern.partition("?")[0]) if is_query else None
            self._db.do(_ADD, new._asdict() | {"run": self._db.run, "round": self.round, "bare": bare})
            found = self._db.one(_FIND, key)
        return found[0], bool(found[1])

    def count(self, settled: Sequence[int]) -> None:
        """Count settled pages, given by record number, towards the batches of their patterns."""
        given = {"ids": self._db.dialect.all_of(settled)}
        self._db.do(_COUNT, given)
        self._db.do(_COUNT_FAMILY, given)

    def store_traps(self, traps: Sequence[Trap]) -> None:
        """Store traps that are recognised by the text of a URL."""
        for trap in traps:
            row = {"kind": trap.kind, "pattern": trap.pattern, "example": trap.example}
            self._db.do(_STORE, row | {"run": self._db.run})


def sample(url: str) -> int:
    """The position of a URL in its pattern, by a hash: a batch is a sample of the held URLs.

    If URLs were sorted by text, spam links could all be sorted before the site's own. The origin is not part
    of the hash, so a copy of a site is crawled like the site.
    """
    return int.from_bytes(blake2b(target(url).encode("utf-8", "surrogatepass"), digest_size=8).digest()) >> 1


def stored_traps(db: Database, most: int = MAX_REPORTED) -> list[Trap]:
    """See `ports.reads.TrapsOfRun`."""
    return [Trap(*row) for row in db.all(_TRAPS, {"run": db.run, "most": most})]
