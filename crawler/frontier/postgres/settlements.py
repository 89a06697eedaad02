"""Settlements in the PostgreSQL frontier: leases closed, with the facts of each page and the links that it has.

The fence is here: a visit that its lease does not hold any more, by id and token, is dropped.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

from crawler.frontier.links import led_to, numbers_of
from crawler.frontier.postgres.database import Database
from crawler.frontier.postgres.discovery import MAY_CHANGE, Discovery
from crawler.frontier.postgres.hosts import HostTable
from crawler.frontier.postgres.leases import Leases
from crawler.frontier.postgres.patterns import PatternTable
from crawler.frontier.postgres.rows import FACT_COLUMNS, SETTLED, LinkIds, given, settled_row, table
from crawler.model.lease import Lease
from crawler.model.outcome import Failed, Kept, Later
from crawler.model.settlement import Settled, Settlement
from crawler.model.visit import Link
from crawler.parse.url import Url, origin
from crawler.rules import keep_failing as keeping

VALID = f"""
SELECT v.id FROM visit AS v JOIN {table(("id", "token"))} ON v.id = r.id AND v.token = r.token
WHERE v.state = 2 ORDER BY v.id FOR UPDATE OF v
"""

# A failure that may pass leaves what the page said when it was answered last, but not the answer itself.
ANSWER: Final = ("status", "etag", "modified")
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
    "learned",
    *FACT_COLUMNS,
    "failing",
    "published",
)

SETTLE = f"""
WITH s AS (
    SELECT r.*, v.attempts, r.patience > 0 AND :now - coalesce(p.failing, :now) < r.patience AS stays
    FROM {table(SETTLED)} JOIN visit AS v ON v.id = r.id LEFT JOIN page AS p ON p.id = r.id
),
done AS (DELETE FROM visit USING s WHERE visit.id = s.id)
INSERT INTO page (id, {", ".join(_WRITTEN)})
SELECT s.id, s.outcome, s.detail, :now, s.attempts,
    coalesce(s.links::bigint[], CASE WHEN s.unchanged OR s.stays THEN p.links END),
    CASE WHEN s.links IS NOT NULL THEN nullif(s.named, 0) WHEN s.unchanged OR s.stays THEN p.named END,
    CASE WHEN s.stays THEN p.learned ELSE :run END,
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
WHERE p.id = ANY (:ids::bigint[]) AND p.learned >= :since
AND (u.run < :run OR {MAY_CHANGE} OR u.trap IS NOT NULL OR p.outcome IN ('moved', 'unlisted:canonical'))
ORDER BY p.id, j.place
"""


class Settlements:
    """Takes in what visits brought. `keep_failing`: seconds for which a published page that fails stays listed."""

    def __init__(
        self,
        db: Database,
        discovery: Discovery,
        hosts: HostTable,
        patterns: PatternTable,
        leases: Leases,
        keep_failing: float,
    ) -> None:
        self._db, self._discovery, self._hosts, self._patterns = db, discovery, hosts, patterns
        self._leases = leases
        self._keep_failing = keep_failing

    def settle(self, settlements: Sequence[Settlement]) -> Settled:
        """See `ports.Queue.settle`."""
        self._patterns.refresh()
        valid = self._valid([s.lease for s in settlements])
        live = [s for s in settlements if s.lease.id in valid]
        pages = {s.lease.visit.url: s.lease.id for s in live}
        found = [visit for s in live for visit in s.found]
        new, numbers = self._discovery.found(found, pages)
        self._discovery.lead_elsewhere(found)
        done = [s for s in live if not isinstance(s.verdict.outcome, Later)]
        late = [(s.lease.id, s.verdict.outcome.until) for s in live if isinstance(s.verdict.outcome, Later)]
        if done:
            self._settle(done, numbers)
        if late:
            self._db.do(POSTPONE, given(("id", "until"), late))
        return Settled(new, numbers_of(settlements, valid, numbers))

    def _settle(self, done: Sequence[Settlement], numbers: Mapping[Url, int]) -> None:
        rows = [settled_row(s, self._link_ids(s, numbers), self._keep_for(s)) for s in done]
        self._db.do(SETTLE, given(SETTLED, rows) | {"run": self._db.run, "now": self._db.now()})
        self._discovery.settled([s.lease.visit for s in done])
        self._patterns.count([s.lease.id for s in done])
        self._hosts.ease(_good(done))
        self._leases.settle_unrequested(sum(not _was_requested(s) for s in done))
        self._db.do(
            "UPDATE member SET settled = settled + :done WHERE id = :id",
            {"done": len(done), "id": self._db.member},
        )

    def links(self, leases: Sequence[Lease]) -> Sequence[Sequence[Link]]:
        """See `ports.Record.links`."""
        found: dict[int, list[Link]] = {lease.id: [] for lease in leases}
        asked = {"ids": list(found), "since": self._db.since, "run": self._db.run}
        for number, url, nofollow in self._db.all(LINKS, asked):
            found[number].append(Link(Url(url), nofollow))
        return [found[lease.id] for lease in leases]

    def _keep_for(self, settlement: Settlement) -> float:
        return float(keeping.keep_for(settlement.verdict.outcome, self._keep_failing))

    def _valid(self, leases: Sequence[Lease]) -> set[int]:
        pairs = [(lease.id, lease.token) for lease in leases]
        return {row[0] for row in self._db.all(VALID, given(("id", "token"), pairs))}

    def _link_ids(self, settlement: Settlement, numbers: Mapping[Url, int]) -> LinkIds:
        if settlement.verdict.unchanged or self._keep_for(settlement):
            return LinkIds()
        ids, named = led_to(settlement, numbers)
        return LinkIds(ids, named) if ids else LinkIds()


def _was_requested(settlement: Settlement) -> bool:
    verdict = settlement.verdict
    return verdict.facts is not None or isinstance(verdict.outcome, Failed | Kept)


def _good(done: Sequence[Settlement]) -> Mapping[str, int]:
    """Good answers by origin; what was not asked for says nothing of a host."""
    return Counter(
        origin(s.lease.visit.url)
        for s in done
        if s.verdict.facts and not isinstance(s.verdict.outcome, Failed | Kept)
    )
