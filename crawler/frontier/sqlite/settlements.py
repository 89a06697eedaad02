"""Settlements in the SQLite frontier: the statements of `frontier.settlements`."""

import json
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from functools import cache
from itertools import chain
from typing import Any

from crawler.frontier import settlements
from crawler.frontier.rows import FACT_COLUMNS, SETTLED_COLUMNS, LinkIds, SettledRow, outcome_row, settled_row
from crawler.frontier.settlements import ANSWER, good_responses, is_as_it_was
from crawler.frontier.sqlite import images
from crawler.frontier.sqlite.database import Database
from crawler.frontier.sqlite.discovery import MAY_CHANGE, Discovery
from crawler.frontier.sqlite.hosts import HostTable
from crawler.frontier.sqlite.patterns import PatternTable
from crawler.frontier.sqlite.rows import MOST_ROWS, array, bound, padded
from crawler.model.lease import Lease
from crawler.model.settlement import Settlement
from crawler.model.visit import Link
from crawler.parse.url import Url

VALID = """
SELECT json_group_array(u.id) FROM json_each(:leases) AS j
JOIN url AS u ON u.id = j.value ->> 0 AND u.token = j.value ->> 1 AND u.state = 2
"""

_KEPT = ",\n    ".join(
    f"{fact} = CASE WHEN s.stays THEN url.{fact} ELSE s.{fact} END"
    for fact in FACT_COLUMNS
    if fact not in ANSWER
)
_ALWAYS = """
    state = 3, token = NULL, due = NULL, settled = ?1, outcome = s.outcome, detail = s.detail,
    published = CASE WHEN s.listable THEN published END"""

# For each, ?1: the time, ?2: the run. ROWS: of `settled_row`, or its first columns.

# A page that is as it was (304): its facts, links and images stay.
UNCHANGED = f"""
WITH s ({", ".join(SettledRow._fields)}) AS MATERIALIZED (VALUES ROWS)
UPDATE url SET {_ALWAYS}, facts_run = ?2, failing = NULL
FROM s WHERE url.id = s.id
"""

ANSWERED = f"""
WITH s ({", ".join(SETTLED_COLUMNS)}) AS MATERIALIZED (VALUES ROWS)
UPDATE url SET {_ALWAYS}, facts_run = ?2, {", ".join(f"{fact} = s.{fact}" for fact in FACT_COLUMNS)},
    links = coalesce(s.links, CASE WHEN s.unchanged THEN url.links END),
    named = CASE WHEN s.links IS NOT NULL THEN nullif(s.named, 0) WHEN s.unchanged THEN url.named END,
    images = coalesce(s.images, CASE WHEN s.unchanged THEN url.images END),
    failing = CASE WHEN s.answered THEN NULL ELSE failing END
FROM s WHERE url.id = s.id
"""

# A page that failed for a reason that may pass, and may stay listed with what is known of it.
FAILED = f"""
WITH r ({", ".join(SETTLED_COLUMNS)}) AS MATERIALIZED (VALUES ROWS)
UPDATE url SET {_ALWAYS}, {", ".join(f"{fact} = s.{fact}" for fact in ANSWER)}, {_KEPT},
    links = coalesce(s.links, CASE WHEN s.unchanged OR s.stays THEN url.links END),
    named = CASE WHEN s.links IS NOT NULL THEN nullif(s.named, 0) WHEN s.unchanged OR s.stays THEN url.named END,
    images = coalesce(s.images, CASE WHEN s.unchanged OR s.stays THEN url.images END),
    facts_run = CASE WHEN s.stays THEN facts_run ELSE ?2 END,
    failing = CASE WHEN s.answered THEN NULL ELSE coalesce(min(failing, ?1), ?1) END
FROM (
    SELECT r.*, ?1 - coalesce(u.failing, ?1) < r.patience AS stays FROM r JOIN url AS u ON u.id = r.id
) AS s
WHERE url.id = s.id
"""

POSTPONE = """
UPDATE url SET state = 1, token = NULL, due = s.v ->> 1
FROM (SELECT value AS v FROM json_each(:rows)) AS s
WHERE url.id = s.v ->> 0
"""

LINKS = f"""
SELECT json_group_array(json_array(p.id, u.url, j.value < 0))
FROM json_each(:ids) AS l CROSS JOIN url AS p ON p.id = l.value CROSS JOIN json_each(p.links) AS j
CROSS JOIN url AS u ON u.id = abs(j.value)
WHERE p.facts_run >= :since
AND (u.run < :run OR {MAY_CHANGE} OR u.trap IS NOT NULL OR p.outcome IN ('moved', 'unlisted:canonical'))
"""


class Settlements(settlements.Settlements):
    """Stores the results of visits."""

    def __init__(
        self,
        db: Database,
        discovery: Discovery,
        hosts: HostTable,
        patterns: PatternTable,
        keep_failing: float,
    ) -> None:
        super().__init__(discovery, keep_failing)
        self._db, self._hosts, self._patterns = db, hosts, patterns

    def links(self, leases: Sequence[Lease]) -> Sequence[Sequence[Link]]:
        """See `ports.Record.links`."""
        ids = json.dumps([lease.id for lease in leases])
        rows = self._db.one(LINKS, {"ids": ids, "since": self._db.since, "run": self._db.run})[0]
        found: dict[int, list[Link]] = {lease.id: [] for lease in leases}
        for number, url, nofollow in json.loads(rows):
            found[number].append(Link(Url(url), bool(nofollow)))
        return [found[lease.id] for lease in leases]

    def _valid(self, leases: Sequence[Lease]) -> Collection[int]:
        pairs = json.dumps([[lease.id, lease.token] for lease in leases])
        return set(json.loads(self._db.one(VALID, {"leases": pairs})[0]))

    def _store(self, done: Sequence[Settlement], numbers: Mapping[Url, int]) -> None:
        ids = images.ids_of(self._db, chain.from_iterable(s.verdict.images for s in done))
        rows = defaultdict[str, list[Sequence[Any]]](list)
        for s in done:
            patience = self._keep_for(s)
            if is_as_it_was(s):
                rows[UNCHANGED].append(outcome_row(s, LinkIds(), ids, patience, array))
            else:
                row = settled_row(s, self._link_ids(s, numbers), ids, patience, array)
                rows[FAILED if patience > 0 else ANSWERED].append(row)
        for statement, all_rows in rows.items():
            for at in range(0, len(all_rows), MOST_ROWS):
                count, values = padded(all_rows[at : at + MOST_ROWS])
                self._db.do(_of(statement, count), (self._db.now(), self._db.run, *values))
        self._discovery.record_hops([s.lease.visit for s in done])
        self._patterns.count([s.lease.id for s in done])
        self._hosts.ease(good_responses(done))

    def _postpone(self, late: Sequence[tuple[int, float]]) -> None:
        self._db.do(POSTPONE, {"rows": json.dumps(late)})


@cache
def _of(statement: str, count: int) -> str:
    """The statement for that many rows."""
    width = len(SettledRow._fields) if statement == UNCHANGED else len(SETTLED_COLUMNS)
    return statement.replace("ROWS", bound(width, count, first=3))
