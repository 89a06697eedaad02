"""The publications of the SQLite frontier: the note of a new one, and the failing pages that stay listed since."""

import json

from crawler.frontier.publications import last_publication
from crawler.frontier.sqlite.database import Database
from crawler.model.rows import PublicationRow
from crawler.rules.record import patience_by_code

KEEP = """
UPDATE url SET outcome = CASE WHEN published >= :last AND :now - failing < k.seconds THEN k.kept ELSE k.failed END
FROM (
    SELECT value ->> 0 AS failed, value ->> 1 AS kept, value ->> 2 AS seconds FROM json_each(:patience)
) AS k
WHERE url.run = :run AND url.state = 3
AND url.outcome IN (SELECT code.value FROM json_each(:patience) AS row, json_each(row.value) AS code)
AND url.outcome IN (k.failed, k.kept)
"""

_VALUES = PublicationRow._fields
PUBLISH = f"""
INSERT INTO publication (run, fingerprint, at, {", ".join(_VALUES)})
SELECT number, fingerprint, :now, {", ".join(f":{value}" for value in _VALUES)} FROM run WHERE number = :run
"""

# URLs added, removed, or listed with another date since the last publication.
SINCE = """
SELECT count(*) FILTER (WHERE now AND NOT before), count(*) FILTER (WHERE before AND NOT now),
    count(*) FILTER (WHERE before AND now AND lastmod IS NOT was_lastmod)
FROM (
    SELECT run = :run AND state = 3 AND (outcome = 'listed' OR outcome LIKE 'kept:%') IS TRUE AS now,
        published IS :last AS before, lastmod, was_lastmod
    FROM url WHERE run = :run OR published = :last
)
"""

MARK_PUBLISHED = """
UPDATE url SET published = :number
WHERE run = :run AND state = 3 AND (outcome = 'listed' OR outcome LIKE 'kept:%')
"""


def mark_published(db: Database, published: PublicationRow) -> None:
    """See `ports.Runs.mark_published`."""
    last = db.one("SELECT max(number) FROM publication")[0]
    if last is not None:
        added, removed, changed = db.one(SINCE, {"run": db.run, "last": last})
        published = published._replace(added=added, removed=removed, changed=changed)
    number = db.insert(PUBLISH, published._asdict() | {"run": db.run, "now": db.now()})
    db.do(MARK_PUBLISHED, {"run": db.run, "number": number})


def keep_failing_pages(db: Database, keep_failing: float) -> None:
    """See `ports.Record.keep_failing`. `keep_failing`: seconds."""
    last = last_publication(db)
    if last is not None:
        seconds = list(set(patience_by_code(keep_failing).values()))
        given = {"run": db.run, "last": last, "now": db.now(), "patience": json.dumps(seconds)}
        db.do(KEEP, given)
