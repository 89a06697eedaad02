"""Adds discovered URLs to the SQLite frontier: the statements of `frontier.discovery`, and the rows of new URLs."""

import json
from collections.abc import Sequence
from typing import Any

from crawler.frontier import discovery
from crawler.frontier.discovery import Statements
from crawler.frontier.links import Added
from crawler.frontier.rows import FoundRow
from crawler.frontier.sqlite.database import Database
from crawler.frontier.sqlite.hosts import HostTable
from crawler.frontier.sqlite.patterns import PatternTable
from crawler.frontier.sqlite.rows import FOUND
from crawler.frontier.sqlite.seeds import SeedTable
from crawler.parse.url import Url

ADD = f"""
INSERT INTO url ({", ".join(FoundRow._fields)}, run, seed, found)
SELECT {", ".join(FoundRow._fields)}, :run, :seed, :round
FROM {FOUND} WHERE true
ON CONFLICT (url) DO UPDATE SET
    run = excluded.run, state = excluded.state, host = excluded.host, depth = excluded.depth,
    hops = excluded.hops, via = excluded.via, seed = excluded.seed, attempts = 0, reopened = 0,
    trap = excluded.trap, sample = excluded.sample, found = excluded.found, round = NULL,
    detail = CASE WHEN excluded.outcome IS NULL THEN detail ELSE excluded.detail END,
    was = outcome, was_lastmod = lastmod,
    outcome = coalesce(excluded.outcome, outcome), settled = coalesce(excluded.settled, settled),
    facts_run = CASE WHEN excluded.outcome IS NULL THEN facts_run END,
    -- The content of the previous run becomes the known content if that run was published. Content without a date
    -- does not replace what is known: the site may have shown error pages, and the earlier content may return. A page
    -- that fails next keeps its published date, whatever a refused run found.
    published_content = CASE WHEN PUBLISHED THEN content ELSE published_content END,
    dated_content = CASE WHEN PUBLISHED AND (lastmod IS NOT NULL OR dated_lastmod IS NULL) THEN content ELSE dated_content END,
    dated_lastmod = CASE WHEN PUBLISHED THEN coalesce(lastmod, dated_lastmod) ELSE dated_lastmod END,
    lastmod = CASE WHEN url.run IN CONCLUDED OR published_content IS NULL THEN lastmod
        WHEN published_content = dated_content THEN dated_lastmod END,
    dated_header = CASE
        WHEN PUBLISHED AND content = dated_content THEN coalesce(header, dated_header)
        WHEN PUBLISHED AND (lastmod IS NOT NULL OR dated_lastmod IS NULL) THEN header
        ELSE dated_header END
WHERE url.run < excluded.run
RETURNING id, url
""".replace("PUBLISHED", "(outcome = 'listed' AND content IS NOT NULL AND url.run IN CONCLUDED)").replace(
    "CONCLUDED", "(SELECT number FROM run WHERE status = 'concluded')"
)

UPGRADE = f"""
UPDATE url SET
    state = r.state, host = r.host, depth = r.depth, hops = r.hops, via = r.via, outcome = r.outcome, detail = r.detail,
    trap = r.trap, sample = r.sample, found = :round
FROM {FOUND} AS r
WHERE url.url = r.url AND url.run = :run AND url.state = 3 AND url.outcome = 'unlisted:nofollow'
AND r.outcome IS NOT 'unlisted:nofollow'
"""

# A URL that was found at a smaller depth than recorded (by a redirect), and was not fetched yet.
LOWER_DEPTHS = f"""
UPDATE url SET depth = r.depth, hops = min(url.hops, r.hops), via = r.via,
    state = iif(url.state = 3, r.state, url.state), host = coalesce(url.host, r.host),
    outcome = iif(url.state = 3, r.outcome, url.outcome), detail = iif(url.state = 3, r.detail, url.detail),
    trap = coalesce(url.trap, r.trap), sample = coalesce(url.sample, r.sample)
FROM {FOUND} AS r
WHERE url.url = r.url AND url.run = :run AND r.depth < url.depth
AND (url.state IN (-1, 0) OR (url.state = 3 AND url.outcome = 'unlisted:depth'))
"""

# Paths to known URLs, and to their redirect targets, by fewer redirects. A URL that failed for too many redirects is due again.
# A path is [URL, redirects, redirects that were recorded when the URL was fetched].
LOWER_HOPS = """
WITH RECURSIVE fewer (id, hops) AS (
    SELECT u.id, min(w.value ->> 1, u.hops) FROM json_each(:ways) AS w JOIN url AS u ON u.url = w.value ->> 0
    WHERE u.run = :run AND (w.value ->> 1 < u.hops OR w.value ->> 2 > u.hops)
    UNION ALL
    SELECT t.id, f.hops + 1 FROM fewer AS f JOIN url AS s ON s.id = f.id JOIN url AS t ON t.url = s.detail
    WHERE s.state = 3 AND s.outcome = 'moved' AND t.run = :run AND t.hops > f.hops + 1
)
UPDATE url SET hops = f.hops, {reopened}
FROM (SELECT id, min(hops) AS hops FROM fewer GROUP BY id) AS f
WHERE url.id = f.id
""".format(
    reopened=", ".join(
        f"{column} = iif(url.state = 3 AND url.outcome = 'failed:redirects', {value}, url.{column})"
        for column, value in {
            "state": "0",
            "outcome": "NULL",
            "detail": "NULL",
            "settled": "NULL",
            "attempts": "0",
        }.items()
    )
)

# A URL that a page names as canonical or redirects to, and that was not fetched yet, is moved to the pattern of such URLs.
NAMED = f"""
UPDATE url SET trap = r.trap, sample = r.sample, state = r.state,
    outcome = coalesce(r.outcome, iif(url.state = 3, NULL, url.outcome)), detail = r.detail
FROM {FOUND} AS r
WHERE url.url = r.url AND url.run = :run AND url.trap IS NOT NULL AND url.trap <> r.trap
AND (url.state = -1 OR (url.state = 3 AND url.outcome = 'unlisted:trap' AND url.attempts = 0))
"""

# URLs to fetch now, because the site has grown or a shorter path was found.
LIST_FILTERED = """
SELECT u.url, u.depth, v.url, u.hops FROM url AS u INDEXED BY sqlite_autoindex_url_1 LEFT JOIN url AS v ON v.id = u.via
WHERE u.url > :after AND u.run = :run AND u.state = 3 AND u.host IS NULL
AND u.outcome IN ('unlisted:offsite', 'unlisted:excluded', 'unlisted:trap') ORDER BY u.url LIMIT :limit
"""

ADMIT = f"""
UPDATE url SET state = r.state, host = r.host, outcome = r.outcome, detail = r.detail, settled = r.settled,
    trap = r.trap, sample = r.sample, found = :round
FROM {FOUND} AS r
WHERE url.url = r.url AND url.run = :run AND url.state = 3 AND url.host IS NULL
"""

# The first other page that links to a URL found in a seed.
LINKED = f"""
UPDATE url SET via = r.via
FROM {FOUND} AS r
WHERE url.url = r.url AND url.run = :run AND url.via IS NULL AND url.id <> r.via
AND r.outcome IS NOT 'unlisted:nofollow'
"""

# Whether a further link could change the row: the URL is known only from nofollow links, from a seed, or by redirects.
MAY_CHANGE = "u.via IS NULL OR u.hops > 0 OR (u.state = 3 AND u.outcome IS 'unlisted:nofollow')"
KNOWN = f"""
SELECT json_group_array(json_array(u.url, u.id, {MAY_CHANGE}))
FROM json_each(:urls) AS j JOIN url AS u ON u.url = j.value WHERE u.run = :run
"""

ANY_NOFOLLOW = "SELECT EXISTS (SELECT 1 FROM url WHERE outcome = 'unlisted:nofollow')"

STATEMENTS = Statements(lower_depths=LOWER_DEPTHS, named=NAMED, admit=ADMIT, list_filtered=LIST_FILTERED)


class Discovery(discovery.Discovery):
    """Adds URLs."""

    def __init__(self, db: Database, hosts: HostTable, patterns: PatternTable, seeds: SeedTable) -> None:
        super().__init__(db, hosts, patterns, seeds, STATEMENTS)

    def _given(self, rows: Sequence[FoundRow]) -> dict[str, Any]:
        return {"rows": json.dumps(rows), "run": self._db.run, "round": self._patterns.round}

    def _lower_hops(self, paths: Sequence[tuple[str, int, int]]) -> None:
        if paths:
            self._db.do(LOWER_HOPS, {"ways": json.dumps(paths), "run": self._db.run})

    def _numbers(self, urls: Sequence[Url]) -> dict[Url, int]:
        if not urls:
            return {}
        given = {"urls": json.dumps(urls), "run": self._db.run}
        rows = json.loads(self._db.one(KNOWN, given)[0])
        return {url: -number if may_change else number for url, number, may_change in rows}

    def _insert_all(self, rows: Sequence[FoundRow], seed: int | None) -> Added:
        if not rows:
            return Added(0, {})
        given = self._given(rows)
        ids = {url: number for number, url in self._db.all(ADD, given | {"seed": seed})}
        new = len(ids)
        self._db.do("UPDATE run SET discovered = discovered + ? WHERE number = ?", (new, self._db.run))
        if new == len(rows):
            return Added(
                new, {Url(row.url): -ids[row.url] if _may_change(row) else ids[row.url] for row in rows}
            )
        self._db.do(LINKED, given)
        self._lower_hops([(row.url, row.hops, 0) for row in rows if row.host is not None])
        if self._db.one(ANY_NOFOLLOW)[0]:
            new += self._db.do(UPGRADE, given)
        return Added(new, self._numbers([Url(row.url) for row in rows]))

    def _id(self, url: Url) -> int | None:
        row = self._db.one_or_none("SELECT id FROM url WHERE url = ?", (url,))
        return row[0] if row else None


def _may_change(row: FoundRow) -> bool:
    """Whether a further link may change a new row, as in `KNOWN`."""
    return row.via is None or row.hops > 0 or row.outcome == "unlisted:nofollow"
