"""The tables of the SQLite frontier. Any SQLite tool can read them; only this package writes them.

A state file has our `application_id` and the version of its schema (`user_version`), so that another program's database is
never touched and an earlier version is migrated: a change of `TABLES` needs a new `VERSION` and another step in
`migrations`.
"""

APPLICATION_ID = 0x53_4D_43_52  # "SMCR"
VERSION = 14

# Tables for `rounds`: URLs of a pattern that may be a crawler trap are held, and fetched in batches.
PATTERNS = """
CREATE TABLE trap (
    id INTEGER PRIMARY KEY,
    run INTEGER NOT NULL,
    family INTEGER,                        -- its row; NULL: this is a family, or shows by the text of a URL
    kind TEXT NOT NULL,
    pattern TEXT NOT NULL,
    named INTEGER NOT NULL DEFAULT 0,      -- 1: of URLs that another page names as canonical, or redirects to
    example TEXT,
    batch INTEGER NOT NULL DEFAULT 0,      -- pages that are read until it is decided whether it goes on
    rest INTEGER NOT NULL DEFAULT 0,       -- of these, those that are still to be read
    asked INTEGER NOT NULL DEFAULT 0,      -- pages that were read, of those that a round asked for
    since INTEGER NOT NULL DEFAULT 0,      -- the round of that
    proven INTEGER NOT NULL DEFAULT 0,     -- 1: a batch brought news
    closed INTEGER NOT NULL DEFAULT 0,     -- 1: a batch brought too few
    reach INTEGER NOT NULL DEFAULT 0,      -- characters of its longest URL,
    longest INTEGER NOT NULL DEFAULT 0,    -- of the one before the last round,
    rising INTEGER NOT NULL DEFAULT 0,     -- and the rounds in a row in which that grew
    UNIQUE (run, pattern, named)
);
CREATE INDEX ripe ON trap (run) WHERE closed = 0 AND rest <= 0;
CREATE INDEX members ON trap (family) WHERE family IS NOT NULL;
CREATE INDEX open ON url (depth) WHERE state IN (0, 1, 2);
CREATE INDEX held ON url (trap, sample) WHERE state = -1;
CREATE INDEX patterned ON url (trap, round) WHERE trap IS NOT NULL;
CREATE INDEX barred ON url (published) WHERE outcome = 'unlisted:trap';
"""

# The stable interface for queries by users (docs/state.md): tables change, views do not.
VIEWS = """
CREATE VIEW pages AS
SELECT u.id, u.url, u.run, CASE WHEN u.state = 3 THEN u.outcome ELSE 'open' END AS outcome,
    CASE WHEN u.state = 3 THEN u.detail END AS detail, u.status, u.title, u.type, u.bytes, u.took,
    datetime(u.lastmod, 'unixepoch') AS lastmod, u.source, u.depth, v.url AS via,
    CASE s.kind WHEN 0 THEN 'start' WHEN 1 THEN 'input' WHEN 2 THEN s.name END AS seed,
    u.content, u.canonical, u.was, datetime(u.was_lastmod, 'unixepoch') AS was_lastmod,
    datetime(u.settled, 'unixepoch') AS settled
FROM url AS u LEFT JOIN url AS v ON v.id = u.via LEFT JOIN seed AS s ON s.id = u.seed;
CREATE VIEW links AS
SELECT p.url AS source, t.url AS target, 'link' AS kind, j.value < 0 AS nofollow
FROM url AS p, json_each(p.links) AS j JOIN url AS t ON t.id = abs(j.value)
WHERE p.run = (SELECT max(number) FROM run) AND p.state = 3 AND j.key >= coalesce(p.named, 0)
UNION ALL
SELECT url, detail, 'redirect', 0 FROM url
WHERE run = (SELECT max(number) FROM run) AND state = 3 AND outcome = 'moved'
UNION ALL
SELECT url, canonical, 'canonical', 0 FROM url
WHERE run = (SELECT max(number) FROM run) AND state = 3 AND canonical IS NOT NULL;
"""

RUNS_VIEW = """
CREATE VIEW runs AS
SELECT r.number, datetime(r.started, 'unixepoch') AS started, datetime(r.ended, 'unixepoch') AS ended,
    CASE WHEN r.ended IS NULL AND (r.status = 'abandoned' OR r.status = 'crawling' AND r.number < (SELECT max(number) FROM run))
        THEN 'interrupted' ELSE r.status END AS status,
    r.exit, r.seconds, r.requests, r.bytes, r.discovered, r.outcomes, r.refused,
    datetime(p.at, 'unixepoch') AS published, p.urls, p.files, p.bytes AS file_bytes, p.added, p.removed, p.changed,
    p.base, p.folder
FROM run AS r LEFT JOIN publication AS p ON p.number = (SELECT max(number) FROM publication WHERE run = r.number);
"""

# url.state
HELD, QUEUED, WAITING, LEASED, SETTLED = range(-1, 4)
STATES = {HELD: "held", QUEUED: "queued", WAITING: "waiting", LEASED: "leased", SETTLED: "settled"}

TABLES = (
    """
CREATE TABLE run (
    number INTEGER PRIMARY KEY,
    fingerprint TEXT NOT NULL,             -- of the settings that decide what is found and listed
    reading TEXT NOT NULL,                 -- of those that decide what is read from a page
    started REAL NOT NULL,
    status TEXT NOT NULL,                  -- crawling, complete, concluded (published), refused, abandoned
    discovered INTEGER NOT NULL DEFAULT 0, -- counted as URLs come in; the balance is held against it
    round INTEGER NOT NULL DEFAULT 0,      -- how often URLs of patterns were released
    ended REAL,                            -- NULL: a session is at work, or was killed
    exit INTEGER,                          -- of the last session
    seconds REAL,                          -- at work, over all sessions
    requests INTEGER,                      -- pages asked for
    bytes INTEGER,                         -- of the pages that were read, decoded
    outcomes TEXT,                         -- JSON object: URLs by code
    refused TEXT,                          -- why the guard kept the published sitemap
    succeeded REAL                         -- when a session of this run, or of one before, last ended with exit 0 or 8
);
CREATE TABLE word (
    run INTEGER NOT NULL,
    key TEXT NOT NULL,
    value TEXT NOT NULL,
    PRIMARY KEY (run, key)
) WITHOUT ROWID;
CREATE TABLE host (
    id INTEGER PRIMARY KEY,
    origin TEXT NOT NULL UNIQUE,
    gap REAL NOT NULL,                     -- seconds from slot to slot
    strain REAL NOT NULL DEFAULT 1,        -- how many times longer, while the host backs off
    strained REAL NOT NULL DEFAULT 0,      -- when that grew last
    next REAL NOT NULL DEFAULT 0,          -- the next free slot
    asked REAL NOT NULL DEFAULT 0,         -- until then somebody is reading robots.txt
    met REAL,                              -- when robots.txt was read
    robots TEXT,                           -- rules, none or down
    robots_text BLOB,
    robots_detail TEXT
);
CREATE TABLE seed (                        -- what names URLs without linking to them
    id INTEGER PRIMARY KEY,
    kind INTEGER NOT NULL,                 -- 0 the start URLs, 1 a file of --input, 2 a sitemap
    name TEXT NOT NULL,                    -- URL or path; '' for the start URLs
    run INTEGER NOT NULL,                  -- the last run that named it
    parent INTEGER,                        -- the index that names it
    depth INTEGER NOT NULL,                -- indexes above it
    settled REAL,                          -- NULL: still to be read in this run
    outcome TEXT,
    detail TEXT,
    entries INTEGER NOT NULL DEFAULT 0,    -- URLs that it names
    passed INTEGER NOT NULL DEFAULT 0,     -- sitemaps that it names, and that are too many to be read
    failing REAL,                          -- when it failed first since it was read last
    may_pass INTEGER,                      -- 1: it failed in this run in a way that may pass
    UNIQUE (kind, name)
);
CREATE TABLE url (
    id INTEGER PRIMARY KEY,
    url TEXT NOT NULL UNIQUE,
    run INTEGER NOT NULL,                  -- the last run that found it
    state INTEGER NOT NULL,                -- -1 held for a round, 0 queued, 1 waiting, 2 leased, 3 settled
    host INTEGER,                          -- NULL: not to be asked for
    depth INTEGER NOT NULL,
    hops INTEGER NOT NULL,
    via INTEGER,                           -- the page that linked to it first
    attempts INTEGER NOT NULL DEFAULT 0,
    token INTEGER,                         -- of the lease
    due REAL,                              -- waiting: until then; leased: ours until then
    outcome TEXT,
    detail TEXT,
    settled REAL,
    learned INTEGER,                       -- the run that the facts below are from
    status INTEGER,
    etag TEXT,
    modified TEXT,
    lastmod INTEGER,
    source TEXT,
    header INTEGER,                        -- the date of Last-Modified
    fresh INTEGER,                         -- 1: that is the time of the request
    stated INTEGER,                        -- the date that the page states
    content TEXT,                          -- fingerprint of what the page says; with = a digest of its bytes
    unordered TEXT,                        -- the same of words and links, in any order
    variant TEXT,                          -- another name of the page, by Content-Location
    seen TEXT,                             -- fingerprint in the last published run that listed the page
    kept TEXT,                             -- the last fingerprint whose date is known,
    dated INTEGER,                         -- that date,
    kept_header INTEGER,                   -- and Last-Modified when that content was published last
    was TEXT,                              -- the outcome in the run before
    was_lastmod INTEGER,
    links TEXT,                            -- JSON array of ids; below zero: nofollow
    named INTEGER,                         -- the first of these that it only names: canonical, redirect; NULL: none
    failing REAL,                          -- when it failed first since it was answered last
    published INTEGER,                     -- the last publication that it is in
    tail INTEGER NOT NULL DEFAULT 0,       -- 1: failed and asked again, after all others
    seed INTEGER,                          -- what named it, the first by kind and id; NULL: links alone
    look TEXT,                             -- what kind of page it is, if it may hide the site
    title TEXT,
    type TEXT,                             -- essence of the media type
    bytes INTEGER,                         -- decoded
    took INTEGER,                          -- milliseconds from the request to the last byte
    canonical TEXT,                        -- another URL that it names as canonical
    trap INTEGER,                          -- the pattern that it lies in
    sample INTEGER,                        -- its place there: a hash of its text
    found INTEGER NOT NULL DEFAULT 0,      -- the round in which it became known
    round INTEGER                          -- the round that asked for it; NULL: asked for without waiting for one
);
CREATE TABLE publication (
    number INTEGER PRIMARY KEY,
    run INTEGER NOT NULL,
    fingerprint TEXT NOT NULL,             -- of its run
    at REAL NOT NULL,
    urls INTEGER NOT NULL,
    files INTEGER,
    bytes INTEGER,
    added INTEGER,                         -- since the publication before
    removed INTEGER,
    changed INTEGER,                       -- URLs with another date
    base TEXT,                             -- of the published URLs
    folder TEXT,                           -- '' for standard output
    files_changed REAL                     -- when this publication, or one before, last changed a file
);
CREATE INDEX due ON url (host, tail, depth, id) WHERE state = 0;
CREATE INDEX out ON url (due) WHERE state IN (1, 2);
CREATE INDEX nofollow ON url (id) WHERE outcome = 'unlisted:nofollow';
"""
    + PATTERNS
    + VIEWS
    + RUNS_VIEW
)
