"""The frontier on a database: one class implements the roles of `ports` for every backend.

Every method is one transaction, unless it only reads or is one statement (`_ask`). The work of each is in
another module of this package; this one is long because it lists all of them. A backend adds how to connect,
to carry out a transaction, to stream, and which members there are.
"""

import secrets
from abc import abstractmethod
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from datetime import datetime
from functools import wraps
from typing import Any, Final, ParamSpec, TypedDict, TypeVar

import anyio
from msgspec.structs import asdict

from crawler.frontier import canonicals, dates, duplicates, externals, ledger, publications, queries, targets
from crawler.frontier.budget import Budget
from crawler.frontier.database import Database
from crawler.frontier.discovery import Discovery
from crawler.frontier.distances import Distances
from crawler.frontier.hosts import HostTable
from crawler.frontier.leases import Leases
from crawler.frontier.levels import Levels
from crawler.frontier.members import Members
from crawler.frontier.pace import FAR
from crawler.frontier.patterns import PatternTable
from crawler.frontier.queries import Stream
from crawler.frontier.query_values import ValueTable
from crawler.frontier.reads import STREAMS, answers
from crawler.frontier.retention import Retention
from crawler.frontier.revisits import Revisits
from crawler.frontier.rounds import Rounds
from crawler.frontier.runs import RunTable, run_rows
from crawler.frontier.seeds import SeedTable
from crawler.frontier.settlements import Settlements
from crawler.frontier.visits import ANY_DEPTH
from crawler.model.external import CheckedLink
from crawler.model.ledger import LedgerRow
from crawler.model.log import log
from crawler.model.note import Note, RunWithNote
from crawler.model.reasons import Source, Why
from crawler.model.reply import RobotsFile
from crawler.model.rows import AnchorRow, PublicationRow, RunRow
from crawler.model.run import Interruption, Run, SessionEnd, Terms
from crawler.model.seed import NO_DATES, Seed, SeedSettlement
from crawler.model.settlement import Settled, Settlement
from crawler.model.survey import Doubts, WithContent
from crawler.model.trap import ImpossibleValues, Trap
from crawler.model.visit import Lease, Visit
from crawler.parse.url import Url
from crawler.ports import Batch, Hosts, Ledger, Queue, Record, Round, Runs, SiteRule, reads
from crawler.ports.queue import NOTHING_SHOWN
from crawler.ports.reads import Query, RowKind

P = ParamSpec("P")
T = TypeVar("T")

LEAVING: Final = 0.2  # seconds between two looks whether the members of the last run have left
KEEP_FAILING: Final = 604_800.0  # seconds
MAX_HOSTS: Final = 1_000


class FrontierOptions(TypedDict, total=False):
    """What a frontier is told by the settings. All of it may be missing."""

    delay: float  # seconds between the slots of a host whose robots.txt was not read yet
    keep_runs: int
    keep_failing: float  # seconds for which a published page that fails stays listed
    far: float  # seconds; a slot farther ahead means that the clock was set back
    max_hosts: int


class DatabaseFrontier(Queue, Hosts, Runs, Record, Ledger):  # noqa: PLR0904 - all roles of a state
    """A `Frontier` on an open database; what its methods do is said in `ports`."""

    is_shared: bool = False
    is_remote: bool = False

    def __init__(
        self,
        db: Database,
        *,
        delay: float = 0.0,
        keep_runs: int = 10,
        keep_failing: float = KEEP_FAILING,
        far: float = FAR,
        max_hosts: int = MAX_HOSTS,
    ) -> None:
        """With the values of `FrontierOptions`."""
        self._db, self._keep_failing, self.clock = db, float(keep_failing), db.now
        hosts = self._hosts = HostTable(db, delay, max_hosts)
        patterns = self._patterns = PatternTable(db)
        seeds = self._seeds = SeedTable(db, keep_failing)
        members = self._members = Members(db)
        budget = self._budget = Budget(db)
        revisits = self._revisits = Revisits(db, patterns, budget)
        self._runs = RunTable(db, members, seeds, hosts, revisits)
        self._retention = Retention(db, keep_runs)
        self._discovery = Discovery(db, hosts, patterns, seeds)
        levels = Levels(db, patterns, budget)
        self._leases = Leases(db, members, levels, far)
        self._settlements = Settlements(
            db, self._discovery, hosts, patterns, self._leases, keep_failing=keep_failing
        )
        self._rounds = Rounds(db, patterns, ValueTable(db), levels, budget, revisits)
        self._answers = answers(db) | {
            reads.MembersOfRun: members.all,
            reads.PagesOfFailingSeeds: seeds.pages_of_failing_seeds,
            reads.AllRuns: self._run_rows,
            reads.NextSeed: seeds.next_seed,
            reads.RobotsOf: hosts.robots,
            reads.LinksToFollow: self._settlements.links,
        }

    # -- Queue: the open work --------------------------------------------------------------------------------

    async def add(
        self, visits: Sequence[Visit], seed: Seed | None = None, dates: Mapping[Url, datetime] = NO_DATES
    ) -> int:
        """See `ports.Queue.add`. Only the leader reads seeds."""
        add = self._as_leader(self._discovery.add) if seed else self._discovery.add
        return await self._call(add, visits, seed, dates)

    async def lease(self, limit: int, depth: int | None = None) -> Batch:
        token = secrets.randbits(31)  # the same when it is tried again
        return await self._call(self._leases.lease, limit, ANY_DEPTH if depth is None else depth, token)

    async def settle(self, settlements: Sequence[Settlement]) -> Settled:
        return await self._call(self._settlements.settle, settlements)

    async def release(self, leases: Sequence[Lease]) -> None:
        await self._call(self._leases.release, leases)

    async def suspect(self, lease: Lease) -> None:
        await self._call(self._leases.suspect, lease)

    async def reopen(self, pages: Sequence[Url]) -> None:
        if pages:
            await self._call(self._leases.reopen, pages)

    async def read_again(self, pages: Sequence[Url], *, once: bool = True) -> int:
        if not pages:
            self._budget.note_questions()
            return 0
        self._budget.forget()  # these requests count as well, and those by which it was found out
        return await self._call(self._as_leader(self._leases.read_again), pages, once)

    async def shorten(self, deepest: int) -> int:
        return await self._call(self._as_leader(Distances(self._db).shorten), deepest)

    async def requeue(self, visits: Sequence[Visit]) -> int:
        return await self._call(self._as_leader(self._discovery.requeue), visits)

    async def arrive(self, pages: Sequence[Url]) -> int:
        return await self._call(self._as_leader(self._revisits.arrive), pages)

    async def advance(
        self, depth: int | None = None, shown: Mapping[int, ImpossibleValues] = NOTHING_SHOWN
    ) -> Round:
        deepest = ANY_DEPTH if depth is None else depth
        return await self._call(self._as_leader(self._rounds.advance), deepest, shown)

    async def store_traps(self, traps: Sequence[Trap]) -> None:
        if traps:
            await self._call(self._patterns.store_traps, traps)

    async def add_seeds(self, seeds: Sequence[Seed], room: int) -> int:
        return await self._call(self._as_leader(self._seeds.add_seeds), seeds, room)

    async def settle_seed(self, read: SeedSettlement, room: int) -> int:
        return await self._call(self._as_leader(self._seeds.settle_seed), read, room)

    # -- Hosts: robots.txt and pace by origin ----------------------------------------------------------------

    async def store_robots(self, origin: str, file: RobotsFile, delay: float) -> None:
        await self._call(self._hosts.store_robots, origin, file, delay)

    async def pace(self, origin: str, delay: float) -> None:
        await self._call(self._hosts.pace, origin, delay)

    async def slot(self, origin: str) -> float:
        return (await self._ask(self._hosts.slots, origin, 1))[0]

    async def slow(self, origin: str, until: float, *, once: bool = False) -> bool:
        return await self._call(self._hosts.slow, origin, until, once=once)

    # -- Runs: the life of a run -----------------------------------------------------------------------------

    async def begin(self, fingerprint: str, reading: str = "", terms: Terms = Terms()) -> Run:
        begin, waits = self._runs.begin, False
        # Others end it, or are taken for dead.
        while (run := await self._call(begin, fingerprint, reading, terms)) is None:
            if not waits:
                log.info("waiting for members to leave")
            waits = True
            await anyio.sleep(LEAVING)
        return run

    async def take_leadership(self) -> bool:
        return await self._call(self._members.take_leadership)

    async def check_leadership(self) -> None:
        await self._ask(self._members.check_leadership)

    async def interrupt(self, interruption: Interruption) -> None:
        await self._call(self._leases.interrupt, interruption)

    def is_lease_valid(self, lease: Lease) -> bool:  # noqa: ARG002 - by the protocol
        """See `ports.Runs.is_lease_valid`: nobody else takes it, unless a backend knows better."""
        return True

    @property
    def name(self) -> str:
        return self._members.name

    async def finish(self) -> None:
        await self._call(self._runs.finish)

    async def conclude(self, *, refused: bool = False, abandoned: bool = False) -> None:
        await self._call(self._runs.conclude, refused=refused, abandoned=abandoned)
        await self._prune()

    async def _prune(self) -> None:
        """Delete what is older than the last runs."""
        after: int | None = 0
        while after is not None:
            after = await self._call(self._retention.prune, after)

    async def close_early(self) -> bool:
        return await self._call(self._as_leader(self._revisits.close))

    async def mark_published(self, published: PublicationRow) -> None:
        await self._call(self._as_leader(publications.mark_published), self._db, published, self.clock())

    async def mark_delivered(self, delivered: str) -> None:
        await self._call(publications.mark_delivered, self._db, delivered)

    async def end_session(self, end: SessionEnd) -> None:
        await self._call(self._runs.end_session, end)

    async def remember(self, note: Note[T], value: T) -> None:
        await self._look(self._runs.remember, note, value)

    async def amend(self, note: Note[T], change: Callable[[T], T]) -> T:
        return await self._call(self._runs.amend, note, change)

    async def recall(self, note: Note[T], of: RunWithNote = "this") -> T:
        return await self._look(self._runs.recall, note, of)

    # -- Record: what became of the pages --------------------------------------------------------------------

    async def date(self, sources: Sequence[Source], doubts: Doubts) -> None:
        await self._call(self._as_leader(dates.date), self._db, sources, doubts)

    async def withdraw(self, pages: Sequence[Url] | WithContent, why: Why, detail: str) -> None:
        await self._call(self._as_leader(self._withdraw), pages, why, detail)

    async def ignore_canonicals(self, listable: Callable[[Url], bool]) -> int:
        return await self._call(self._as_leader(canonicals.ignore_canonicals), self._db, listable)

    async def apply(self, rule: SiteRule) -> None:
        await self._call(self._as_leader(self._apply), rule)

    async def store_answers(self, answers: Sequence[CheckedLink], round_number: int) -> None:
        await self._call(externals.store_answers, self._db, answers, round_number)

    async def store_anchors(self, found: Sequence[AnchorRow]) -> None:
        if found:
            await self._call(targets.store_anchors, self._db, found)

    # -- Reads -----------------------------------------------------------------------------------------------

    async def read(self, query: Query[T]) -> T:
        answer: T = await self._look(self._answers[type(query)], **asdict(query))
        return answer

    async def stream(self, kind: RowKind[T]) -> AsyncIterator[Sequence[T]]:
        chunks = self._edges(kind) if isinstance(kind, reads.Edges) else self._rows(kind)
        async for chunk in chunks:
            yield chunk

    async def _rows(self, kind: RowKind[T]) -> AsyncIterator[Sequence[Any]]:
        query, value = STREAMS[type(kind)]
        given = {"run": self._db.run, **asdict(kind)}
        async for rows in self._stream(query, given, given.pop("first", "")):
            yield [value(row) for row in rows]

    async def _edges(self, kind: reads.Edges) -> AsyncIterator[Sequence[Any]]:
        given = {"run": self._db.run, "below": kind.below}
        async for rows in self._stream(queries.EDGE_ROWS, given, kind.first):
            yield await self._ask(queries.edges, self._db, rows)

    def _apply(self, rule: SiteRule) -> None:
        match rule:
            case SiteRule.KEEP_FAILING:
                publications.keep_failing_pages(self._db, self._keep_failing)
            case SiteRule.UNREACHED:
                Distances(self._db).unlist_unreached()
            case SiteRule.RELIST:
                duplicates.relist(self._db)
            case SiteRule.DUPLICATES:
                duplicates.unlist_duplicates(self._db)

    def _withdraw(self, pages: Sequence[Url] | WithContent, why: Why, detail: str) -> None:
        duplicates.withdraw(self._db, pages, why, detail)
        self._budget.forget()  # they do not count as contents any more

    def _run_rows(self) -> Sequence[RunRow]:
        return run_rows(self._db, self._is_at_work())

    # -- Ledger: what search engines were told

    async def open_ledger(self, base: str, *, noted: bool) -> int:
        return await self._call(ledger.open_ledger, self._db, base, noted)

    async def enter(self, rows: Sequence[LedgerRow], sent: int | None = None) -> None:
        await self._call(ledger.enter, self._db, rows, sent)

    # -- calls

    def _as_leader(self, verb: Callable[P, T]) -> Callable[P, T]:
        """A method whose transaction fails with `LeadershipLost` if this member does not lead."""

        @wraps(verb)
        def fenced(*args: P.args, **kwargs: P.kwargs) -> T:
            self._members.check_leadership()
            return verb(*args, **kwargs)

        return fenced

    @abstractmethod
    def _is_at_work(self) -> bool:
        """Whether a session is at work on the newest run."""

    @abstractmethod
    async def _call(self, verb: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run one method as one transaction, in a worker thread. Raises `FrontierError`."""

    async def _ask(self, verb: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """The same for one that reads, or changes something by one statement: it need be no transaction."""
        return await self._call(verb, *args, **kwargs)

    async def _look(self, verb: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """The same for one that may share round trips with others, and may be called several times."""
        return await self._ask(verb, *args, **kwargs)

    @abstractmethod
    def _stream(
        self, query: Stream, given: Mapping[str, Any], first: str = ""
    ) -> AsyncIterator[Sequence[tuple[Any, ...]]]:
        """The rows of a query in chunks, from `first` on. Raises `FrontierError`."""

    @abstractmethod
    async def close(self) -> None:
        """See `ports.Frontier.close`."""
