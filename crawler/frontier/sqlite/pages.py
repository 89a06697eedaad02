"""Reads the record of pages in the SQLite frontier: single URLs, lists and counts."""

from collections import Counter
from collections.abc import Sequence

from crawler.frontier.sqlite import schema
from crawler.frontier.sqlite.database import CHUNK, Database
from crawler.frontier.sqlite.rows import FACT_COLUMNS, of
from crawler.model.facts import Entry
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
FROM url AS u LEFT JOIN url AS v ON v.id = u.via LEFT JOIN seed AS s ON s.id = u.seed
LEFT JOIN trap AS t ON t.id = u.trap AND t.run = u.run WHERE u.url = :url
"""

LINKING = """
SELECT count(*) FROM url AS p WHERE p.run = :run AND EXISTS
    (SELECT 1 FROM json_each(p.links) WHERE key >= coalesce(p.named, 0) AND abs(value) = (SELECT id FROM url WHERE url = :url))
"""

ENTRIES = """
SELECT url, lastmod FROM url INDEXED BY sqlite_autoindex_url_1
WHERE url > :after AND url < :below AND run = :run AND state = 3 AND (outcome = 'listed' OR outcome LIKE 'kept:%') ORDER BY url LIMIT :limit
"""

KNOWN_HERE = """
SELECT url FROM url INDEXED BY sqlite_autoindex_url_1
WHERE url > :after AND run = :run AND outcome IS NOT 'unlisted:offsite' ORDER BY url LIMIT :limit
"""

ANSWERED = """
SELECT url FROM url WHERE run = :run AND state = 3 AND outcome = 'listed' AND status IS NOT NULL
AND host = (SELECT id FROM host WHERE origin = :origin) ORDER BY settled DESC, id DESC LIMIT 1
"""

SURVEY = """
SELECT outcome, CASE WHEN outcome = 'listed' OR outcome LIKE 'kept:%' THEN coalesce(look, '') END, url >= :first AND url < :below, count(*)
FROM url WHERE run = :run AND state = 3 GROUP BY 1, 2, 3
"""

# The origin of a detail that is a URL: the part before the first slash of its path.
CANONICAL_ORIGINS = """
SELECT substr(detail, 1, instr(substr(detail, 9), '/') + 7) AS origin, count(*) FROM url
WHERE run = :run AND state = 3 AND outcome = 'unlisted:canonical' AND substr(detail, 1, length(:first)) <> :first
GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT 1
"""


def record(db: Database, url: Url) -> UrlRecord | None:
    """See `ports.Record.record`."""
    story = db.by_name(RECORD, {"url": url})
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
    return db.count(LINKING, {"url": url, "run": db.run})


def entries(db: Database, after: str, below: str) -> Sequence[Entry]:
    """The next chunk of `ports.Record.entries`: after the URL `after`, sorted by URL."""
    rows = db.all(ENTRIES, {"after": after, "below": below, "run": db.run, "limit": CHUNK})
    return [Entry(Url(url), moment(at)) for url, at in rows]


def known(db: Database, after: str) -> Sequence[Url]:
    """The next chunk of `ports.Record.known`: after the URL `after`, sorted by URL."""
    return [Url(row[0]) for row in db.all(KNOWN_HERE, {"after": after, "run": db.run, "limit": CHUNK})]


def answered(db: Database, origin: str) -> Url | None:
    """See `ports.Record.answered`."""
    row = db.one_or_none(ANSWERED, {"run": db.run, "origin": origin})
    return Url(row[0]) if row else None


def examples(db: Database, outcome_code: str, limit: int) -> Sequence[Url]:
    """See `ports.Record.examples`."""
    rows = db.all(
        "SELECT url FROM url WHERE run = ? AND state = 3 AND outcome = ? ORDER BY url LIMIT ?",
        (db.run, outcome_code, limit),
    )
    return [Url(row[0]) for row in rows]


def filtered(db: Database) -> int:
    """See `ports.Record.filtered`."""
    return db.count("SELECT count(*) FROM url WHERE run = ? AND host IS NULL", (db.run,))


def survey(db: Database, site: str) -> Survey:
    """See `ports.Record.survey`."""
    given = {"run": db.run, "first": f"{site}/", "below": f"{site}0"}
    outcomes, obstacles = Counter[str](), Counter[str]()
    for outcome, obstacle, is_own, count in db.all(SURVEY, given):
        outcomes[outcome] += count if is_own else 0
        obstacles[obstacle or ""] += count if obstacle is not None else 0
    named = db.one_or_none(CANONICAL_ORIGINS, given)
    return Survey(+outcomes, +obstacles, named and (named[0], named[1]))
