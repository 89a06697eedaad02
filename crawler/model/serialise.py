"""Converts outcomes and facts to and from plain values, for the columns of the state and for messages to workers.

A date becomes seconds since the epoch, a reason its code. Pure.
"""

from datetime import UTC, datetime
from typing import Any, Final

from crawler.model.facts import Facts, Lastmod, Look, Validators
from crawler.model.outcome import Failed, Kept, Later, Listed, Moved, Outcome, Unlisted, code
from crawler.model.reasons import Cause, Source, Why
from crawler.model.settlement import Settlement
from crawler.parse.url import Url

LONGEST_DETAIL: Final = 8_192  # characters


def detail_of(outcome: Outcome) -> str:
    """The detail that is stored beside the code."""
    match outcome:
        case Moved(to):
            return to
        case Unlisted(_, detail) | Failed(_, detail) | Kept(_, detail) | Later(_, _, detail):
            return detail
        case Listed():
            return ""


def outcome_of(text: str | None, detail: str | None, lastmod: Lastmod | None) -> Outcome | None:
    """The outcome for a code and detail, the inverse of `code` and `detail_of`."""
    kind, _, reason = (text or "").partition(":")
    match kind:
        case "listed":
            return Listed(lastmod)
        case "moved":
            return Moved(Url(detail or ""))
        case "unlisted":
            return Unlisted(Why.of(reason), detail or "")
        case "failed":
            return Failed(Cause.of(reason), detail or "")
        case "kept":
            return Kept(Cause.of(reason), detail or "", lastmod)
    return None


def facts_of(
    status: int | None,
    etag: str | None,
    modified: str | None,
    lastmod: int | None,
    source: str | None,
    header: int | None,
    fresh: int | None,
    stated: int | None,
    content: str | None,
    unordered: str | None,
    variant: str | None,
    look: str | None,
) -> Facts | None:
    """The facts from a row; None if the URL was never answered."""
    if status is None:
        return None
    dated = lastmod_of(lastmod, source)
    validators = Validators(etag, modified)
    named = Url(variant) if variant else None
    seen = Look.of(look) if look else None
    return Facts(
        status,
        validators,
        dated,
        moment(header),
        bool(fresh),
        moment(stated),
        content,
        unordered,
        named,
        seen,
    )


def moment(at: int | None) -> datetime | None:
    """Seconds since the epoch as a date."""
    return None if at is None else datetime.fromtimestamp(at, UTC)


def seconds(at: datetime | None) -> int | None:
    """A date as seconds since the epoch."""
    return None if at is None else int(at.timestamp())


def lastmod_of(at: int | None, source: str | None) -> Lastmod | None:
    """A date with its source."""
    if at is None or source is None:
        return None
    return Lastmod(datetime.fromtimestamp(at, UTC), Source.of(source))


def plain_facts(facts: Facts | None) -> list[Any]:
    """The arguments of `facts_of`."""
    if facts is None:
        return [None] * 12
    dated = facts.lastmod
    return [
        facts.status,
        facts.validators.etag,
        facts.validators.modified,
        seconds(dated.at) if dated else None,
        dated.source.value if dated else None,
        seconds(facts.header),
        facts.fresh,
        seconds(facts.stated),
        facts.content,
        facts.unordered,
        facts.variant,
        facts.look.value if facts.look else None,
    ]


def settled_row(settlement: Settlement, links: list[int] | None, patience: float) -> list[Any]:
    """The row for `schema.SETTLE` of the frontier. `patience`: see `keep_failing.patience`."""
    verdict = settlement.verdict
    ended = [settlement.lease.id, code(verdict.outcome), detail_of(verdict.outcome) or None]
    facts = plain_facts(verdict.facts)
    answered = verdict.facts is not None and not isinstance(verdict.outcome, Failed)
    return [*ended, *facts[:5], links, verdict.unchanged, *facts[5:], patience, answered, settlement.listable]
