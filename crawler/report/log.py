"""The log on stderr: plain lines for people, or one JSON object per line for programs.

A record has a fixed message and its details in fields (`model.log`). If it has an `event`, the text log
shows the message, the JSON log the event and the fields. Text from the network is only in fields, and is
escaped here: by `printable` in text, and as ASCII in JSON. Credentials in URLs are masked in both.
"""

import json
import logging
import math
import sys
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final, TextIO

from crawler.model.log import log
from crawler.model.outcome import Failed, Later, Listed, Outcome, code
from crawler.model.phases import VISITING, Phase
from crawler.model.serialise import detail_of
from crawler.model.settlement import Settlement
from crawler.parse.credentials import masked
from crawler.report.formatting import duration, iso, least_words, pace_words, waiting_words
from crawler.report.printable import printable
from crawler.report.stats import BACKING_OFF, Stats

LONGEST: Final = 2_000  # characters of a message; what the guard says takes a thousand
LONGEST_SITE: Final = 60  # characters
LONGEST_JSON: Final = 8_000  # characters of one text in a JSON line
LIBRARIES: Final = ("httpx", "httpcore", "asyncio")  # logged at level warning and above


def configure(log_format: str = "text", level: int = logging.INFO, stream: TextIO | None = None) -> None:
    """Sends the program's log to `stream` as "text" or "json". Another call replaces the first.

    The default is the current `sys.stderr` at each line, so that a live display can redirect it.
    """
    handler = LineHandler(stream)
    handler.setFormatter(JsonLines() if log_format == "json" else TextLines())
    for name in ("crawler", *LIBRARIES):
        logger = logging.getLogger(name)
        for old in [known for known in logger.handlers if isinstance(known, LineHandler)]:
            logger.removeHandler(old)
        logger.addHandler(handler)
        logger.setLevel(level if name == "crawler" else logging.WARNING)


def is_json() -> bool:
    """Whether the log of the program consists of JSON objects."""
    handlers = logging.getLogger("crawler").handlers
    return any(isinstance(handler.formatter, JsonLines) for handler in handlers)


class LineHandler(logging.Handler):
    """Writes each record as one line."""

    def __init__(self, stream: TextIO | None = None) -> None:
        super().__init__()
        self._stream = None if stream is sys.stderr else stream

    def emit(self, record: logging.LogRecord) -> None:
        try:
            stream = self._stream or sys.stderr
            stream.write(self.format(record) + "\n")
            stream.flush()
        except Exception:  # noqa: BLE001 - as every handler of `logging` does
            self.handleError(record)


class TextLines(logging.Formatter):
    """`HH:MM:SS level message key=value`, in local time."""

    def format(self, record: logging.LogRecord) -> str:
        """One line, followed by the lines of a traceback."""
        clock = time.strftime("%H:%M:%S", time.localtime(record.created))
        words = [clock, record.levelname.lower(), printable(masked(record.getMessage()), LONGEST)]
        if not hasattr(record, "event"):
            words += [f"{key}={_quoted(value)}" for key, value in _fields(record).items()]
        if record.exc_info:
            trace = masked(self.formatException(record.exc_info)).split("\n")
            return "\n  ".join([" ".join(words), *(printable(line, LONGEST) for line in trace)])
        return " ".join(words)


class JsonLines(logging.Formatter):
    """One object per line: `time` (ISO 8601, UTC), `level`, `event`, and the fields."""

    def format(self, record: logging.LogRecord) -> str:
        """The object, in printable ASCII."""
        moment = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        line = {
            "time": moment.replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "event": getattr(record, "event", None) or record.getMessage(),
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(_bounded({**line, **_fields(record), **line}), default=str)


def _fields(record: logging.LogRecord) -> Mapping[str, Any]:
    fields: Mapping[str, Any] = getattr(record, "fields", {})
    return fields


def _quoted(value: object) -> str:
    """A value, in quotes if its end would be unclear."""
    text = printable(masked(str(value)))
    if text and " " not in text and '"' not in text:
        return text
    return '"' + text.replace('"', '\\"') + '"'


def _bounded(value: Any) -> Any:
    """A value fit for JSON: texts shortened and without credentials, no NaN."""
    match value:
        case str():
            return masked(value[:LONGEST_JSON])
        case float() if not math.isfinite(value):
            return None
        case Mapping():
            return {str(key): _bounded(item) for key, item in value.items()}
        case list() | tuple():
            return [_bounded(item) for item in value]
    return value


class LineSink:
    """A `ports.Sink` that logs settled URLs.

    With --verbose every URL is logged, failures at level info. Otherwise only the JSON log has each failure,
    so that they can be counted; the text log leaves them to the summary. What is tried again later is always
    logged.
    """

    def __init__(self, log_format: str = "text") -> None:
        self._logs_failures = log_format == "json"

    async def settled(self, group: Sequence[Settlement]) -> None:
        """See `ports.Sink.settled`. Formats nothing that is not logged."""
        logs_all = log.isEnabledFor(logging.DEBUG)
        for settlement in group:
            if isinstance(settlement.verdict.outcome, Later):
                log_later(settlement, settlement.verdict.outcome)
        if not logs_all and not self._logs_failures:
            return
        for settlement in group:
            failed = isinstance(settlement.verdict.outcome, Failed)
            if failed or logs_all:
                level = logging.INFO if failed else logging.DEBUG
                log.log(level, "settled", **settled_fields(settlement))


def log_later(settlement: Settlement, later: Later) -> None:
    """Logs that a page is visited again later."""
    because = later.cause.says + (f" ({later.detail})" if later.detail else "")
    log.info("tried again later", url=settlement.lease.visit.url, because=because, until=iso(later.until))


def log_repeated(url: str, because: str, attempt: int) -> None:
    """Logs that a request is repeated."""
    log.info("trying again", url=url, because=because, attempt=attempt)


def settled_fields(settlement: Settlement) -> dict[str, Any]:
    """The log fields of a settled URL, without those that are None."""
    visit, verdict = settlement.lease.visit, settlement.verdict
    fields = {
        "url": visit.url,
        "outcome": code(verdict.outcome),
        "status": verdict.facts.status if verdict.facts else None,
        "detail": _detail(verdict.outcome) or None,
        "depth": visit.depth,
        "via": visit.via,
        "attempt": settlement.lease.attempt if settlement.lease.attempt > 1 else None,
        "unchanged": verdict.unchanged or None,
    }
    return {key: value for key, value in fields.items() if value is not None}


def _detail(outcome: Outcome) -> str:
    date = outcome.lastmod if isinstance(outcome, Listed) else None
    return date.at.isoformat() if date else detail_of(outcome)


def log_progress(stats: Stats) -> None:
    """Logs one line of progress."""
    if log.isEnabledFor(logging.INFO):
        log.info(progress_line(stats), event="progress", **progress_fields(stats))


def progress_line(stats: Stats) -> str:
    """`https://example.com  12 s  340 of 1,170 known pages, 4.9/s (at most 5 requests/s), 16 in flight,
    814 queued, 2 failed, at least 3 min left`.
    """
    parts = [
        f"{stats.done:,} of {stats.known:,} known pages",
        f"{stats.rate():,.1f}/s ({speed_words(stats)})",
        f"{stats.in_flight} in flight",
        f"{stats.queued:,} queued",
        f"{stats.failed:,} failed",
    ]
    if stats.stopping:
        parts.append(f"stopping ({printable(stats.stopping)})")
    elif stats.phase not in {Phase.SEEDING, Phase.CRAWLING}:  # whether there are sitemaps, it does not know
        parts.append(stats.phase)
    if stats.phase in VISITING and not stats.stopping:
        left = waiting_words(stats.waiting) if stats.waiting else remaining_words(stats)
        parts += [left] if left else []
    site = f"{printable(stats.site, LONGEST_SITE)}  " if stats.site else ""
    return f"{site}{duration(stats.elapsed)}  {', '.join(parts)}"


def progress_fields(stats: Stats) -> dict[str, Any]:
    """The progress as fields. Times in seconds; `remaining` is null while it is unknown."""
    remaining = stats.remaining()
    return {
        "site": stats.site,
        "elapsed": round(stats.elapsed, 1),
        "phase": stats.phase,
        "known": stats.known,
        "done": stats.done,
        "listed": stats.listed,
        "failed": stats.failed,
        "in_flight": stats.in_flight,
        "queued": stats.queued,
        "retries": stats.retries,
        "rate": round(stats.rate(), 2),
        "delay": round(stats.delay, 3),
        "remaining": round(remaining[0], 1) if remaining else None,
        "at_least": remaining[1] if remaining else None,
        "stopping": stats.stopping,
        "waits_for": stats.waiting[0].origin if stats.waiting else None,
        "waits_until": iso(stats.waiting[0].until) if stats.waiting else None,
    }


def speed_words(stats: Stats) -> str:
    """`at most 5 requests/s`; `backing off` while a host is spared, and for how long if that is long."""
    left = stats.backing_off
    if not left:
        return pace_words(stats.delay)
    return f"backing off for {duration(left)} more" if left > BACKING_OFF else "backing off"


def remaining_words(stats: Stats) -> str | None:
    """`at least 30 s left`, `about 4 min left`, rounded up to five seconds or minutes; None: unknown."""
    remaining = stats.remaining()
    if remaining is None:
        return None
    seconds, is_bound = remaining
    return f"{least_words(seconds, 'at least' if is_bound else 'about')} left"
