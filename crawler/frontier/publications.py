"""The publications of a state: what is read of them, and the note of a delivery. For all backends."""

from collections.abc import Mapping
from typing import Final

from crawler.frontier.rows import of
from crawler.frontier.tables import Tables
from crawler.model.rows import PublicationRow

# The last publication with the settings of this run; with any settings if there is none.
_LAST: Final = """
SELECT number FROM publication
ORDER BY fingerprint = (SELECT fingerprint FROM run WHERE number = :run) DESC NULLS LAST, number DESC LIMIT 1
"""
_NEWEST: Final = (
    f"SELECT {of('p', PublicationRow._fields)} FROM publication AS p ORDER BY p.number DESC LIMIT 1"
)
_CHANGED: Final = """
SELECT CASE WHEN run = :run AND state = 3 THEN outcome ELSE '' END, count(*) FROM {urls} WHERE published >= :last GROUP BY 1
"""
_DELIVERED: Final = """
UPDATE publication SET delivered = CASE WHEN number = (SELECT max(number) FROM publication) THEN CAST(:delivered AS text) END
"""


def last_publication(db: Tables) -> int | None:
    """The number of the publication that this run is compared with."""
    row = db.one_or_none(_LAST, {"run": db.run})
    return row[0] if row else None


def newest(db: Tables) -> PublicationRow | None:
    """See `ports.Runs.last_publication`."""
    row = db.one_or_none(_NEWEST)
    return PublicationRow(*row) if row else None


def mark_delivered(db: Tables, delivered: str) -> None:
    """See `ports.Runs.mark_delivered`."""
    db.do(_DELIVERED, {"delivered": delivered})


def published_outcomes(db: Tables) -> Mapping[str, int]:
    """See `ports.Record.published_outcomes`."""
    last = last_publication(db)
    if last is None:
        return {}
    return dict(db.all(_CHANGED.format(urls=db.urls), {"run": db.run, "last": last}))
