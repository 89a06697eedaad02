"""The tables of the PostgreSQL frontier. One schema of the database is one crawl; only this package writes there.

The data of a URL is split by how often it changes: `url` is written once, `visit` holds open work only and is deleted
when that is done, `page` holds the outcome. The view `known` joins the three for readers. Text is compared byte by byte
everywhere, as in SQLite, whatever the collation of the database.
"""

import re
from collections.abc import Mapping
from typing import Final

from crawler.frontier.postgres import views
from crawler.model.serialise import COUNT, FACTS, FLAG, MOMENT, STATUS

VERSION: Final = 1
STEPS: Final[Mapping[int, str]] = {}
"""By version: the migration to the next one, without views, which are made anew."""

_FORMS: Final = {STATUS: "integer", COUNT: "bigint", FLAG: "boolean", MOMENT: "bigint"}
FACT_TYPES: Final = {fact.name: _FORMS.get(fact.form, "text") for fact in FACTS}

_FACTS: Final = "".join(f"    {name} {kind},\n" for name, kind in FACT_TYPES.items())

_KNOWN: Final = f"""
CREATE VIEW known AS
SELECT u.*, coalesce(v.state, 3) AS state, coalesce(v.attempts, p.attempts, 0) AS attempts,
       p.settled, p.failing, p.dated_lastmod, p.dated_header, p.was_lastmod, p.facts_run, p.published, p.named,
       p.outcome, p.detail,
       {", ".join(f"p.{name}" for name in FACT_TYPES)}, p.published_content, p.dated_content, p.was, p.submitted, p.links, p.images
FROM url AS u LEFT JOIN visit AS v ON v.id = u.id LEFT JOIN page AS p ON p.id = u.id;
"""

_TABLES: Final = f"""
CREATE TABLE about (version integer NOT NULL);
CREATE TABLE run (
    number integer PRIMARY KEY,
    fingerprint text NOT NULL,
    reading text NOT NULL,
    started double precision NOT NULL,
    status text NOT NULL,                       -- crawling, complete, concluded (published), refused, abandoned
    round integer NOT NULL DEFAULT 0,
    leader bigint,                              -- the member that is the leader
    max_depth bigint,                           -- visits up to this depth may be leased
    closings integer NOT NULL DEFAULT 0,        -- how often patterns were closed: what members remember of them is void
    keys text[] NOT NULL DEFAULT '{{}}',          -- `--run` of the members that worked on it
    terms text,                                 -- JSON object: digests of what members must agree on, by setting
    budget bigint,                              -- pages that may still be leased; NULL: any number
    deadline double precision,                  -- of --max-time; NULL: none
    interruption text,                          -- JSON array, as `model.run.Interruption`; NULL: none
    ended double precision,                     -- NULL: a session is at work, or was killed
    exit integer,
    seconds double precision,
    requests bigint,
    bytes bigint,
    outcomes text,                              -- JSON object: URLs by code
    refused text,
    succeeded double precision                  -- when a session of this or an earlier run last ended with exit 0 or 8
) WITH (fillfactor = 50);
CREATE TABLE member (                           -- a process that works on the run, or has worked on it
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    run integer NOT NULL,
    name text NOT NULL,                         -- host:pid
    until double precision NOT NULL,            -- after this time it counts as dead
    gone boolean NOT NULL DEFAULT false,
    discovered bigint NOT NULL DEFAULT 0,       -- URLs that it added; the balance is held against the sum
    settled bigint NOT NULL DEFAULT 0,
    seconds double precision NOT NULL DEFAULT 0, -- at work
    requests bigint NOT NULL DEFAULT 0,
    bytes bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 50);
CREATE INDEX member_run ON member (run);
CREATE TABLE note (run integer NOT NULL, key text NOT NULL, value text NOT NULL, PRIMARY KEY (run, key));
CREATE TABLE host (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    origin text NOT NULL UNIQUE,
    delay double precision NOT NULL,
    backoff double precision NOT NULL DEFAULT 1,
    backoff_grew_at double precision NOT NULL DEFAULT 0,
    next double precision NOT NULL DEFAULT 0,
    robots_leased_until double precision NOT NULL DEFAULT 0,
    robots_read_at double precision,
    robots text,
    robots_text bytea,
    robots_detail text
) WITH (fillfactor = 50);
CREATE TABLE seed (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    kind smallint NOT NULL,
    name text NOT NULL,
    run integer NOT NULL,
    parent bigint,
    depth integer NOT NULL,
    settled double precision,
    outcome text,
    detail text,
    entries bigint NOT NULL DEFAULT 0,
    passed bigint NOT NULL DEFAULT 0,
    failing double precision,
    may_pass boolean,
    UNIQUE (kind, name)
);
CREATE TABLE trap (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    run integer NOT NULL,
    family bigint,
    kind text NOT NULL,
    pattern text NOT NULL,
    named boolean NOT NULL DEFAULT false,
    bare uuid,                                  -- of a family: `url.fp` of its path without a query
    example text,
    batch integer NOT NULL DEFAULT 0,
    batch_left integer NOT NULL DEFAULT 0,
    fetched integer NOT NULL DEFAULT 0,
    batch_round integer NOT NULL DEFAULT 0,
    proven boolean NOT NULL DEFAULT false,
    closed boolean NOT NULL DEFAULT false,
    longest integer NOT NULL DEFAULT 0,
    longest_before integer NOT NULL DEFAULT 0,
    rounds_growing integer NOT NULL DEFAULT 0,
    UNIQUE (run, pattern, named)
) WITH (fillfactor = 50);
CREATE INDEX trap_ripe ON trap (run) WHERE NOT closed AND batch_left <= 0;
CREATE INDEX trap_members ON trap (family) WHERE family IS NOT NULL;
CREATE SEQUENCE url_id;
CREATE TABLE url (
    id bigint PRIMARY KEY,
    fp uuid NOT NULL UNIQUE,                    -- BLAKE2b of the URL: an index on the text would refuse long URLs
    host bigint,                                -- NULL: not to be requested
    via bigint,
    seed bigint,
    trap bigint,
    sample bigint,
    run integer NOT NULL,
    depth integer NOT NULL,
    hops integer NOT NULL,
    found integer NOT NULL DEFAULT 0,
    round integer,
    nofollow boolean NOT NULL DEFAULT false,    -- found only by nofollow links
    url text NOT NULL
);
CREATE INDEX url_nofollow ON url (id) WHERE nofollow;
CREATE INDEX url_patterned ON url (trap, round) WHERE trap IS NOT NULL;
CREATE TABLE visit (                            -- open work only
    id bigint PRIMARY KEY,
    host bigint NOT NULL,
    token bigint,                               -- of the lease: member << 32 | number of the call
    due double precision,                       -- waiting: when it is due; leased: when the lease expires
    trap bigint,
    sample bigint,
    depth integer NOT NULL,
    state smallint NOT NULL,                    -- -1 held for a round, 0 queued, 1 waiting, 2 leased
    reopened smallint NOT NULL DEFAULT 0,
    attempts integer NOT NULL DEFAULT 0,
    suspect boolean NOT NULL DEFAULT false,     -- its page is being parsed, and the member before died with it
    deaths smallint NOT NULL DEFAULT 0          -- members that died while they parsed it
) WITH (fillfactor = 60, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX visit_due ON visit (host, reopened, depth, id) WHERE state = 0;
CREATE INDEX visit_out ON visit (due) WHERE state IN (1, 2);
CREATE INDEX visit_held ON visit (trap, sample) WHERE state = -1;
CREATE TABLE page (
    id bigint PRIMARY KEY,
    settled double precision,
    failing double precision,
    dated_lastmod bigint,
    dated_header bigint,
    was_lastmod bigint,
    facts_run integer,
    published integer,
    attempts integer NOT NULL DEFAULT 0,
    named integer,                              -- how many of the links, from the first on, are canonical or redirect targets
    outcome text,
    detail text,
{_FACTS}    published_content text,
    dated_content text,
    was text,
    submitted text,                             -- content@lastmod that search engines were told last; NULL: not told
    links bigint[],                             -- ids; negative: nofollow
    images bigint[]                             -- ids in `image`, in the order of the page; NULL: none
);
CREATE TABLE image (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    fp uuid NOT NULL UNIQUE,                    -- as `url.fp`
    url text NOT NULL
);
CREATE INDEX page_barred ON page (published) WHERE outcome = 'unlisted:trap';
CREATE INDEX page_robots_down ON page (id) WHERE outcome IN ('unlisted:robots-down', 'kept:robots-down');
CREATE TABLE publication (
    number integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    run integer NOT NULL,
    fingerprint text NOT NULL,
    at double precision NOT NULL,
    urls bigint NOT NULL,
    files integer,
    bytes bigint,
    added bigint,
    removed bigint,
    changed bigint,
    base text,
    folder text,
    files_changed double precision,
    delivered text                              -- what --publish-command delivered last
);
CREATE TABLE submission (                       -- what an engine accepted; the first row only begins the ledger
    number integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at double precision NOT NULL,
    run integer NOT NULL,
    base text NOT NULL,
    reading text NOT NULL,
    urls bigint NOT NULL
);
CREATE TABLE external (                         -- what other sites answered for the URLs that pages link to
    id bigint PRIMARY KEY,                      -- of the URL
    round integer NOT NULL,                     -- the run in which the last check of it began
    checked double precision NOT NULL,
    code text NOT NULL,                         -- `model.external.Answer`
    status integer,
    detail text NOT NULL,
    was text                                    -- the code before
);
CREATE UNLOGGED TABLE near (id bigint PRIMARY KEY, depth integer NOT NULL); -- see `distances`
CREATE INDEX near_level ON near (depth);
"""

VIEWS: Final = _KNOWN + views.VIEWS

TABLES: Final = re.sub(r" text(\[\])?", r' text\1 COLLATE "C"', _TABLES) + VIEWS
