"""The views of a crawl for queries by users (docs/use/state.md): the same names and columns as in a file of SQLite.

They are stable, while tables change. Times are without a zone, in UTC. They use tables only, and no other view, so that an
upgrade does not have to drop them: a user may have views of their own that use these.
"""

from typing import Final


def _time(seconds: str) -> str:
    return f"(to_timestamp(floor({seconds})) AT TIME ZONE 'UTC')"


VIEWS: Final = f"""
CREATE OR REPLACE VIEW pages AS
SELECT u.id, u.url, u.run, CASE WHEN w.id IS NULL THEN p.outcome ELSE 'open' END AS outcome,
    CASE WHEN w.id IS NULL THEN p.detail END AS detail, p.status, p.title, p.type, p.bytes, p.took,
    {_time("p.lastmod")} AS lastmod, p.source, u.depth, v.url AS via,
    CASE s.kind WHEN 0 THEN 'start' WHEN 1 THEN 'input' WHEN 2 THEN s.name END AS seed,
    p.content, p.canonical, p.was, {_time("p.was_lastmod")} AS was_lastmod, {_time("p.settled")} AS settled
FROM url AS u LEFT JOIN visit AS w ON w.id = u.id LEFT JOIN page AS p ON p.id = u.id
LEFT JOIN url AS v ON v.id = u.via LEFT JOIN seed AS s ON s.id = u.seed;

CREATE OR REPLACE VIEW external_links AS
SELECT u.url, u.run, x.code AS answer, x.status, x.detail, {_time("x.checked")} AS asked, x.was
FROM external AS x JOIN url AS u ON u.id = x.id JOIN page AS p ON p.id = u.id WHERE p.outcome = 'unlisted:offsite';

CREATE OR REPLACE VIEW links AS
SELECT u.url AS source, t.url AS target, 'link' AS kind, (j.id < 0)::integer AS nofollow
FROM url AS u JOIN page AS p ON p.id = u.id
CROSS JOIN LATERAL unnest(p.links) WITH ORDINALITY AS j(id, place) JOIN url AS t ON t.id = abs(j.id)
WHERE u.run = (SELECT max(number) FROM run) AND j.place > coalesce(p.named, 0)
AND NOT EXISTS (SELECT 1 FROM visit AS w WHERE w.id = u.id)
UNION ALL
SELECT u.url, p.detail, 'redirect', 0 FROM url AS u JOIN page AS p ON p.id = u.id
WHERE u.run = (SELECT max(number) FROM run) AND p.outcome = 'moved'
AND NOT EXISTS (SELECT 1 FROM visit AS w WHERE w.id = u.id)
UNION ALL
SELECT u.url, p.canonical, 'canonical', 0 FROM url AS u JOIN page AS p ON p.id = u.id
WHERE u.run = (SELECT max(number) FROM run) AND p.canonical IS NOT NULL
AND NOT EXISTS (SELECT 1 FROM visit AS w WHERE w.id = u.id);

CREATE OR REPLACE VIEW images AS
SELECT u.url AS page, i.url AS image
FROM url AS u JOIN page AS p ON p.id = u.id
CROSS JOIN LATERAL unnest(p.images) WITH ORDINALITY AS j(id, place) JOIN image AS i ON i.id = j.id
WHERE u.run = (SELECT max(number) FROM run) AND NOT EXISTS (SELECT 1 FROM visit AS w WHERE w.id = u.id);

CREATE OR REPLACE VIEW runs AS
SELECT r.number, {_time("r.started")} AS started, {_time("r.ended")} AS ended,
    CASE WHEN r.ended IS NULL AND (r.status = 'abandoned' OR r.status = 'crawling' AND NOT EXISTS (
            SELECT 1 FROM member AS m WHERE m.run = r.number AND NOT m.gone AND m.until > extract(epoch FROM clock_timestamp())
        )) THEN 'interrupted' ELSE r.status END AS status,
    r.exit, r.seconds, r.requests, r.bytes,
    (SELECT coalesce(sum(m.discovered), 0)::bigint FROM member AS m WHERE m.run = r.number) AS discovered,
    r.outcomes::json AS outcomes, r.refused,
    {_time("p.at")} AS published, p.urls, p.files, p.bytes AS file_bytes, p.added, p.removed, p.changed, p.base, p.folder
FROM run AS r LEFT JOIN publication AS p ON p.number = (SELECT max(number) FROM publication WHERE run = r.number);
"""
