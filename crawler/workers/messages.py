"""The messages between the main process and a worker, as JSON. Pure.

Each is a list: the name of its class, then the values of its fields. A worker reads hostile markup, so
nothing that it sends is believed: msgspec refuses what exceeds the bounds in the types, `read` what is wrong
only in its context. Each URL is sent once, then by its number: both sides keep the same table, in the order
in which URLs are sent, and clear it after the same message when it is full.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any, Final, NamedTuple, TypeAlias, cast

from msgspec import Meta, Struct
from msgspec.json import Decoder

from crawler.model.facts import Facts, HeaderText, LabelledUrl, Moment, Validators
from crawler.model.outcome import Listed, VisitOutcome
from crawler.model.settlement import Verdict, VisitResult
from crawler.model.visit import Lease, Links, MissingPage, Prior, Visit
from crawler.parse import headers
from crawler.parse.late import late
from crawler.parse.parsed_page import MAX_IN_HEAD, MAX_LINKS
from crawler.parse.url import HTTP_ORIGIN, ReceivedUrl, Url
from crawler.rules.judge import unchanged
from crawler.settings.sections import Settings

MOST_NUMBERED: Final = 30_000  # URLs in a table,
MOST_NUMBERED_CHARACTERS: Final = 4_000_000  # or their characters, after which it is cleared
Number = Annotated[int, Meta(ge=0)]


class NumberedLinks(NamedTuple):
    """The links of a page: URLs that were not sent yet, and the numbers of all. To be sent in this order."""

    new: list[Url]
    followed: list[Number]
    avoided: list[Number]


class SentUrls:
    """The table of a worker."""

    def __init__(self) -> None:
        self._numbers: dict[Url, int] = {}
        self._characters = 0

    def written(self, links: Links) -> NumberedLinks:
        """The links of a page, to be sent before the next are written."""
        numbers = self._numbers
        new = list[Url]()
        for url in links.urls:
            if url not in numbers:
                numbers[url] = len(numbers)
                new.append(url)
        self._characters += sum(map(len, new))
        followed, avoided = (list(map(numbers.__getitem__, side)) for side in links)
        if is_full(len(numbers), self._characters):
            self._numbers, self._characters = {}, 0
        return NumberedLinks(new, followed, avoided)


class ReceivedUrls:
    """The table of the main process for one worker. `most`: links of a page."""

    def __init__(self, urls_of: Callable[[Sequence[str]], Sequence[Url]], most: int) -> None:
        self._urls_of, self._most = urls_of, most
        self._urls: list[Url] = []
        self._characters = 0

    def read(self, message: NumberedLinks) -> Links:
        """The links of a page. To be read in order. Raises `ValueError` or `LookupError` if invalid."""
        new, followed, avoided = message
        if max(len(new), len(followed) + len(avoided)) > self._most:
            raise ValueError("no links of one page")
        urls = self._urls
        urls.extend(self._urls_of(new))
        self._characters += sum(map(len, new))
        links = Links(*(tuple(map(urls.__getitem__, side)) for side in (followed, avoided)))
        if is_full(len(urls), self._characters):
            self._urls, self._characters = [], 0
        return links


def is_full(count: int, characters: int) -> bool:
    """Whether a table with that many URLs and characters is cleared."""
    return count > MOST_NUMBERED or characters > MOST_NUMBERED_CHARACTERS


MOST_LINKS: Final = MAX_LINKS + headers.LINKS + 2  # plus a canonical and a refresh
MOST_NAMED: Final = MAX_IN_HEAD + headers.LINKS + 2  # with the canonical and the refresh
MOST_FEATURES: Final = 20
MOST_URLS: Final = 2_000  # that a feature reads of a page

FeatureName = Annotated[str, Meta(max_length=20, pattern=r"\A[a-z_]+\Z")]
FeatureUrls = Annotated[list[LabelledUrl], Meta(max_length=MOST_URLS)]
# After the validators: digest, content and what is watched.
KnownPage: TypeAlias = tuple[Validators, str | None, str | None, str | None]
_BEGIN: Final = late(HTTP_ORIGIN + r"(?:[/?]|\Z)")
_VISIBLE: Final = bytes(range(33, 127))


class Message(Struct, array_like=True, forbid_unknown_fields=True, tag=True):
    """The base of all messages."""


# -- to a worker ---------------------------------------------------------------------------------------------


class StartWork(Message):
    """The first message. `ahead`: seconds by which the clock of the crawl is ahead of ours."""

    settings: Settings
    ahead: float


class VisitPage(Message):
    """What a worker needs of a lease. `number`: of the visit."""

    number: int
    url: Url
    depth: int
    hops: int
    attempt: int
    known: KnownPage | None
    missing: MissingPage | None = None

    @classmethod
    def of(cls, number: int, lease: Lease) -> "VisitPage":
        """The message for a lease."""
        visit, facts = lease.visit, lease.prior.facts if lease.prior else None
        known = facts and (facts.validators, facts.digest, facts.content, facts.watched)
        return cls(number, visit.url, visit.depth, visit.hops, lease.attempt, known, lease.missing)

    @property
    def lease(self) -> Lease:
        """The lease, as far as the worker needs it."""
        prior = None
        if self.known:
            validators, digest, content, watched = self.known
            facts = Facts(200, validators, digest=digest, content=content, watched=watched)
            prior = Prior(Listed(), facts)
        visit = Visit(self.url, self.depth, None, self.hops)
        return Lease(0, 0, visit, self.attempt, prior=prior, missing=self.missing)


class GrantSlot(Message):
    """The slot that the worker asked for has come."""

    number: int


class SetSite(Message):
    """The site of `PublishBase`."""

    site: str


class PauseHost(Message):
    """An origin that asked any worker for a pause."""

    origin: ReceivedUrl
    until: Moment
    once: bool = False  # not if the run has paused it before


class Ping(Message):
    """Is the worker alive?"""


class EndVisits(Message):
    """No further page is to be requested."""


ToWorker: TypeAlias = StartWork | VisitPage | GrantSlot | SetSite | PauseHost | Ping | EndVisits
TO_WORKER: Final = Decoder(list[ToWorker])

# -- from a worker -------------------------------------------------------------------------------------------


class VisitedPage(NamedTuple):
    """The result of a visit. URLs are checked by `read`, all at once."""

    outcome: VisitOutcome
    facts: Facts | None
    links: NumberedLinks
    named: Annotated[list[Url], Meta(max_length=MOST_NAMED)]
    truncated: bool
    features: Annotated[dict[FeatureName, FeatureUrls], Meta(max_length=MOST_FEATURES)]


class PageVisited(Message):
    """`page`: None for a 304: its facts are in the lease, which stays in the main process."""

    number: int
    page: VisitedPage | None


class LeaseReturned(Message):
    """The crawl ended before the page was requested."""

    number: int


class SlotWanted(Message):
    """The worker has to repeat a request to that origin."""

    number: int
    origin: ReceivedUrl


class Repeated(Message):
    """A request is repeated; the reason, and the number of the attempt."""

    url: ReceivedUrl
    because: HeaderText
    attempt: Annotated[int, Meta(ge=1, lt=1_000)]


class Throttled(Message):
    """A host asked for a pause, in seconds."""

    wait: Moment


class SessionFound(Message):
    """A parameter of URLs that holds a session."""

    name: HeaderText
    example: ReceivedUrl


class TrafficCounted(Message):
    """`taken`: see `Traffic.take`. `Traffic.add` checks it."""

    taken: Any


class Ready(Message):
    """The worker takes visits."""


class Pong(Message):
    """The worker is alive."""


FromWorker: TypeAlias = (
    PageVisited
    | LeaseReturned
    | SlotWanted
    | PauseHost
    | Throttled
    | Repeated
    | SessionFound
    | TrafficCounted
    | Ready
    | Pong
)
FROM_WORKER: Final = Decoder(list[FromWorker])


def written(result: VisitResult, sent: SentUrls) -> VisitedPage | None:
    """The result of a visit, to be sent before the next is written."""
    verdict = result.verdict
    if verdict.unchanged:
        return None
    links, named = sent.written(verdict.links), [*verdict.named]
    features = {name: [*found] for name, found in verdict.features.items()}
    outcome = cast("VisitOutcome", verdict.outcome)  # the judge keeps no failed page
    return VisitedPage(outcome, verdict.facts, links, named, result.truncated, features)


def received_urls() -> ReceivedUrls:
    """The table for the results of one worker."""
    return ReceivedUrls(urls_of, MOST_LINKS)


def skip(page: VisitedPage | None, received: ReceivedUrls) -> None:
    """Notes the URLs in a result that nobody waits for. Raises one of `MALFORMED` if it is invalid."""
    if page is not None:
        received.read(page.links)


def read(page: VisitedPage | None, lease: Lease, received: ReceivedUrls) -> VisitResult:
    """The result of a visit for `lease`. Raises one of `MALFORMED` if it is invalid."""
    if page is None:
        if lease.prior is None:
            raise ValueError("unchanged, of a page that was never seen")
        return VisitResult(unchanged(lease.prior))
    outcome, facts, links, named, truncated, features = page
    lastmod = facts.lastmod if facts else None
    if isinstance(outcome, Listed) and outcome.lastmod != lastmod:
        raise ValueError("the date of the outcome is not that of the page")
    if facts:
        _check_dates(facts.header, facts.stated, facts.until, lastmod and lastmod.at)
    leads = received.read(links)
    verdict = Verdict(outcome, facts, leads, named=urls_of(named), features=_checked(features))
    return VisitResult(verdict, truncated)


def _checked(features: Mapping[str, Sequence[LabelledUrl]]) -> Mapping[str, tuple[LabelledUrl, ...]]:
    """What features read of the page. Raises `ValueError` for what is no URL."""
    for found in features.values():
        urls_of([url for _, url in found])
    return {name: tuple(found) for name, found in features.items()}


def _check_dates(*dates: datetime | None) -> None:
    """Refuses dates of other time zones: as seconds since the epoch they may lie beyond the year 9999."""
    if any(date and date.utcoffset() for date in dates):
        raise ValueError("no date in UTC")


def urls_of(texts: Sequence[str]) -> tuple[Url, ...]:
    """The texts, checked as `ReceivedUrl` but together, which takes a third: most of what is received are
    URLs.

    Raises `ValueError`.
    """
    if "".join(texts).encode().translate(None, _VISIBLE) or not all(map(_BEGIN.match, texts)):
        raise ValueError("no URL")
    return tuple(map(Url, texts))
