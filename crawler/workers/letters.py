"""Leases and what they brought, as JSON: what goes to a worker, and what comes back. Pure.

A 304 comes back as such: what it stands for is with the lease, which stays at home.
"""

from datetime import UTC, datetime
from typing import Any

from crawler.judge import unchanged
from crawler.model import (
    Cause,
    Facts,
    Failed,
    Lastmod,
    Later,
    Lease,
    Link,
    Listed,
    Moved,
    Outcome,
    Prior,
    Seen,
    Source,
    Unlisted,
    Validators,
    Verdict,
    Visit,
    Why,
)
from crawler.urls import Url

JSON = Any


def written_lease(lease: Lease) -> JSON:
    """What a worker needs of a lease."""
    known = lease.prior.facts.validators if lease.prior else None
    visit = lease.visit
    return [
        visit.url,
        visit.depth,
        visit.hops,
        lease.attempt,
        [known.etag, known.modified] if known else None,
    ]


def read_lease(said: JSON) -> Lease:
    """The lease, as far as a worker needs it."""
    url, depth, hops, attempt, validators = said
    prior = Prior(Listed(), Facts(200, Validators(*validators))) if validators else None
    return Lease(0, 0, Visit(Url(url), depth, None, hops), attempt, prior=prior)


def written(seen: Seen) -> JSON:
    """What a visit brought."""
    verdict = seen.verdict
    if verdict.unchanged:
        return None
    follow = [link.url for link in verdict.links if not link.nofollow]
    avoid = [link.url for link in verdict.links if link.nofollow]
    return [_outcome(verdict.outcome), _facts(verdict.facts), follow, avoid, seen.truncated]


def read(said: JSON, lease: Lease) -> Seen:
    """The same, of the lease that was sent. Raises `ValueError`, `TypeError` or `KeyError` for what none of us wrote."""
    if said is None:
        if lease.prior is None:
            raise ValueError("unchanged, of a page that was never seen")
        return Seen(unchanged(lease.prior))
    outcome, facts, follow, avoid, truncated = said
    links = (*(Link(_url(text)) for text in follow), *(Link(_url(text), nofollow=True) for text in avoid))
    known = _read_facts(facts)
    return Seen(Verdict(_read_outcome(outcome, known), known, links), bool(truncated))


def _outcome(outcome: Outcome) -> JSON:
    match outcome:
        case Listed():
            return ["listed"]
        case Unlisted(why, detail):
            return ["unlisted", why.value, detail]
        case Moved(to):
            return ["moved", to]
        case Later(until, cause, detail):
            return ["later", cause.value, detail, until]
        case Failed(cause, detail):
            return ["failed", cause.value, detail]


def _read_outcome(said: JSON, facts: Facts | None) -> Outcome:
    match said:
        case ["listed"]:
            return Listed(facts.lastmod if facts else None)
        case ["unlisted", why, str(detail)]:
            return Unlisted(Why.of(why), detail)
        case ["moved", to]:
            return Moved(_url(to))
        case ["later", cause, str(detail), float() | int() as until]:
            return Later(until, Cause.of(cause), detail)
        case ["failed", cause, str(detail)]:
            return Failed(Cause.of(cause), detail)
    raise ValueError("no outcome")


def _facts(facts: Facts | None) -> JSON:
    if facts is None:
        return None
    dated = facts.lastmod
    return [
        facts.status, facts.validators.etag, facts.validators.modified, _seconds(dated.at) if dated else None,
        dated.source.value if dated else None, _seconds(facts.header), facts.fresh, _seconds(facts.stated), facts.content,
    ]  # fmt: skip


def _read_facts(said: JSON) -> Facts | None:
    if said is None:
        return None
    status, etag, modified, at, source, header, fresh, stated, content = said
    lastmod = Lastmod(_moment(at), Source.of(source)) if at is not None else None
    return Facts(
        int(status),
        Validators(_text(etag), _text(modified)),
        lastmod,
        None if header is None else _moment(header),
        bool(fresh),
        None if stated is None else _moment(stated),
        _text(content),
    )


def _seconds(at: datetime | None) -> float | None:
    return None if at is None else at.timestamp()


def _moment(at: float) -> datetime:
    return datetime.fromtimestamp(at, UTC)


def _text(value: JSON) -> str | None:
    return None if value is None else str(value)


def _url(text: JSON) -> Url:
    if not isinstance(text, str) or not text.startswith(("http://", "https://")):
        raise ValueError("no URL")
    return Url(text)
