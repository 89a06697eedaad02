"""Pages whose canonical is ignored: they are listed after all. `rules.canonicals` decides which."""

from collections.abc import Callable, Iterable
from typing import Final

from crawler.frontier.database import CHUNK, Database
from crawler.frontier.duplicates import UNLIST
from crawler.model.outcome import Unlisted, code
from crawler.model.reasons import Why
from crawler.parse.url import Url
from crawler.rules.canonicals import End, Naming, ignored
from crawler.rules.record import LISTED, SETTLED

REDIRECTS: Final = 20  # from a canonical on, that are looked up

_CANONICAL: Final = code(Unlisted(Why.CANONICAL))
NAMING: Final = f"""
SELECT u.id, u.url, u.detail FROM known AS u
WHERE u.id > :after AND u.run = :run AND u.state = {SETTLED} AND u.outcome = '{_CANONICAL}'
ORDER BY u.id LIMIT :limit
"""
ENDS: Final = f"""
SELECT u.url, u.outcome, u.detail FROM known AS u
WHERE u.@key @any(keys, key) AND u.run = :run AND u.state = {SETTLED}
AND (u.outcome LIKE 'failed:%' OR u.outcome IN ('moved', '{_CANONICAL}'))
"""


def ignore_canonicals(db: Database, listable: Callable[[Url], bool]) -> int:
    """See `ports.Record.ignore_canonicals`."""
    pages, ends = list[Naming](), dict[str, End]()
    for chunk in db.chunks(NAMING, {"run": db.run}):
        found = _ends(db, {target for _, _, target in chunk})
        ends |= found
        pages += [Naming(*row) for row in chunk if row[2] in found]
    _follow(db, ends)
    targets = {page.id: page for page in pages}
    rows = [
        (number, LISTED, f"{targets[number].target}: {why}")
        for number, why in sorted(ignored(pages, ends).items())
        if listable(Url(targets[number].url))
    ]
    for at in range(0, len(rows), CHUNK):
        db.do_rows(UNLIST, ("id", "outcome", "detail"), rows[at : at + CHUNK])
    return len(rows)


def _ends(db: Database, urls: Iterable[str]) -> dict[str, End]:
    rows = db.all(ENDS, {"keys": db.dialect.keys(set(map(Url, urls))), "run": db.run})
    return {url: End(outcome, detail if outcome == "moved" else "") for url, outcome, detail in rows}


def _follow(db: Database, ends: dict[str, End]) -> None:
    """Adds where redirects lead."""
    asked = set(ends)
    for _ in range(REDIRECTS):
        wanted = {end.to for end in ends.values() if end.to} - asked
        if not wanted:
            return
        asked |= wanted
        for at in range(0, len(ordered := sorted(wanted)), CHUNK):
            ends |= _ends(db, ordered[at : at + CHUNK])
