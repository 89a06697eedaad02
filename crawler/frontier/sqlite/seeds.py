"""The seeds of the SQLite frontier: which ones to read, the outcome of each, and their URLs.

`app/seeding` reads sitemaps; `discovery` adds their URLs.
"""

import json
from collections.abc import Mapping, Sequence

from crawler.frontier.sqlite.database import Database
from crawler.frontier.sqlite.publications import last_publication
from crawler.frontier.sqlite.rows import FOUND, FoundRow
from crawler.model.reasons import SeedKind, SeedOutcome
from crawler.model.seed import Seed, SeedSettlement
from crawler.parse.url import Url

NAME = """
INSERT INTO seed (kind, name, run, parent, depth)
SELECT value ->> 0, value ->> 1, :run, :parent, value ->> 2 FROM json_each(:seeds) AS j
WHERE NOT EXISTS (SELECT 1 FROM seed WHERE kind = j.value ->> 0 AND name = j.value ->> 1 AND run = :run)
GROUP BY value ->> 0, value ->> 1 ORDER BY min(j.key) LIMIT :room
ON CONFLICT (kind, name) DO UPDATE SET
    run = excluded.run, parent = excluded.parent, depth = excluded.depth,
    settled = NULL, outcome = NULL, detail = NULL, entries = 0, passed = 0
"""

PAGES_OF_FAILING_SEEDS = """
SELECT count(DISTINCT json_array(value ->> 0, value ->> 1)) FROM json_each(:seeds) AS j
WHERE NOT EXISTS (SELECT 1 FROM seed WHERE kind = j.value ->> 0 AND name = j.value ->> 1 AND run = :run)
"""

NEXT_SEED = """
SELECT kind, name, depth FROM seed WHERE run = :run AND kind > 0 AND settled IS NULL ORDER BY kind, depth, id LIMIT 1
"""

SETTLE_SEED = """
UPDATE seed SET settled = :now, outcome = :outcome, detail = :detail, entries = :entries, passed = :passed,
    failing = CASE WHEN :may_pass THEN coalesce(min(failing, :now), :now) WHEN NOT :read THEN failing END,
    may_pass = :may_pass
WHERE id = :id
"""

BELOW = """
SELECT kind, name, depth FROM seed WHERE parent = :id AND run < :run
AND :keep > coalesce((SELECT :now - failing FROM seed WHERE id = :id), 0) ORDER BY id
"""

NAMED_BEFORE = """
SELECT s.kind, s.name, s.depth, json_group_array(u.url) FROM url AS u JOIN seed AS s ON s.id = u.seed
WHERE u.run < :run AND u.published >= :last AND s.run = :run AND s.may_pass AND :now - s.failing < :keep
GROUP BY s.id ORDER BY s.id
"""

# A URL that was found before is also in a seed. The first seed by kind and id counts, whichever was read first.
SEEDED = f"""
UPDATE url SET seed = :seed
WHERE url IN (SELECT url FROM {FOUND}) AND run = :run
AND (seed IS NULL OR (SELECT kind, id FROM seed AS s WHERE s.id = url.seed) > (:kind, :seed))
"""

# A URL in a seed is fetched even if its links are nofollow or too deep, and is no longer held for a round or barred with
# its pattern.
REQUEUE = f"""
UPDATE url SET state = 0, host = r.host, detail = NULL, settled = NULL,
    outcome = iif(url.state = -1, url.outcome, NULL), trap = coalesce(url.trap, r.trap), sample = coalesce(url.sample, r.sample),
    via = CASE WHEN url.state = -1 OR url.outcome <> 'unlisted:nofollow' THEN url.via END
FROM {FOUND} AS r
WHERE url.url = r.url AND url.run = :run AND r.outcome IS NULL AND (
    url.state = -1
    OR (url.state = 3 AND url.host IS NULL
        AND url.outcome IN ('unlisted:nofollow', 'unlisted:depth', 'unlisted:not-named', 'unlisted:trap'))
    OR (url.state = 3 AND url.outcome = 'unlisted:trap' AND url.attempts = 0)
)
"""

RAISE = f"""
UPDATE url SET depth = 0 WHERE url IN (SELECT url FROM {FOUND}) AND run = :run AND depth > 0
"""

SITEMAPS = """
SELECT coalesce(outcome, 'open'), count(*), total(passed) FROM seed WHERE run = :run AND kind = 2 GROUP BY 1
"""

ORPHANS = """
SELECT s.name, count(*) FROM url AS u JOIN seed AS s ON s.id = u.seed
WHERE u.run = :run AND u.state = 3 AND (u.outcome = 'listed' OR u.outcome LIKE 'kept:%') AND u.via IS NULL AND s.kind = 2
GROUP BY s.id ORDER BY 2 DESC, 1
"""


class SeedTable:
    """The rows of seeds. `keep_failing`: seconds for which the URLs of a failing seed are kept."""

    def __init__(self, db: Database, keep_failing: float) -> None:
        self._db, self._keep_failing = db, keep_failing

    def add_seeds(self, seeds: Sequence[Seed], room: int, parent: int | None = None) -> int:
        """See `ports.Queue.add_seeds`."""
        if not seeds:
            return 0
        rows = json.dumps([[seed.kind.value, seed.name, seed.depth] for seed in seeds])
        given = {"seeds": rows, "run": self._db.run, "parent": parent}
        used = self._db.count(
            "SELECT count(*) FROM seed WHERE run = :run AND kind = :kind AND depth = :depth",
            {"run": self._db.run, "kind": seeds[0].kind.value, "depth": seeds[0].depth},
        )
        self._db.do(NAME, given | {"room": max(0, room - used)})
        return self._db.count(PAGES_OF_FAILING_SEEDS, given)

    def next_seed(self) -> Seed | None:
        """See `ports.Queue.next_seed`."""
        row = self._db.one_or_none(NEXT_SEED, {"run": self._db.run})
        return Seed(SeedKind(row[0]), row[1], row[2]) if row else None

    def settle_seed(self, read: SeedSettlement, room: int) -> int:
        """See `ports.Queue.settle_seed`."""
        number = self.id(read.seed)
        passed = self.add_seeds([*read.below, *self._below(number, read)], room, number)
        self._db.do(
            SETTLE_SEED,
            {
                "id": number, "now": self._db.now(), "outcome": read.outcome.value, "detail": read.detail,
                "entries": read.entries, "passed": passed, "may_pass": read.may_pass,
                "read": read.outcome is SeedOutcome.READ,
            },
        )  # fmt: skip
        return passed

    def _below(self, number: int, read: SeedSettlement) -> list[Seed]:
        """The sitemaps that an index listed in earlier runs, which are still read while it fails temporarily."""
        if not read.may_pass:
            return []
        given = {"id": number, "run": self._db.run, "now": self._db.now(), "keep": self._keep_failing}
        return [Seed(SeedKind(kind), name, depth) for kind, name, depth in self._db.all(BELOW, given)]

    def pages_of_failing_seeds(self) -> list[tuple[Seed, list[Url]]]:
        """See `ports.Queue.pages_of_failing_seeds`."""
        last = last_publication(self._db)
        given = {
            "run": self._db.run,
            "now": self._db.now(),
            "keep": self._keep_failing,
            "last": last or 0,
        }
        rows = self._db.all(NAMED_BEFORE, given) if last else []
        return [
            (Seed(SeedKind(kind), name, depth), [Url(url) for url in json.loads(urls)])
            for kind, name, depth, urls in rows
        ]

    def reopen(self) -> None:
        """Reopen sitemaps that were not read because a robots.txt was unreachable."""
        self._db.do(
            "UPDATE seed SET settled = NULL, outcome = NULL WHERE run = ? AND outcome = ?",
            (self._db.run, SeedOutcome.ROBOTS_DOWN.value),
        )

    def sitemaps(self) -> Mapping[str, int]:
        """See `ports.Record.sitemaps`."""
        rows = self._db.all(SITEMAPS, {"run": self._db.run})
        passed = int(sum(row[2] for row in rows))
        return {outcome: count for outcome, count, _ in rows} | ({"passed": passed} if passed else {})

    def id(self, seed: Seed) -> int:
        """The number of a seed, which is added to this run if it is new."""
        given = {"kind": seed.kind.value, "name": seed.name, "run": self._db.run}
        self._db.do(
            NAME, given | {"seeds": json.dumps([[seed.kind.value, seed.name, seed.depth]]), "room": 1, "parent": None}
        )  # fmt: skip
        return self._db.count("SELECT id FROM seed WHERE kind = :kind AND name = :name", given)

    def requeue(self, rows: list[FoundRow], seed: Seed, number: int) -> int:
        """Record known URLs that are also in a seed. Returns how many of them became visits."""
        given = {"rows": json.dumps(rows), "run": self._db.run, "seed": number}
        self._db.do(SEEDED, given | {"kind": seed.kind.value})
        self._db.do(RAISE, given)
        return self._db.do(REQUEUE, given)

    def orphans(self) -> Mapping[str, int]:
        """See `ports.Record.orphans`."""
        return dict(self._db.all(ORPHANS, {"run": self._db.run}))
