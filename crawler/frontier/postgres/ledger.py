"""The ledger of submissions in the PostgreSQL frontier: a mark for each URL that engines were told, and the submissions."""

from collections.abc import Sequence
from typing import Final

from crawler.frontier.postgres.database import Database
from crawler.frontier.postgres.rows import fp
from crawler.model.ledger import LedgerRow

_LISTED: Final = "(run = :run AND state = 3 AND (outcome = 'listed' OR outcome LIKE 'kept:%')) IS TRUE"
_MARK: Final = "coalesce(content, '') || '@' || coalesce(lastmod::text, '')"

RECORD = """
INSERT INTO submission (at, run, base, reading, urls)
SELECT :now::double precision, number,
    coalesce(:base::text, (SELECT base FROM submission ORDER BY number DESC LIMIT 1)), reading, :urls::bigint
FROM run WHERE number = :run
"""

OPEN = f"""
UPDATE page SET submitted = CASE WHEN :noted::boolean THEN k.mark END
FROM (SELECT id, submitted AS before, CASE WHEN {_LISTED} THEN {_MARK} END AS mark FROM known) AS k
WHERE k.id = page.id AND (k.before IS NOT NULL OR k.mark IS NOT NULL)
"""

ROWS = f"""
SELECT url, submitted, now, CASE WHEN found THEN outcome ELSE '' END FROM (
    SELECT url, submitted, outcome, run = :run AND state = 3 AS found, CASE WHEN {_LISTED} THEN {_MARK} END AS now
    FROM known WHERE submitted IS NOT NULL OR run = :run
) AS page WHERE submitted IS DISTINCT FROM now OR (:unchanged::boolean AND now IS NOT NULL) ORDER BY url
"""

ENTER = """
UPDATE page SET submitted = r.mark FROM unnest(:fps::uuid[], :marks::text[]) AS r(fp, mark), url AS u
WHERE u.fp = r.fp AND page.id = u.id
"""


def open_ledger(db: Database, base: str, noted: bool) -> int:
    """See `ports.Ledger.open_ledger`."""
    db.do(OPEN, {"run": db.run, "noted": noted})
    db.do(RECORD, {"run": db.run, "now": db.now(), "base": base, "urls": 0})
    return db.count("SELECT count(*) FROM page WHERE submitted IS NOT NULL")


def enter(db: Database, entered: Sequence[LedgerRow], sent: int | None) -> None:
    """See `ports.Ledger.enter`."""
    db.do(ENTER, {"fps": [fp(row.url) for row in entered], "marks": [row.now for row in entered]})
    if sent is not None:
        db.do(RECORD, {"run": db.run, "now": db.now(), "base": None, "urls": sent})
