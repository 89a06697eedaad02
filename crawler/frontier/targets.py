"""What links lead to, by id: fewer columns than of a page, as there may be many links for each URL.

Called within a transaction.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from crawler.frontier.database import Database
from crawler.frontier.queries import REDIRECT, STATUS
from crawler.model.rows import TargetRow
from crawler.rules.record import SETTLED

_OF: Final = f"""
SELECT u.id, u.url, CASE WHEN u.state = {SETTLED} THEN coalesce(u.outcome, '') ELSE '' END,
    coalesce({STATUS}, x.status), x.code, coalesce({REDIRECT}, 0)
FROM known AS u LEFT JOIN external AS x ON x.id = u.id WHERE u.id @any(ids)
"""


def targets_of(db: Database, ids: Sequence[int]) -> Mapping[int, TargetRow]:
    """See `ports.reads.TargetsOf`."""
    rows = db.ask(_OF, {"ids": db.dialect.all_of(ids)}, packed=True)()
    return {row[0]: TargetRow._make(row[1:]) for row in rows}
