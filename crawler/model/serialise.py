"""Converts outcomes and facts to and from plain values, for the columns of the state and for messages to
workers.

A date becomes seconds since the epoch, a reason its code. Facts are in the order of `FACTS`, from which all
lists of columns and all messages are generated, so that no code depends on positions. Pure.
"""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from operator import attrgetter, itemgetter
from typing import Any, Final

from msgspec import Struct

from crawler.model import rendering
from crawler.model.facts import Facts, Lastmod, Obstacle, Validators
from crawler.model.outcome import Failed, Kept, Later, Listed, Moved, Outcome, Unlisted
from crawler.model.reasons import Cause, Source, Why
from crawler.parse.dates import lengthened, shortened
from crawler.parse.url import Url


def detail_of(outcome: Outcome) -> str:
    """The detail that is stored beside the code."""
    match outcome:
        case Moved(to):
            return to
        case Listed(_, detail) | Unlisted(_, detail) | Failed(_, detail) | Kept(_, detail):
            return detail
        case Later(_, _, detail):
            return detail


def outcome_of(text: str | None, detail: str | None, lastmod: Lastmod | None) -> Outcome | None:
    """The outcome for a code and detail, the inverse of `code` and `detail_of`."""
    kind, _, reason = (text or "").partition(":")
    match kind:
        case "listed":
            return Listed(lastmod, detail or "")
        case "moved":
            return Moved(Url(detail or ""))
        case "unlisted":
            return Unlisted(Why.of(reason), detail or "")
        case "failed":
            return Failed(Cause.of(reason), detail or "")
        case "kept":
            return Kept(Cause.of(reason), detail or "", lastmod)
    return None


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


class Form(Struct, frozen=True, eq=False):
    """How values of one type are written and read; None: unchanged."""

    write: Callable[[Any], Any] | None = None
    read: Callable[[Any], Any] | None = None


STATUS: Final = Form()
COUNT: Final = Form()
TEXT: Final = Form()
URL: Final = Form()
FLAG: Final = Form(read=bool)
MOMENT: Final = Form(seconds, moment)
HTTP_DATE: Final = Form(shortened, lengthened)
SOURCE: Final = Form(attrgetter("value"), Source.of)
OBSTACLE: Final = Form(attrgetter("value"), Obstacle.of)
RENDERING: Final = Form(rendering.written, rendering.read)


class Fact(Struct, frozen=True):
    """One plain value of `Facts`."""

    name: str  # name of its column in every backend
    form: Form
    part_of: str = ""  # the field of `Facts` that contains it; empty: it is a field itself


FACTS: Final = (
    Fact("status", STATUS),  # first: None here means that there are no facts
    Fact("etag", TEXT, "validators"),
    Fact("modified", HTTP_DATE, "validators"),
    Fact("header", MOMENT),
    Fact("fresh", FLAG),
    Fact("stated", MOMENT),
    Fact("digest", TEXT),
    Fact("content", TEXT),
    Fact("echoing", TEXT),
    Fact("unordered", TEXT),
    Fact("variant", URL),
    Fact("obstacle", OBSTACLE),
    Fact("title", TEXT),
    Fact("type", TEXT),
    Fact("bytes", COUNT),
    Fact("took", COUNT),
    Fact("canonical", URL),
    Fact("scripts", TEXT),
    Fact("rendering", RENDERING),
    Fact("until", MOMENT),
    Fact("barred", TEXT),
    Fact("watched", TEXT),
    # Last, since a date may be missing altogether.
    Fact("lastmod", MOMENT, "lastmod"),
    Fact("source", SOURCE, "lastmod"),
)
"""All stored facts of a page. A new fact needs a field of `Facts`, a line here, and a column."""

_COLUMNS: Final = [fact.name for fact in FACTS]
_WRITES: Final = [fact.form.write for fact in FACTS]
_READS: Final = [(fact.form.read, Facts._field_defaults.get(fact.name)) for fact in FACTS]
_NO_FACTS: Final = (None,) * len(FACTS)
# The functions below run once per page, so the positions are looked up here, once.
_plain: Final = attrgetter(*(f"{fact.part_of}.{fact.name}".lstrip(".") for fact in FACTS[:-2]))
_validators: Final = itemgetter(_COLUMNS.index("etag"), _COLUMNS.index("modified"))
_fields: Final = itemgetter(
    *((*_COLUMNS[:-2], "lastmod", "validators").index(name) for name in Facts._fields)
)


def plain_facts(facts: Facts | None) -> Sequence[Any]:
    """The facts as plain values, in the order of `FACTS`."""
    if facts is None:
        return _NO_FACTS
    date = facts.lastmod
    values = (*_plain(facts), date and date.at, date and date.source)
    return [
        value if value is None or write is None else write(value)
        for value, write in zip(values, _WRITES, strict=True)
    ]


def facts_of(values: Sequence[Any]) -> Facts | None:
    """The inverse of `plain_facts`; None if no response for the URL was ever received."""
    *known, at, source = [
        absent if value is None else value if read is None else read(value)
        for value, (read, absent) in zip(values, _READS, strict=True)
    ]
    if known[0] is None:
        return None
    known += (None if at is None or source is None else Lastmod(at, source), Validators(*_validators(known)))
    return Facts._make(_fields(known))
