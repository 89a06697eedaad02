import io
import json
import logging
import re
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from crawler.model.facts import Facts, Lastmod
from crawler.model.outcome import Failed, Later, Listed, Moved, Outcome, Unlisted
from crawler.model.phases import Phase
from crawler.model.reasons import Cause, Source, Why
from crawler.model.run import Wait
from crawler.model.settlement import Settlement, Verdict
from crawler.model.visit import Lease, Visit
from crawler.parse.url import Url
from crawler.report import log as lines
from crawler.report.formatting import duration
from crawler.report.stats import Stats

HOSTILE = "https://example.com/\x1b[31m\u202e[red]\n12:00:00 info forged\x00"
CODES = ("\x1b", "\u202e", "\x00")


@pytest.fixture(autouse=True)
def _logging_as_it_was() -> Iterator[None]:
    loggers = [logging.getLogger(name) for name in ("crawler", *lines.LIBRARIES)]
    before = [(logger, logger.level, logger.handlers[:]) for logger in loggers]
    yield
    for logger, level, handlers in before:
        logger.setLevel(level)
        logger.handlers[:] = handlers


def written(log_format: str, level: int = logging.INFO) -> io.StringIO:
    stream = io.StringIO()
    lines.configure(log_format, level, stream)
    return stream


def settlement(outcome: Outcome, url: str = "https://example.com/a", **verdict: Any) -> Settlement:
    return Settlement(
        Lease(1, 1, Visit(Url(url), 2, Url("https://example.com/"))), Verdict(outcome, **verdict)
    )


def test_a_text_line_has_time_level_message_and_fields() -> None:
    stream = written("text")
    logging.getLogger("crawler.x").warning(
        "slow", extra={"fields": {"url": "https://e.com/?a=1", "why": "a b", "n": 3}}
    )
    assert re.fullmatch(
        r'\d\d:\d\d:\d\d warning slow url=https://e.com/\?a=1 why="a b" n=3\n', stream.getvalue()
    )


@pytest.mark.parametrize(
    ("value", "shown"),
    [("", '""'), ('say "x" now', '"say \\"x\\" now"'), ("a\nb", r"a\nb"), (None, "None"), (1.5, "1.5")],
)
def test_values_are_quoted_if_needed(value: object, shown: str) -> None:
    stream = written("text")
    logging.getLogger("crawler").info("x", extra={"fields": {"key": value}})
    assert stream.getvalue().rstrip("\n").endswith(f" info x key={shown}")


def test_json_line_is_object_with_time_level_event_and_fields() -> None:
    stream = written("json")
    logging.getLogger("crawler.x").info("hello %s", "you", extra={"fields": {"n": 3, "share": float("nan")}})
    said = json.loads(stream.getvalue())
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", said.pop("time"))
    assert said == {"level": "info", "event": "hello you", "n": 3, "share": None}


def test_fields_cannot_override_time_level_or_event() -> None:
    stream = written("json")
    logging.getLogger("crawler").info(
        "real", extra={"fields": {"event": "forged", "level": "error", "time": "0"}}
    )
    said = json.loads(stream.getvalue())
    assert (said["event"], said["level"]) == ("real", "info")
    assert said["time"] != "0"


@pytest.mark.parametrize("log_format", ["text", "json"])
def test_hostile_text_is_escaped_in_message_field_and_traceback(log_format: str) -> None:
    stream = written(log_format)
    fields = {"url": HOSTILE, "more": [HOSTILE]}
    logging.getLogger("crawler").error(HOSTILE, exc_info=ValueError(HOSTILE), extra={"fields": fields})
    text = stream.getvalue()
    assert not any(char in text for char in CODES)
    assert all(line.isprintable() for line in text.splitlines())
    assert not re.search(r"^12:00:00", text, re.MULTILINE)
    assert len(text.splitlines()) == 1 or log_format == "text"


def test_a_sentence_of_the_guard_is_logged_whole() -> None:
    stream = written("text")
    sentence = "Not published: " + "55 of 109 would no longer be listed, and " * 40
    logging.getLogger("crawler").error(sentence)
    assert stream.getvalue().rstrip("\n").endswith(sentence)


def test_json_lines_have_exact_but_limited_texts() -> None:
    stream = written("json")
    logging.getLogger("crawler").info("x", extra={"fields": {"url": HOSTILE, "long": "y" * 1_000_000}})
    said = json.loads(stream.getvalue())
    assert said["url"] == HOSTILE
    assert len(said["long"]) == lines.LONGEST_JSON


def test_configure_replaces_the_previous_configuration() -> None:
    first, second = written("text"), written("json")
    logging.getLogger("crawler").info("x")
    assert first.getvalue() == ""
    assert second.getvalue().count("\n") == 1


def test_libraries_are_logged_at_warning_and_above() -> None:
    stream = written("text", logging.DEBUG)
    logging.getLogger("httpx").info("HTTP Request: GET …")
    logging.getLogger("httpcore").warning("odd \x1b")
    assert stream.getvalue().endswith(" warning odd \\x1b\n")
    assert stream.getvalue().count("\n") == 1


def test_stderr_is_looked_up_at_each_line(monkeypatch: pytest.MonkeyPatch) -> None:
    lines.configure("text", logging.INFO, sys.stderr)
    swapped = io.StringIO()
    monkeypatch.setattr(sys, "stderr", swapped)  # as a live display does
    logging.getLogger("crawler").info("x")
    assert swapped.getvalue().endswith(" info x\n")


def test_an_unwritable_log_does_not_stop_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = written("text")
    stream.close()
    monkeypatch.setattr(logging, "raiseExceptions", False)
    logging.getLogger("crawler").info("x")


@pytest.mark.parametrize(
    ("log_format", "level", "told"),
    [
        ("text", logging.WARNING, []),
        ("text", logging.INFO, []),
        ("text", logging.DEBUG, ["listed", "failed:dns"]),
        ("json", logging.WARNING, []),
        ("json", logging.INFO, ["failed:dns"]),
        ("json", logging.DEBUG, ["listed", "failed:dns"]),
    ],
)
async def test_which_urls_are_logged(log_format: str, level: int, told: list[str]) -> None:
    stream = written(log_format, level)
    await lines.LineSink(log_format).settled([settlement(Listed()), settlement(Failed(Cause.DNS))])
    assert re.findall(r'outcome(?:=|": ")([\w:]+)', stream.getvalue()) == told


async def test_nothing_is_formatted_that_is_not_logged(monkeypatch: pytest.MonkeyPatch) -> None:
    written("json", logging.WARNING)
    monkeypatch.delattr(lines, "settled_fields")
    await lines.LineSink("text").settled([settlement(Failed(Cause.DNS))])


@pytest.mark.parametrize(
    ("outcome", "detail"),
    [
        (Listed(), None),
        (Listed(Lastmod(datetime(2024, 1, 2, tzinfo=UTC), Source.HEADER)), "2024-01-02T00:00:00+00:00"),
        (Unlisted(Why.TYPE, "image/png"), "image/png"),
        (Moved(Url("https://example.com/b")), "https://example.com/b"),
        (Later(9.0, Cause.RATE_LIMITED, "503"), "503"),
        (Failed(Cause.NOT_FOUND, "404"), "404"),
    ],
)
def test_every_outcome_has_its_detail(outcome: Outcome, detail: str | None) -> None:
    assert lines.settled_fields(settlement(outcome)).get("detail") == detail


def test_unknown_fields_are_omitted() -> None:
    assert lines.settled_fields(settlement(Listed(), facts=Facts(304), unchanged=True)) == {
        "url": "https://example.com/a",
        "outcome": "listed",
        "status": 304,
        "depth": 2,
        "via": "https://example.com/",
        "unchanged": True,
    }


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (-1, "0 s"),
        (0.9, "0 s"),
        (59.9, "59 s"),
        (60, "1 min"),
        (245, "4 min 5 s"),
        (3_600, "1 h"),
        (4_330, "1 h 12 min"),
        (86_400 * 2 + 3_600 * 3, "2 d 3 h"),
    ],
)
def test_durations_in_two_units(seconds: float, words: str) -> None:
    assert duration(seconds) == words


class Told(Stats):
    """A tally whose remaining time is set."""

    rest: tuple[float, bool] | None = None

    def remaining(self) -> tuple[float, bool] | None:
        return self.rest


@pytest.fixture
def stats() -> Told:
    moments = iter([0.0] + [12.0] * 100)
    told = Told(lambda: next(moments))
    told.phase, told.known, told.done, told.failed, told.in_hand = Phase.CRAWLING, 1_170, 340, 2, 16
    return told


@pytest.mark.parametrize(
    ("rest", "words"),
    [
        (None, None),
        ((0.2, False), "about 5 s left"),
        ((28, True), "at least 30 s left"),
        ((61, False), "about 2 min left"),
        ((5_000, True), "at least 1 h 24 min left"),
    ],
)
def test_the_remaining_time_is_rounded(
    stats: Told, rest: tuple[float, bool] | None, words: str | None
) -> None:
    stats.rest = rest
    assert lines.remaining_words(stats) == words


def test_the_progress_line_has_all_numbers(stats: Told) -> None:
    stats.rest = (28, True)
    stats.pace(0.02)
    expected = (
        "12 s  340 of 1,170 known pages, 28.3/s (at most 50 requests/s), 16 in flight, 814 queued, 2 failed, "
        "at least 30 s left"
    )
    assert lines.progress_line(stats) == expected
    stats.site = "https://www.example.com"
    assert lines.progress_line(stats) == f"https://www.example.com  {expected}"


def test_progress_line_has_phase_and_reason_for_stopping(stats: Told) -> None:
    stats.phase = Phase.PUBLISHING
    assert lines.progress_line(stats).endswith(", 2 failed, publishing")
    stats.stopping = "interrupted\x1b"
    assert lines.progress_line(stats).endswith(r", stopping (interrupted\x1b)")


def test_progress_says_what_is_waited_for_and_until_when(stats: Told) -> None:
    stats.waits([Wait("https://a.example", 1_700_000_000, 3), Wait("https://b.example", 1_700_000_600, 1)])
    assert lines.progress_line(stats).endswith(
        ", waits for https://a.example and 1 more host until 22:13:20 UTC"
    )
    fields = lines.progress_fields(stats)
    assert (fields["waits_for"], fields["waits_until"]) == ("https://a.example", "2023-11-14T22:13:20Z")
    stats.waits([])
    assert "waits" not in lines.progress_line(stats)


@pytest.mark.parametrize(
    ("phase", "words"),
    [(Phase.ARRIVING, "2 failed, arriving"), (Phase.SEEDING, "2 failed")],
)
def test_waiting_is_said_in_every_phase_with_visits(stats: Told, phase: Phase, words: str) -> None:
    stats.phase = phase
    stats.waits([Wait("https://a.example", 1_700_000_000, 3)])
    assert lines.progress_line(stats).endswith(f", {words}, waits for https://a.example until 22:13:20 UTC")
    stats.throttled(25)
    assert "(backing off for 25 s more)" in lines.progress_line(stats)


def test_progress_is_a_sentence_in_text_and_fields_in_json(stats: Told) -> None:
    text = written("text")
    lines.log_progress(stats)
    assert text.getvalue().endswith("16 in flight, 814 queued, 2 failed\n")
    machine = written("json")
    lines.log_progress(stats)
    said = json.loads(machine.getvalue())
    del said["time"]
    assert said == {
        "level": "info",
        "event": "progress",
        "site": "",
        "elapsed": 12.0,
        "phase": "crawling",
        "known": 1_170,
        "done": 340,
        "listed": 0,
        "failed": 2,
        "in_flight": 16,
        "queued": 814,
        "retries": 0,
        "rate": 28.33,
        "delay": 0.0,
        "remaining": None,
        "at_least": None,
        "waits_for": None,
        "waits_until": None,
        "stopping": None,
    }


def test_retries_are_logged_with_their_reason() -> None:
    text = written("text")
    lines.log_repeated("https://a.example/x", "status 503", 2)
    assert text.getvalue().endswith(
        'info trying again url=https://a.example/x because="status 503" attempt=2\n'
    )


@pytest.mark.parametrize("form", ["text", "json"])
async def test_a_page_that_is_tried_again_later_is_logged(form: str) -> None:
    out = written(form)
    await lines.LineSink(form).settled([settlement(Later(1_700_000_000, Cause.RATE_LIMITED, "429"))])
    assert "tried again later" in out.getvalue()
    assert "2023-11-14T22:13:20Z" in out.getvalue()
