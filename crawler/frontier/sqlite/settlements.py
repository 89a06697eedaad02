"""Settlements in the SQLite frontier: closes leases, and stores the facts and links of each page."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import chain
from typing import Final

from crawler.frontier.sqlite.database import Database
from crawler.frontier.sqlite.discovery import Discovery
from crawler.frontier.sqlite.hosts import HostTable
from crawler.frontier.sqlite.patterns import PatternTable
from crawler.frontier.sqlite.rows import (
    FACT_COLUMNS,
    MOST_ROWS,
    LinkIds,
    SettledRow,
    bound,
    padded,
    settled_row,
)
from crawler.model.lease import Lease
from crawler.model.outcome import Failed, Kept, Later
from crawler.model.settlement import Settlement
from crawler.model.visit import Link
from crawler.parse.url import Url, origin
from crawler.rules import keep_failing as keeping

VALID = """
SELECT json_group_array(u.id) FROM json_each(:leases) AS j
JOIN url AS u ON u.id = j.value ->> 0 AND u.token = j.value ->> 1 AND u.state = 2
"""

# After a transient failure, the facts of the last successful response are kept, but not its status and validators.
ANSWER: Final = ("status", "etag", "modified")
_KEPT = ",\n    ".join(
    f"{fact} = CASE WHEN s.stays THEN url.{fact} ELSE s.{fact} END"
    for fact in FACT_COLUMNS
    if fact not in ANSWER
)

# ?1: the time, ?2: the run. ROWS: of `SettledRow` and its facts.
SETTLE = f"""
WITH r ({", ".join((*SettledRow._fields, *FACT_COLUMNS))}) AS MATERIALIZED (VALUES ROWS)
UPDATE url SET
    state = 3, token = NULL, due = NULL, settled = ?1,
    outcome = s.outcome, detail = s.detail,
    links = coalesce(s.links, CASE WHEN s.unchanged OR s.stays THEN url.links END),
    named = CASE WHEN s.links IS NOT NULL THEN nullif(s.named, 0) WHEN s.unchanged OR s.stays THEN url.named END,
    learned = CASE WHEN s.stays THEN learned ELSE ?2 END,
    {", ".join(f"{fact} = s.{fact}" for fact in ANSWER)},
    {_KEPT},
    failing = CASE WHEN s.answered THEN NULL WHEN s.patience > 0 THEN coalesce(min(failing, ?1), ?1) ELSE failing END,
    published = CASE WHEN s.listable THEN published END
FROM (
    SELECT r.*, r.patience > 0 AND ?1 - coalesce(u.failing, ?1) < r.patience AS stays
    FROM r JOIN url AS u ON u.id = r.id
) AS s
WHERE url.id = s.id
"""

POSTPONE = """
UPDATE url SET state = 1, token = NULL, due = s.v ->> 1
FROM (SELECT value AS v FROM json_each(:rows)) AS s
WHERE url.id = s.v ->> 0
"""

LINKS = """
SELECT json_group_array(json_array(u.url, j.value < 0))
FROM url AS p, json_each(p.links) AS j JOIN url AS u ON u.id = abs(j.value)
WHERE p.id = :id AND p.learned >= :since
"""


class Settlements:
    """Stores the results of visits. `keep_failing`: seconds for which a published page that fails stays listed."""

    def __init__(
        self,
        db: Database,
        discovery: Discovery,
        hosts: HostTable,
        patterns: PatternTable,
        keep_failing: float,
    ) -> None:
        self._db, self._discovery, self._hosts, self._patterns = db, discovery, hosts, patterns
        self._keep_failing = keep_failing

    def settle(self, settlements: Sequence[Settlement]) -> int:
        """See `ports.Queue.settle`."""
        valid = self._valid([s.lease for s in settlements])
        live = [s for s in settlements if s.lease.id in valid]
        for s in live:
            self._discovery.remember(s.lease.visit, s.lease.id)
        new = self._discovery.add(chain.from_iterable(s.found for s in live))
        self._discovery.lead_elsewhere([visit for s in live for visit in s.found])
        done = [s for s in live if not isinstance(s.verdict.outcome, Later)]
        late = [(s.lease.id, s.verdict.outcome.until) for s in live if isinstance(s.verdict.outcome, Later)]
        if done:
            self._store(done)
            self._discovery.settled([s.lease.visit for s in done])
            self._patterns.count([s.lease.id for s in done])
            self._hosts.ease(_good(done))
        if late:
            self._db.do(POSTPONE, {"rows": json.dumps(late)})
        return new

    def _store(self, done: Sequence[Settlement]) -> None:
        """Store outcomes, facts and links."""
        for at in range(0, len(done), MOST_ROWS):
            group = done[at : at + MOST_ROWS]
            rows = [settled_row(s, self._link_ids(s), self._keep_for(s)) for s in group]
            count, values = padded(rows)
            self._db.do(_settle(count), (self._db.now(), self._db.run, *values))

    def links(self, lease: Lease) -> Sequence[Link]:
        """See `ports.Record.links`."""
        row = self._db.one(LINKS, {"id": lease.id, "since": self._db.since})
        return [Link(Url(url), bool(nofollow)) for url, nofollow in json.loads(row[0])]

    def _keep_for(self, settlement: Settlement) -> float:
        return keeping.keep_for(settlement.verdict.outcome, self._keep_failing)

    def _valid(self, leases: Sequence[Lease]) -> set[int]:
        pairs = json.dumps([[lease.id, lease.token] for lease in leases])
        return set(json.loads(self._db.one(VALID, {"leases": pairs})[0]))

    def _link_ids(self, settlement: Settlement) -> LinkIds:
        found, named = settlement.found, settlement.verdict.named
        if settlement.verdict.unchanged or not found or self._keep_for(settlement):
            return LinkIds()
        if not named:
            return LinkIds(self._discovery.link_ids(found))
        first = self._discovery.link_ids([visit for visit in found if visit.url in named])
        rest = self._discovery.link_ids([visit for visit in found if visit.url not in named])
        return LinkIds([*first, *rest], len(first))


@cache
def _settle(count: int) -> str:
    """`SETTLE` for that many rows."""
    return SETTLE.replace("ROWS", bound(len(SettledRow._fields) + len(FACT_COLUMNS), count, first=3))


def _good(done: Sequence[Settlement]) -> Mapping[str, int]:
    """The number of good responses by origin, without visits that sent no request."""
    return Counter(
        origin(s.lease.visit.url)
        for s in done
        if s.verdict.facts and not isinstance(s.verdict.outcome, Failed | Kept)
    )
