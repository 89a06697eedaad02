"""Settlements in the PostgreSQL frontier: the statements of `frontier.settlements`.

Results of a lease that was lost to another member are dropped here: their visits do not have its token any more.
"""

from collections.abc import Collection, Mapping, Sequence
from itertools import chain
from typing import Final

from crawler.frontier import settlements
from crawler.frontier.postgres import images
from crawler.frontier.postgres.database import Database
from crawler.frontier.postgres.discovery import MAY_CHANGE, Discovery
from crawler.frontier.postgres.hosts import HostTable
from crawler.frontier.postgres.leases import Leases
from crawler.frontier.postgres.patterns import PatternTable
from crawler.frontier.postgres.rows import array, given, table
from crawler.frontier.rows import FACT_COLUMNS, SETTLED_COLUMNS, settled_row
from crawler.frontier.settlements import ANSWER, good_responses
from crawler.model.lease import Lease
from crawler.model.outcome import Failed, Kept
from crawler.model.settlement import Settled, Settlement
from crawler.model.visit import Link
from crawler.parse.url import Url

VALID = f"""
SELECT v.id FROM visit AS v JOIN {table(("id", "token"))} ON v.id = r.id AND v.token = r.token
WHERE v.state = 2 ORDER BY v.id FOR UPDATE OF v
"""

_FACTS: Final = ",\n    ".join(
    f"s.{fact}" if fact in ANSWER else f"CASE WHEN s.stays THEN p.{fact} ELSE s.{fact} END"
    for fact in FACT_COLUMNS
)
_WRITTEN: Final = (
    "outcome",
    "detail",
    "settled",
    "attempts",
    "links",
    "named",
    "images",
    "facts_run",
    *FACT_COLUMNS,
    "failing",
    "published",
)

SETTLE = f"""
WITH s AS (
    SELECT r.*, v.attempts, r.patience > 0 AND :now - coalesce(p.failing, :now) < r.patience AS stays
    FROM {table(SETTLED_COLUMNS)} JOIN visit AS v ON v.id = r.id LEFT JOIN page AS p ON p.id = r.id
),
done AS (DELETE FROM visit USING s WHERE visit.id = s.id)
INSERT INTO page (id, {", ".join(_WRITTEN)})
SELECT s.id, s.outcome, s.detail, :now, s.attempts,
    coalesce(s.links::bigint[], CASE WHEN s.unchanged OR s.stays THEN p.links END),
    CASE WHEN s.links IS NOT NULL THEN nullif(s.named, 0) WHEN s.unchanged OR s.stays THEN p.named END,
    coalesce(s.images::bigint[], CASE WHEN s.unchanged OR s.stays THEN p.images END),
    CASE WHEN s.stays THEN p.facts_run ELSE :run END,
    {_FACTS},
    CASE WHEN s.answered THEN NULL WHEN s.patience > 0 THEN coalesce(least(p.failing, :now), :now) ELSE p.failing END,
    CASE WHEN s.listable THEN p.published END
FROM s LEFT JOIN page AS p ON p.id = s.id
ON CONFLICT (id) DO UPDATE SET {", ".join(f"{column} = excluded.{column}" for column in _WRITTEN)}
"""

POSTPONE = f"""
UPDATE visit SET state = 1, token = NULL, due = r.until, suspect = false FROM {table(("id", "until"))} WHERE visit.id = r.id
"""

LINKS = f"""
SELECT p.id, u.url, j.id < 0
FROM page AS p CROSS JOIN LATERAL unnest(p.links) WITH ORDINALITY AS j (id, place) JOIN url AS u ON u.id = abs(j.id)
WHERE p.id = ANY (:ids::bigint[]) AND p.facts_run >= :since
AND (u.run < :run OR {MAY_CHANGE} OR u.trap IS NOT NULL OR p.outcome IN ('moved', 'unlisted:canonical'))
ORDER BY p.id, j.place
"""


class Settlements(settlements.Settlements):
    """Stores the results of visits."""

    def __init__(
        self,
        db: Database,
        discovery: Discovery,
        hosts: HostTable,
        patterns: PatternTable,
        leases: Leases,
        keep_failing: float,
    ) -> None:
        super().__init__(discovery, keep_failing)
        self._db, self._hosts, self._patterns, self._leases = db, hosts, patterns, leases

    def settle(self, settlements: Sequence[Settlement]) -> Settled:
        """See `ports.Queue.settle`."""
        self._db.check_timeline()
        self._db.by_index()
        self._patterns.refresh()
        return super().settle(settlements)

    def links(self, leases: Sequence[Lease]) -> Sequence[Sequence[Link]]:
        """See `ports.Record.links`."""
        found: dict[int, list[Link]] = {lease.id: [] for lease in leases}
        values = {"ids": list(found), "since": self._db.since, "run": self._db.run}
        for number, url, nofollow in self._db.all(LINKS, values):
            found[number].append(Link(Url(url), nofollow))
        return [found[lease.id] for lease in leases]

    def _valid(self, leases: Sequence[Lease]) -> Collection[int]:
        pairs = [(lease.id, lease.token) for lease in leases]
        return {row[0] for row in self._db.all(VALID, given(("id", "token"), pairs))}

    def _store(self, done: Sequence[Settlement], numbers: Mapping[Url, int]) -> None:
        ids = images.ids_of(self._db, chain.from_iterable(s.verdict.images for s in done))
        rows = [settled_row(s, self._link_ids(s, numbers), ids, self._keep_for(s), array) for s in done]
        self._db.do(SETTLE, given(SETTLED_COLUMNS, rows) | {"run": self._db.run, "now": self._db.now()})
        self._discovery.record_hops([s.lease.visit for s in done])
        self._patterns.count([s.lease.id for s in done])
        self._hosts.ease(good_responses(done))
        self._leases.settle_unrequested(sum(not _was_requested(s) for s in done))
        self._db.do(
            "UPDATE member SET settled = settled + :done WHERE id = :id",
            {"done": len(done), "id": self._db.member},
        )

    def _postpone(self, late: Sequence[tuple[int, float]]) -> None:
        self._db.do(POSTPONE, given(("id", "until"), late))


def _was_requested(settlement: Settlement) -> bool:
    verdict = settlement.verdict
    return verdict.facts is not None or isinstance(verdict.outcome, Failed | Kept)
