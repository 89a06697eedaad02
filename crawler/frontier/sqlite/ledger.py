"""The ledger of submissions in the SQLite frontier: a mark for each URL that engines were told, and the submissions."""

import json
from collections.abc import Sequence
from typing import Final

from crawler.frontier import records
from crawler.frontier.sqlite.database import Database
from crawler.frontier.tables import CHUNK
from crawler.model.ledger import LedgerRow

_LISTED: Final = "run = :run AND state = 3 AND (outcome = 'listed' OR outcome LIKE 'kept:%')"
_MARK: Final = "coalesce(content, '') || '@' || coalesce(lastmod, '')"

RECORD = """
INSERT INTO submission (at, run, base, reading, urls)
SELECT :now, number, coalesce(:base, (SELECT base FROM submission ORDER BY number DESC LIMIT 1)), reading, :urls
FROM run WHERE number = :run
"""

OPEN = f"UPDATE url SET submitted = CASE WHEN :noted AND {_LISTED} THEN {_MARK} END WHERE submitted IS NOT NULL OR {_LISTED}"

ROWS = f"""
SELECT url, submitted, now, CASE WHEN found THEN outcome ELSE '' END FROM (
    SELECT url, submitted, outcome, run = :run AND state = 3 AS found, CASE WHEN {_LISTED} THEN {_MARK} END AS now
    FROM url INDEXED BY sqlite_autoindex_url_1 WHERE url > :after AND (submitted IS NOT NULL OR run = :run)
) WHERE submitted IS NOT now OR (:unchanged AND now IS NOT NULL) ORDER BY url LIMIT :limit
"""

ENTER = """
UPDATE url SET submitted = r.value ->> 1 FROM json_each(:rows) AS r WHERE url.url = r.value ->> 0
"""


def open_ledger(db: Database, base: str, noted: bool) -> int:
    """See `ports.Ledger.open_ledger`."""
    db.do(OPEN, {"run": db.run, "noted": noted})
    db.do(RECORD, {"run": db.run, "now": db.now(), "base": base, "urls": 0})
    return db.count("SELECT count(*) FROM url WHERE submitted IS NOT NULL")


def rows(db: Database, after: str, unchanged: bool) -> Sequence[LedgerRow]:
    """The next chunk of `ports.Ledger.ledger_rows`, after the URL `after`."""
    given = {"run": db.run, "after": after, "unchanged": unchanged, "limit": CHUNK}
    return [records.ledger_row(row) for row in db.all(ROWS, given)]


def enter(db: Database, entered: Sequence[LedgerRow], sent: int | None) -> None:
    """See `ports.Ledger.enter`."""
    db.do(ENTER, {"rows": json.dumps([[row.url, row.now] for row in entered])})
    if sent is not None:
        db.do(RECORD, {"run": db.run, "now": db.now(), "base": None, "urls": sent})
