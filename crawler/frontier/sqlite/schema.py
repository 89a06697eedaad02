"""The tables of the SQLite frontier. Any SQLite tool can read them; only this package writes them.

A state file has our `application_id` and the version of its schema (`user_version`), so that another program's database is
never touched and an earlier version is migrated: once a version is released, a change of `TABLES` needs a new `VERSION`
and a step in `STEPS`.
"""

from collections.abc import Mapping
from typing import Final

APPLICATION_ID = 0x53_4D_43_52  # "SMCR"
VERSION = 1
STEPS: Final[Mapping[int, str]] = {}
"""By version: the migration to the next one, without views, which are made anew."""

# Tables for `rounds`: URLs of a pattern that may be a crawler trap are held, and fetched in batches.
PATTERNS = """
CREATE TABLE trap (
    id INTEGER PRIMARY KEY,
    run INTEGER NOT NULL,
    family INTEGER,                        -- id of its family; NULL: a family itself, or a trap obvious from a URL
    kind TEXT NOT NULL,
    pattern TEXT NOT NULL,
    named INTEGER NOT NULL DEFAULT 0,      -- 1: for URLs that are canonical or redirect targets of other pages
    example TEXT,
    batch INTEGER NOT NULL DEFAULT 0,      -- pages to fetch before the pattern is continued or closed
    batch_left INTEGER NOT NULL DEFAULT 0, -- those of the batch that are still to be fetched
    fetched INTEGER NOT NULL DEFAULT 0,    -- pages fetched in rounds so far
    batch_round INTEGER NOT NULL DEFAULT 0, -- the round in which the batch was released
    proven INTEGER NOT NULL DEFAULT 0,     -- 1: a batch had enough new content
    closed INTEGER NOT NULL DEFAULT 0,     -- 1: a batch had too little new content
    longest INTEGER NOT NULL DEFAULT 0,    -- length of its longest URL, in characters
    longest_before INTEGER NOT NULL DEFAULT 0, -- the same before the last round
    rounds_growing INTEGER NOT NULL DEFAULT 0, -- consecutive rounds in which that length grew
    UNIQUE (run, pattern, named)
);
CREATE INDEX ripe ON trap (run) WHERE closed = 0 AND batch_left <= 0;
CREATE INDEX members ON trap (family) WHERE family IS NOT NULL;
CREATE INDEX open ON url (depth) WHERE state IN (0, 1, 2);
CREATE INDEX held ON url (trap, sample) WHERE state = -1;
CREATE INDEX patterned ON url (trap, round) WHERE trap IS NOT NULL;
CREATE INDEX barred ON url (published) WHERE outcome = 'unlisted:trap';
"""

VIEW_NAMES = ("pages", "links", "runs", "images", "external_links")
# The stable interface for queries by users (docs/use/state.md): tables change, views do not.
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
CREATE VIEW runs AS
SELECT r.number, datetime(r.started, 'unixepoch') AS started, datetime(r.ended, 'unixepoch') AS ended,
    CASE WHEN r.ended IS NULL AND (r.status = 'abandoned' OR r.status = 'crawling' AND coalesce(r.beat, 0) < strftime('%s') - 60)
        THEN 'interrupted' ELSE r.status END AS status,
    r.exit, r.seconds, r.requests, r.bytes, r.discovered, r.outcomes, r.refused,
    datetime(p.at, 'unixepoch') AS published, p.urls, p.files, p.bytes AS file_bytes, p.added, p.removed, p.changed,
    p.base, p.folder
FROM run AS r LEFT JOIN publication AS p ON p.number = (SELECT max(number) FROM publication WHERE run = r.number);
CREATE VIEW images AS
SELECT p.url AS page, i.url AS image FROM url AS p, json_each(p.images) AS j JOIN image AS i ON i.id = j.value
WHERE p.run = (SELECT max(number) FROM run) AND p.state = 3;
CREATE VIEW external_links AS
SELECT u.url, u.run, x.code AS answer, x.status, x.detail, datetime(x.checked, 'unixepoch') AS asked, x.was
FROM external AS x JOIN url AS u ON u.id = x.id WHERE u.outcome = 'unlisted:offsite';
"""

# The images of pages (`images`).
IMAGES = """
CREATE TABLE image (
    id INTEGER PRIMARY KEY,
    url TEXT NOT NULL UNIQUE
);
"""

# What search engines were told (`ledger`).
SUBMISSIONS = """
CREATE TABLE submission (                  -- what an engine accepted; the first row only begins the ledger
    number INTEGER PRIMARY KEY,
    at REAL NOT NULL,
    run INTEGER NOT NULL,
    base TEXT NOT NULL,                    -- of the published URLs
    reading TEXT NOT NULL,                 -- of its run
    urls INTEGER NOT NULL
);
"""

# What other sites answered for the URLs that pages link to (`externals`).
EXTERNALS = """
CREATE TABLE external (
    id INTEGER PRIMARY KEY,                -- of the URL
    round INTEGER NOT NULL,                -- the run in which the last check of it began
    checked REAL NOT NULL,
    code TEXT NOT NULL,                    -- `model.external.Answer`
    status INTEGER,
    detail TEXT NOT NULL,
    was TEXT                               -- the code before
);
"""

# Whether the file has the bytes that the last session left (`checksum`).
CHECKSUM = """
CREATE TABLE checksum (
    value INTEGER                          -- CRC-32 of the file without this page; no row while a session is open
);
"""

TABLES = (
    """
CREATE TABLE run (
    number INTEGER PRIMARY KEY,
    fingerprint TEXT NOT NULL,             -- hash of the settings that affect what is found and listed
    reading TEXT NOT NULL,                 -- hash of the settings that affect how a page is parsed
    started REAL NOT NULL,
    status TEXT NOT NULL,                  -- crawling, complete, concluded (published), refused, abandoned
    discovered INTEGER NOT NULL DEFAULT 0, -- URLs found, counted on arrival; checked against the balance
    round INTEGER NOT NULL DEFAULT 0,      -- number of rounds so far
    ended REAL,                            -- NULL: a session is running, or was killed
    exit INTEGER,                          -- of the last session
    seconds REAL,                          -- duration of all sessions
    requests INTEGER,                      -- pages requested
    bytes INTEGER,                         -- of the bodies of these pages, decoded
    outcomes TEXT,                         -- JSON object: URLs by code
    refused TEXT,                          -- why the guard kept the published sitemap
    succeeded REAL,                        -- when a session of this or an earlier run last ended with exit 0 or 8
    beat REAL                              -- heartbeat for the view `runs`, which cannot see the one of the lock file
);
CREATE TABLE note (                        -- `model.note`
    run INTEGER NOT NULL,
    key TEXT NOT NULL,
    value TEXT NOT NULL,
    PRIMARY KEY (run, key)
) WITHOUT ROWID;
CREATE TABLE host (
    id INTEGER PRIMARY KEY,
    origin TEXT NOT NULL UNIQUE,
    delay REAL NOT NULL,                   -- seconds between slots
    backoff REAL NOT NULL DEFAULT 1,       -- factor that extends `delay` while the host is throttled
    backoff_grew_at REAL NOT NULL DEFAULT 0,
    next REAL NOT NULL DEFAULT 0,          -- the next free slot
    robots_leased_until REAL NOT NULL DEFAULT 0, -- until then, robots.txt is being read by a lease
    robots_read_at REAL,
    robots TEXT,                           -- rules, none or down
    robots_text BLOB,
    robots_detail TEXT
);
CREATE TABLE seed (                        -- sources of URLs other than links
    id INTEGER PRIMARY KEY,
    kind INTEGER NOT NULL,                 -- 0 the start URLs, 1 a file of --input, 2 a sitemap
    name TEXT NOT NULL,                    -- URL or path; '' for the start URLs
    run INTEGER NOT NULL,                  -- the last run that contained it
    parent INTEGER,                        -- the sitemap index that contains it
    depth INTEGER NOT NULL,                -- number of indexes above it
    settled REAL,                          -- NULL: still to be read in this run
    outcome TEXT,
    detail TEXT,
    entries INTEGER NOT NULL DEFAULT 0,    -- number of URLs in it
    passed INTEGER NOT NULL DEFAULT 0,     -- number of its sitemaps skipped because of the limit
    failing REAL,                          -- time of the first failure since it was last read
    may_pass INTEGER,                      -- 1: it failed temporarily in this run
    UNIQUE (kind, name)
);
CREATE TABLE url (
    id INTEGER PRIMARY KEY,
    url TEXT NOT NULL UNIQUE,
    run INTEGER NOT NULL,                  -- the last run that found it
    state INTEGER NOT NULL,                -- -1 held for a round, 0 queued, 1 waiting, 2 leased, 3 settled
    host INTEGER,                          -- NULL: not to be requested
    depth INTEGER NOT NULL,
    hops INTEGER NOT NULL,
    via INTEGER,                           -- the first page that linked to it
    attempts INTEGER NOT NULL DEFAULT 0,
    token INTEGER,                         -- of the lease
    due REAL,                              -- waiting: when it is due; leased: when the lease expires
    outcome TEXT,
    detail TEXT,
    settled REAL,
    facts_run INTEGER,                     -- the run in which the facts below were read
    status INTEGER,
    etag TEXT,
    modified TEXT,
    lastmod INTEGER,
    source TEXT,
    header INTEGER,                        -- the date of Last-Modified
    fresh INTEGER,                         -- 1: Last-Modified was the time of the request
    stated INTEGER,                        -- the date stated in the page
    content TEXT,                          -- fingerprint of its visible content; after `=`, a digest of its bytes
    unordered TEXT,                        -- fingerprint of its words and links, in any order
    variant TEXT,                          -- another name of the page, by Content-Location
    published_content TEXT,                -- fingerprint in the last published run that listed the page
    dated_content TEXT,                    -- the last fingerprint whose date is known
    dated_lastmod INTEGER,                 -- that date
    dated_header INTEGER,                  -- Last-Modified when that content was last published
    was TEXT,                              -- the outcome in the previous run
    was_lastmod INTEGER,
    links TEXT,                            -- JSON array of ids; negative: nofollow
    named INTEGER,                         -- how many of these, from the first on, are canonical or redirect targets; NULL: none
    failing REAL,                          -- time of the first failure since the last response
    published INTEGER,                     -- the last publication that contains it
    reopened INTEGER NOT NULL DEFAULT 0,   -- 1: after a failure, fetched after all others
    seed INTEGER,                          -- the first seed, by kind and id, that contains it; NULL: found by links only
    obstacle TEXT,                         -- the obstacle that may hide the site, such as a login form
    title TEXT,
    type TEXT,                             -- essence of the media type
    bytes INTEGER,                         -- decoded
    took INTEGER,                          -- milliseconds from the request to the last byte
    canonical TEXT,                        -- canonical URL, if it is another one
    alternates TEXT,                       -- its language versions: lines of code and URL
    images TEXT,                           -- JSON array of ids in `image`, in the order of the page; NULL: none
    rendering TEXT,                        -- JSON: why it needs scripts, and what they did
    trap INTEGER,                          -- the pattern that it belongs to
    sample INTEGER,                        -- its position in the pattern: a hash of the URL
    found INTEGER NOT NULL DEFAULT 0,      -- the round in which it was discovered
    round INTEGER,                         -- the round that released it; NULL: released without a round
    submitted TEXT                         -- content@lastmod that search engines were told last; NULL: not told
);
CREATE TABLE publication (
    number INTEGER PRIMARY KEY,
    run INTEGER NOT NULL,
    fingerprint TEXT NOT NULL,             -- of its run
    at REAL NOT NULL,
    urls INTEGER NOT NULL,
    files INTEGER,
    bytes INTEGER,
    added INTEGER,                         -- since the previous publication
    removed INTEGER,
    changed INTEGER,                       -- URLs whose date changed
    base TEXT,                             -- of the published URLs
    folder TEXT,                           -- '' for standard output
    files_changed REAL,                    -- when this or an earlier publication last changed a file
    delivered TEXT                         -- what --publish-command delivered last
);
CREATE INDEX due ON url (host, reopened, depth, id) WHERE state = 0;
CREATE INDEX out ON url (due) WHERE state IN (1, 2);
CREATE INDEX nofollow ON url (id) WHERE outcome = 'unlisted:nofollow';
"""
    + IMAGES
    + SUBMISSIONS
    + PATTERNS
    + EXTERNALS
    + CHECKSUM
    + VIEWS
)
