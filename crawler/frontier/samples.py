"""What a sample of a pattern brought: new contents, on its pages or on those that they led to first.

What follows from that is decided by `rules.traps`, and carried out by `rounds`.
"""

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from crawler.frontier.database import Database
from crawler.frontier.levels import READ_SO_FAR
from crawler.frontier.patterns import BARE, CONTENT_OUTCOMES, WAS_READ
from crawler.rules.record import HELD, SETTLED

# The number of contents that only pages after round `:since` have.
CONTENTS: Final = f"""
SELECT count(*) FROM (
    SELECT 1 FROM known
    WHERE trap = :trap AND run = :run AND state = {SETTLED} AND outcome IN ({CONTENT_OUTCOMES})
    AND (version IS NULL OR {BARE})
    GROUP BY coalesce(version, url) HAVING min(coalesce(round, 0)) > :since
) AS shown
"""

# How many contents a pattern has, and how many of its pages were read until the last one of them, and since.
SELDOM: Final = f"""
SELECT (SELECT count(*) FROM known AS p WHERE p.trap = :trap AND p.run = :run AND p.state = {SETTLED}
    AND p.round <= s.last), s.contents, (SELECT count(*) FROM known AS p WHERE p.trap = :trap AND p.run = :run
    AND p.state = {SETTLED} AND p.round > s.last)
FROM (
    SELECT count(*) AS contents, coalesce(max(shown.first), 0) AS last FROM (
        SELECT min(coalesce(round, 0)) AS first FROM known
        WHERE trap = :trap AND run = :run AND state = {SETTLED} AND outcome IN ({CONTENT_OUTCOMES})
        GROUP BY coalesce(version, url)
    ) AS shown
) AS s
"""

_LINKS: Final = f"""
SELECT links FROM known WHERE trap = :trap AND round > :since AND run = :run AND state = {SETTLED}
    AND ({WAS_READ} OR outcome = 'moved')
"""
# The contents of pages outside the pattern that the pages of the sample were the first to link to.
_KNOWN: Final = f"run = :run AND state = {SETTLED} AND outcome IN ({CONTENT_OUTCOMES}) AND found <= :since"
LED_TO: Final = f"""
SELECT DISTINCT CASE WHEN u.echoing IN (SELECT version FROM known WHERE {_KNOWN} AND version IS NOT NULL)
    THEN u.echoing ELSE coalesce(u.version, u.url) END
FROM ({_LINKS}) AS p @each(p.links) JOIN known AS u ON u.id = j.value
WHERE u.run = :run AND u.found > :since AND u.state = {SETTLED} AND u.outcome IN ({CONTENT_OUTCOMES})
    AND u.trap IS DISTINCT FROM :trap
"""
# Whether the pages of the sample were the first to link to what waits for a round of its own.
LED_TO_HELD: Final = f"""
SELECT 1 FROM ({_LINKS}) AS p @each(p.links) JOIN visit AS v ON v.id = j.value JOIN url AS u ON u.id = v.id
    JOIN trap AS t ON t.id = v.trap
WHERE v.state = {HELD} AND u.found > :since AND t.id <> :trap AND t.kind <> 'repeats' LIMIT 1
"""
KNOWN_CONTENTS: Final = f"""
SELECT count(DISTINCT version) FROM known
WHERE {_KNOWN} AND version @any(contents, text)
"""
# Of the patterns of repeats that are decided, in one pass over all pages. What a pattern shares with
# pages outside it is not new.
ORIGINALS: Final = f"""
SELECT t.id, count(*) FROM ({READ_SO_FAR}) AS read JOIN trap AS t ON t.id = read.trap
WHERE t.run = :run AND NOT t.closed AND t.size_left <= 0 AND t.kind = 'repeats'
    AND read.round > t.sample_round AND read.place = 1
GROUP BY t.id
"""


class ReadSample(Struct, frozen=True):
    """The sample of a pattern, which was read."""

    trap: int
    kind: str
    pattern: str
    size: int
    since: int  # the round after which the sample began
    dry: int
    proven: bool


def count_new(db: Database, one: ReadSample, originals: Mapping[int, int]) -> int:
    """Contents that a sample brought: of its own pages, or else of pages that it led to first.

    `originals`: of the patterns of repeats.
    """
    given = {"trap": one.trap, "run": db.run, "since": one.since}
    found = db.count(CONTENTS, given) if one.kind != "repeats" else originals.get(one.trap, 0)
    if (one.proven and found) or found > 1:
        return found
    if led := {content for (content,) in db.all(LED_TO, given)}:
        known = db.count(KNOWN_CONTENTS, given | {"contents": db.dialect.all_of(led)})
        found += len(led) - known
    return found


def leads_to_held(db: Database, one: ReadSample) -> bool:
    """Whether it led first to what waits for a round of its own."""
    given = {"trap": one.trap, "run": db.run, "since": one.since}
    return one.kind != "repeats" and db.one_or_none(LED_TO_HELD, given) is not None
