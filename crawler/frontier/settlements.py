"""Settlements: closes leases, and stores the facts and links of each page. For all backends, which have the statements."""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Final

from crawler.frontier.discovery import Discovery
from crawler.frontier.links import link_ids, settled_numbers
from crawler.frontier.rows import LinkIds
from crawler.model.lease import Lease
from crawler.model.outcome import Failed, Kept, Later
from crawler.model.settlement import Settled, Settlement
from crawler.parse.url import Url, origin
from crawler.rules.record import keep_for

ANSWER: Final = ("status", "etag", "modified")
"""After a transient failure, the facts of the last successful response are kept, but not its status and validators."""


class Settlements(ABC):
    """Stores the results of visits. `keep_failing`: seconds for which a published page that fails stays listed."""

    def __init__(self, discovery: Discovery, keep_failing: float) -> None:
        self._discovery, self._keep_failing = discovery, float(keep_failing)

    def settle(self, settlements: Sequence[Settlement]) -> Settled:
        """See `ports.Queue.settle`."""
        valid = self._valid([s.lease for s in settlements])
        live = [s for s in settlements if s.lease.id in valid]
        pages = {s.lease.visit.url: s.lease.id for s in live}
        found = [visit for s in live for visit in s.found]
        new, numbers = self._discovery.add_found(found, pages)
        self._discovery.record_targets(found)
        done = [s for s in live if not isinstance(s.verdict.outcome, Later)]
        late = [(s.lease.id, s.verdict.outcome.until) for s in live if isinstance(s.verdict.outcome, Later)]
        if done:
            self._store(done, numbers)
        if late:
            self._postpone(late)
        return Settled(new, settled_numbers(settlements, valid, numbers))

    @abstractmethod
    def _valid(self, leases: Sequence[Lease]) -> Collection[int]:
        """The ids of those leases that are still held."""

    @abstractmethod
    def _store(self, done: Sequence[Settlement], numbers: Mapping[Url, int]) -> None:
        """Store outcomes, facts and links. `numbers`: of the visits that were found."""

    @abstractmethod
    def _postpone(self, late: Sequence[tuple[int, float]]) -> None:
        """Let visits wait: their ids, and when they are due."""

    def _keep_for(self, settlement: Settlement) -> float:
        return float(keep_for(settlement.verdict.outcome, self._keep_failing))

    def _link_ids(self, settlement: Settlement, numbers: Mapping[Url, int]) -> LinkIds:
        if settlement.verdict.unchanged or self._keep_for(settlement):
            return LinkIds()
        ids, named = link_ids(settlement, numbers)
        return LinkIds(ids, named) if ids else LinkIds()


def is_as_it_was(settlement: Settlement) -> bool:
    """Whether the facts of a page need not be stored: those in the state were used (304)."""
    prior, verdict = settlement.lease.prior, settlement.verdict
    return verdict.unchanged and prior is not None and verdict.facts is prior.facts


def good_responses(done: Sequence[Settlement]) -> Mapping[str, int]:
    """The number of good responses by origin, without visits that sent no request."""
    return Counter(
        origin(s.lease.visit.url)
        for s in done
        if s.verdict.facts and not isinstance(s.verdict.outcome, Failed | Kept)
    )
