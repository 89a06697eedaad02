"""The migrations from earlier versions of the state to the current one."""

from typing import Final

from crawler.frontier.sqlite.schema import CHECKSUM, IMAGES

# By version: the migration to the next one, without views, which are made anew. A test checks that the result equals
# `schema.TABLES`.
MIGRATIONS: Final = {
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
        CREATE TABLE trap (
            id INTEGER PRIMARY KEY,
            run INTEGER NOT NULL,
            family INTEGER,
            kind TEXT NOT NULL,
            pattern TEXT NOT NULL,
            named INTEGER NOT NULL DEFAULT 0,
            example TEXT,
            batch INTEGER NOT NULL DEFAULT 0,
            rest INTEGER NOT NULL DEFAULT 0,
            asked INTEGER NOT NULL DEFAULT 0,
            since INTEGER NOT NULL DEFAULT 0,
            proven INTEGER NOT NULL DEFAULT 0,
            closed INTEGER NOT NULL DEFAULT 0,
            reach INTEGER NOT NULL DEFAULT 0,
            longest INTEGER NOT NULL DEFAULT 0,
            rising INTEGER NOT NULL DEFAULT 0,
            UNIQUE (run, pattern, named)
        );
        CREATE INDEX ripe ON trap (run) WHERE closed = 0 AND rest <= 0;
        CREATE INDEX members ON trap (family) WHERE family IS NOT NULL;
        CREATE INDEX open ON url (depth) WHERE state IN (0, 1, 2);
        CREATE INDEX held ON url (trap, sample) WHERE state = -1;
        CREATE INDEX patterned ON url (trap, round) WHERE trap IS NOT NULL;
        CREATE INDEX barred ON url (published) WHERE outcome = 'unlisted:trap';
    """,
    # Whether a page also links to its canonical becomes known when it is next read; every page is read anew (`resume.READ`).
    11: """
        ALTER TABLE url ADD COLUMN named INTEGER;
        ALTER TABLE url ADD COLUMN title TEXT; ALTER TABLE url ADD COLUMN type TEXT;
        ALTER TABLE url ADD COLUMN bytes INTEGER; ALTER TABLE url ADD COLUMN took INTEGER;
        ALTER TABLE url ADD COLUMN canonical TEXT;
        UPDATE url SET named = 1 WHERE outcome = 'moved' AND status BETWEEN 300 AND 399 AND links IS NOT NULL;
        UPDATE url SET canonical = detail WHERE outcome = 'unlisted:canonical';
        UPDATE url SET named = 1, links = (
            SELECT json_group_array(id) FROM (
                SELECT id FROM url AS c WHERE c.url = url.canonical
                UNION ALL SELECT value FROM json_each(url.links)
                WHERE value <> (SELECT id FROM url AS c WHERE c.url = url.canonical)
            )
        )
        WHERE (SELECT id FROM url AS c WHERE c.url = url.canonical) IN (SELECT value FROM json_each(url.links));
    """,
    12: """
        ALTER TABLE run ADD COLUMN ended REAL; ALTER TABLE run ADD COLUMN exit INTEGER;
        ALTER TABLE run ADD COLUMN seconds REAL; ALTER TABLE run ADD COLUMN requests INTEGER;
        ALTER TABLE run ADD COLUMN bytes INTEGER; ALTER TABLE run ADD COLUMN outcomes TEXT;
        ALTER TABLE run ADD COLUMN refused TEXT;
        ALTER TABLE publication ADD COLUMN files INTEGER; ALTER TABLE publication ADD COLUMN bytes INTEGER;
        ALTER TABLE publication ADD COLUMN added INTEGER; ALTER TABLE publication ADD COLUMN removed INTEGER;
        ALTER TABLE publication ADD COLUMN changed INTEGER;
        ALTER TABLE publication ADD COLUMN base TEXT; ALTER TABLE publication ADD COLUMN folder TEXT;
    """,
    13: """
        ALTER TABLE run ADD COLUMN succeeded REAL;
        UPDATE run SET succeeded = (SELECT max(r.ended) FROM run AS r WHERE r.number <= run.number AND r.exit IN (0, 8));
        ALTER TABLE publication ADD COLUMN files_changed REAL;
        UPDATE publication SET files_changed = at;
    """,
    14: """
        ALTER TABLE url ADD COLUMN told TEXT;
        CREATE TABLE submission (
            number INTEGER PRIMARY KEY,
            at REAL NOT NULL,
            run INTEGER NOT NULL,
            base TEXT NOT NULL,
            reading TEXT NOT NULL,
            urls INTEGER NOT NULL
        );
    """,
    15: "ALTER TABLE publication ADD COLUMN delivered TEXT",
    16: "ALTER TABLE run ADD COLUMN beat REAL",
    17: "ALTER TABLE url ADD COLUMN alternates TEXT",
    18: "ALTER TABLE url ADD COLUMN images TEXT;" + IMAGES,
    19: "ALTER TABLE url ADD COLUMN rendering TEXT",
    20: """
        CREATE TABLE external (
            id INTEGER PRIMARY KEY,
            round INTEGER NOT NULL,
            asked REAL NOT NULL,
            code TEXT NOT NULL,
            status INTEGER,
            detail TEXT NOT NULL,
            was TEXT
        );
    """,
    21: CHECKSUM,
    22: """
        ALTER TABLE host RENAME COLUMN gap TO delay;
        ALTER TABLE host RENAME COLUMN strain TO backoff;
        ALTER TABLE host RENAME COLUMN strained TO backoff_grew_at;
        ALTER TABLE host RENAME COLUMN asked TO robots_leased_until;
        ALTER TABLE host RENAME COLUMN met TO robots_read_at;
        ALTER TABLE trap RENAME COLUMN rest TO batch_left;
        ALTER TABLE trap RENAME COLUMN asked TO fetched;
        ALTER TABLE trap RENAME COLUMN since TO batch_round;
        ALTER TABLE trap RENAME COLUMN longest TO longest_before;
        ALTER TABLE trap RENAME COLUMN reach TO longest;
        ALTER TABLE trap RENAME COLUMN rising TO rounds_growing;
        ALTER TABLE external RENAME COLUMN asked TO checked;
        ALTER TABLE url RENAME COLUMN tail TO reopened;
        ALTER TABLE url RENAME COLUMN look TO obstacle;
        ALTER TABLE url RENAME COLUMN learned TO facts_run;
        ALTER TABLE url RENAME COLUMN seen TO published_content;
        ALTER TABLE url RENAME COLUMN kept TO dated_content;
        ALTER TABLE url RENAME COLUMN dated TO dated_lastmod;
        ALTER TABLE url RENAME COLUMN kept_header TO dated_header;
        ALTER TABLE url RENAME COLUMN told TO submitted;
        ALTER TABLE word RENAME TO note;
    """,
}
