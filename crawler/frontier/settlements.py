"""Settlements: closes leases, and stores the outcome, the facts and the links of each page.

Results of a lease that was lost to another member are dropped here: their visits do not have its token any
more.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from crawler.frontier import features
from crawler.frontier.database import Database
from crawler.frontier.discovery import MAY_CHANGE, Discovery
from crawler.frontier.hosts import HostTable
from crawler.frontier.leases import Leases
from crawler.frontier.links import link_ids, settled_numbers
from crawler.frontier.patterns import PatternTable
from crawler.frontier.publications import run_time
from crawler.frontier.rows import FACT_COLUMNS
from crawler.model.outcome import Failed, Kept, Later, code
from crawler.model.serialise import detail_of, plain_facts
from crawler.model.settlement import Settled, Settlement
from crawler.model.visit import Lease, Link
from crawler.parse.url import Url, origin
from crawler.rules.record import LEASED, WAITING, Failing, RunTime, keep_for, stays_unlisted
from crawler.rules.revisits import Version, Watched

LIVE: Final = f"""
SELECT v.id, v.attempts, v.trap IS NOT NULL, EXISTS (SELECT 1 FROM feature AS f WHERE f.id = v.id),
    p.failing, p.failing_run, EXISTS (SELECT 1 FROM published AS b WHERE b.id = v.id),
    p.visits, p.changes, p.first_visit, p.last_visit, p.content, p.digest, p.header, p.facts_run,
    p.outcome, p.detail
    FROM @rows(id, token) JOIN visit AS v ON v.id = r.id AND v.token = r.token
LEFT JOIN page AS p ON p.id = v.id WHERE v.state = {LEASED} ORDER BY v.id @lock(v)
"""
UNPUBLISH: Final = "DELETE FROM published WHERE id @any(ids)"
DONE: Final = "DELETE FROM visit WHERE id @any(ids)"
POSTPONE: Final = f"""
UPDATE visit SET state = {WAITING}, token = NULL, due = r.until, suspect = false
    FROM @rows(id, until) WHERE visit.id = r.id
"""
LINKS: Final = f"""
SELECT p.id, u.url, j.value < 0, @place
FROM page AS p @each(p.links) JOIN url AS u ON u.id = abs(j.value)
WHERE p.id @any(ids) AND p.facts_run >= :since
AND (u.run < :run OR {MAY_CHANGE} OR u.trap IS NOT NULL OR p.outcome IN ('moved', 'unlisted:canonical'))
"""

_ANSWER: Final = ("status", "etag", "modified")
"""After a transient failure, the facts of the last successful response are kept, but for these."""
_OUTCOME: Final = (
    "id", "outcome", "detail", "settled", "attempts", "failing", "failing_run", "visited",
    "visits", "changes", "first_visit", "last_visit",
)  # fmt: skip
_LINKS: Final = ("links", "named")
_FAILED: Final = (*_OUTCOME, *_ANSWER)
_AS_IT_WAS: Final = (*_OUTCOME, "facts_run")
_UNCHANGED: Final = (*_AS_IT_WAS, *FACT_COLUMNS)
_READ: Final = (*_UNCHANGED, *_LINKS)


class _Live(NamedTuple):
    """A visit whose lease is still held, and what its page keeps."""

    id: int
    attempts: int
    is_patterned: bool
    has_features: bool
    failing: Failing | None
    was_published: bool
    watched: Watched
    version: Version | None  # None: not comparable
    was: tuple[str | None, str | None]  # the outcome and its detail


class Settlements:
    """Stores the results of visits.

    `keep_failing`: seconds for which a published page that fails stays listed.
    """

    def __init__(
        self,
        db: Database,
        discovery: Discovery,
        hosts: HostTable,
        patterns: PatternTable,
        leases: Leases,
        *,
        keep_failing: float,
    ) -> None:
        self._db, self._discovery, self._hosts = db, discovery, hosts
        self._patterns, self._leases, self._keep_failing = patterns, leases, float(keep_failing)

    def settle(self, settlements: Sequence[Settlement]) -> Settled:
        same = self._db.check()
        self._db.by_index()
        refresh = self._patterns.ask_changes()
        asked = self._ask_held([s.lease for s in settlements])
        known = self._discovery.ask_known((visit.url for s in settlements for visit in s.found), new=True)
        same()
        refresh()
        held = {row[0]: self._live(row) for row in asked()}
        live = [s for s in settlements if s.lease.id in held]
        pages = {s.lease.visit.url: s.lease.id for s in live}
        found = [visit for s in live for visit in s.found]
        new, stored, numbers = self._discovery.add_found(found, pages, known())
        self._discovery.record_targets(found)
        done = [s for s in live if not isinstance(s.verdict.outcome, Later)]
        late = [(s.lease.id, s.verdict.outcome.until) for s in live if isinstance(s.verdict.outcome, Later)]
        if done:
            self._store(done, held, numbers)
        revisited = sum(held[s.lease.id].watched.last is not None for s in done)
        self._discovery.count(stored, len(done), revisited)
        if late:
            self._db.do_rows(POSTPONE, ("id", "until"), late)
        return Settled(new, settled_numbers(settlements, held, numbers))

    def links(self, leases: Sequence[Lease]) -> Sequence[Sequence[Link]]:
        found: dict[int, list[Link]] = {lease.id: [] for lease in leases}
        given = {"ids": self._db.dialect.all_of(found), "since": self._db.since, "run": self._db.run}
        rows = sorted(self._db.ask(LINKS, given, packed=True)(), key=lambda row: (row[0], row[3]))
        for number, url, nofollow, _ in rows:
            found[number].append(Link(Url(url), bool(nofollow)))
        return [found[lease.id] for lease in leases]

    def _ask_held(self, leases: Sequence[Lease]) -> Callable[[], list[Any]]:
        """Ask which of these leases are still held."""
        given = self._db.dialect.given(("id", "token"), [(lease.id, lease.token) for lease in leases])
        return self._db.ask(LIVE, given, packed=True)

    def _live(self, row: Sequence[Any]) -> _Live:
        watched, version, facts_run = Watched._make(row[7:11]), Version._make(row[11:14]), row[14]
        is_comparable = facts_run is not None and facts_run >= self._db.since
        failing = Failing.read(row[4], row[5])
        known = (failing, row[6], _known(watched), version if is_comparable else None, tuple(row[15:]))
        return _Live._make((*row[:4], *known))

    def _store(
        self, done: Sequence[Settlement], held: Mapping[int, _Live], numbers: Mapping[Url, int]
    ) -> None:
        at = run_time(self._db)
        rows = defaultdict[tuple[str, ...], list[list[Any]]](list)
        parsed = list[Settlement]()
        for s in done:
            columns, values = self._row(s, held[s.lease.id], at)
            if columns is _READ:
                values += self._leads(s, numbers)
                parsed.append(s)
            rows[columns].append(values)
        for columns, group in rows.items():
            self._db.upsert("page", columns, group)
        if parsed:
            features.store(self._db, parsed, [s.lease.id for s in parsed if held[s.lease.id].has_features])
        self._db.do(DONE, {"ids": self._db.dialect.all_of(s.lease.id for s in done)})
        self._discovery.record_hops([s.lease.visit for s in done])
        if not_listable := [s.lease.id for s in done if held[s.lease.id].was_published and not s.listable]:
            self._db.do(UNPUBLISH, {"ids": self._db.dialect.all_of(not_listable)})
        if patterned := [s.lease.id for s in done if held[s.lease.id].is_patterned]:
            self._patterns.count(patterned)
        self._hosts.ease(_good_responses(done))
        self._leases.settle_unrequested(sum(not _was_requested(s) for s in done))

    def _row(self, settlement: Settlement, stored: _Live, at: RunTime) -> tuple[tuple[str, ...], list[Any]]:
        """The columns of `page` that change, and their values but for those of `_LINKS`.

        Times are those of a page, in whole seconds, which SQLite stores in half the bytes.
        """
        verdict = settlement.verdict
        patience = keep_for(verdict.outcome, self._keep_failing)
        is_answered = verdict.facts is not None and not isinstance(verdict.outcome, Failed)
        failing = at.failing(stored.failing, patience, answered=is_answered)
        is_changed = self._is_changed(settlement, stored) if is_answered else None
        stays = self._patterns.is_partial and stays_unlisted(stored.was[0], verdict.outcome, is_changed)
        ended = stored.was if stays else (code(verdict.outcome), detail_of(verdict.outcome) or None)
        outcome = [
            stored.id, *ended, at.now // 1, stored.attempts, *(failing or (None, None)), self._db.run,
            *stored.watched.after(at.started // 1, is_changed),
        ]  # fmt: skip
        if at.lasted(stored.failing) < patience:  # what is known of the page stays
            return _FAILED, [*outcome, *plain_facts(verdict.facts)[: len(_ANSWER)]]
        if is_as_it_was(settlement):
            return _AS_IT_WAS, [*outcome, self._db.run]
        columns = _UNCHANGED if verdict.unchanged else _READ
        return columns, [*outcome, self._db.run, *plain_facts(verdict.facts)]

    def _is_changed(self, settlement: Settlement, stored: _Live) -> bool | None:
        verdict = settlement.verdict
        if verdict.unchanged:
            return False
        return stored.version.is_changed(verdict.facts) if stored.version and verdict.facts else None

    def _leads(self, settlement: Settlement, numbers: Mapping[Url, int]) -> list[Any]:
        """The values of `_LINKS`."""
        is_transient = keep_for(settlement.verdict.outcome, self._keep_failing) > 0
        links, named = ((), 0) if is_transient else link_ids(settlement, numbers)
        return [self._db.dialect.array(links) if links else None, named or None]


def _known(watched: Watched) -> Watched:
    """As it is stored, of a page that may be new."""
    return watched if watched.visits is not None else Watched()


def is_as_it_was(settlement: Settlement) -> bool:
    """Whether the facts of a page need not be stored: those in the state were used (304)."""
    prior, verdict = settlement.lease.prior, settlement.verdict
    return verdict.unchanged and prior is not None and verdict.facts is prior.facts


def _good_responses(done: Sequence[Settlement]) -> Mapping[str, int]:
    """The number of good responses by origin, without visits that sent no request."""
    return Counter(
        origin(s.lease.visit.url)
        for s in done
        if s.verdict.facts and not isinstance(s.verdict.outcome, Failed | Kept)
    )


def _was_requested(settlement: Settlement) -> bool:
    verdict = settlement.verdict
    return verdict.facts is not None or isinstance(verdict.outcome, Failed | Kept)
