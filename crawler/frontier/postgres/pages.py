"""The record of pages in the PostgreSQL frontier, to be read: one URL, lists of them, and counts."""

from collections import Counter
from collections.abc import Sequence

from crawler.frontier.postgres import schema
from crawler.frontier.postgres.database import Database
from crawler.frontier.postgres.rows import FACT_COLUMNS, fp, of
from crawler.model.reasons import SeedKind
from crawler.model.seed import Seed
from crawler.model.serialise import facts_of, lastmod_of, moment, outcome_of
from crawler.model.survey import Survey
from crawler.model.url_record import InPattern, UrlRecord
from crawler.model.visit import Visit
from crawler.parse.url import Url

RECORD = f"""
SELECT u.depth, v.url AS via, u.hops, u.run, u.state, u.outcome, u.detail, u.attempts, u.settled, {of("u", FACT_COLUMNS)},
       s.kind, s.name, s.depth AS nested, u.was, u.was_lastmod, u.failing, t.pattern, t.asked, t.closed
FROM known AS u LEFT JOIN url AS v ON v.id = u.via LEFT JOIN seed AS s ON s.id = u.seed
LEFT JOIN trap AS t ON t.id = u.trap AND t.run = u.run WHERE u.fp = :fp::uuid
"""

LINKING = """
SELECT count(*) FROM url AS u JOIN page AS p ON p.id = u.id, (SELECT id FROM url WHERE fp = :fp::uuid) AS t
WHERE u.run = :run AND (t.id = ANY (p.links[coalesce(p.named, 0) + 1 :]) OR -t.id = ANY (p.links[coalesce(p.named, 0) + 1 :]))
"""

ENTRIES = """
SELECT url, lastmod FROM known
WHERE url >= :first AND url < :below AND run = :run AND state = 3 AND (outcome = 'listed' OR outcome LIKE 'kept:%') ORDER BY url
"""

KNOWN_HERE = """
SELECT url FROM known WHERE run = :run AND outcome IS DISTINCT FROM 'unlisted:offsite' ORDER BY url
"""

ANSWERED = """
SELECT url FROM known WHERE run = :run AND state = 3 AND outcome = 'listed' AND status IS NOT NULL
AND host = (SELECT id FROM host WHERE origin = :origin) ORDER BY settled DESC, id DESC LIMIT 1
"""

SURVEY = """
SELECT outcome, CASE WHEN outcome = 'listed' OR outcome LIKE 'kept:%' THEN coalesce(look, '') END, url >= :first AND url < :below, count(*)
FROM known WHERE run = :run AND state = 3 GROUP BY 1, 2, 3
"""

# A detail is a URL: what stands before the first slash after its host begins.
CANONICAL_ORIGINS = """
SELECT substr(detail, 1, strpos(substr(detail, 9), '/') + 7) AS origin, count(*) FROM known
WHERE run = :run AND state = 3 AND outcome = 'unlisted:canonical' AND NOT starts_with(detail, :first)
GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT 1
"""


def record(db: Database, url: Url) -> UrlRecord | None:
    """See `ports.Record.record`."""
    story = db.by_name(RECORD, {"fp": fp(url)})
    if story is None:
        return None
    visit = Visit(url, story["depth"], Url(story["via"]) if story["via"] else None, story["hops"])
    return UrlRecord(
        visit,
        story["run"],
        schema.STATES[story["state"]],
        outcome_of(story["outcome"], story["detail"], lastmod_of(story["lastmod"], story["source"])),
        facts_of([story[fact] for fact in FACT_COLUMNS]),
        story["attempts"],
        story["settled"],
        story["was"],
        moment(story["was_lastmod"]),
        story["failing"],
        None if story["kind"] is None else Seed(SeedKind(story["kind"]), story["name"], story["nested"]),
        None
        if story["pattern"] is None
        else InPattern(story["pattern"], story["asked"], bool(story["closed"])),
    )


def linking(db: Database, url: Url) -> int:
    """See `ports.Record.linking`."""
    return db.count(LINKING, {"fp": fp(url), "run": db.run})


def answered(db: Database, origin: str) -> Url | None:
    """See `ports.Record.answered`."""
    row = db.one_or_none(ANSWERED, {"run": db.run, "origin": origin})
    return Url(row[0]) if row else None


def examples(db: Database, outcome_code: str, limit: int) -> Sequence[Url]:
    """See `ports.Record.examples`."""
    rows = db.all(
        "SELECT url FROM known WHERE run = :run AND state = 3 AND outcome = :outcome ORDER BY url LIMIT :limit",
        {"run": db.run, "outcome": outcome_code, "limit": limit},
    )
    return [Url(row[0]) for row in rows]


def filtered(db: Database) -> int:
    """See `ports.Record.filtered`."""
    return db.count("SELECT count(*) FROM url WHERE run = :run AND host IS NULL", {"run": db.run})


def survey(db: Database, site: str) -> Survey:
    """See `ports.Record.survey`."""
    given = {"run": db.run, "first": f"{site}/", "below": f"{site}0"}
    outcomes, obstacles = Counter[str](), Counter[str]()
    for outcome, obstacle, is_own, count in db.all(SURVEY, given):
        outcomes[outcome] += count if is_own else 0
        obstacles[obstacle or ""] += count if obstacle is not None else 0
    named = db.one_or_none(CANONICAL_ORIGINS, given)
    return Survey(+outcomes, +obstacles, named and (named[0], named[1]))
