"""Opens and shuts visits of known URLs: writes to `visit` and `page` what another module has decided.

A visit that somebody leases or waits for meanwhile is left as it is.
"""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from crawler.frontier.database import Database
from crawler.rules.record import HELD, PLANNED, QUEUED, SETTLED

ANY_DEPTH: Final = (1 << 31) - 1


class MovedVisit(NamedTuple):
    """A URL that is to be visited, or is not to be visited any more."""

    id: int
    host: int | None
    depth: int
    trap: int | None
    sample: int | None
    state: int
    outcome: str | None = None
    detail: str | None = None
    settled: float | None = None


_FREE: Final = f"visit.state IN ({PLANNED}, {HELD}, {QUEUED})"
_OPEN: Final = f"""
INSERT INTO visit (id, host, depth, trap, sample, state, reopened)
SELECT id, host, depth, trap, sample, state, :reopened
    FROM @rows({", ".join(MovedVisit._fields)}) WHERE state <> {SETTLED}
ON CONFLICT (id) DO UPDATE SET
    host = excluded.host, depth = excluded.depth, trap = excluded.trap, sample = excluded.sample,
        state = excluded.state
WHERE {_FREE}
"""
_SHUT: Final = f"DELETE FROM visit WHERE id @any(ids) AND {_FREE}"
_JUDGE_OPEN: Final = f"""
UPDATE page SET outcome = r.outcome, detail = r.detail, settled = NULL, attempts = 0
FROM @rows({", ".join(MovedVisit._fields)}) WHERE page.id = r.id AND r.state <> {SETTLED}
"""
_JUDGE_SHUT: Final = f"""
INSERT INTO page (id, outcome, detail, settled)
SELECT id, outcome, detail, settled FROM @rows({", ".join(MovedVisit._fields)}) WHERE state = {SETTLED}
ON CONFLICT (id) DO UPDATE SET
    outcome = excluded.outcome, detail = excluded.detail, settled = coalesce(excluded.settled, page.settled),
    facts_run = NULL
"""

_RELEASE: Final = f"UPDATE visit SET state = {QUEUED} WHERE id @any(ids)"
_RELEASED: Final = "UPDATE url SET round = :round WHERE id @any(ids)"


def release(db: Database, ids: Sequence[int], round_: int) -> int:
    """Make held visits due, in a round; how many."""
    if ids:
        given = {"ids": db.dialect.all_of(ids)}
        db.do(_RELEASE, given)
        db.do(_RELEASED, given | {"round": round_})
    return len(ids)


def move(db: Database, moved: Sequence[Any], reopened: int = 0) -> int:
    """Open or shut the visits of `MovedVisit`; how many are due. `reopened`: 1: after all others."""
    if not moved:
        return 0
    rows = db.dialect.given(MovedVisit._fields, moved)
    shut = [row[0] for row in moved if row[5] == SETTLED]
    if len(shut) < len(moved):
        db.do(_JUDGE_OPEN, rows)
        db.do(_OPEN, rows | {"reopened": reopened})
    if shut:
        db.do(_JUDGE_SHUT, rows)
        db.do(_SHUT, {"ids": db.dialect.all_of(shut)})
    return sum(row[5] == QUEUED for row in moved)
