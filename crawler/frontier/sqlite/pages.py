"""Reads the record of pages in the SQLite frontier: single URLs, lists and counts."""

from collections.abc import Sequence

from crawler.frontier import records
from crawler.frontier.sqlite.database import Database
from crawler.frontier.tables import CHUNK
from crawler.model.facts import Entry
from crawler.model.survey import Survey
from crawler.model.url_record import UrlRecord
from crawler.parse.url import Url

RECORD = f"{records.RECORD} WHERE u.url = :url".format(urls="url")

LINKING = """
SELECT count(*) FROM url AS p WHERE p.run = :run AND EXISTS
    (SELECT 1 FROM json_each(p.links) WHERE key >= coalesce(p.named, 0) AND abs(value) = (SELECT id FROM url WHERE url = :url))
"""

ENTRIES = """
SELECT url, lastmod FROM url INDEXED BY sqlite_autoindex_url_1
WHERE url > :after AND url < :below AND run = :run AND state = 3 AND (outcome = 'listed' OR outcome LIKE 'kept:%') ORDER BY url LIMIT :limit
"""

KNOWN_HERE = """
SELECT url FROM url INDEXED BY sqlite_autoindex_url_1
WHERE url > :after AND run = :run AND outcome IS NOT 'unlisted:offsite' ORDER BY url LIMIT :limit
"""

# The origin of a detail that is a URL: the part before the first slash of its path.
CANONICAL_ORIGINS = """
SELECT substr(detail, 1, instr(substr(detail, 9), '/') + 7) AS origin, count(*) FROM url
WHERE run = :run AND state = 3 AND outcome = 'unlisted:canonical' AND substr(detail, 1, length(:first)) <> :first
GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT 1
"""


def record(db: Database, url: Url) -> UrlRecord | None:
    """See `ports.Record.record`."""
    row = db.by_name(RECORD, {"url": url})
    return records.url_record(url, row) if row else None


def count_linking(db: Database, url: Url) -> int:
    """See `ports.Record.count_linking`."""
    return db.count(LINKING, {"url": url, "run": db.run})


def entries(db: Database, after: str, below: str) -> Sequence[Entry]:
    """The next chunk of `ports.Record.entries`: after the URL `after`, sorted by URL."""
    rows = db.all(ENTRIES, {"after": after, "below": below, "run": db.run, "limit": CHUNK})
    return [records.entry(row) for row in rows]


def known_urls(db: Database, after: str) -> Sequence[Url]:
    """The next chunk of `ports.Record.known_urls`: after the URL `after`, sorted by URL."""
    return records.urls(db.all(KNOWN_HERE, {"after": after, "run": db.run, "limit": CHUNK}))


def survey(db: Database, site: str) -> Survey:
    """See `ports.Record.survey`."""
    return records.survey(db, site, CANONICAL_ORIGINS)
