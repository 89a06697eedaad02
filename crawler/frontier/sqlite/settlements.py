"""Settlements in the SQLite frontier: closes leases, and stores the facts and links of each page."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Final

from crawler.frontier.links import led_to, numbers_of
from crawler.frontier.sqlite.database import Database
from crawler.frontier.sqlite.discovery import MAY_CHANGE, Discovery
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
from crawler.model.settlement import Settled, Settlement
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

LINKS = f"""
SELECT json_group_array(json_array(p.id, u.url, j.value < 0))
FROM json_each(:ids) AS l CROSS JOIN url AS p ON p.id = l.value CROSS JOIN json_each(p.links) AS j
CROSS JOIN url AS u ON u.id = abs(j.value)
WHERE p.learned >= :since
AND (u.run < :run OR {MAY_CHANGE} OR u.trap IS NOT NULL OR p.outcome IN ('moved', 'unlisted:canonical'))
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

    def settle(self, settlements: Sequence[Settlement]) -> Settled:
        """See `ports.Queue.settle`."""
        valid = self._valid([s.lease for s in settlements])
        live = [s for s in settlements if s.lease.id in valid]
        pages = {s.lease.visit.url: s.lease.id for s in live}
        found = [visit for s in live for visit in s.found]
        new, numbers = self._discovery.found(found, pages)
        self._discovery.lead_elsewhere(found)
        done = [s for s in live if not isinstance(s.verdict.outcome, Later)]
        late = [(s.lease.id, s.verdict.outcome.until) for s in live if isinstance(s.verdict.outcome, Later)]
        if done:
            self._store(done, numbers)
            self._discovery.settled([s.lease.visit for s in done])
            self._patterns.count([s.lease.id for s in done])
            self._hosts.ease(_good(done))
        if late:
            self._db.do(POSTPONE, {"rows": json.dumps(late)})
        return Settled(new, numbers_of(settlements, valid, numbers))

    def _store(self, done: Sequence[Settlement], numbers: Mapping[Url, int]) -> None:
        """Store outcomes, facts and links."""
        for at in range(0, len(done), MOST_ROWS):
            group = done[at : at + MOST_ROWS]
            rows = [settled_row(s, self._link_ids(s, numbers), self._keep_for(s)) for s in group]
            count, values = padded(rows)
            self._db.do(_settle(count), (self._db.now(), self._db.run, *values))

    def links(self, leases: Sequence[Lease]) -> Sequence[Sequence[Link]]:
        """See `ports.Record.links`."""
        ids = json.dumps([lease.id for lease in leases])
        rows = self._db.one(LINKS, {"ids": ids, "since": self._db.since, "run": self._db.run})[0]
        found: dict[int, list[Link]] = {lease.id: [] for lease in leases}
        for number, url, nofollow in json.loads(rows):
            found[number].append(Link(Url(url), bool(nofollow)))
        return [found[lease.id] for lease in leases]

    def _keep_for(self, settlement: Settlement) -> float:
        return keeping.keep_for(settlement.verdict.outcome, self._keep_failing)

    def _valid(self, leases: Sequence[Lease]) -> set[int]:
        pairs = json.dumps([[lease.id, lease.token] for lease in leases])
        return set(json.loads(self._db.one(VALID, {"leases": pairs})[0]))

    def _link_ids(self, settlement: Settlement, numbers: Mapping[Url, int]) -> LinkIds:
        if settlement.verdict.unchanged or self._keep_for(settlement):
            return LinkIds()
        ids, named = led_to(settlement, numbers)
        return LinkIds(ids, named) if ids else LinkIds()


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
