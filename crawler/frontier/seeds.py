"""The seeds of a crawl: which ones to read, the outcome of each, and their URLs.

`app/seeding` reads sitemaps; `discovery` adds their URLs.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final

from crawler.frontier.database import Database
from crawler.frontier.publications import last_publication, run_time
from crawler.frontier.rows import FoundRow
from crawler.frontier.schema import IN_SITEMAP
from crawler.frontier.visits import MovedVisit, move
from crawler.model.facts import Validators
from crawler.model.reasons import SeedKind, SeedOutcome
from crawler.model.seed import Seed, SeedCopy, SeedSettlement
from crawler.model.serialise import seconds
from crawler.model.survey import SitemapCounts
from crawler.parse.url import Url
from crawler.rules.record import DAY, HELD, SETTLED

OLD_COPY: Final = int(6.5 * DAY)  # seconds, from which on a copy is checked: a week of nightly runs

_USED: Final = "SELECT count(*) FROM seed WHERE run = :run AND kind = :kind AND depth = :depth"
_NEXT: Final = """
SELECT kind, name, depth
    FROM seed WHERE run = :run AND kind > 0 AND settled IS NULL ORDER BY kind, depth, id LIMIT 1
"""
_SETTLE: Final = """
UPDATE seed SET settled = :now, outcome = :outcome, detail = :detail, entries = :entries, passed = :passed,
    failing = CASE WHEN :may_pass THEN CASE WHEN failing < :now THEN failing ELSE :now END WHEN NOT :read
        THEN failing END,
    failing_run = CASE WHEN :may_pass THEN coalesce(failing_run, :run) WHEN NOT :read THEN failing_run END,
    may_pass = :may_pass
WHERE id = :id
"""
# Seconds for which a seed has been failing, as `RunTime.lasted`.
_LASTED: Final = "@least(:now - s.failing, (:run - s.failing_run + 1) * :interval)"
_BELOW: Final = f"""
SELECT kind, name, depth FROM seed WHERE parent = :id AND run < :run
AND :keep > coalesce((SELECT {_LASTED} FROM seed AS s WHERE s.id = :id), 0) ORDER BY id
"""
_REOPEN: Final = "UPDATE seed SET settled = NULL, outcome = NULL WHERE run = :run AND {}"
_SITEMAPS: Final = """
SELECT coalesce(outcome, 'open'), count(*), sum(passed) FROM seed WHERE run = :run AND kind = 2 GROUP BY 1
"""
_KEEP: Final = """
UPDATE seed SET etag = :etag, modified = :modified, body = :body,
    copied = (SELECT started FROM run WHERE number = :run)
WHERE id = :id
"""
_COPY: Final = f"""
SELECT s.etag, s.modified, s.body, s.copied NOT BETWEEN r.started - {OLD_COPY} AND r.started
FROM seed AS s JOIN run AS r ON r.number = :run WHERE s.kind = :kind AND s.name = :name AND s.body IS NOT NULL
"""
_ID: Final = "SELECT id FROM seed WHERE kind = :kind AND name = :name"


_NEW: Final = """
FROM @rows(kind, name, depth)
WHERE NOT EXISTS (SELECT 1 FROM seed AS s WHERE s.kind = r.kind AND s.name = r.name AND s.run = :run)
"""
# Seeds that this run does not know yet, up to `:room`; and how many of them it still does not know.
_ADD: Final = f"""
INSERT INTO seed (kind, name, run, parent, depth)
SELECT kind, name, :run, CAST(:parent AS bigint), min(depth) {_NEW}
GROUP BY kind, name ORDER BY min(place_) LIMIT :room
ON CONFLICT (kind, name) DO UPDATE SET
    run = excluded.run, parent = excluded.parent, depth = excluded.depth,
    settled = NULL, outcome = NULL, detail = NULL, entries = 0, passed = 0
"""
_LEFT_OUT: Final = f"SELECT count(*) FROM (SELECT DISTINCT kind, name {_NEW}) AS skipped"

# The published URLs of seeds that fail temporarily.
_NAMED_BEFORE: Final = f"""
SELECT s.kind, s.name, s.depth, u.url FROM seed AS s JOIN known AS u ON u.seed = s.id
WHERE u.run < :run AND u.published >= :last AND s.run = :run AND s.may_pass AND {_LASTED} < :keep
ORDER BY s.id, u.id
"""

# A URL that was found before is also in a seed. The first seed by kind and id counts, whichever was read
# first.
_SEEDED: Final = """
UPDATE url SET seed = :seed WHERE @key @any(keys, key) AND run = :run
AND (seed IS NULL OR (SELECT s.kind > :kind OR (s.kind = :kind AND s.id > :seed)
    FROM seed AS s WHERE s.id = url.seed))
"""

_DATED: Final = """
UPDATE url SET sitemap_date = r.at FROM @rows(@key, at)
WHERE url.@key = r.@key AND url.run = :run AND coalesce(url.sitemap_date < r.at, true)
"""

# Its depth is 0.
_LIFT: Final = "UPDATE url SET depth = 0 WHERE @key @any(keys, key) AND run = :run AND depth > 0"
_LIFT_VISITS: Final = """
UPDATE visit SET depth = 0 WHERE depth > 0 AND id @first SELECT id
    FROM url WHERE @key @any(keys, key) AND run = :run @end
"""

# It is fetched even if its links are nofollow or too deep, and is no longer held for a round or barred with
# its pattern.
_BARRED: Final = f"""
SELECT k.id, r.host, k.depth, coalesce(k.trap, r.trap), coalesce(k.sample, r.sample), r.state,
    CASE WHEN k.state = {HELD} THEN k.outcome END, NULL, NULL
FROM @found JOIN known AS k ON k.@key = r.@key
WHERE k.run = :run AND r.outcome IS NULL AND (
    k.state = {HELD}
    OR (k.state = {SETTLED} AND k.host IS NULL
        AND k.outcome IN ('unlisted:nofollow', 'unlisted:depth', 'unlisted:not-named', 'unlisted:trap'))
    OR (k.state = {SETTLED} AND k.outcome = 'unlisted:trap' AND k.attempts = 0)
)
"""
_REQUEUE: Final = """
UPDATE url SET host = r.host, trap = r.trap, sample = r.sample, via = CASE WHEN nofollow
    THEN NULL ELSE via END, nofollow = false
FROM @rows(id, host, trap, sample) WHERE url.id = r.id
"""

_ORPHANS: Final = f"""
SELECT s.name, count(*) FROM known AS u JOIN seed AS s ON s.id = u.seed
WHERE u.run = :run AND u.state = {SETTLED} AND {IN_SITEMAP.replace("outcome", "u.outcome")} AND u.via IS NULL
    AND s.kind = 2
GROUP BY s.id, s.name ORDER BY 2 DESC, 1
"""


class SeedTable:
    """The rows of seeds. `keep_failing`: seconds for which the URLs of a failing seed are kept."""

    def __init__(self, db: Database, keep_failing: float) -> None:
        self._db, self._keep_failing = db, float(keep_failing)

    def add_seeds(self, seeds: Sequence[Seed], room: int, parent: int | None = None) -> int:
        if not seeds:
            return 0
        first, given = seeds[0], self._given(seeds)
        used = self._db.count(_USED, {"run": self._db.run, "kind": first.kind.value, "depth": first.depth})
        self._db.do(_ADD, given | {"room": max(0, room - used), "parent": parent})
        return self._db.count(_LEFT_OUT, given)

    def next_seed(self) -> Seed | None:
        row = self._db.one_or_none(_NEXT, {"run": self._db.run})
        return _seed(*row) if row else None

    def settle_seed(self, read: SeedSettlement, room: int) -> int:
        number = self.id(read.seed)
        passed = self.add_seeds([*read.below, *self._below(number, read)], room, number)
        self._db.do(
            _SETTLE,
            {
                "id": number, "now": self._db.now(), "run": self._db.run, "outcome": read.outcome.value,
                "detail": read.detail, "entries": read.entries, "passed": passed,
                "may_pass": read.may_pass, "read": read.outcome is SeedOutcome.READ,
            },
        )  # fmt: skip
        if read.copy:
            etag, modified = read.copy.validators
            kept = {"etag": etag, "modified": modified, "body": read.copy.body or None}
            self._db.do(_KEEP, {"id": number, "run": self._db.run} | kept)
        return passed

    def _below(self, number: int, read: SeedSettlement) -> list[Seed]:
        """The sitemaps that an index listed in earlier runs, still read while it fails temporarily."""
        if not read.may_pass:
            return []
        given = {"id": number, "keep": self._keep_failing} | run_time(self._db)._asdict()
        return [_seed(*row) for row in self._db.all(_BELOW, given)]

    def pages_of_failing_seeds(self) -> list[tuple[Seed, list[Url]]]:
        """See `ports.reads.PagesOfFailingSeeds`."""
        last = last_publication(self._db)
        if last is None:
            return []
        given = {"keep": self._keep_failing, "last": last} | run_time(self._db)._asdict()
        found = dict[Seed, list[Url]]()
        for *seed, url in self._db.all(_NAMED_BEFORE, given):
            found.setdefault(_seed(*seed), []).append(Url(url))
        return list(found.items())

    def reopen(self, *, failed: bool = False) -> int:
        """Reopen sitemaps that were not read because a robots.txt was unreachable; `failed`: for any reason
        that may pass. How many.
        """
        which = "may_pass" if failed else f"outcome = '{SeedOutcome.ROBOTS_DOWN.value}'"
        return self._db.changed(_REOPEN.format(which), {"run": self._db.run})

    def id(self, seed: Seed) -> int:
        """The number of a seed, which is added to this run if it is new."""
        self._db.do(_ADD, self._given([seed]) | {"room": 1, "parent": None})
        return self._db.count(_ID, {"kind": seed.kind.value, "name": seed.name})

    def requeue(self, rows: Sequence[FoundRow], seed: Seed, number: int) -> int:
        """Record known URLs that are also in a seed. Returns how many of them became visits."""
        given = {"keys": self._db.dialect.keys(row.url for row in rows), "run": self._db.run}
        self._db.do(_SEEDED, given | {"kind": seed.kind.value, "seed": number})
        self._db.do(_LIFT, given)
        self._db.do(_LIFT_VISITS, given)
        found = self._db.dialect.given_found(rows) | {"run": self._db.run}
        moved = [MovedVisit._make(row) for row in self._db.all(_BARRED, found)]
        if moved:
            changed = [(one.id, one.host, one.trap, one.sample) for one in moved]
            self._db.do_rows(_REQUEUE, ("id", "host", "trap", "sample"), changed)
        return move(self._db, moved)

    def store_dates(self, dates: Mapping[Url, datetime]) -> None:
        """Store the dates that a seed gives to known URLs, the latest if there are several."""
        key, dialect = self._db.dialect.column, self._db.dialect
        rows = [(dialect.key_of(url), seconds(at)) for url, at in dates.items()]
        self._db.do(_DATED, dialect.given((key, "at"), rows) | {"run": self._db.run})

    def _given(self, seeds: Sequence[Seed]) -> dict[str, object]:
        rows = [(seed.kind.value, seed.name, seed.depth) for seed in seeds]
        return self._db.dialect.given(("kind", "name", "depth"), rows) | {"run": self._db.run}


def copy_of(db: Database, seed: Seed) -> SeedCopy | None:
    """See `ports.reads.CopyOfSeed`."""
    row = db.one_or_none(_COPY, {"kind": seed.kind.value, "name": seed.name, "run": db.run})
    return SeedCopy(Validators(row[0], row[1]), bytes(row[2]), is_old=bool(row[3])) if row else None


def sitemaps(db: Database) -> SitemapCounts:
    """See `ports.reads.Sitemaps`."""
    rows = db.all(_SITEMAPS, {"run": db.run})
    passed = int(sum(row[2] for row in rows))
    outcomes = {outcome: count for outcome, count, _ in rows} | ({"passed": passed} if passed else {})
    return SitemapCounts(outcomes, dict(db.all(_ORPHANS, {"run": db.run})))


def _seed(kind: int, name: str, depth: int) -> Seed:
    return Seed(SeedKind(kind), name, depth)
