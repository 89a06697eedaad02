"""The ledger of submissions: a mark for each URL that engines were told, and the submissions."""

from collections.abc import Sequence
from typing import Any, Final

from crawler.frontier.database import Database
from crawler.frontier.queries import OF_SITEMAP, Stream
from crawler.model.ledger import LedgerHead, LedgerRow
from crawler.parse.url import Url
from crawler.rules.record import SETTLED

_MARK: Final = "coalesce(version, '') || '@' || coalesce(CAST(lastmod AS text), '')"

RECORD = """
INSERT INTO submission (at, run, base, reading, urls)
SELECT CAST(:now AS double precision), number,
    coalesce(CAST(:base AS text), (SELECT base
        FROM submission ORDER BY number DESC LIMIT 1)), reading, CAST(:urls AS bigint)
FROM run WHERE number = :run
"""

OPEN = f"""
UPDATE page SET submitted = CASE WHEN CAST(:noted AS boolean) THEN k.mark END
FROM (SELECT id, submitted AS before, CASE WHEN {OF_SITEMAP} THEN {_MARK} END AS mark FROM known) AS k
WHERE k.id = page.id AND (k.before IS NOT NULL OR k.mark IS NOT NULL)
"""

ROWS = Stream(
    f"""
SELECT u.url, u.submitted, u.now, CASE WHEN u.found THEN u.outcome ELSE '' END FROM (
    SELECT url, submitted, outcome, run = :run
        AND state = {SETTLED} AS found, CASE WHEN {OF_SITEMAP} THEN {_MARK} END AS now
    FROM known WHERE submitted IS NOT NULL OR run = :run
) AS u
WHERE (u.submitted IS DISTINCT FROM u.now
    OR (CAST(:unchanged AS boolean) AND u.now IS NOT NULL))
"""
)

ENTER = """
UPDATE page SET submitted = r.mark FROM @rows(@key, mark), url AS u WHERE u.@key = r.@key AND page.id = u.id
"""

_HEAD: Final = """
SELECT s.base, s.reading = r.reading,
    r.fingerprint = (SELECT p.fingerprint
        FROM publication AS p WHERE p.run = s.run ORDER BY p.number DESC LIMIT 1)
FROM submission AS s LEFT JOIN run AS r ON r.number = :run
ORDER BY s.number DESC LIMIT 1
"""


def open_ledger(db: Database, base: str, noted: bool) -> int:
    """See `ports.Ledger.open_ledger`."""
    db.do(OPEN, {"run": db.run, "noted": noted})
    db.do(RECORD, {"run": db.run, "now": db.now(), "base": base, "urls": 0})
    return db.count("SELECT count(*) FROM page WHERE submitted IS NOT NULL")


def enter(db: Database, entered: Sequence[LedgerRow], sent: int | None) -> None:
    """See `ports.Ledger.enter`."""
    db.do_rows(ENTER, (db.dialect.column, "mark"), [(db.dialect.key_of(row.url), row.now) for row in entered])
    if sent is not None:
        db.do(RECORD, {"run": db.run, "now": db.now(), "base": None, "urls": sent})


def ledger(db: Database) -> LedgerHead | None:
    """See `ports.reads.LedgerState`."""
    row = db.one_or_none(_HEAD, {"run": db.run})
    return LedgerHead(row[0], bool(row[1]), row[2] is None or bool(row[2])) if row else None


def ledger_row(row: tuple[Any, ...]) -> LedgerRow:
    """A row of the ledger: the URL, its mark, the mark that it should have, and its outcome."""
    url, submitted, now, outcome = row
    return LedgerRow(Url(url), submitted, now, outcome or "")
