"""Leases and what they brought, as JSON: what goes to a worker, and what comes back. Pure.

A 304 comes back as such: what it stands for is with the lease, which stays at home.
"""

from typing import Any, Final

from crawler.judge import unchanged
from crawler.model import (
    Cause,
    Facts,
    Kept,
    Later,
    Lease,
    Link,
    Listed,
    Moved,
    Outcome,
    Prior,
    Seen,
    Validators,
    Verdict,
    Visit,
    code,
)
from crawler.rows import detail_of, facts_of, outcome_of, plain_facts
from crawler.urls import Url

# What reading may raise: a process that read hostile markup may say anything.
NONSENSE: Final = (ValueError, TypeError, KeyError, OverflowError, OSError, RecursionError)
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
    verdict, outcome = seen.verdict, seen.verdict.outcome
    if verdict.unchanged:
        return None
    ended = [code(outcome), detail_of(outcome), outcome.until if isinstance(outcome, Later) else None]
    follow = [link.url for link in verdict.links if not link.nofollow]
    avoid = [link.url for link in verdict.links if link.nofollow]
    return [ended, plain_facts(verdict.facts), follow, avoid, seen.truncated]


def read(said: JSON, lease: Lease) -> Seen:
    """The same, of the lease that was sent. Raises one of `NONSENSE` for what none of us wrote."""
    if said is None:
        if lease.prior is None:
            raise ValueError("unchanged, of a page that was never seen")
        return Seen(unchanged(lease.prior))
    ended, facts, follow, avoid, truncated = said
    links = (*(Link(_url(text)) for text in follow), *(Link(_url(text), nofollow=True) for text in avoid))
    known = _facts(*facts)
    return Seen(Verdict(_outcome(known, *ended), known, links), bool(truncated))


def _outcome(facts: Facts | None, ended: JSON, detail: JSON, until: JSON) -> Outcome:
    kind, _, reason = str(ended).partition(":")
    if kind == "later":
        return Later(float(until), Cause.of(reason), str(detail))
    outcome = outcome_of(str(ended), str(detail), facts.lastmod if facts else None)
    if isinstance(outcome, Moved):
        _url(outcome.to)
    if outcome is None or isinstance(outcome, Kept):
        raise ValueError("no outcome of a visit")
    return outcome


def _facts(
    status: JSON,
    etag: JSON,
    modified: JSON,
    at: JSON,
    source: JSON,
    header: JSON,
    fresh: JSON,
    stated: JSON,
    content: JSON,
    unordered: JSON,
    variant: JSON,
    look: JSON,
) -> Facts | None:
    texts = (
        None if text is None else str(text) for text in (etag, modified, source, content, unordered, look)
    )
    asked, changed, rung, print_, loose, seen = texts
    known = None if status is None else int(status)
    named = None if variant is None else _url(variant)
    return facts_of(known, asked, changed, at, rung, header, bool(fresh), stated, print_, loose, named, seen)


def _url(text: JSON) -> Url:
    if not isinstance(text, str) or not text.isascii() or not text.startswith(("http://", "https://")):
        raise ValueError("no URL")
    return Url(text)
