"""The tables of the SQLite frontier. Any SQLite tool can read them; only `sqlite` writes them.

A state file says who made it (`application_id`) and in which form (`user_version`), so that another program's
database is never touched and an earlier form is migrated: a change of `TABLES` is a new `VERSION` and one more step
in `MIGRATIONS`.
"""

from crawler.frontier.sqlite.rows import FACT_COLUMNS, DueRow, FoundRow, SettledRow, named, of

APPLICATION_ID = 0x53_4D_43_52  # "SMCR"
VERSION = 11

# What the rounds need (`rounds`): URLs of a pattern that may be a crawler trap are held, and asked for in batches.
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

# What makes a state of a version into one of the next. A test holds the result to `TABLES`.
MIGRATIONS = {
    2: "ALTER TABLE run ADD COLUMN reading TEXT NOT NULL DEFAULT ''",
    3: "ALTER TABLE host ADD COLUMN strained REAL NOT NULL DEFAULT 0",
    4: "ALTER TABLE url ADD COLUMN unordered TEXT; ALTER TABLE url ADD COLUMN variant TEXT",
    5: """
        ALTER TABLE url ADD COLUMN failing REAL;
        ALTER TABLE url ADD COLUMN published INTEGER;
        ALTER TABLE url ADD COLUMN tail INTEGER NOT NULL DEFAULT 0;
        CREATE TABLE publication (
            number INTEGER PRIMARY KEY, run INTEGER NOT NULL, fingerprint TEXT NOT NULL, at REAL NOT NULL, urls INTEGER NOT NULL
        );
        DROP INDEX due;
        CREATE INDEX due ON url (host, tail, depth, id) WHERE state = 0;
    """,
    6: """
CREATE TABLE seed (
    id INTEGER PRIMARY KEY,
    kind INTEGER NOT NULL,
    name TEXT NOT NULL,
    run INTEGER NOT NULL,
    parent INTEGER,
    depth INTEGER NOT NULL,
    settled REAL,
    outcome TEXT,
    detail TEXT,
    entries INTEGER NOT NULL DEFAULT 0,
    passed INTEGER NOT NULL DEFAULT 0,
    UNIQUE (kind, name)
);
ALTER TABLE url ADD COLUMN seed INTEGER;
""",
    7: """
        ALTER TABLE url ADD COLUMN seen TEXT; ALTER TABLE url ADD COLUMN kept TEXT;
        ALTER TABLE url ADD COLUMN kept_header INTEGER; ALTER TABLE url ADD COLUMN dated INTEGER;
        UPDATE url SET seen = content, kept = content, kept_header = header,
            dated = CASE WHEN outcome = 'listed' THEN coalesce(lastmod, moved) ELSE moved END
        WHERE content IS NOT NULL;
        ALTER TABLE url DROP COLUMN moved; ALTER TABLE url DROP COLUMN slid;
    """,
    8: "ALTER TABLE url ADD COLUMN look TEXT",
    9: "ALTER TABLE seed ADD COLUMN failing REAL; ALTER TABLE seed ADD COLUMN may_pass INTEGER",
    10: """
        ALTER TABLE run ADD COLUMN round INTEGER NOT NULL DEFAULT 0;
        ALTER TABLE url ADD COLUMN trap INTEGER;
        ALTER TABLE url ADD COLUMN sample INTEGER;
        ALTER TABLE url ADD COLUMN found INTEGER NOT NULL DEFAULT 0;
        ALTER TABLE url ADD COLUMN round INTEGER;
        DROP INDEX open;
    """
    + PATTERNS,
}

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
    round INTEGER NOT NULL DEFAULT 0       -- how often URLs of patterns were released
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
    content TEXT,                          -- fingerprint of what the page says
    unordered TEXT,                        -- the same of words and links, in any order
    variant TEXT,                          -- another name of the page, by Content-Location
    seen TEXT,                             -- fingerprint in the last published run that listed the page
    kept TEXT,                             -- the last fingerprint whose date is known,
    dated INTEGER,                         -- that date,
    kept_header INTEGER,                   -- and Last-Modified when that content was published last
    was TEXT,                              -- the outcome in the run before
    was_lastmod INTEGER,
    links TEXT,                            -- JSON array of ids; below zero: nofollow
    failing REAL,                          -- when it failed first since it was answered last
    published INTEGER,                     -- the last publication that it is in
    tail INTEGER NOT NULL DEFAULT 0,       -- 1: failed and asked again, after all others
    seed INTEGER,                          -- what named it, the first by kind and id; NULL: links alone
    look TEXT,                             -- what kind of page it is, if it may hide the site
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
    urls INTEGER NOT NULL
);
CREATE INDEX due ON url (host, tail, depth, id) WHERE state = 0;
CREATE INDEX out ON url (due) WHERE state IN (1, 2);
CREATE INDEX nofollow ON url (id) WHERE outcome = 'unlisted:nofollow';
"""
    + PATTERNS
)

# Each statement below works on a whole group, passed as JSON: one step of SQLite, not one for each row, and so
# one release of the interpreter lock, not hundreds.

FOUND = f"(SELECT {named(FoundRow._fields)} FROM json_each(:rows))"

ADD = f"""
INSERT INTO url ({", ".join(FoundRow._fields)}, run, seed, found)
SELECT {", ".join(FoundRow._fields)}, :run, :seed, :round
FROM {FOUND} WHERE true
ON CONFLICT (url) DO UPDATE SET
    run = excluded.run, state = excluded.state, host = excluded.host, depth = excluded.depth,
    hops = excluded.hops, via = excluded.via, seed = excluded.seed, attempts = 0, tail = 0,
    trap = excluded.trap, sample = excluded.sample, found = excluded.found, round = NULL,
    detail = CASE WHEN excluded.outcome IS NULL THEN detail ELSE excluded.detail END,
    was = outcome, was_lastmod = lastmod,
    outcome = coalesce(excluded.outcome, outcome), settled = coalesce(excluded.settled, settled),
    learned = CASE WHEN excluded.outcome IS NULL THEN learned END,
    -- What the run before saw counts from now on, if it was published. Content without a date leaves what is known
    -- of the content before: the site may have been ill, and that may come back. A page that fails next has the date
    -- that was published, whatever a refused run said.
    seen = CASE WHEN PUBLISHED THEN content ELSE seen END,
    kept = CASE WHEN PUBLISHED AND (lastmod IS NOT NULL OR dated IS NULL) THEN content ELSE kept END,
    dated = CASE WHEN PUBLISHED THEN coalesce(lastmod, dated) ELSE dated END,
    lastmod = CASE WHEN url.run IN CONCLUDED OR seen IS NULL THEN lastmod WHEN seen = kept THEN dated END,
    kept_header = CASE
        WHEN PUBLISHED AND content = kept THEN coalesce(header, kept_header)
        WHEN PUBLISHED AND (lastmod IS NOT NULL OR dated IS NULL) THEN header
        ELSE kept_header END
WHERE url.run < excluded.run
""".replace("PUBLISHED", "(outcome = 'listed' AND content IS NOT NULL AND url.run IN CONCLUDED)").replace(
    "CONCLUDED", "(SELECT number FROM run WHERE status = 'concluded')"
)

UPGRADE = f"""
UPDATE url SET
    state = r.state, host = r.host, depth = r.depth, hops = r.hops, via = r.via, outcome = r.outcome, detail = r.detail,
    trap = r.trap, sample = r.sample, found = :round
FROM {FOUND} AS r
WHERE url.url = r.url AND url.run = :run AND url.state = 3 AND url.outcome = 'unlisted:nofollow'
AND r.outcome IS NOT 'unlisted:nofollow'
"""

# A URL that was found to lie nearer than it was known to (by a redirect): nothing was asked of it yet.
NEARER = f"""
UPDATE url SET depth = r.depth, hops = min(url.hops, r.hops), via = r.via,
    state = iif(url.state = 3, r.state, url.state), host = coalesce(url.host, r.host),
    outcome = iif(url.state = 3, r.outcome, url.outcome), detail = iif(url.state = 3, r.detail, url.detail),
    trap = coalesce(url.trap, r.trap), sample = coalesce(url.sample, r.sample)
FROM {FOUND} AS r
WHERE url.url = r.url AND url.run = :run AND r.depth < url.depth
AND (url.state IN (-1, 0) OR (url.state = 3 AND url.outcome = 'unlisted:depth'))
"""

# A URL that another page names as canonical, or redirects to, and that was not asked for yet: it waits among its like.
NAMED = f"""
UPDATE url SET trap = r.trap, sample = r.sample, state = r.state,
    outcome = coalesce(r.outcome, iif(url.state = 3, NULL, url.outcome)), detail = r.detail
FROM {FOUND} AS r
WHERE url.url = r.url AND url.run = :run AND url.trap IS NOT NULL AND url.trap <> r.trap
AND (url.state = -1 OR (url.state = 3 AND url.outcome = 'unlisted:trap' AND url.attempts = 0))
"""

# A seed names what was found before. The first seed by kind and id counts, whichever was read first.
SEEDED = f"""
UPDATE url SET seed = :seed
WHERE url IN (SELECT url FROM {FOUND}) AND run = :run
AND (seed IS NULL OR (SELECT kind, id FROM seed AS s WHERE s.id = url.seed) > (:kind, :seed))
"""

# The site has grown: what lies on it now is asked for.
SET_ASIDE = """
SELECT u.url, u.depth, v.url, u.hops FROM url AS u INDEXED BY sqlite_autoindex_url_1 LEFT JOIN url AS v ON v.id = u.via
WHERE u.url > :after AND u.run = :run AND u.state = 3 AND u.host IS NULL
AND u.outcome IN ('unlisted:offsite', 'unlisted:excluded') ORDER BY u.url LIMIT :limit
"""
ADMIT = f"""
UPDATE url SET state = r.state, host = r.host, outcome = r.outcome, detail = r.detail, settled = r.settled,
    trap = r.trap, sample = r.sample, found = :round
FROM {FOUND} AS r
WHERE url.url = r.url AND url.run = :run AND url.state = 3 AND url.host IS NULL
"""

# What was not to be asked for because of where it was linked is asked for when a seed names it, too; and what was held for a
# round, or barred with its pattern, is no longer.
TAKE_UP = f"""
UPDATE url SET state = 0, host = r.host, detail = NULL, settled = NULL,
    outcome = iif(url.state = -1, url.outcome, NULL), trap = coalesce(url.trap, r.trap), sample = coalesce(url.sample, r.sample),
    via = CASE WHEN url.state = -1 OR url.outcome <> 'unlisted:nofollow' THEN url.via END
FROM {FOUND} AS r
WHERE url.url = r.url AND url.run = :run AND r.outcome IS NULL AND (
    url.state = -1
    OR (url.state = 3 AND url.host IS NULL
        AND url.outcome IN ('unlisted:nofollow', 'unlisted:depth', 'unlisted:not-named', 'unlisted:trap'))
    OR (url.state = 3 AND url.outcome = 'unlisted:trap' AND url.attempts = 0)
)
"""

RAISE = f"""
UPDATE url SET depth = 0 WHERE url IN (SELECT url FROM {FOUND}) AND run = :run AND depth > 0
"""

# Ways to known URLs by fewer redirects, and so to where these redirect. A URL that failed as the end of too many is due again.
# A way is [URL, redirects, redirects by which the URL was known when it was asked for].
FEWER = """
WITH RECURSIVE fewer (id, hops) AS (
    SELECT u.id, min(w.value ->> 1, u.hops) FROM json_each(:ways) AS w JOIN url AS u ON u.url = w.value ->> 0
    WHERE u.run = :run AND (w.value ->> 1 < u.hops OR w.value ->> 2 > u.hops)
    UNION ALL
    SELECT t.id, f.hops + 1 FROM fewer AS f JOIN url AS s ON s.id = f.id JOIN url AS t ON t.url = s.detail
    WHERE s.state = 3 AND s.outcome = 'moved' AND t.run = :run AND t.hops > f.hops + 1
)
UPDATE url SET hops = f.hops, {reopened}
FROM (SELECT id, min(hops) AS hops FROM fewer GROUP BY id) AS f
WHERE url.id = f.id
""".format(
    reopened=", ".join(
        f"{column} = iif(url.state = 3 AND url.outcome = 'failed:redirects', {value}, url.{column})"
        for column, value in {
            "state": "0",
            "outcome": "NULL",
            "detail": "NULL",
            "settled": "NULL",
            "attempts": "0",
        }.items()
    )
)

# The first page that links to what a seed named, itself apart.
LINKED = f"""
UPDATE url SET via = r.via
FROM {FOUND} AS r
WHERE url.url = r.url AND url.run = :run AND url.via IS NULL AND url.id <> r.via
AND r.outcome IS NOT 'unlisted:nofollow'
"""

# Whether another way to a URL would be news: it is known from nofollow links only, from a seed only, or by redirects only.
KNOWN = """
SELECT json_group_array(json_array(
    u.url, u.id, u.via IS NULL OR u.hops > 0 OR (u.state = 3 AND u.outcome IS 'unlisted:nofollow')
))
FROM json_each(:urls) AS j JOIN url AS u ON u.url = j.value WHERE u.run = :run
"""

ANY_NOFOLLOW = "SELECT EXISTS (SELECT 1 FROM url WHERE outcome = 'unlisted:nofollow')"

VALID = """
SELECT json_group_array(u.id) FROM json_each(:leases) AS j
JOIN url AS u ON u.id = j.value ->> 0 AND u.token = j.value ->> 1 AND u.state = 2
"""

# A failure that may pass leaves what the page said when it was answered last, but not the answer itself.
ANSWER = ("status", "etag", "modified")
_KEPT = ",\n    ".join(
    f"{fact} = CASE WHEN s.stays THEN url.{fact} ELSE s.{fact} END"
    for fact in FACT_COLUMNS
    if fact not in ANSWER
)

SETTLE = f"""
UPDATE url SET
    state = 3, token = NULL, due = NULL, settled = :now,
    outcome = s.outcome, detail = s.detail,
    links = coalesce(s.links, CASE WHEN s.unchanged OR s.stays THEN url.links END),
    learned = CASE WHEN s.stays THEN learned ELSE :run END,
    {", ".join(f"{fact} = s.{fact}" for fact in ANSWER)},
    {_KEPT},
    failing = CASE WHEN s.answered THEN NULL WHEN s.patience > 0 THEN coalesce(min(failing, :now), :now) ELSE failing END,
    published = CASE WHEN s.listable THEN published END
FROM (
    SELECT r.*, r.patience > 0 AND :now - coalesce(u.failing, :now) < r.patience AS stays
    FROM (SELECT {named((*SettledRow._fields, *FACT_COLUMNS))} FROM json_each(:rows)) AS r JOIN url AS u ON u.id = r.id
) AS s
WHERE url.id = s.id
"""

# The last publication under the settings of this run; or of any settings, if there is none yet.
LAST = """
SELECT number, urls FROM publication
ORDER BY fingerprint = (SELECT fingerprint FROM run WHERE number = :run) DESC, number DESC LIMIT 1
"""

KEEP = """
UPDATE url SET outcome = CASE WHEN published >= :last AND :now - failing < k.seconds THEN k.kept ELSE k.failed END
FROM (
    SELECT value ->> 0 AS failed, value ->> 1 AS kept, value ->> 2 AS seconds FROM json_each(:patience)
) AS k
WHERE url.run = :run AND url.state = 3 AND url.outcome IN (k.failed, k.kept)
"""

ANSWERED = """
SELECT url FROM url WHERE run = :run AND state = 3 AND outcome = 'listed' AND status IS NOT NULL
AND host = (SELECT id FROM host WHERE origin = :origin) ORDER BY settled DESC, id DESC LIMIT 1
"""

MARK_PUBLISHED = """
UPDATE url SET published = :number
WHERE run = :run AND state = 3 AND (outcome = 'listed' OR outcome LIKE 'kept:%')
"""

CHANGED = """
SELECT CASE WHEN run = :run AND state = 3 THEN outcome ELSE '' END, count(*) FROM url WHERE published >= :last GROUP BY 1
"""

POSTPONE = """
UPDATE url SET state = 1, token = NULL, due = s.v ->> 1
FROM (SELECT value AS v FROM json_each(:rows)) AS s
WHERE url.id = s.v ->> 0
"""

RETURN = """
UPDATE url SET state = 0, token = NULL, due = NULL, attempts = attempts - 1
FROM (SELECT value AS v FROM json_each(:leases)) AS s
WHERE url.id = s.v ->> 0 AND url.token = s.v ->> 1 AND url.state = 2
"""

DUE = f"""
SELECT json_group_array(json_array({of("u", DueRow._fields, via="v.url")}, {of("u", FACT_COLUMNS)}))
FROM (
    SELECT * FROM (
        SELECT * FROM url WHERE state = 0 AND host = :host AND tail = 0 AND depth <= :depth ORDER BY depth, id LIMIT :limit
    )
    UNION ALL SELECT * FROM (
        SELECT * FROM url WHERE state = 0 AND host = :host AND tail = 1 AND depth <= :depth ORDER BY depth, id LIMIT :limit
    )
    LIMIT :limit
) AS u
LEFT JOIN url AS v ON v.id = u.via
"""

TAKE = """
UPDATE url SET state = 2, token = :token, due = :due, attempts = attempts + 1
WHERE id IN (SELECT value FROM json_each(:ids))
"""

HOSTS = """
SELECT id, origin, gap, strain, next, asked, met FROM host
WHERE EXISTS (SELECT 1 FROM url WHERE state = 0 AND host = host.id AND tail IN (0, 1) AND depth <= :depth) ORDER BY next, id
"""

RECALL = "SELECT value FROM word WHERE run = :run AND key = :key"
RECALL_PUBLISHED = """
SELECT value FROM word WHERE key = :key
AND run = (SELECT max(number) FROM run WHERE status = 'concluded' AND number < :run)
"""

EVIDENCE = """
SELECT h.origin, count(u.header), total(u.fresh),
       count(CASE WHEN u.content = u.kept THEN u.header - u.kept_header END),
       total(u.content = u.kept AND u.header <> u.kept_header),
       count(u.content = u.seen), total(u.content <> u.seen)
FROM url AS u JOIN host AS h ON h.id = u.host
WHERE u.run = :run AND u.state = 3 AND u.outcome = 'listed' GROUP BY h.origin ORDER BY h.origin
"""

# Of each origin the window of time with the most dates.
BUILDS = """
WITH moment AS (
    SELECT host, header AS at, count(*) AS pages, count(stated) AS stating, total(stated < header - :older) AS older
    FROM url WHERE run = :run AND state = 3 AND outcome = 'listed' AND header IS NOT NULL GROUP BY host, header
),
span AS (
    SELECT host, at, last_value(at) OVER near AS last, sum(pages) OVER near AS within,
           sum(stating) OVER near AS stating, sum(older) OVER near AS older, sum(pages) OVER (PARTITION BY host) AS dated
    FROM moment WINDOW near AS (PARTITION BY host ORDER BY at RANGE BETWEEN CURRENT ROW AND :window FOLLOWING)
),
ranked AS (SELECT *, row_number() OVER (PARTITION BY host ORDER BY within DESC, at) AS place FROM span)
SELECT h.origin, dated, at, last, within, stating, older FROM ranked JOIN host AS h ON h.id = ranked.host
WHERE place = 1 ORDER BY h.origin
"""

DATE = """
WITH lying AS MATERIALIZED (SELECT id FROM host WHERE origin IN (SELECT value FROM json_each(:lying))),
changing AS MATERIALIZED (SELECT id FROM host WHERE origin IN (SELECT value FROM json_each(:changing))),
build AS MATERIALIZED (
    SELECT h.id AS host, value ->> 1 AS first, value ->> 2 AS last
    FROM json_each(:builds) JOIN host AS h ON h.origin = value ->> 0
),
rung AS (
    SELECT id,
           CASE WHEN :header AND host NOT IN lying AND coalesce(content = kept AND header <> kept_header, 0) = 0
                AND NOT EXISTS (SELECT 1 FROM build AS b WHERE b.host = url.host AND header BETWEEN first AND last)
                THEN header END AS h,
           CASE WHEN :page THEN stated END AS s,
           CASE WHEN NOT :history THEN NULL
                -- Content that did not move, or came back, keeps the date it had.
                WHEN content = kept THEN CASE WHEN NOT EXISTS
                    (SELECT 1 FROM build AS b WHERE b.host = url.host AND dated BETWEEN first AND last) THEN dated END
                WHEN content <> seen AND host NOT IN changing THEN CAST(settled AS INTEGER) END AS m
    FROM url WHERE run = :run AND state = 3 AND outcome = 'listed' AND host IS NOT NULL
)
UPDATE url SET lastmod = d.at, source = d.source
FROM (
    SELECT id, coalesce(h, s, m) AS at,
           CASE WHEN h IS NOT NULL THEN 'header' WHEN s IS NOT NULL THEN 'page' WHEN m IS NOT NULL THEN 'history' END AS source
    FROM rung
) AS d
WHERE url.id = d.id AND (url.lastmod IS NOT d.at OR url.source IS NOT d.source)
"""

LINKS = """
SELECT json_group_array(json_array(u.url, j.value < 0))
FROM url AS p, json_each(p.links) AS j JOIN url AS u ON u.id = abs(j.value)
WHERE p.id = :id AND p.learned >= :since
"""

RECORD = f"""
SELECT u.depth, v.url AS via, u.hops, u.run, u.state, u.outcome, u.detail, u.attempts, u.settled, {of("u", FACT_COLUMNS)},
       s.kind, s.name, s.depth AS nested, u.was, u.was_lastmod, u.failing, t.pattern, t.asked, t.closed
FROM url AS u LEFT JOIN url AS v ON v.id = u.via LEFT JOIN seed AS s ON s.id = u.seed
LEFT JOIN trap AS t ON t.id = u.trap AND t.run = u.run WHERE u.url = :url
"""

LINKING = """
SELECT count(*) FROM url AS p WHERE p.run = :run AND EXISTS
    (SELECT 1 FROM json_each(p.links) WHERE abs(value) = (SELECT id FROM url WHERE url = :url))
"""

ENTRIES = """
SELECT url, lastmod FROM url INDEXED BY sqlite_autoindex_url_1
WHERE url > :after AND url < :below AND run = :run AND state = 3 AND (outcome = 'listed' OR outcome LIKE 'kept:%') ORDER BY url LIMIT :limit
"""

KNOWN_HERE = """
SELECT url FROM url INDEXED BY sqlite_autoindex_url_1
WHERE url > :after AND run = :run AND outcome IS NOT 'unlisted:offsite' ORDER BY url LIMIT :limit
"""

ALIKE = """
SELECT h.origin, u.content, count(*), min(u.url) FROM url AS u JOIN host AS h ON h.id = u.host
WHERE u.run = :run AND u.outcome = 'listed' AND u.content IS NOT NULL
GROUP BY u.host, u.content HAVING count(*) >= :least ORDER BY 3 DESC, 4 LIMIT 20
"""
WITHDRAW = """
UPDATE url SET outcome = 'unlisted:' || :why, detail = :detail
WHERE run = :run AND outcome = 'listed' AND url IN (SELECT value FROM json_each(:urls))
"""
WITHDRAW_ALIKE = """
UPDATE url SET outcome = 'unlisted:' || :why, detail = :detail
WHERE run = :run AND outcome = 'listed' AND content = :content
AND host = (SELECT id FROM host WHERE origin = :origin)
"""

# Duplicates (`duplicates`): of the pages with the same `unordered`, those whose names make them sort orders of another, and
# those whose names are twins. The functions are those of `duplicates`.

SORT_ORDERS = """
WITH pair AS MATERIALIZED (
    SELECT q.id, q.host, b.url AS base, j.key AS place, j.value ->> 1 AS sorting, q.content <> b.content AS reordered
    -- In this order: pages that say the same may be all there are, names that could be a page's base are few.
    FROM url AS q CROSS JOIN json_each(unsorted(q.url)) AS j
    CROSS JOIN url AS b INDEXED BY sqlite_autoindex_url_1 ON b.url = j.value ->> 0
    WHERE q.run = :run AND q.state = 3 AND q.outcome = 'listed' AND q.unordered IS NOT NULL AND instr(q.url, '?')
    AND b.run = :run AND b.state = 3 AND b.outcome = 'listed'
    AND b.host = q.host AND b.unordered = q.unordered
)
UPDATE url SET outcome = 'unlisted:duplicate', detail = d.base
FROM (
    -- That parameters sort is known of some, and shows of others where the order differs.
    SELECT id, base, min(place) FROM pair
    WHERE sorting = '' OR (host, sorting) IN (SELECT host, sorting FROM pair WHERE reordered) GROUP BY id
) AS d
WHERE url.id = d.id
"""
TWINS = """
WITH named AS MATERIALIZED (
    SELECT id, resource(url, variant) AS name FROM url
    WHERE run = :run AND state = 3 AND outcome = 'listed' AND unordered IS NOT NULL
    AND (variant IS NOT NULL OR url LIKE '%/index.%' OR url LIKE '%/default.%')
),
twin AS (
    SELECT name, id FROM named
    UNION
    SELECT name, u.id FROM (SELECT DISTINCT name FROM named) JOIN url AS u ON u.url = name
    WHERE u.run = :run AND u.state = 3 AND u.outcome = 'listed' AND u.unordered IS NOT NULL
),
choice AS (
    SELECT u.id, u.url, first_value(u.url) OVER (
        PARTITION BY t.name, u.unordered
        ORDER BY u.url NOT IN (SELECT detail FROM url WHERE run = :run AND outcome = 'unlisted:canonical' AND detail IS NOT NULL), length(u.url), u.url
    ) AS best
    FROM twin AS t JOIN url AS u ON u.id = t.id
)
UPDATE url SET outcome = 'unlisted:duplicate', detail = c.best
FROM (SELECT id, min(best) AS best FROM choice WHERE best <> url GROUP BY id) AS c
WHERE url.id = c.id
"""
ROBOTS = """
SELECT robots, robots_text, robots_detail, met FROM host
WHERE origin = :origin AND (met > :since OR met > (SELECT started FROM run WHERE number = :run) - :age)
"""

REOPEN = """
UPDATE url SET state = 0, outcome = NULL, detail = NULL, settled = NULL, due = NULL, token = NULL, attempts = 0, tail = 1
WHERE run = :run AND outcome LIKE 'failed:%' AND host IS NOT NULL AND url IN (SELECT value FROM json_each(:urls))
"""

REOPEN_UNASKED = """
UPDATE url SET state = 0, outcome = NULL, detail = NULL, settled = NULL, due = NULL, token = NULL, attempts = 0
WHERE run = :run AND outcome IN ('unlisted:robots-down', 'kept:robots-down') AND host IS NOT NULL
"""

# -- seeds ------------------------------------------------------------------------------------------------------

NAME = """
INSERT INTO seed (kind, name, run, parent, depth)
SELECT value ->> 0, value ->> 1, :run, :parent, value ->> 2 FROM json_each(:seeds) AS j
WHERE NOT EXISTS (SELECT 1 FROM seed WHERE kind = j.value ->> 0 AND name = j.value ->> 1 AND run = :run)
GROUP BY value ->> 0, value ->> 1 ORDER BY min(j.key) LIMIT :room
ON CONFLICT (kind, name) DO UPDATE SET
    run = excluded.run, parent = excluded.parent, depth = excluded.depth,
    settled = NULL, outcome = NULL, detail = NULL, entries = 0, passed = 0
"""

UNNAMED = """
SELECT count(DISTINCT json_array(value ->> 0, value ->> 1)) FROM json_each(:seeds) AS j
WHERE NOT EXISTS (SELECT 1 FROM seed WHERE kind = j.value ->> 0 AND name = j.value ->> 1 AND run = :run)
"""

NEXT_SEED = """
SELECT kind, name, depth FROM seed WHERE run = :run AND kind > 0 AND settled IS NULL ORDER BY kind, depth, id LIMIT 1
"""

SETTLE_SEED = """
UPDATE seed SET settled = :now, outcome = :outcome, detail = :detail, entries = :entries, passed = :passed,
    failing = CASE WHEN :may_pass THEN coalesce(min(failing, :now), :now) WHEN NOT :read THEN failing END,
    may_pass = :may_pass
WHERE id = :id
"""

BELOW = """
SELECT kind, name, depth FROM seed WHERE parent = :id AND run < :run
AND :keep > coalesce((SELECT :now - failing FROM seed WHERE id = :id), 0) ORDER BY id
"""

NAMED_BEFORE = """
SELECT s.kind, s.name, s.depth, json_group_array(u.url) FROM url AS u JOIN seed AS s ON s.id = u.seed
WHERE u.run < :run AND u.published >= :last AND s.run = :run AND s.may_pass AND :now - s.failing < :keep
GROUP BY s.id ORDER BY s.id
"""

SITEMAPS = """
SELECT coalesce(outcome, 'open'), count(*), total(passed) FROM seed WHERE run = :run AND kind = 2 GROUP BY 1
"""

ORPHANS = """
SELECT s.name, count(*) FROM url AS u JOIN seed AS s ON s.id = u.seed
WHERE u.run = :run AND u.state = 3 AND (u.outcome = 'listed' OR u.outcome LIKE 'kept:%') AND u.via IS NULL AND s.kind = 2
GROUP BY s.id ORDER BY 2 DESC, 1
"""

SURVEY = """
SELECT outcome, CASE WHEN outcome = 'listed' OR outcome LIKE 'kept:%' THEN coalesce(look, '') END, url >= :first AND url < :below, count(*)
FROM url WHERE run = :run AND state = 3 GROUP BY 1, 2, 3
"""
# A detail is a URL: what stands before the first slash after its host begins.
CANONICAL_ORIGINS = """
SELECT substr(detail, 1, instr(substr(detail, 9), '/') + 7) AS origin, count(*) FROM url
WHERE run = :run AND state = 3 AND outcome = 'unlisted:canonical' AND substr(detail, 1, length(:first)) <> :first
GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT 1
"""
