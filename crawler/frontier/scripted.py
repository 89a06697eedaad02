"""Pages with scripts that were not rendered, by what they have in common. Reads only.

Which of them are to be rendered is decided by `engine.site`. The fact `scripts` of a page names its
two kinds, one after the other (`rules.rendering.kinds`).
"""

from collections.abc import Sequence
from typing import Final

from crawler.frontier.database import Database
from crawler.model import rendering
from crawler.model.survey import PagesOfKind, ScriptedKinds
from crawler.parse.url import Url
from crawler.rules.record import LISTED, SETTLED
from crawler.rules.rendering import KIND

MOST: Final = 1_000  # kinds that are read
_OF_RUN: Final = f"run = :run AND state = {SETTLED} AND scripts IS NOT NULL"
_PLAIN: Final = f"{_OF_RUN} AND outcome = '{LISTED}' AND rendering IS NULL"
_FIRST, _SECOND = f"substr(scripts, 1, {KIND})", f"substr(scripts, {KIND + 1})"
# Of the first kind, which shows what pages look like, only those that several pages have.
PLAIN: Final = f"""
SELECT {_FIRST} AS kind, count(*) AS pages, min(url) AS first FROM known WHERE {_PLAIN}
    GROUP BY {_FIRST} HAVING count(*) > 1
UNION ALL
SELECT {_SECOND}, count(*), min(url) FROM known WHERE {_PLAIN} GROUP BY {_SECOND}
ORDER BY pages DESC, first, kind LIMIT {MOST}
"""
SAMPLES: Final = f"""
SELECT url, scripts, rendering FROM known WHERE {_OF_RUN} AND rendering LIKE '["sample"%' ORDER BY url
"""
NEW: Final = f"""
SELECT u.url FROM known AS u JOIN page AS v ON v.id = u.via
WHERE u.@key @any(keys, key) AND u.run = :run AND u.outcome = '{LISTED}' AND v.rendering IS NOT NULL
"""
_LISTED: Final = f"count(*) FILTER (WHERE outcome = '{LISTED}')"
SAME_BYTES: Final = f"""
SELECT digest, count(*), min(url) FROM known
WHERE {_OF_RUN} GROUP BY host, digest HAVING (count(*) >= :least OR {_LISTED} > 1 AND {_LISTED} = (
    SELECT {_LISTED} FROM known WHERE run = :run
))
AND NOT EXISTS (SELECT 1 FROM known WHERE {_OF_RUN} AND rendering IS NOT NULL)
ORDER BY count(*) DESC, min(url) LIMIT 1
"""
OF_KINDS: Final = f"""
SELECT url FROM known WHERE {_PLAIN} AND ({_FIRST} @any(kinds, text) OR {_SECOND} @any(kinds, text))
ORDER BY url
"""


def kinds(db: Database) -> ScriptedKinds:
    """See `ports.reads.KindsOfScripted`."""
    run = {"run": db.run}
    plain = [PagesOfKind(kind, count, Url(url)) for kind, count, url in db.all(PLAIN, run)]
    samples = [(Url(url), scripts, rendering.read(seen)) for url, scripts, seen in db.all(SAMPLES, run)]
    made = {to for _, _, seen in samples for to in seen.made}
    new = db.all(NEW, {**run, "keys": db.dialect.keys(made)}) if made else []
    return ScriptedKinds(plain, samples, frozenset(Url(url) for (url,) in new))


def same_shell(db: Database, least: int) -> PagesOfKind | None:
    """See `ports.reads.SameShell`."""
    row = db.one_or_none(SAME_BYTES, {"run": db.run, "least": least})
    return PagesOfKind(row[0], row[1], Url(row[2])) if row else None


def of_kinds(db: Database, kinds: Sequence[str]) -> Sequence[Url]:
    """See `ports.reads.UnrenderedPages`."""
    rows = db.all(OF_KINDS, {"run": db.run, "kinds": db.dialect.all_of(kinds)}) if kinds else []
    return [Url(url) for (url,) in rows]
