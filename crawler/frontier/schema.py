"""The tables of a state, and the views over them. Only this package writes there; any tool can read them.

The data of a URL is split by how often it changes: `url` is written once, `visit` holds open work only and is
deleted when that is done, `page` holds the outcome and the facts. The view `known` joins the three for
statements. Times are seconds since the epoch. What is marked with @ is said by the dialect of a database
(`dialect`).

A state has the number of its version: once one is released, a change of `TABLES` needs a new `VERSION` and a
step in `STEPS`.
"""

from collections.abc import Mapping
from typing import Final

from crawler.model.serialise import COUNT, FACTS, FLAG, MOMENT, STATUS
from crawler.rules.record import HELD, LEASED, LISTED, PLANNED, QUEUED, SETTLED, WAITING

VERSION: Final = 1
STEPS: Final[Mapping[int, str]] = {}
"""By version: the migration to the next one, without views, which are made anew."""

STILL: Final = (1 << 31) - 2  # in place of the newest publication, so that a page that stays is not written
IN_SITEMAP: Final = f"(outcome = '{LISTED}' OR outcome LIKE 'kept:%')"

_FORMS: Final = {STATUS: "integer", COUNT: "bigint", FLAG: "boolean", MOMENT: "bigint"}
FACT_TYPES: Final = {fact.name: _FORMS.get(fact.form, "text") for fact in FACTS}
_FACTS: Final = "".join(
    f"    {name} {'@text' if kind == 'text' else kind},\n" for name, kind in FACT_TYPES.items()
)

# What is compared with earlier runs: the content, or the bytes where no question needs the content.
VERSION_OF: Final = "coalesce(p.content, '=' || p.digest)"

KNOWN: Final = f"""
CREATE VIEW known AS
SELECT u.*, coalesce(v.state, {SETTLED}) AS state, coalesce(v.attempts, p.attempts, 0) AS attempts,
    p.settled, p.failing, p.dated_lastmod, p.dated_header, p.dated_stated, p.was_lastmod, p.facts_run,
    b.until AS published, p.named, p.visited, p.last_visit,
    p.outcome, p.detail, {", ".join(f"p.{name}" for name in FACT_TYPES)}, {VERSION_OF} AS version,
    p.published_content, p.dated_content, p.was, p.submitted, p.links
FROM url AS u LEFT JOIN visit AS v ON v.id = u.id LEFT JOIN page AS p ON p.id = u.id
LEFT JOIN published AS b ON b.id = u.id;
"""


def settled(row: str) -> str:
    """That a row of `known` is settled, for queries of many rows.

    PostgreSQL guesses that a comparison of the state selects one row in 200, and looks up each in an index.
    """
    return f"NOT EXISTS (SELECT 1 FROM visit WHERE visit.id = {row}.id)"


TABLES: Final = f"""
CREATE TABLE run (
    number integer PRIMARY KEY,
    fingerprint @text NOT NULL,                  -- hash of the settings that affect what is found and listed
    reading @text NOT NULL,                      -- hash of the settings that affect how a page is parsed
    started double precision NOT NULL,
    -- crawling, complete, concluded (published), refused, abandoned
    status @text NOT NULL,
    round integer NOT NULL DEFAULT 0,            -- number of rounds so far
    leader bigint,                               -- the member that is the leader
    max_depth bigint,                            -- visits up to this depth may be leased
    level integer,                               -- of a poor site: levels so far; NULL: it has none
    -- how often patterns were closed: what members remember of them is void
    closings integer NOT NULL DEFAULT 0,
    -- JSON object: digests of what members must agree on, by setting
    terms @text,
    budget bigint,                               -- pages that may still be leased; NULL: any number
    deadline double precision,                   -- of --max-time; NULL: none
    -- of a partial run: seconds that a page goes unvisited, at most
    max_age double precision,
    -- of a partial run: the run that published the site last; pages that are not visited stay as they are
    follows integer,
    interruption @text,                          -- JSON array, as `model.run.Interruption`; NULL: none
    ended double precision,                      -- NULL: a session is at work, or was killed
    exit integer,                                -- of the last session
    seconds double precision,                    -- duration of all sessions
    requests bigint,                             -- pages requested
    bytes bigint,                                -- of the bodies of these pages, decoded
    outcomes @text,                              -- JSON object: URLs by code
    refused @text,                               -- why the guard kept the published sitemap
    -- when a session of this or an earlier run last ended with exit 0 or 8
    succeeded double precision
) @often_updated;
-- `--run` of its members
CREATE TABLE run_key (run integer NOT NULL, key @text NOT NULL, PRIMARY KEY (key, run)) @small;
CREATE TABLE member (                            -- a process that works on the run, or has worked on it
    id @identity,
    run integer NOT NULL,
    name @text NOT NULL,                         -- host:pid
    until double precision NOT NULL,             -- after this time it counts as dead
    gone boolean NOT NULL DEFAULT false,
    backend integer,                             -- the session of its last heartbeat
    discovered bigint NOT NULL DEFAULT 0,        -- URLs that it added; the balance is held against the sum
    settled bigint NOT NULL DEFAULT 0,
    revisited bigint NOT NULL DEFAULT 0,         -- of `settled`: pages that an earlier run had visited
    seconds double precision NOT NULL DEFAULT 0, -- at work
    requests bigint NOT NULL DEFAULT 0,
    bytes bigint NOT NULL DEFAULT 0
) @often_updated;
CREATE INDEX member_run ON member (run);
-- `model.note`
CREATE TABLE note (
    run integer NOT NULL, key @text NOT NULL, value @text NOT NULL, PRIMARY KEY (run, key)
) @small;
CREATE TABLE host (
    id @identity,
    origin @text NOT NULL UNIQUE,
    delay double precision NOT NULL,             -- seconds between slots
    backoff double precision NOT NULL DEFAULT 1, -- factor that extends `delay` while the host is throttled
    backoff_grew_at double precision NOT NULL DEFAULT 0,
    next double precision NOT NULL DEFAULT 0,    -- the next free slot
    -- until then, robots.txt is being read by a lease
    robots_leased_until double precision NOT NULL DEFAULT 0,
    robots_read_at double precision,
    robots @text,                                -- rules, none or down
    robots_text @bytes,
    robots_detail @text,
    robots_asked_as @text                        -- digest of the user agent and the credentials
) @often_updated;
CREATE TABLE seed (                              -- sources of URLs other than links
    id @identity,
    kind smallint NOT NULL,                      -- 0 the start URLs, 1 a file of --input, 2 a sitemap
    name @text NOT NULL,                         -- URL or path; '' for the start URLs
    run integer NOT NULL,                        -- the last run that contained it
    parent bigint,                               -- the sitemap index that contains it
    depth integer NOT NULL,                      -- number of indexes above it
    settled double precision,                    -- NULL: still to be read in this run
    outcome @text,
    detail @text,
    entries bigint NOT NULL DEFAULT 0,           -- number of URLs in it
    passed bigint NOT NULL DEFAULT 0,            -- number of its sitemaps skipped because of the limit
    failing double precision,                    -- time of the first failure since it was last read
    failing_run integer,                         -- the run of that failure
    may_pass boolean,                            -- it failed temporarily in this run
    etag @text,                                  -- of a sitemap of which a copy is kept
    modified @text,                              -- its Last-Modified
    body @bytes,                                 -- the copy, compressed by zlib
    copied double precision,                     -- start of the run that read it in full
    UNIQUE (kind, name)
);
CREATE TABLE trap (                              -- patterns of URLs that may be crawler traps (`rounds`)
    id @identity,
    run integer NOT NULL,
    kind @text NOT NULL,
    pattern @text NOT NULL,
    -- for URLs that are canonical or redirect targets of other pages
    named boolean NOT NULL DEFAULT false,
    bare @key_type,                              -- of a query: the key of its path without it
    example @text,
    size integer NOT NULL DEFAULT 0,             -- pages of its current sample
    size_left integer NOT NULL DEFAULT 0,        -- those of them that are still to be fetched
    fetched integer NOT NULL DEFAULT 0,          -- pages fetched in rounds so far
    sample_round integer NOT NULL DEFAULT 0,     -- the round after which the sample began
    dry integer NOT NULL DEFAULT 0,              -- samples in a row that brought nothing new
    proven boolean NOT NULL DEFAULT false,       -- a sample brought something new
    closed boolean NOT NULL DEFAULT false,       -- its other URLs are not fetched
    longest integer NOT NULL DEFAULT 0,          -- length of its longest URL, in characters
    longest_before integer NOT NULL DEFAULT 0,   -- the same before the last round
    rounds_growing integer NOT NULL DEFAULT 0,   -- consecutive rounds in which that length grew
    asked integer,                               -- requests made to learn what impossible values show
    missing @text,                               -- the answer, where it tells (`query_values`)
    bounded boolean,                             -- also for numbers hardly larger than its own
    credit integer NOT NULL DEFAULT 0,           -- pages that count though they repeat others
    UNIQUE (run, pattern, named)
) @often_updated;
CREATE INDEX trap_ripe ON trap (run) WHERE NOT closed AND size_left <= 0;
CREATE TABLE url (
    id @number,
    host bigint,                                 -- NULL: not to be requested
    via bigint,                                  -- the first page that linked to it
    -- the first seed, by kind and id, that contains it; NULL: found by links only
    seed bigint,
    sitemap_date bigint,                         -- the latest date that sitemaps of the site give it
    trap bigint,                                 -- the pattern that it belongs to
    sample bigint,                               -- its position in the pattern: a hash of the URL
    run integer NOT NULL,                        -- the last run that found it
    depth integer NOT NULL,
    hops integer NOT NULL,
    found integer NOT NULL DEFAULT 0,            -- the round in which it was discovered
    round integer,                               -- the round that released it; NULL: released without a round
    nofollow boolean NOT NULL DEFAULT false,     -- found only by nofollow links
    @web_address
) @often_updated;
CREATE INDEX url_nofollow ON url (id) WHERE nofollow;
CREATE INDEX url_patterned ON url (trap, round) WHERE trap IS NOT NULL;
CREATE TABLE visit (                             -- open work only
    id @number,
    host bigint NOT NULL,
    token bigint,                                -- of the lease: member << 32 | number of the call
    due double precision,                        -- waiting: when it is due; leased: when the lease expires
    trap bigint,
    sample bigint,
    -- of a held URL: how many held links of the same page precede it; -1: not counted yet; more if it was
    -- found later, or if only pages of its pattern link to it (`rounds.RANK`)
    -- of a planned one: its place; -1: it is new
    rank integer NOT NULL DEFAULT -1,
    depth integer NOT NULL,
    -- {PLANNED} planned (`revisits`)
    -- {HELD} held for a round, {QUEUED} queued, {WAITING} waiting, {LEASED} leased
    state smallint NOT NULL,
    reopened smallint NOT NULL DEFAULT 0,        -- 1: after a failure, fetched after all others
    attempts integer NOT NULL DEFAULT 0,
    -- its page is being parsed, and the member before died with it
    suspect boolean NOT NULL DEFAULT false,
    deaths smallint NOT NULL DEFAULT 0           -- members that died while they parsed it
) @emptied_often;
CREATE INDEX visit_due ON visit (host, reopened, depth, id) WHERE state = {QUEUED};
CREATE INDEX visit_out ON visit (due) WHERE state IN ({WAITING}, {LEASED});
CREATE INDEX visit_planned ON visit (rank) WHERE state = {PLANNED};
CREATE INDEX visit_held ON visit (trap, rank, sample) WHERE state = {HELD};
CREATE TABLE page (
    id @number,
    settled double precision,
    failing double precision,                    -- time of the first failure since the last response
    failing_run integer,                         -- the run of that failure
    dated_lastmod bigint,                        -- the date of `dated_content`
    dated_header bigint,                         -- Last-Modified when that content was first published
    dated_stated bigint,                         -- the date that it stated then; 0: it came later
    was_lastmod bigint,
    facts_run integer,                           -- the run in which the facts were read
    attempts integer NOT NULL DEFAULT 0,
    visited integer,                             -- the last run that visited it
    first_visit double precision,                -- when the first run that visited it began; the last one
    last_visit double precision,
    visits integer NOT NULL DEFAULT 0,           -- that could see a change, and those that saw one
    changes integer NOT NULL DEFAULT 0,
    -- how many of the links, from the first on, nobody can click: redirect target, canonical, link elements
    named integer,
    outcome @text,
    detail @text,
{_FACTS}    published_content @text,             -- version in the last published run that listed the page
    dated_content @text,                         -- the last version whose date is known
    was @text,                                   -- the outcome in the previous run
    -- content@lastmod that search engines were told last; NULL: not told
    submitted @text,
    links @ids                                   -- negative: nofollow
) @often_updated;
CREATE INDEX page_barred ON page (id) WHERE outcome = 'unlisted:trap';
CREATE INDEX page_robots_down ON page (id) WHERE outcome IN ('unlisted:robots-down', 'kept:robots-down');
CREATE TABLE published (                         -- pages that were published, apart: a publication marks many
    id @number,
    until integer NOT NULL                       -- the last publication that contains it; {STILL}: the newest
);
CREATE TABLE feature (                           -- what optional features read of pages
    id bigint NOT NULL,                          -- of the URL
    name @text NOT NULL,
    read @text NOT NULL,                         -- JSON array of pairs: a label and a URL
    PRIMARY KEY (id, name)
);
CREATE TABLE anchor (                            -- what links say that have a finding
    id bigint NOT NULL,                          -- of the page
    target bigint NOT NULL,                      -- of the URL to which it links
    text @text NOT NULL,
    landmark @text NOT NULL,                     -- `parse.anchors.Place`
    version @text NOT NULL,                      -- of the page when it was read for that
    PRIMARY KEY (id, target)
) @small;
CREATE TABLE publication (
    number @identity,
    run integer NOT NULL,
    fingerprint @text NOT NULL,                  -- of its run
    at double precision NOT NULL,
    urls bigint NOT NULL,
    files integer,
    bytes bigint,
    added bigint,                                -- since the previous publication
    removed bigint,
    changed bigint,                              -- URLs whose date changed
    base @text,                                  -- of the published URLs
    folder @text,                                -- '' for standard output
    files_changed double precision,              -- when this or an earlier publication last changed a file
    delivered @text                              -- what --publish-command delivered last
);
-- what an engine accepted; the first row only begins the ledger
CREATE TABLE submission (
    number @identity,
    at double precision NOT NULL,
    run integer NOT NULL,
    base @text NOT NULL,                         -- of the published URLs
    reading @text NOT NULL,                      -- of its run
    urls bigint NOT NULL
);
CREATE TABLE external (                          -- what other sites answered for the URLs that pages link to
    id @number,                                  -- of the URL
    round integer NOT NULL,                      -- the run in which the last check of it began
    checked double precision NOT NULL,
    code @text NOT NULL,                         -- `model.external.Answer`
    status integer,
    detail @text NOT NULL,
    was @text                                    -- the code before
);
"""

VIEW_NAMES: Final = ("pages", "links", "runs", "images", "external_links", "known")

# The stable interface for queries by users: tables change, views do not. They use tables only, and no other
# view.
_SETTLED_PAGES: Final = """
url AS u JOIN page AS p ON p.id = u.id
"""
_OF_NEWEST: Final = """
u.run = (SELECT max(number) FROM run) AND u.host IS NOT NULL
AND NOT EXISTS (SELECT 1 FROM visit AS w WHERE w.id = u.id)
"""
# What an earlier visit saw is not shown of a URL that is something else now (as in `queries.page`).
_OF_RESPONSE: Final = ("title", "type", "bytes", "took")
_ASKED: Final = "w.id IS NULL AND p.attempts > 0"
_READ: Final = f"{_ASKED} AND p.outcome NOT LIKE 'failed:%' AND p.outcome NOT LIKE 'kept:%'"
_DATED: Final = f"{_READ} OR w.id IS NULL AND (p.outcome = '{LISTED}' OR p.outcome LIKE 'kept:%')"
VIEWS: Final = f"""
{KNOWN}
CREATE VIEW pages AS
SELECT u.id, u.url, u.run, CASE WHEN w.id IS NULL THEN p.outcome ELSE 'open' END AS outcome,
    CASE WHEN w.id IS NULL THEN p.detail END AS detail, CASE WHEN {_ASKED} THEN p.status END AS status,
    {", ".join(f"CASE WHEN {_READ} THEN p.{name} END AS {name}" for name in _OF_RESPONSE)},
    CASE WHEN {_DATED} THEN @time(p.lastmod) END AS lastmod, CASE WHEN {_DATED} THEN p.source END AS source,
    u.depth AS found_at, v.url AS via,
    CASE s.kind WHEN 0 THEN 'start' WHEN 1 THEN 'input' WHEN 2 THEN s.name END AS seed,
    CASE WHEN {_READ} THEN {VERSION_OF} END AS content, CASE WHEN {_READ} THEN p.canonical END AS canonical,
    p.was, @time(p.was_lastmod) AS was_lastmod, @time(p.settled) AS settled
FROM url AS u LEFT JOIN visit AS w ON w.id = u.id LEFT JOIN page AS p ON p.id = u.id
LEFT JOIN url AS v ON v.id = u.via LEFT JOIN seed AS s ON s.id = u.seed;
CREATE VIEW external_links AS
SELECT u.url, u.run, x.code AS answer, x.status, x.detail, @time(x.checked) AS asked, x.was
FROM external AS x JOIN url AS u ON u.id = x.id JOIN page AS p ON p.id = u.id
    WHERE p.outcome = 'unlisted:offsite';
CREATE VIEW links AS
SELECT u.url AS source, t.url AS target,
    CASE WHEN @place > coalesce(p.named, 0) THEN 'link' ELSE 'head' END AS kind,
    CASE WHEN j.value < 0 THEN 1 ELSE 0 END AS nofollow, a.text, a.landmark AS place
FROM {_SETTLED_PAGES} @each(p.links) JOIN url AS t ON t.id = abs(j.value)
LEFT JOIN anchor AS a ON a.id = u.id AND a.target = t.id
WHERE {_OF_NEWEST}
    AND (@place > coalesce(p.named, 0)
        OR (t.url IS DISTINCT FROM p.canonical AND (p.outcome <> 'moved' OR @place > 1)))
UNION ALL
SELECT u.url, p.detail, 'redirect', 0, NULL, NULL
    FROM {_SETTLED_PAGES} WHERE {_OF_NEWEST} AND p.outcome = 'moved'
UNION ALL
SELECT u.url, p.canonical, 'canonical', 0, NULL, NULL
    FROM {_SETTLED_PAGES} WHERE {_OF_NEWEST} AND p.canonical IS NOT NULL;
CREATE VIEW images AS
SELECT u.url AS page, j.value ->> 1 AS image
FROM url AS u JOIN feature AS f ON f.id = u.id AND f.name = 'images' @each_json(f.read) WHERE {_OF_NEWEST};
CREATE VIEW runs AS
SELECT r.number, @time(r.started) AS started, @time(r.ended) AS ended,
    CASE WHEN r.ended IS NULL AND (r.status = 'abandoned' OR r.status = 'crawling' AND NOT EXISTS (
            SELECT 1 FROM member AS m WHERE m.run = r.number AND NOT m.gone AND m.until > @clock
        )) THEN 'interrupted' ELSE r.status END AS status,
    r.exit, r.seconds, r.requests, r.bytes,
    (SELECT CAST(coalesce(sum(m.discovered), 0) AS bigint)
        FROM member AS m WHERE m.run = r.number) AS discovered,
    @json(r.outcomes) AS outcomes, r.refused,
    @time(p.at) AS published, p.urls, p.files, p.bytes AS file_bytes, p.added, p.removed, p.changed, p.base,
        p.folder
FROM run AS r LEFT JOIN publication AS p ON p.number = (SELECT max(number)
    FROM publication WHERE run = r.number);
"""
