"""Words that several commands say: counts with their noun, and what is to be said of an unfinished run."""

from datetime import UTC, datetime

from crawler.model.outcome import code
from crawler.model.url_record import UrlRecord
from crawler.ports import Run


def counted(number: int, one: str, many: str = "") -> str:
    """`1 URL`, `1,170 URLs`; `many` where the plural is no plain s."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def stamp(seconds: float) -> str:
    """A moment (seconds since the epoch) as people read it."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def pending(record: UrlRecord | None, newest: Run) -> str:
    """What `newest` cannot tell of a URL yet, and what was known before; nothing once it can.

    Until a run is complete, a URL that it did not find may still be found.
    """
    if newest.complete or (record and record.run == newest.number and record.state == "settled"):
        return ""
    unfinished = f"run {newest.number} is unfinished and has not"
    if record is None:
        return f"{unfinished} reached it yet; no earlier run found it"
    if record.run < newest.number:
        said = f"recorded {code(record.outcome)}" if record.outcome else "found it, but did not reach it"
        return f"{unfinished} reached it yet; run {record.run} {said}"
    return f"{unfinished} finished it yet; {f'{record.was} before' if record.was else 'found for the first time'}"
