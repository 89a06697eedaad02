"""What other sites answered for the URLs that pages link to, and which are to be checked.

Each function is called within a transaction.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from crawler.frontier.database import Database
from crawler.frontier.rows import of
from crawler.model.external import (
    BROKEN,
    BrokenFile,
    CheckedLink,
    DueLink,
    ExternalCounts,
    ExternalRow,
    kind_of,
)
from crawler.model.note import BROKEN_FILES
from crawler.parse.url import Url
from crawler.rules.record import SETTLED

CHUNK: Final = 20_000  # URLs to read at a time

# One that only seeds contain has no `via`: no page leads to it.
_LINKED: Final = f"""
FROM known AS u LEFT JOIN external AS x ON x.id = u.id
WHERE u.run = :run AND u.state = {SETTLED} AND u.outcome = 'unlisted:offsite' AND u.via IS NOT NULL
"""
_DUE: Final = f"{_LINKED} AND coalesce(x.round, 0) <> :round"
_NEXT: Final = f"""
SELECT u.id, u.url, coalesce(x.checked, 0) {_DUE} AND (coalesce(x.checked, 0), u.id) > (:checked, :after)
ORDER BY 3, 1 LIMIT :limit
"""
_STORE: Final = f"""
INSERT INTO external ({", ".join(CheckedLink._fields)}, round)
SELECT {of("r", CheckedLink._fields)}, :round
    FROM @rows({", ".join(CheckedLink._fields)}) JOIN url AS u ON u.id = r.id WHERE true
ON CONFLICT (id) DO UPDATE SET code = excluded.code, status = excluded.status, detail = excluded.detail,
    checked = excluded.checked, round = excluded.round,
    was = CASE WHEN external.round = excluded.round THEN external.was ELSE external.code END
"""
_ONE: Final = f"""
SELECT {of("x", ExternalRow._fields)}
    FROM external AS x JOIN url AS u ON u.id = x.id WHERE u.@key @any(keys, key)
"""
_NOTE: Final = "SELECT value FROM note WHERE key = :key AND run <= :run ORDER BY run DESC LIMIT 1"
_COUNTS: Final = f"SELECT x.code, count(*) {_LINKED} GROUP BY 1"


def due_links(db: Database, round_number: int, after: DueLink | None) -> Sequence[DueLink]:
    """See `ports.reads.DueLinks`."""
    given = {
        "run": db.run,
        "round": round_number,
        "checked": after.checked if after else -1.0,
        "after": after.id if after else 0,
        "limit": CHUNK,
    }
    return [DueLink(number, Url(url), float(at)) for number, url, at in db.all(_NEXT, given)]


def store_answers(db: Database, answers: Sequence[CheckedLink], round_number: int) -> None:
    """See `ports.Record.store_answers`."""
    db.do_rows(_STORE, CheckedLink._fields, answers, round=round_number)


def external(db: Database, url: Url) -> ExternalRow | None:
    """See `ports.reads.ExternalAnswer`."""
    row = db.one_or_none(_ONE, {"keys": db.dialect.keys([url])})
    return ExternalRow._make(row) if row else None


def broken_files(db: Database, undecided: bool) -> Mapping[str, Mapping[str, BrokenFile]]:
    """See `ports.reads.BrokenFiles`."""
    row = db.one_or_none(_NOTE, {"key": BROKEN_FILES.key, "run": db.run})
    known = BROKEN_FILES.read(row[0]) if row else BROKEN_FILES.absent
    return {
        kind: {url: one for url, one in files.items() if undecided or one.line or kind_of(one.code) == BROKEN}
        for kind, files in known.items()
    }


def count_answers(db: Database) -> ExternalCounts:
    """See `ports.reads.CountAnswers`."""
    codes = dict(db.all(_COUNTS, {"run": db.run}))
    unchecked = codes.pop(None, 0)
    return ExternalCounts(codes, unchecked)
