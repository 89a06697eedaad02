"""Encodes leases for a worker, and results from it, as JSON. Pure; results are validated, as they are untrusted.

A 304 is sent without facts: those of the earlier visit are in the lease, which stays in the main process.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from crawler.model import rendering, serialise
from crawler.model.facts import Facts, Validators
from crawler.model.lease import Lease, Prior
from crawler.model.outcome import Kept, Later, Listed, Moved, Outcome, code
from crawler.model.reasons import Cause
from crawler.model.serialise import FACTS, detail_of, facts_of, outcome_of, plain_facts
from crawler.model.settlement import Verdict, VisitResult
from crawler.model.visit import Visit
from crawler.parse import headers, images
from crawler.parse.html import MAX_LINKS
from crawler.parse.url import Url
from crawler.rules import hreflang
from crawler.rules.judge import LONGEST_VALIDATOR, unchanged
from crawler.workers.url_numbers import ReceivedUrls, SentUrls

# What `read` may raise: a process that parsed hostile markup may send anything.
MALFORMED: Final = (
    ValueError,
    TypeError,
    LookupError,
    ArithmeticError,
    AttributeError,
    OSError,
    RecursionError,
)
MOST_LINKS: Final = MAX_LINKS + headers.LINKS + 2  # plus a canonical and a refresh
MOST_NAMED: Final = 2  # the canonical and the refresh
# What all packages rely on in a URL: a host, and no character that could end a line, header or attribute.
_PLACE: Final = r"https?://(?:\[[0-9a-f:.]++\]|[!\"$-.0-9;<=>A-Z^-~]++)(?::[0-9]{1,5}+)?+"
_URL: Final = re.compile(_PLACE + "(?:[/?][!-~]*)?")
_BEGIN: Final = re.compile(_PLACE + r"(?:[/?]|\Z)")
_VISIBLE: Final = bytes(range(33, 127))
_CODE: Final = re.compile(f"[!-~]{{1,{hreflang.LONGEST_CODE}}}")
LATEST: Final = 253_402_300_799  # the last second of the year 9999
LONGEST_DETAIL: Final = 1_000_000  # characters: the maximum of a Location header after percent-encoding
_CONTROLS: Final = frozenset(map(chr, (*range(9), *range(10, 32), 127)))
JSON = Any


def written_lease(lease: Lease) -> JSON:
    """Encodes what a worker needs of a lease."""
    known = lease.prior.facts.validators if lease.prior else None
    visit = lease.visit
    return [
        visit.url,
        visit.depth,
        visit.hops,
        lease.attempt,
        [known.etag, known.modified] if known else None,
    ]


def read_lease(message: JSON) -> Lease:
    """Decodes the result of `written_lease`."""
    url, depth, hops, attempt, validators = message
    prior = Prior(Listed(), Facts(200, Validators(*validators))) if validators else None
    return Lease(0, 0, Visit(Url(url), depth, None, hops), attempt, prior=prior)


def written(result: VisitResult, sent: SentUrls) -> JSON:
    """Encodes the result of a visit, to be sent before the next is encoded."""
    verdict, outcome = result.verdict, result.verdict.outcome
    if verdict.unchanged:
        return None
    ended = [code(outcome), detail_of(outcome), outcome.until if isinstance(outcome, Later) else None]
    links = sent.written(verdict.links)
    return [ended, plain_facts(verdict.facts), links, verdict.named, result.truncated, verdict.images]


def received_urls() -> ReceivedUrls:
    """The table for the results of one worker."""
    return ReceivedUrls(_urls, MOST_LINKS)


def skip(message: JSON, received: ReceivedUrls) -> None:
    """Takes note of the URLs in a result that nobody waits for. Raises one of `MALFORMED` if it is invalid."""
    if message is not None:
        received.read(message[2])


def read(message: JSON, lease: Lease, received: ReceivedUrls) -> VisitResult:
    """Decodes the result of a visit for `lease`. Raises one of `MALFORMED` if it is invalid."""
    if message is None:
        if lease.prior is None:
            raise ValueError("unchanged, of a page that was never seen")
        return VisitResult(unchanged(lease.prior))
    ended, facts, links, named, truncated, shown = message
    known, leads = _facts(facts), received.read(links)
    verdict = Verdict(
        _outcome(known, *ended),
        known,
        leads,
        named=_urls(named, MOST_NAMED),
        images=_urls(shown, images.MOST),
    )
    return VisitResult(verdict, _flag(truncated))


def _urls(message: JSON, most: int) -> tuple[Url, ...]:
    """As `url_of` for each, but faster: most of what is received are URLs."""
    if not isinstance(message, list) or len(message) > most:
        raise ValueError("no URLs of one page")
    text = "".join(message).encode()  # raises `TypeError` for what is no text
    if text.translate(None, _VISIBLE) or not all(map(_BEGIN.match, message)):
        raise ValueError("no URL")
    return tuple(message)


def _outcome(facts: Facts | None, ended: JSON, detail: JSON, until: JSON) -> Outcome:
    text, beside = _text(ended, LONGEST_VALIDATOR), _text(detail, LONGEST_DETAIL)
    kind, _, reason = text.partition(":")
    if kind == "later":
        return Later(float(_number(until, 0, LATEST)), Cause.of(reason), beside)
    outcome = outcome_of(text, beside, facts.lastmod if facts else None)
    if isinstance(outcome, Moved):
        url_of(outcome.to)
    if outcome is None or isinstance(outcome, Kept):
        raise ValueError("no outcome of a visit")
    return outcome


def _facts(message: JSON) -> Facts | None:
    if not isinstance(message, list) or len(message) != len(FACTS):
        raise ValueError("no facts")
    for check, value in zip(_CHECKS_OF_FACTS, message, strict=True):
        if value is not None:
            check(value)
    return facts_of(message)


def url_of(text: JSON) -> Url:
    """`text`, checked to be a URL. Raises `ValueError`."""
    if not isinstance(text, str) or not _URL.fullmatch(text):
        raise ValueError("no URL")
    return Url(text)


def text_of(text: JSON) -> str:
    """`text`, checked to be short and safe in a header field. Raises `ValueError`."""
    if type(text) is str and len(text) <= LONGEST_VALIDATOR and text.isascii() and text.isprintable():
        return text  # as nearly all are
    if not _CONTROLS.isdisjoint(_text(text, LONGEST_VALIDATOR)):
        raise ValueError("no text of one line")
    return str(text)


def _text(text: JSON, most: int) -> str:
    if not isinstance(text, str) or len(text) > most:
        raise ValueError("no text")
    text.encode()  # raises `ValueError` for a lone surrogate
    return text


def alternates_of(value: JSON) -> str:
    """`value`, checked to be language versions as they are stored. Raises `ValueError`."""
    text = _text(value, hreflang.LONGEST)
    for line in text.split("\n"):
        code, _, url = line.partition(" ")
        if not _CODE.fullmatch(code):
            raise ValueError("no code of a language")
        url_of(url)
    return text


def moment_of(value: JSON) -> float:
    """`value`, checked to be a time in seconds since the epoch. Raises `ValueError`."""
    return float(_number(value, 0, LATEST))


def _number(value: JSON, low: float, high: float) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
        raise ValueError("no such number")
    return value


def _whole(low: int, high: int) -> Callable[[JSON], None]:
    def check(value: JSON) -> None:
        if type(value) is not int or not low <= value <= high:
            raise ValueError("no such whole number")

    return check


def _flag(value: JSON) -> bool:
    if not isinstance(value, bool):
        raise ValueError("neither true nor false")  # noqa: TRY004 - all invalid messages are handled alike
    return value


_CHECKS: Final[Mapping[serialise.Form, Callable[[JSON], Any]]] = {
    serialise.STATUS: _whole(100, 999),
    serialise.COUNT: _whole(0, LATEST),
    serialise.TEXT: text_of,
    serialise.URL: url_of,
    serialise.FLAG: _flag,
    serialise.MOMENT: _whole(-LATEST, LATEST),
    serialise.SOURCE: text_of,
    serialise.ALTERNATES: alternates_of,
    serialise.OBSTACLE: text_of,
    serialise.RENDERING: lambda value: _text(value, rendering.LONGEST),
}
_CHECKS_OF_FACTS: Final = [_CHECKS[fact.form] for fact in FACTS]
