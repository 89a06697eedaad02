"""Noise is learned from three changes in a row in one place; what else changes is a change."""

from collections.abc import Callable, Sequence
from datetime import timedelta
from math import ceil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import json

from crawler.app.job import open_job
from crawler.cli.demo.site import Site
from crawler.model.facts import Facts
from crawler.parse.fingerprint import MOST_PIECES, digest, piece
from crawler.parse.url import Url
from crawler.ports import reads
from crawler.rules.noise import HEAD, LONG_QUIET_RUNS, QUIET_RUNS, WIDTH, unchanged, version
from crawler.settings.sections import Scope, Settings, State
from tests.rules.test_lastmod import OLD, PAGES, build, crawl, now


def changes(*nights: str) -> str:
    """For each night, whether the page is seen as changed (x) or not (.). A letter is a piece of text."""
    known: str | None = None
    watched: str | None = None
    shown = ""
    for night in nights:
        content = digest(night.encode())
        pieces = tuple(map(ord, night)) if content != known else ()
        before = known
        known, watched = version(known, watched, content, pieces)
        shown += "." if known == before else "x"
    return shown


def watch(*nights: str) -> str:
    """What is watched of a page after these nights."""
    known = watched = None
    for night in nights:
        content = digest(night.encode())
        known, watched = version(known, watched, content, tuple(map(ord, night)) if content != known else ())
    return watched or ""


@pytest.mark.parametrize(
    ("nights", "expected"),
    [
        ("abc abc abc abc", "x..."),
        ("abc abd abd abe", "xx.x"),  # edits
        ("abc abd abe abf abg abh", "xxx..."),  # the third change in a row is noise
        ("abc abd abe abe abf abg abh", "xxx.xx."),  # a night without a change begins anew
        ("abc abd abe abf xbg xbh", "xxx.x."),  # an edit beside noise
        ("abc abd abe abf xabg xabh axbi", "xxx.x.x"),  # added before noise
        ("abc abd abe abf abgx abhx abi", "xxx.x.x"),  # and behind it
        ("abc dbe fbg hbi jbk jxk lxm", "xxx..x."),  # noise in two places
        ("abcd dcba badc cdab adbc", "xxx.."),  # random order
        ("abc xbc ayc abz", "xxxx"),  # edits of other places each time
        ("abc ab a abcd", "xxxx"),
    ],
)
def test_what_is_a_change(nights: str, expected: str) -> None:
    assert changes(*nights.split()) == expected


def test_page_without_a_fingerprint_is_not_watched() -> None:
    assert version("one", "=000000000001", None, ()) == (None, None)
    assert version("one", "=000000000001", "two", ()) == ("two", None), "too many pieces"


@given(st.lists(st.lists(st.integers(0, 0xFFFF), min_size=1, max_size=8), min_size=2, max_size=8))
def test_the_watch_has_the_size_of_the_page(nights: list[list[int]]) -> None:
    known: str | None = None
    watched: str | None = None
    for pieces in nights:
        known, watched = version(known, watched, digest(bytes(repr(pieces), "ascii")), pieces)
        still = 2 + 4 * ceil(2 * len(pieces) / 3)
        assert len(watched or "") in {still, HEAD + WIDTH * len(pieces)}
    for _ in range(LONG_QUIET_RUNS):
        _, watched = version(known, watched, known, ())
    is_noisy = (watched or "").startswith("=0")
    assert is_noisy == ("3" in (watched or "")[HEAD + WIDTH - 1 :: WIDTH] if is_noisy else False)
    assert watched == unchanged(watched), "nothing is written each night"


def test_the_watch_of_the_longest_page_can_be_stored() -> None:
    known = watched = None
    for night in ("a", "b", "c"):
        known, watched = version(known, watched, night, [ord(night)] * MOST_PIECES)
        facts = json.decode(json.encode(Facts(200, watched=watched)), type=Facts)
        assert facts.watched == watched


def test_first_change_shows_where_it_was() -> None:
    assert watch("abcdefgh", "abcdefgh", "abcdefgx")[0] == "?"
    assert watch("abcdefgh", "abcdefgx", "abcdefgy", "abcdefgy", "abcdefgz")[0] == "^"
    quiet = ["abcdefgx"] * (QUIET_RUNS + LONG_QUIET_RUNS)
    assert watch("abcdefgh", *quiet, "abcdefgy")[0] == "?", "places are forgotten, the text is not"


@pytest.mark.parametrize(
    ("nights", "expected"),
    [
        ("abc abd", "+"),  # a large part of it
        ("abcd abce", "?"),
        ("abc abd abx", "~"),
        ("abc abd abd abe", "+"),  # a large part of it
        ("abcd abce abce abcf", "^"),
        ("abc abd abe abf", "!"),
        ("abc abd abe abf abg", "-"),
        ("abc abd abe abf xbg", "+"),
        ("abcx abdy abey abfz", "~"),  # beside new noise: it was the same by chance
        ("abcx abdx abex xbfx", "+"),  # elsewhere in that night
        ("abxy abzw abuw abtw abks", "~"),  # beside noise, where it had changed: it was the same by chance
        ("axby axbz axbw axbu aybv", "+"),  # not beside it
        ("abc abd abe abe", "="),
        ("abcd abce abce abcf abcf abcg", "^"),  # again where it had changed, but not in a row
        ("abc abd abd abe abe abf", "+"),  # a large part of it
        ("abcd abce abce abcf abcf xbcf", "+"),
        ("abcdefgh abcdefgi abcdefgi abcdefgk abcdefgk xbcdefgl", "+"),  # and elsewhere
        ("abcd abce abce abcf abcf abcfg", "+"),  # more than before
        ("abcd abce abce abcf xabcf xabcf xabcg", "^"),  # behind what was added
        ("abcd abce abce abcfx abcfx abcfy", "?"),  # what was added has not changed yet
    ],
)
def test_what_is_known_of_the_last_change(nights: str, expected: str) -> None:
    assert watch(*nights.split())[0] == expected


def test_same_new_block_is_recognised_wherever_it_stands() -> None:
    some = [watch("axy", "axz", "axz", night)[:HEAD] for night in ("bxz", "xzb", "bxz")]
    assert len(set(some)) == 1
    assert watch("axy", "axz", "axz", "cxz")[:HEAD] not in some


@pytest.mark.parametrize(
    "text",
    [
        "",
        "x",
        "00001",
        "=000000",
        "=000000Z00001",
        "+abcdef00001",
        "=\u0660000000",
        "=*",
        "=*AA==",
        "=*\u0660",
    ],
)
def test_a_watch_that_is_not_ours_is_none(text: str) -> None:
    _, watched = version("one", text, "two", (1, 2))
    assert watched == "=0000000" + "0001500025"


def noise(night: int) -> str:
    """Text that changes each night, in words that no rule knows."""
    fruit = ["Apfel", "Birne", "Kirsche"][night % 3]
    return f"<p>Seite erzeugt in 0,{night} Sekunden<p>Heute: {fruit}"


def of_night(night: int, noisy: Sequence[str], edited: Sequence[str] = ()) -> Callable[[str], str]:
    return lambda path: (
        f"<h1>{path}</h1><p>This is it.{'<p>More.' * (path in edited)}<p>Und Schluss."
        f"{noise(night) if path in noisy else ''}"
    )


@pytest.mark.system
@pytest.mark.parametrize("count", [3, 12])
async def test_noise_gives_no_date_once_it_is_known(tmp_path: Path, count: int) -> None:
    site, noisy, edited = Site(), ["/", *PAGES][:count], ["/1", "/9"]
    with site.serve() as origin:
        for night in range(4):
            build(site, lambda _: None, of_night(night, noisy))
            before = await crawl(origin, tmp_path)
        assert {before[path] for path in PAGES if path not in noisy} <= {None}
        for night in range(4, 7):
            build(site, lambda _: None, of_night(night, noisy, edited))
            dates = await crawl(origin, tmp_path)
            assert {dates.pop(path) for path in edited} == {(now().date().isoformat(), "history")}
            assert dates == {path: date for path, date in before.items() if path not in edited}


@pytest.mark.system
async def test_noise_is_known_after_a_failure(tmp_path: Path) -> None:
    site, known = Site(), []

    async def watched(origin: str) -> str | None:
        settings = Settings(scope=Scope(start=(origin + "/",)), state=State(state=str(tmp_path / "s.db")))
        async with open_job(settings) as job:
            record = await job.frontier.read(reads.RecordOf(Url(origin + "/1")))
        return record.facts.content if record and record.facts else None

    with site.serve() as origin:
        for night in range(7):
            build(site, lambda _: None, of_night(night, PAGES))
            if night == 5:
                site.page("/1", status=500)
            await crawl(origin, tmp_path)
            known.append(await watched(origin))
    assert known[4] == known[6]


@pytest.mark.system
async def test_header_that_follows_noise_is_unreliable(tmp_path: Path) -> None:
    site, dates = Site(), []
    with site.serve() as origin:
        for night in range(8):
            header = OLD + timedelta(days=night)
            build(site, dict.fromkeys(["/", *PAGES], header).get, of_night(night, ["/", *PAGES]))
            dates.append(await crawl(origin, tmp_path))
    assert dates[5] == dates[6] == dates[7]
    assert not any(date and date[1] == "header" for date in dates[7].values())


@pytest.mark.system
async def test_nights_of_304_end_a_row(tmp_path: Path) -> None:
    """A page that is edited every other night, always in the same place, is no page with noise."""
    site = Site()
    with site.serve() as origin:
        for night in range(10):
            edited = OLD + timedelta(days=night // 2)

            def text(path: str, number: int = night // 2) -> str:
                return (
                    f"<p>This is {path}, edition {'abcde'[number]}."
                    if path == "/1"
                    else f"<p>This is {path}."
                )

            build(site, (dict.fromkeys(PAGES, OLD) | {"/1": edited}).get, text)
            dates = await crawl(origin, tmp_path)
            assert dates["/1"] == (edited.date().isoformat(), "header")


def test_what_is_not_ours_is_not_watched_after_a_304() -> None:
    assert unchanged(None) is None
    assert unchanged("=000000Z00001") is None
    assert unchanged("~" + "0" * 7 + "00012") == "=0000001" + "00014"


def test_how_a_page_changed_last_stays_known_while_it_is_quiet() -> None:
    text = "+97d765f" + "00010" * 3 + "00020"
    for quiet in "1234567890"[: QUIET_RUNS - 1]:
        text = unchanged(text) or ""
        assert text == f"=97d765{quiet}" + "00010" * 3 + "00020"


@pytest.mark.parametrize(
    ("now", "change"),
    [
        ("Sold out", ":"),
        ("Ausverkauft", ":"),
        ("Sold out until May", "?"),
        ("Only 3 left", "?"),  # a counter is no label
        ("Donaudampfschifffahrtsgesellschaft", "?"),
        ("In stock|Sold out", "+"),
    ],
)
def test_a_label_in_the_place_of_another_is_known(now: str, change: str) -> None:
    known = watched = None
    for label in ("In stock", now):
        text = f"Lamps|A lamp that stands on three legs|{label}|It gives light to a whole room|Shop of lamps"
        pieces = [piece(part.encode()) for part in text.split("|")]
        known, watched = version(known, watched, digest(text.encode()), pieces)
    assert (watched or "")[0] == change
    assert (change == ":") is ((watched or "")[1:HEAD] == "0000000")
