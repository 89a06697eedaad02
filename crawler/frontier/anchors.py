"""What links with a finding say, and where they stand. Rows of a page are replaced together.

Each function is called within a transaction.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from crawler.frontier.database import Database
from crawler.frontier.rows import of
from crawler.model.rows import AnchorRow

_FORGET: Final = "DELETE FROM anchor WHERE id @any(ids)"
_STORE: Final = f"""
INSERT INTO anchor ({", ".join(AnchorRow._fields)})
SELECT {of("r", AnchorRow._fields)}
    FROM @rows({", ".join(AnchorRow._fields)}) JOIN url AS u ON u.id = r.id WHERE true
"""
_OF: Final = f"SELECT {', '.join(AnchorRow._fields)} FROM anchor WHERE id @any(ids)"


def store(db: Database, found: Sequence[AnchorRow]) -> None:
    """See `ports.Record.store_anchors`."""
    db.do(_FORGET, {"ids": db.dialect.all_of(sorted({row.id for row in found}))})
    db.do_rows(_STORE, AnchorRow._fields, found)


def of_pages(db: Database, ids: Sequence[int]) -> Mapping[tuple[int, int], AnchorRow]:
    """See `ports.reads.AnchorsOf`."""
    rows = map(AnchorRow._make, db.all(_OF, {"ids": db.dialect.all_of(ids)}))
    return {(row.id, row.target): row for row in rows}
