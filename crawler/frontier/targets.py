"""What links lead to, with fewer columns than of a page, as there may be many of them; what those with a
finding say, and where they stand; and what was filtered.

Called within a transaction.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from crawler.frontier.database import CHUNK, Database
from crawler.frontier.queries import REDIRECT, STATUS
from crawler.frontier.rows import of
from crawler.model.rows import AnchorRow, TargetRow
from crawler.model.visit import Visit
from crawler.parse.url import Url
from crawler.rules.record import SETTLED

_OF: Final = f"""
SELECT u.id, u.url, CASE WHEN u.state = {SETTLED} THEN coalesce(u.outcome, '') ELSE '' END,
    coalesce({STATUS}, x.status), x.code, coalesce({REDIRECT}, 0)
FROM known AS u LEFT JOIN external AS x ON x.id = u.id WHERE u.id @any(ids)
"""
FILTERED: Final = f"""
SELECT u.url, u.depth, v.url, u.hops FROM known AS u LEFT JOIN url AS v ON v.id = u.via
WHERE u.url > :after AND u.run = :run AND u.state = {SETTLED} AND u.host IS NULL
AND u.outcome IN ('unlisted:offsite', 'unlisted:excluded', 'unlisted:trap') ORDER BY u.url LIMIT :limit
"""
_FORGET_ANCHORS: Final = "DELETE FROM anchor WHERE id @any(ids)"
_STORE_ANCHORS: Final = f"""
INSERT INTO anchor ({", ".join(AnchorRow._fields)})
SELECT {of("r", AnchorRow._fields)}
    FROM @rows({", ".join(AnchorRow._fields)}) JOIN url AS u ON u.id = r.id WHERE true
"""
_ANCHORS: Final = f"SELECT {', '.join(AnchorRow._fields)} FROM anchor WHERE id @any(ids)"


def targets_of(db: Database, ids: Sequence[int]) -> Mapping[int, TargetRow]:
    """See `ports.reads.TargetsOf`."""
    rows = db.ask(_OF, {"ids": db.dialect.all_of(ids)}, packed=True)()
    return {row[0]: TargetRow._make(row[1:]) for row in rows}


def list_filtered(db: Database, after: str) -> Sequence[Visit]:
    """See `ports.reads.Filtered`."""
    rows = db.all(FILTERED, {"run": db.run, "after": after, "limit": CHUNK})
    return [Visit(Url(url), depth, Url(via) if via else None, hops) for url, depth, via, hops in rows]


def store_anchors(db: Database, found: Sequence[AnchorRow]) -> None:
    """See `ports.Record.store_anchors`. Rows of a page are replaced together."""
    db.do(_FORGET_ANCHORS, {"ids": db.dialect.all_of(sorted({row.id for row in found}))})
    db.do_rows(_STORE_ANCHORS, AnchorRow._fields, found)


def anchors_of(db: Database, ids: Sequence[int]) -> Mapping[tuple[int, int], AnchorRow]:
    """See `ports.reads.AnchorsOf`."""
    rows = map(AnchorRow._make, db.all(_ANCHORS, {"ids": db.dialect.all_of(ids)}))
    return {(row.id, row.target): row for row in rows}
