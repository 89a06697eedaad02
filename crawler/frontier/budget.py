"""How many requests a run may still make: a share for each distinct content that it has found, and a base.

The last resort against endless sites, beside the patterns of `rounds`: what waits is not fetched once the
budget is spent. It is computed from the rows of a run at a barrier. The numbers are those of `rules.traps`.
"""

import sys
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from crawler.frontier.database import Database
from crawler.frontier.patterns import WAS_READ
from crawler.frontier.schema import settled
from crawler.frontier.visits import ANY_DEPTH
from crawler.model.note import ASKED_PLACES
from crawler.parse.extract import BYTES, WORDING_DIGITS
from crawler.rules.record import LISTED
from crawler.rules.traps import is_poor, questions_for, requests_for

# No contents of their own, beside the page without a query: what a pattern shows for any value; and, until
# that was asked, the content with which one pattern of the path begins, as a first page proves nothing.
_PATTERNS_BESIDE: Final = f"""
FROM trap AS t JOIN known AS u ON u.@key = t.bare
WHERE t.run = :run AND u.run = :run AND u.outcome = '{LISTED}'
"""
_UNPROVEN: Final = f"""
SELECT id FROM trap WHERE run = :run AND pattern IN (
    SELECT min(t.pattern) {_PATTERNS_BESIDE} AND NOT t.proven AND t.asked IS NULL GROUP BY t.bare)
"""
_BESIDE: Final = f"""
SELECT t.id, t.missing {_PATTERNS_BESIDE} AND t.missing IS NOT NULL
UNION ALL SELECT trap, min(version) FROM known WHERE run = :run AND trap IN ({_UNPROVEN}) GROUP BY trap
"""


def _distinct(content: str) -> str:
    """How many different ones there are. A file that is no page has a content of its own."""
    return f"""count(DISTINCT CASE WHEN (trap, version) IN ({_BESIDE}) THEN NULL
    WHEN {WAS_READ} THEN coalesce({content}, url)
    WHEN outcome = 'unlisted:type' AND detail NOT IN ('text/html', 'application/xhtml+xml') THEN url END)"""


# What a page says outside of links: what it links to is counted as well.
WORDING: Final = (
    f"CASE WHEN version LIKE '{BYTES}%' THEN version ELSE substr(version, 1, {WORDING_DIGITS}) END"
)
# A page that is read without what repeats its address may say what one says that is read with it. Few sites
# have such pages, which is asked first.
_ECHOING: Final = f"substr(echoing, 1, {WORDING_DIGITS})"
ANY_ECHOING: Final = "EXISTS (SELECT 1 FROM known WHERE run = :run AND echoing IS NOT NULL)"
SAID: Final = f"coalesce(said.wording, {WORDING})"
# Joined, since PostgreSQL compares each with all others where `IN` is too large for its memory.
_SAID: Final = f"""
LEFT JOIN (
    SELECT DISTINCT {WORDING} AS wording FROM known WHERE {ANY_ECHOING} AND run = :run AND version IS NOT NULL
) AS said ON said.wording = {_ECHOING}
"""
# Pages that failed to the end count once.
FOUND: Final = f"""
SELECT count(*) + (SELECT coalesce(sum(asked), 0) FROM trap WHERE run = :run),
    coalesce(sum(CASE WHEN outcome NOT LIKE 'failed:%' THEN attempts - 1 END), 0),
    @least({_distinct(SAID)}, {_distinct("digest")})
    + (SELECT coalesce(sum(credit), 0) FROM trap WHERE run = :run)
FROM known {_SAID} WHERE run = :run AND {settled("known")} AND attempts > 0 AND depth < :below
    AND (status IS NOT NULL OR outcome LIKE 'failed:%' OR outcome LIKE 'kept:%')
"""
NOTED: Final = "SELECT value FROM note WHERE run = :run AND key = :key"
IS_POOR: Final = "SELECT level IS NOT NULL FROM run WHERE number = :run"
SETTLED_SO_FAR: Final = "SELECT coalesce(sum(settled), 0) FROM member WHERE run = :run"


class _RunCounts(Struct, frozen=True):
    """What a run had found when its rows were last counted."""

    settled: int  # URLs
    requests: int
    beside: int  # requests for pages that were read again, and for nonexistent ones
    contents: int

    def requests_at(self, settled: int) -> int:
        """At most, once so many URLs were settled."""
        return self.requests + max(0, settled - self.settled)

    def left_at(self, settled: int) -> int:
        """How many requests may be made then."""
        return requests_for(self.contents) - self.requests_at(settled) - self.beside


NOTHING: Final = _RunCounts(0, 0, 0, 0)


def questions_left(db: Database) -> int | None:
    """See `ports.reads.QuestionsLeft`."""
    if not db.one(IS_POOR, {"run": db.run})[0]:
        return None
    found = _count(db, 0)
    return max(0, questions_for(found.contents) - found.requests - found.beside)


def settled_so_far(db: Database) -> int:
    """See `ports.reads.SettledSoFar`."""
    return db.count(SETTLED_SO_FAR, {"run": db.run})


def _count(db: Database, settled: int) -> _RunCounts:
    pages = db.ask_whole(FOUND, {"run": db.run, "below": ANY_DEPTH})
    noted = db.ask(NOTED, {"run": db.run, "key": ASKED_PLACES.key})()
    [(requests, again, contents)] = pages()
    asked = ASKED_PLACES.read(noted[0][0])[1] if noted else 0
    return _RunCounts(settled, requests, again + asked, contents)


class Budget:
    """The budget of the current run."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self._found: _RunCounts | None = None
        db.on_forget(self.forget)

    def forget(self) -> None:
        self._found = None

    def note_questions(self) -> None:
        """Requests were made that are no visits: they are counted before the next are allowed."""
        if self._found:
            self._found = replace(self._found, beside=sys.maxsize)

    def left(self, wanted: int) -> int:
        """How many of `wanted` requests may be made. The rows are counted only if it could be fewer."""
        settled = settled_so_far(self._db)
        found = self._found or NOTHING
        if found.left_at(settled) < wanted:
            found = self._count(settled)
        return max(0, min(wanted, found.left_at(settled)))

    def may_be_poor(self, settled: int, in_flight: int = 0) -> bool:
        """Whether the site may be poor, now that so many URLs are settled. The rows are counted only then.

        `in_flight`: visits beside these, which may bring nothing new.
        """
        found = self._found or NOTHING
        if not is_poor(found.requests_at(settled) + in_flight, found.contents):
            return False
        if not is_poor(found.requests, found.contents):
            found = self._count(settled)
        return is_poor(found.requests + in_flight, found.contents)

    def is_poor(self, below: int) -> bool:
        """Whether the site is poor by its pages below a depth, which are all settled."""
        [(requests, _, contents)] = self._db.ask_whole(FOUND, {"run": self._db.run, "below": below})()
        return is_poor(requests, contents)

    def _count(self, settled: int) -> _RunCounts:
        self._found = _count(self._db, settled)
        return self._found
