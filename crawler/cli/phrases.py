"""Phrases shared by several commands: times, and the state of an unfinished run."""

from datetime import UTC, datetime

from crawler.model.outcome import code
from crawler.model.run import Run
from crawler.model.url_record import UrlRecord


def stamp(seconds: float) -> str:
    """A time (seconds since the epoch) for people."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def pending(record: UrlRecord | None, newest: Run) -> str:
    """Why the run `newest` has no result for a URL yet, and the earlier result; empty if it has one.

    Until a run is complete, it may still find the URL.
    """
    if newest.complete or (record and record.run == newest.number and record.state == "settled"):
        return ""
    unfinished = f"run {newest.number} is unfinished and has not"
    if record is None:
        return f"{unfinished} reached it yet; no earlier run found it"
    if record.run < newest.number:
        earlier = f"recorded {code(record.outcome)}" if record.outcome else "found it, but did not reach it"
        return f"{unfinished} reached it yet; run {record.run} {earlier}"
    return f"{unfinished} finished it yet; {f'{record.was} before' if record.was else 'found for the first time'}"
