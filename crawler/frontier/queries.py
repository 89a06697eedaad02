"""What is read from the state: statements, and the values of `model` that their rows become.

Nothing here writes. The statements read one row per URL, from the view `known`. Those of a `Stream` may
return a row for each URL of the state; the backend chooses the size of the chunks.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from crawler.frontier.database import Database
from crawler.frontier.rows import FACT_COLUMNS, of
from crawler.frontier.schema import IN_SITEMAP, settled
from crawler.model.external import ExternalRow, external_of
from crawler.model.facts import Entry
from crawler.model.outcome import Kept, Listed, Unlisted
from crawler.model.reasons import SeedKind, Source, Why
from crawler.model.rows import (
    COMPLETE_RUNS,
    EdgeRow,
    HostRow,
    InPattern,
    LinksRow,
    PageRow,
    UrlRecord,
)
from crawler.model.run import Run
from crawler.model.seed import Seed
from crawler.model.serialise import facts_of, lastmod_of, moment, outcome_of
from crawler.model.survey import Balance, LinkingPages, Survey
from crawler.model.visit import Prior, Visit
from crawler.parse.url import Url
from crawler.ports.reads import MOST_HOSTS
from crawler.rules.record import DAY, HELD, LEASED, LISTED, PLANNED, QUEUED, SETTLED, WAITING

_STATES: Final = {
    PLANNED: "planned",
    HELD: "held",
    QUEUED: "queued",
    WAITING: "waiting",
    LEASED: "leased",
    SETTLED: "settled",
}

PAGE_FACTS: Final = 7  # from the title on
_KNOWN_LINKS: Final = """
SELECT count(*) FROM page AS p @each(p.links) WHERE p.id = :number AND j.value > 0
"""
_TARGET: Final = "SELECT j.value FROM (SELECT 1) AS one @each(u.links) WHERE @place = 1"
REDIRECT: Final = f"CASE WHEN u.outcome = 'moved' THEN ({_TARGET}) END"
STATUS: Final = "CASE WHEN u.attempts > 0 THEN u.status END"
EXTERNAL: Final = len(ExternalRow._fields)
_BY_SITE: Final = {Source.PAGE.value, Source.SITEMAP.value}
_SEEDS: Final = {kind.value: Seed(kind) for kind in SeedKind}

RECORD: Final = f"""
SELECT u.depth, v.url AS via, u.hops, u.run, u.state, u.outcome, u.detail, u.attempts, u.settled,
    {of("u", FACT_COLUMNS)},
       s.kind, s.name, s.depth AS nested, u.was, u.was_lastmod, u.failing, t.pattern, t.fetched, t.closed
FROM known AS u LEFT JOIN url AS v ON v.id = u.via LEFT JOIN seed AS s ON s.id = u.seed
LEFT JOIN trap AS t ON t.id = u.trap AND t.run = u.run
"""

# What is not to be requested any more still has the links of an earlier run.
_IS_VISITED: Final = "u.host IS NOT NULL"

# What readers see: with what repeats the address, though pages are compared without it during a crawl.
SHOWN_VERSION: Final = "coalesce(echoing, version)"

PAGES: Final = f"""
SELECT u.id, u.url, u.run, CASE WHEN u.state = {SETTLED} THEN u.outcome ELSE '' END, u.detail,
       {STATUS}, u.depth, u.was, u.lastmod, u.source, u.was_lastmod, {SHOWN_VERSION},
       s.kind, s.name, s.depth, u.title, u.type, u.bytes, u.took, u.barred, u.rendering,
       u.digest, {REDIRECT}, {of("x", ExternalRow._fields)}
FROM known AS u LEFT JOIN seed AS s ON s.id = u.seed LEFT JOIN external AS x ON x.id = u.id
"""

OF_SUSPECTS: Final = f"""
FROM known AS u LEFT JOIN seed AS s ON s.id = u.seed LEFT JOIN external AS x ON x.id = u.id
WHERE u.run = :run AND {settled("u")} AND (u.outcome <> 'unlisted:offsite' OR x.code LIKE 'broken:%')
AND (
    u.outcome <> '{LISTED}' OR s.kind > 0 OR u.rendering IS NOT NULL OR u.barred IS NOT NULL OR u.detail <> ''
)
"""
SUSPECTS: Final = f"""
SELECT u.id, u.run, u.outcome, u.detail, u.was, s.kind, u.barred, u.rendering, {STATUS}, {REDIRECT},
    {of("x", ExternalRow._fields)} {OF_SUSPECTS}
"""

OF_SITEMAP: Final = f"run = :run AND state = {SETTLED} AND {IN_SITEMAP}"

SURVEY: Final = f"""
SELECT outcome, CASE WHEN {IN_SITEMAP} THEN coalesce(obstacle, '') END, url >= :first
    AND url < :below, count(*)
FROM known WHERE run = :run AND state = {SETTLED} GROUP BY 1, 2, 3
"""

_ANSWERED: Final = f"""
SELECT url FROM known WHERE run = :run AND state = {SETTLED} AND outcome = '{LISTED}' AND status IS NOT NULL
AND host = (SELECT id FROM host WHERE origin = :origin) ORDER BY settled DESC, id DESC LIMIT 1
"""

_EXAMPLES: Final = f"""
SELECT url FROM known WHERE run = :run AND state = {SETTLED} AND outcome = :outcome ORDER BY url LIMIT :limit
"""

_BALANCE: Final = f"""
SELECT outcome, source, state < {SETTLED}, count(*), count(*) FILTER (WHERE host IS NULL), count(lastmod),
    min(lastmod), max(lastmod), count(*) FILTER (WHERE visited = run)
FROM known WHERE run = :run GROUP BY 1, 2, 3 ORDER BY 1, 2, 3
"""

_HOSTS: Final = """
SELECT h.origin, u.urls, h.delay, h.robots, coalesce(h.robots_detail, '') FROM host AS h
JOIN (SELECT host, count(*) AS urls
    FROM url WHERE run = :run AND host IS NOT NULL GROUP BY host) AS u ON u.host = h.id
ORDER BY u.urls DESC, h.origin LIMIT :most
"""


class Stream(Struct, frozen=True):
    """A query that may return a row for each URL of the state; it ends with a condition."""

    sql: str
    by: str = "u.url"  # the column that it is sorted by, and that is different in each row
    place: int = 0  # of that column in its rows

    def start(self, first: str = "") -> Any:
        """The value of that column to begin with."""
        return first if self.by == "u.url" else 0

    def rest(self, comparison: str) -> str:
        """The statement for the rows from `:after` on (`>=`), or after it (`>`)."""
        return f"{self.sql} AND {self.by} {comparison} :after ORDER BY {self.by}"


PAGE_ROWS: Final = Stream(f"{PAGES} WHERE true", place=1)
EDGE_ROWS: Final = Stream(
    f"""
SELECT u.id, u.url, u.links, u.named, CASE WHEN u.outcome = 'moved' THEN u.detail END, u.canonical
FROM known AS u
WHERE u.run = :run AND {_IS_VISITED} AND u.state = {SETTLED} AND u.url < :below
    AND (u.links IS NOT NULL OR u.outcome = 'moved' OR u.canonical IS NOT NULL)
""",
    place=1,
)
SUSPECT_ROWS: Final = Stream(SUSPECTS, "u.id")
ENTRIES: Final = Stream(
    "SELECT u.url, u.lastmod, u.source, CASE WHEN CAST(:titled AS boolean) THEN u.title END FROM known AS u "
    f"WHERE u.url < :below AND {OF_SITEMAP}"
)
KNOWN_HERE: Final = Stream(
    "SELECT u.url FROM known AS u WHERE u.run = :run AND u.outcome IS DISTINCT FROM 'unlisted:offsite'"
)

_IDS: Final = "SELECT url, id FROM url WHERE @key @any(keys, key)"
_ROWS_OF: Final = f"{PAGES} WHERE u.id @any(ids)"
_LINKS_OF: Final = f"""
SELECT u.id, u.links, u.named, {REDIRECT} FROM known AS u
WHERE u.id @any(ids) AND u.run = :run AND {_IS_VISITED} AND u.state = {SETTLED} AND u.links IS NOT NULL
"""
_RECORD_OF: Final = f"{RECORD} WHERE u.@key @any(keys, key)"
_LINKING: Final = f"""
SELECT url, count(*) OVER (), text, landmark FROM (SELECT DISTINCT u.url, a.text, a.landmark
    FROM url AS u JOIN page AS p ON p.id = u.id @each(p.links)
    LEFT JOIN anchor AS a ON a.id = u.id AND a.target = :number
    WHERE u.run = :run AND {_IS_VISITED} AND u.id <> :number AND @place > coalesce(p.named, 0)
        AND abs(j.value) = :number
) AS linking ORDER BY url LIMIT :most
"""
# The origin of a detail that is a URL: the part before the first slash of its path.
_CANONICAL_ORIGINS: Final = f"""
SELECT substr(detail, 1, @position(substr(detail, 9), '/') + 7) AS origin, count(*) FROM known
WHERE run = :run AND state = {SETTLED} AND outcome = 'unlisted:canonical'
AND substr(detail, 1, length(CAST(:first AS text))) <> :first
GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT 1
"""
_DISCOVERED: Final = "SELECT coalesce(sum(discovered), 0) FROM member WHERE run = :run"


def url_record(url: Url, row: Mapping[str, Any]) -> UrlRecord:
    """A row of `RECORD`, by column."""
    visit = Visit(url, row["depth"], Url(row["via"]) if row["via"] else None, row["hops"])
    return UrlRecord(
        visit,
        row["run"],
        _STATES[row["state"]],
        outcome_of(row["outcome"], row["detail"], lastmod_of(row["lastmod"], row["source"])),
        facts_of([row[fact] for fact in FACT_COLUMNS]),
        row["attempts"],
        row["settled"],
        row["was"],
        moment(row["was_lastmod"]),
        row["failing"],
        None if row["kind"] is None else Seed(SeedKind(row["kind"]), row["name"], row["nested"]),
        None if row["pattern"] is None else InPattern(row["pattern"], row["fetched"], bool(row["closed"])),
    )


def page(row: tuple[Any, ...]) -> PageRow:
    """A row of `PAGES`: without the facts of an earlier visit, unless its outcome is still that of this."""
    of_page, answer = row[: -EXTERNAL - 1], external_of(row[-EXTERNAL:])
    number, url, run, outcome, detail, *known, kind, name, nested = of_page[:-PAGE_FACTS]
    seed = None if kind is None else Seed(SeedKind(kind), name, nested)
    rest = (*known, seed, *of_page[-PAGE_FACTS:], answer, row[-EXTERNAL - 1] or 0)
    found = PageRow._make((number, Url(url), run, outcome or "", detail or "", *rest))
    if _is_read(found.outcome, found.status):
        return found
    unread = found._replace(
        title=None, type=None, bytes=None, took=None, content=None, digest=None, barred=None, rendering=None
    )
    is_dated = found.outcome == LISTED or found.outcome.startswith("kept:")
    return unread if is_dated else unread._replace(lastmod=None, source=None)


def _is_read(outcome: str, status: int | None) -> bool:
    """Whether the facts of a URL are of what it is now, and not of what it was at an earlier visit."""
    return status is not None and not outcome.startswith(("failed:", "kept:"))


def suspect(row: tuple[Any, ...]) -> PageRow:
    """A row of `SUSPECTS`."""
    number, run, outcome, detail, was, kind, barred, rendered, status, redirect, *answer = row
    is_read = _is_read(outcome, status)
    seed = None if kind is None else _SEEDS[kind]
    return PageRow(
        number,
        Url(""),
        run,
        outcome,
        detail or "",
        status,
        was=was,
        seed=seed,
        barred=barred if is_read else None,
        rendering=rendered if is_read else None,
        external=external_of(answer),
        redirect=redirect or 0,
    )


def entry(row: tuple[Any, ...]) -> Entry:
    """A row of a URL, its date and the source of that, and the title of the page, if it was asked for."""
    url, at, source, title = row
    is_day = at is not None and at % DAY == 0 and source in _BY_SITE
    return Entry(Url(url), moment(at), is_day=is_day, title=title)


def prior(outcome: str | None, detail: str | None, facts: Sequence[Any], *, may_stay: bool) -> Prior | None:
    """What an earlier run stored of a page, for a conditional request.

    `facts`: in the order of `FACT_COLUMNS`. `may_stay`: see `Prior`.
    """
    known = facts_of(facts)
    ended = outcome_of(outcome, detail, known.lastmod if known else None)
    if known is None or ended is None:
        return None
    # What the site shows for a nonexistent page may have changed since; the browser is asked for it again.
    is_missing = isinstance(ended, Unlisted) and ended.why is Why.SOFT_404
    is_rendered = known.rendering is not None and known.rendering.inputs is not None
    return None if is_missing and not is_rendered else Prior(ended, known, may_stay)


def host_rows(db: Database) -> Sequence[HostRow]:
    """See `ports.reads.BusiestHosts`."""
    return [HostRow._make(row) for row in db.all(_HOSTS, {"run": db.run, "most": MOST_HOSTS})]


def survey(db: Database, site: str) -> Survey:
    """See `ports.reads.SiteSurvey`."""
    given = {"run": db.run, "first": f"{site}/", "below": f"{site}0"}
    outcomes, obstacles = Counter[str](), Counter[str]()
    rows, named = db.ask(SURVEY, given), db.ask(_CANONICAL_ORIGINS, given)
    for outcome, obstacle, is_own, count in rows():
        outcomes[outcome] += count if is_own else 0
        obstacles[obstacle or ""] += count if obstacle is not None else 0
    return Survey(+outcomes, +obstacles, next(((origin, count) for origin, count in named()), None))


def last_answered(db: Database, origin: str) -> Url | None:
    """See `ports.reads.LastAnswered`."""
    row = db.one_or_none(_ANSWERED, {"run": db.run, "origin": origin})
    return Url(row[0]) if row else None


def examples(db: Database, outcome_code: str, limit: int) -> Sequence[Url]:
    """See `ports.reads.Examples`."""
    given = {"run": db.run, "outcome": outcome_code, "limit": limit}
    return urls(db.all(_EXAMPLES, given))


def urls(rows: Iterable[tuple[Any, ...]]) -> list[Url]:
    """Rows, each of one URL."""
    return [Url(row[0]) for row in rows]


def run(db: Database) -> Run | None:
    """See `ports.reads.NewestRun`."""
    row = db.one_or_none(
        "SELECT number, started, status, ended, follows FROM run WHERE number = :run", {"run": db.run}
    )
    if row is None:
        return None
    number, started, status, ended, follows = row
    return Run(number, started, complete=status in COMPLETE_RUNS, ended=ended is not None, follows=follows)


def balance(db: Database) -> Balance:
    """See `ports.reads.RunBalance`."""
    discovered, rows = db.ask(_DISCOVERED, {"run": db.run}), db.ask(_BALANCE, {"run": db.run})
    outcomes, dated, visited = Counter[str](), Counter[str](), Counter[str]()
    opened = filtered = 0
    dates = set[int | None]()  # of listed pages
    for outcome, source, is_open, count, not_asked, with_date, first, last, seen in rows():
        filtered += not_asked
        if is_open:
            opened += count
        elif outcome:
            is_listed = isinstance(outcome_of(outcome, "", None), Listed | Kept)  # raises for an unknown code
            outcomes[outcome] += count
            visited[outcome] += seen
            dated[source] += with_date if is_listed else 0
            dates |= {first, last, first if with_date == count else None} if outcome == LISTED else set()
    [(stored,)], by_source = discovered(), dict((+dated).most_common())
    date = dates.pop() if len(dates) == 1 else None
    return Balance(int(stored), dict(outcomes), opened, filtered, by_source, date, +visited)


def record(db: Database, url: Url) -> UrlRecord | None:
    """See `ports.reads.RecordOf`."""
    row = _by_name(db, _RECORD_OF, {"keys": db.dialect.keys([url])})
    return url_record(url, row) if row else None


def number_of(db: Database, url: Url) -> int:
    """See `ports.reads.NumberOf`."""
    return next((row[1] for row in db.all(_IDS, {"keys": db.dialect.keys([url])})), 0)


def known_links(db: Database, number: int) -> int:
    """See `ports.reads.KnownLinks`."""
    return db.count(_KNOWN_LINKS, {"number": number})


def linking(db: Database, url: Url, most: int) -> LinkingPages:
    """See `ports.reads.Linking`."""
    number = number_of(db, url)
    rows = db.all(_LINKING, {"number": number, "run": db.run, "most": most}) if number else []
    said = {Url(page): (text, place) for page, _, text, place in rows if text or place}
    return LinkingPages(rows[0][1], urls(rows), said) if rows else LinkingPages()


def rows_of(db: Database, ids: Sequence[int]) -> Mapping[int, PageRow]:
    """See `ports.reads.PagesOf`."""
    return {row[0]: page(row) for row in db.all(_ROWS_OF, {"ids": db.dialect.all_of(ids)})}


def links_of(db: Database, ids: Sequence[int]) -> Mapping[int, LinksRow]:
    """See `ports.reads.LinksOf`."""
    rows = db.all(_LINKS_OF, {"ids": db.dialect.all_of(ids), "run": db.run})
    leads = db.dialect.arrays([row[1] for row in rows])
    return {
        row[0]: LinksRow(links[row[2] or 0 :], row[3] or 0, links[: row[2] or 0])
        for row, links in zip(rows, leads, strict=True)
    }


def edges(db: Database, rows: Sequence[tuple[Any, ...]]) -> Sequence[EdgeRow]:
    """Rows of `EDGE_ROWS`, with the ids of redirect targets and canonicals."""
    named = {url for row in rows for url in row[4:] if url}
    ids = dict(db.ask(_IDS, {"keys": db.dialect.keys(named)}, packed=True)()) if named else {}
    leads = db.dialect.arrays([row[2] for row in rows])
    return [
        EdgeRow(
            number,
            Url(url),
            links[first:] if first else links,
            to := ids.get(redirect, 0),
            other := ids.get(canonical, 0),
            [link for link in links[:first] if link not in {to, other}] if first else (),
        )
        for (number, url, _, first, redirect, canonical), links in zip(rows, leads, strict=True)
    ]


def _by_name(db: Database, sql: str, given: Mapping[str, Any]) -> dict[str, Any] | None:
    """The first row, if there is one, as a dict by column."""
    cursor = db.execute(sql, given)
    row = cursor.fetchone()
    return dict(zip((column[0] for column in cursor.description), row, strict=True)) if row else None
