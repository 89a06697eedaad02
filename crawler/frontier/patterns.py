"""The patterns of URLs that may be crawler traps: which URLs they have, counts, and reported traps.

`rounds` decides when their URLs are fetched; `rules.traps` recognises patterns. The leader decides on
patterns and begins rounds; other members refresh what they cached.
"""

from collections.abc import Callable, Sequence
from hashlib import blake2b
from typing import Final

from msgspec import Struct

from crawler.frontier.database import Database
from crawler.model.outcome import Pattern
from crawler.model.trap import Trap
from crawler.parse.url import Url, target
from crawler.rules.record import LISTED
from crawler.rules.traps import DRY_SAMPLES, MAX_REPORTED, SAMPLE

CACHED: Final = 20_000  # most patterns whose rows are cached

# Of pages that count as content.
CONTENT_OUTCOMES: Final = (
    f"'{LISTED}', 'unlisted:no-list', 'unlisted:excluded', 'unlisted:scheme', 'unlisted:too-long'"
)
# Pages that were read and count towards a sample; errors do not. HTML pages are read for their links even if
# only other content types are listed.
WAS_READ: Final = f"""(
    outcome IN ({CONTENT_OUTCOMES}, 'unlisted:canonical', 'unlisted:noindex')
    OR (outcome = 'unlisted:type' AND detail IN ('text/html', 'application/xhtml+xml'))
)"""

# A content of the path without a query is not new. For rows of `known`.
BARE: Final = f"""
NOT EXISTS (
    SELECT 1 FROM trap AS t JOIN known AS u ON u.@key = t.bare
    WHERE t.id = :trap AND u.run = :run AND u.outcome = '{LISTED}'
        AND u.version IN (known.version, known.echoing))
"""

_TRAPS: Final = """
SELECT t.kind, t.pattern, coalesce(t.example, (SELECT min(u.url)
    FROM url AS u WHERE u.trap = t.id AND u.run = t.run), '')
FROM trap AS t WHERE t.run = :run AND t.closed ORDER BY t.pattern, t.named LIMIT :most
"""

_STORE: Final = """
INSERT INTO trap (run, kind, pattern, example, closed) VALUES (:run, :kind, :pattern, :example,
    true) ON CONFLICT DO NOTHING
"""


class Position(Struct, frozen=True):
    """The pattern of a URL, the position of the URL in it, and whether the pattern is closed."""

    trap: int
    sample: int
    closed: bool


_FIND: Final = "SELECT id, closed FROM trap WHERE run = :run AND pattern = :pattern AND named = :named"

_ADD: Final = f"""
INSERT INTO trap (run, sample_round, kind, pattern, named, bare, size, size_left, dry)
VALUES (:run, :round, :kind, :pattern, :named, CAST(:bare AS @key_type), {SAMPLE}, {SAMPLE}, :dry)
ON CONFLICT DO NOTHING
"""

_NOW: Final = "SELECT round, level, closings, follows IS NOT NULL FROM run WHERE number = :run"

_COUNT: Final = f"""
UPDATE trap SET fetched = fetched + n.pages, size_left = size_left - n.pages
FROM (SELECT u.trap AS id, count(*) AS pages
    FROM known AS u WHERE u.id @any(ids) AND u.round IS NOT NULL AND {WAS_READ} GROUP BY u.trap
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
        self._level: int | None = None
        self._is_partial = False
        db.on_forget(self.forget)

    def forget(self) -> None:
        self._places.clear()
        self._longest.clear()
        self._round = self._level = None

    def ask_changes(self) -> Callable[[], None]:
        """Ask whether the leader has closed patterns or begun a round; the result clears the caches then."""
        if not self._db.is_shared:
            return lambda: None
        asked = self._db.ask(_NOW, {"run": self._db.run})

        def refresh() -> None:
            [(now, level, closings, is_partial)] = asked()
            if closings != self._closings:
                self.forget()
            self._round, self._level, self._closings = now, level, closings
            self._is_partial = bool(is_partial)

        return refresh

    def note_closing(self) -> None:
        """Patterns were closed: the caches of all members are out of date."""
        self._db.do("UPDATE run SET closings = closings + 1 WHERE number = :run", {"run": self._db.run})
        self.forget()

    @property
    def round(self) -> int:
        """The number of the current round, in which URLs found now are recorded."""
        return self._loaded()[0]

    @property
    def level(self) -> int | None:
        """Of a poor site, how many levels were released (`levels`): what pages link to is held."""
        return self._loaded()[1]

    @property
    def is_partial(self) -> bool:
        """Whether new URLs are planned, as in a partial run (`revisits`)."""
        self._loaded()
        return self._is_partial

    def _loaded(self) -> tuple[int, int | None]:
        """The round and the level, read unless they are cached."""
        if self._round is None:
            self._round, self._level, _, is_partial = self._db.one(_NOW, {"run": self._db.run})
            self._is_partial = bool(is_partial)
        return self._round, self._level

    def set_level(self, level: int) -> None:
        """Record that another level was released."""
        self._db.do(
            "UPDATE run SET level = :level WHERE number = :run", {"level": level, "run": self._db.run}
        )
        self._level = level

    def next_round(self) -> None:
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
        """The number of a pattern, which is added unless it is known, and whether it is closed."""
        key = {"run": self._db.run, "pattern": pattern.text, "named": pattern.named}
        found = self._db.one_or_none(_FIND, key)
        if found is None:
            is_query = pattern.kind == "query"
            bare = self._db.dialect.key_of(pattern.text.partition("?")[0]) if is_query else None
            # Links of repeats begin with a sample that brought nothing: that of the page that they repeat.
            dry = DRY_SAMPLES - 1 if pattern.kind == "repeats" else 0
            new = {"round": self.round, "kind": pattern.kind, "bare": bare, "dry": dry}
            self._db.do(_ADD, key | new)
            found = self._db.one(_FIND, key)
        return found[0], bool(found[1])

    def count(self, settled: Sequence[int]) -> None:
        """Count settled pages, given by record number, towards the samples of their patterns."""
        self._db.do(_COUNT, {"ids": self._db.dialect.all_of(settled)})

    def store_traps(self, traps: Sequence[Trap]) -> None:
        """Store traps that are recognised by the text of a URL."""
        for trap in traps:
            row = {"kind": trap.kind, "pattern": trap.pattern, "example": trap.example}
            self._db.do(_STORE, row | {"run": self._db.run})


def sample(url: str) -> int:
    """The position of a URL in its pattern, by a hash: what is fetched first is a sample.

    If URLs were sorted by text, spam links could all be sorted before the site's own. The origin is not part
    of the hash, so a copy of a site is crawled like the site.
    """
    return int.from_bytes(blake2b(target(url).encode("utf-8", "surrogatepass"), digest_size=8).digest()) >> 1


def stored_traps(db: Database, most: int = MAX_REPORTED) -> list[Trap]:
    """See `ports.reads.TrapsOfRun`."""
    return [Trap(*row) for row in db.all(_TRAPS, {"run": db.run, "most": most})]
