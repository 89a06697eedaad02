"""Adds discovered URLs to the PostgreSQL frontier: the statements of `frontier.discovery`, and the rows of new URLs.

New rows are numbered in the order in which they were found, and inserted sorted by fingerprint: members that find the same
URLs wait for each other without a deadlock.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from crawler.frontier import discovery
from crawler.frontier.discovery import Statements
from crawler.frontier.links import Added
from crawler.frontier.postgres.database import Database
from crawler.frontier.postgres.hosts import HostTable
from crawler.frontier.postgres.patterns import PatternTable
from crawler.frontier.postgres.rows import FOUND, fp, given, given_found
from crawler.frontier.postgres.seeds import SeedTable
from crawler.frontier.rows import FoundRow
from crawler.model.seed import Seed
from crawler.model.visit import Visit
from crawler.parse.url import Url

# The second half of a statement whose first half selects URLs, `moved`, with their new state: their rows in `visit` and `page`.
MOVE = """,
opened AS (
    INSERT INTO visit (id, host, depth, trap, sample, state)
    SELECT id, host, depth, trap, sample, state FROM moved WHERE state <> 3
    ON CONFLICT (id) DO UPDATE SET
        host = excluded.host, depth = excluded.depth, trap = excluded.trap, sample = excluded.sample, state = excluded.state
),
shut AS (DELETE FROM visit USING moved WHERE visit.id = moved.id AND moved.state = 3),
judged AS (
    UPDATE page SET outcome = moved.outcome, detail = moved.detail, settled = coalesce(moved.settled, page.settled)
    FROM moved WHERE page.id = moved.id
),
judged_first AS (
    INSERT INTO page (id, outcome, detail, settled) SELECT id, outcome, detail, settled FROM moved
    WHERE state = 3 AND NOT EXISTS (SELECT 1 FROM page WHERE page.id = moved.id)
)
SELECT count(*), count(*) FILTER (WHERE state = 0) FROM moved
"""

ADD = f"""
WITH r AS MATERIALIZED (SELECT *, nextval('url_id') AS next_id FROM {FOUND}),
inserted AS (
    INSERT INTO url (id, fp, url, run, host, depth, hops, via, seed, trap, sample, found, nofollow)
    SELECT next_id, fp, url, :run, host, depth, hops, via, :seed::bigint, trap, sample, :round,
        coalesce(outcome = 'unlisted:nofollow', false)
    FROM r ORDER BY fp
    ON CONFLICT (fp) DO NOTHING RETURNING id, fp
),
renewed AS (
    UPDATE url SET run = :run, host = r.host, depth = r.depth, hops = r.hops, via = r.via, seed = :seed::bigint,
        trap = r.trap, sample = r.sample, found = :round, round = NULL,
        nofollow = coalesce(r.outcome = 'unlisted:nofollow', false)
    FROM r WHERE url.fp = r.fp AND url.run < :run RETURNING url.id, url.fp
),
new AS (
    SELECT n.id, r.* FROM (SELECT * FROM inserted UNION ALL SELECT * FROM renewed) AS n JOIN r USING (fp) ORDER BY r.place_
),
opened AS (
    INSERT INTO visit (id, host, depth, trap, sample, state)
    SELECT id, host, depth, trap, sample, state FROM new WHERE state <> 3
),
before AS (
    SELECT p.id, u.run IN (SELECT number FROM run WHERE status = 'concluded') AS concluded,
        (p.outcome = 'listed' AND p.content IS NOT NULL
            AND u.run IN (SELECT number FROM run WHERE status = 'concluded')) AS published
    FROM renewed JOIN url AS u ON u.id = renewed.id JOIN page AS p ON p.id = renewed.id
),
-- The content of the previous run becomes the known content if that run was published. Content without a date
-- does not replace what is known: the site may have shown error pages, and the earlier content may return. A page
-- that fails next keeps its published date, whatever a refused run found.
updated AS (
    UPDATE page AS p SET
        attempts = 0,
        detail = CASE WHEN new.outcome IS NULL THEN p.detail ELSE new.detail END,
        was = p.outcome, was_lastmod = p.lastmod,
        outcome = coalesce(new.outcome, p.outcome), settled = coalesce(new.settled, p.settled),
        facts_run = CASE WHEN new.outcome IS NULL THEN p.facts_run END,
        published_content = CASE WHEN b.published THEN p.content ELSE p.published_content END,
        dated_content = CASE WHEN b.published AND (p.lastmod IS NOT NULL OR p.dated_lastmod IS NULL) THEN p.content
            ELSE p.dated_content END,
        dated_lastmod = CASE WHEN b.published THEN coalesce(p.lastmod, p.dated_lastmod) ELSE p.dated_lastmod END,
        lastmod = CASE WHEN b.concluded OR p.published_content IS NULL THEN p.lastmod
            WHEN p.published_content = p.dated_content THEN p.dated_lastmod END,
        dated_header = CASE
            WHEN b.published AND p.content = p.dated_content THEN coalesce(p.header, p.dated_header)
            WHEN b.published AND (p.lastmod IS NOT NULL OR p.dated_lastmod IS NULL) THEN p.header
            ELSE p.dated_header END
    FROM new JOIN before AS b ON b.id = new.id WHERE p.id = new.id
),
judged AS (
    INSERT INTO page (id, outcome, detail, settled) SELECT id, outcome, detail, settled FROM new
    WHERE state = 3 AND NOT EXISTS (SELECT 1 FROM page WHERE page.id = new.id)
)
SELECT url, id, via IS NULL OR hops > 0 OR coalesce(outcome = 'unlisted:nofollow', false) FROM new
"""

UPGRADE = f"""
WITH moved AS (
    UPDATE url SET host = r.host, depth = r.depth, hops = r.hops, via = r.via, trap = r.trap, sample = r.sample,
        found = :round, nofollow = false
    FROM {FOUND}
    WHERE url.fp = r.fp AND url.run = :run AND url.nofollow AND r.outcome IS DISTINCT FROM 'unlisted:nofollow'
    RETURNING url.id, r.state, r.host, r.depth, r.trap, r.sample, r.outcome, r.detail, r.settled
) {MOVE}
"""

# A smaller depth, or fewer redirects, for URLs that were not fetched yet.
LOWER_DEPTHS = f"""
WITH moved AS (
    UPDATE url SET depth = r.depth, hops = least(url.hops, r.hops), via = r.via, host = coalesce(url.host, r.host),
        trap = coalesce(url.trap, r.trap), sample = coalesce(url.sample, r.sample)
    FROM {FOUND} JOIN known AS k ON k.fp = r.fp
    WHERE url.id = k.id AND k.run = :run AND r.depth < k.depth
    AND (k.state IN (-1, 0) OR (k.state = 3 AND k.outcome = 'unlisted:depth'))
    RETURNING url.id, url.host, url.depth, url.trap, url.sample,
        CASE WHEN k.state = 3 THEN r.state ELSE k.state END AS state,
        CASE WHEN k.state = 3 THEN r.outcome ELSE k.outcome END AS outcome,
        CASE WHEN k.state = 3 THEN r.detail ELSE k.detail END AS detail, NULL::double precision AS settled
) {MOVE}
"""

# Paths to known URLs, and to their redirect targets, by fewer redirects. A URL that failed for too many redirects is due again.
# Not as joins: the planner does not know how few the paths are, and would read all pages.
LOWER_HOPS = """
WITH RECURSIVE fewer (id, hops) AS (
    SELECT u.id, least(w.hops, u.hops)
    FROM unnest(:fp_s::uuid[], :hops_s::integer[], :was_s::integer[]) AS w (fp, hops, was) JOIN url AS u ON u.fp = w.fp
    WHERE u.run = :run AND (w.hops < u.hops OR w.was > u.hops)
    UNION ALL
    SELECT t.id, f.hops + 1
    FROM fewer AS f
    CROSS JOIN LATERAL (
        SELECT links FROM page AS p WHERE id = f.id AND outcome = 'moved'
        AND NOT EXISTS (SELECT 1 FROM visit WHERE visit.id = p.id) OFFSET 0
    ) AS s
    CROSS JOIN LATERAL unnest(s.links) AS j
    CROSS JOIN LATERAL (SELECT id, run, hops FROM url WHERE id = j OFFSET 0) AS t
    WHERE t.run = :run AND t.hops > f.hops + 1
),
moved AS (
    UPDATE url SET hops = f.hops FROM (SELECT id, min(hops) AS hops FROM fewer GROUP BY id) AS f WHERE url.id = f.id
    RETURNING url.id, url.host, url.depth, url.trap, url.sample
),
again AS (
    SELECT m.* FROM moved AS m
    CROSS JOIN LATERAL (
        SELECT id FROM page AS p WHERE id = m.id AND outcome = 'failed:redirects'
        AND NOT EXISTS (SELECT 1 FROM visit WHERE visit.id = p.id) OFFSET 0
    ) AS failed
),
opened AS (
    INSERT INTO visit (id, host, depth, trap, sample, state) SELECT id, host, depth, trap, sample, 0 FROM again
)
UPDATE page SET outcome = NULL, detail = NULL, settled = NULL, attempts = 0 FROM again WHERE page.id = again.id
"""

# A URL that a page names as canonical or redirects to, and that was not fetched yet, is moved to the pattern of such URLs.
NAMED = f"""
WITH moved AS (
    UPDATE url SET trap = r.trap, sample = r.sample
    FROM {FOUND} JOIN known AS k ON k.fp = r.fp
    WHERE url.id = k.id AND k.run = :run AND k.trap IS NOT NULL AND k.trap <> r.trap
    AND (k.state = -1 OR (k.state = 3 AND k.outcome = 'unlisted:trap' AND k.attempts = 0))
    RETURNING url.id, url.host, url.depth, url.trap, url.sample, r.state,
        coalesce(r.outcome, CASE WHEN k.state <> 3 THEN k.outcome END) AS outcome, r.detail, NULL::double precision AS settled
) {MOVE}
"""

# URLs to fetch now, because the site has grown or a shorter path was found.
LIST_FILTERED = """
SELECT u.url, u.depth, v.url, u.hops FROM known AS u LEFT JOIN url AS v ON v.id = u.via
WHERE u.url > :after AND u.run = :run AND u.state = 3 AND u.host IS NULL
AND u.outcome IN ('unlisted:offsite', 'unlisted:excluded', 'unlisted:trap') ORDER BY u.url LIMIT :limit
"""

ADMIT = f"""
WITH moved AS (
    UPDATE url SET host = r.host, trap = r.trap, sample = r.sample, found = :round
    FROM {FOUND} JOIN known AS k ON k.fp = r.fp
    WHERE url.id = k.id AND k.run = :run AND k.state = 3 AND k.host IS NULL
    RETURNING url.id, url.host, url.depth, url.trap, url.sample, r.state, r.outcome, r.detail, r.settled
) {MOVE}
"""

# The first other page that links to a URL found in a seed.
LINKED = f"""
UPDATE url SET via = r.via FROM {FOUND}
WHERE url.fp = r.fp AND url.run = :run AND url.via IS NULL AND url.id <> r.via
AND r.outcome IS DISTINCT FROM 'unlisted:nofollow'
"""

# Whether a further link could change the row: the URL is known only from nofollow links, from a seed, or by redirects.
MAY_CHANGE = "u.via IS NULL OR u.hops > 0 OR u.nofollow"
KNOWN = f"""
SELECT u.url, u.id, {MAY_CHANGE} FROM url AS u WHERE u.fp = ANY (:fps::uuid[]) AND u.run = :run
"""

ANY_NOFOLLOW = "SELECT EXISTS (SELECT 1 FROM url WHERE nofollow)"

STATEMENTS = Statements(lower_depths=LOWER_DEPTHS, named=NAMED, admit=ADMIT, list_filtered=LIST_FILTERED)


class Discovery(discovery.Discovery):
    """Adds URLs."""

    def __init__(self, db: Database, hosts: HostTable, patterns: PatternTable, seeds: SeedTable) -> None:
        super().__init__(db, hosts, patterns, seeds, STATEMENTS)
        self._database = db

    def add(self, visits: Iterable[Visit], seed: Seed | None = None) -> int:
        """See `ports.Queue.add`."""
        self._database.by_index()
        return super().add(visits, seed)

    def _given(self, rows: Sequence[FoundRow]) -> dict[str, Any]:
        return given_found(rows) | {"run": self._db.run, "round": self._patterns.round}

    def _lower_hops(self, paths: Sequence[tuple[str, int, int]]) -> None:
        if paths:
            rows = [(fp(url), hops, was) for url, hops, was in paths]
            self._db.do(LOWER_HOPS, given(("fp", "hops", "was"), rows) | {"run": self._db.run})

    def _numbers(self, urls: Sequence[Url]) -> dict[Url, int]:
        if not urls:
            return {}
        rows = self._db.all(KNOWN, {"fps": [fp(url) for url in urls], "run": self._db.run})
        return _numbers(rows)

    def _insert_all(self, rows: Sequence[FoundRow], seed: int | None) -> Added:
        if not rows:
            return Added(0, {})
        values = self._given(rows)
        added = self._db.all(ADD, values | {"seed": seed})
        new = len(added)
        self._db.do(
            "UPDATE member SET discovered = discovered + :new WHERE id = :id",
            {"new": new, "id": self._database.member},
        )
        if new == len(rows):
            return Added(new, _numbers(added))
        self._db.do(LINKED, values)
        self._lower_hops([(row.url, row.hops, 0) for row in rows if row.host is not None])
        if self._db.one(ANY_NOFOLLOW)[0]:
            new += self._db.count(UPGRADE, values)
        return Added(new, self._numbers([Url(row.url) for row in rows]))

    def _id(self, url: Url) -> int | None:
        row = self._db.one_or_none("SELECT id FROM url WHERE fp = :fp::uuid", {"fp": fp(url)})
        return row[0] if row else None


def _numbers(rows: Iterable[tuple[str, int, bool]]) -> dict[Url, int]:
    return {Url(url): -number if may_change else number for url, number, may_change in rows}
