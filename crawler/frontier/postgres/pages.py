"""Reads the record of pages in the PostgreSQL frontier: single URLs, lists and counts."""

from crawler.frontier import records
from crawler.frontier.postgres.database import Database
from crawler.frontier.postgres.rows import fp
from crawler.model.survey import Survey
from crawler.model.url_record import UrlRecord
from crawler.parse.url import Url

RECORD = f"{records.RECORD} WHERE u.fp = :fp::uuid".format(urls="known")

LINKING = """
SELECT count(*) FROM url AS u JOIN page AS p ON p.id = u.id, (SELECT id FROM url WHERE fp = :fp::uuid) AS t
WHERE u.run = :run AND (t.id = ANY (p.links[coalesce(p.named, 0) + 1 :]) OR -t.id = ANY (p.links[coalesce(p.named, 0) + 1 :]))
"""

ENTRIES = """
SELECT url, lastmod FROM known
WHERE url >= :first AND url < :below AND run = :run AND state = 3 AND (outcome = 'listed' OR outcome LIKE 'kept:%') ORDER BY url
"""

KNOWN_HERE = """
SELECT url FROM known WHERE run = :run AND outcome IS DISTINCT FROM 'unlisted:offsite' ORDER BY url
"""

# The origin of a detail that is a URL: the part before the first slash of its path.
CANONICAL_ORIGINS = """
SELECT substr(detail, 1, strpos(substr(detail, 9), '/') + 7) AS origin, count(*) FROM known
WHERE run = :run AND state = 3 AND outcome = 'unlisted:canonical' AND NOT starts_with(detail, :first)
GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT 1
"""


def record(db: Database, url: Url) -> UrlRecord | None:
    """See `ports.Record.record`."""
    row = db.by_name(RECORD, {"fp": fp(url)})
    return records.url_record(url, row) if row else None


def count_linking(db: Database, url: Url) -> int:
    """See `ports.Record.count_linking`."""
    return db.count(LINKING, {"fp": fp(url), "run": db.run})


def survey(db: Database, site: str) -> Survey:
    """See `ports.Record.survey`."""
    return records.survey(db, site, CANONICAL_ORIGINS)
