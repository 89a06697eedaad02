import io
import json
import shlex
from collections.abc import Mapping
from typing import Any

import pytest
from rich.console import Console

from crawler.app.report import state_words
from crawler.cli.run_facts import trap_facts
from crawler.cli.summary import Facts, as_json, problem, with_defaults
from crawler.cli.summary_text import show_summary
from crawler.model.outcome import says
from crawler.model.reasons import Cause, Why
from crawler.model.survey import Balance
from crawler.model.trap import Trap
from crawler.report.formatting import size
from crawler.settings.sections import Settings, State

HOSTILE = "https://example.com/\x1b[31m\u202e[red]x[/red]\n:boom:"
OUTCOMES = {
    "listed": 1_024,
    "unlisted:noindex": 31,
    "unlisted:canonical": 80,
    "moved": 44,
    "failed:not-found": 9,
    "failed:tls": 2,
}


def file(name: str, size: int, urls: int, *, unchanged: bool = False) -> dict[str, Any]:
    return {"name": name, "size": size, "urls": urls, "unchanged": unchanged}


def facts_of(balance: Balance) -> dict[str, Any]:
    return {
        "discovered": balance.discovered,
        "open": balance.open,
        "balanced": balance.balanced,
        "outcomes": balance.outcomes,
        "kept": balance.kept,
    }


START = "https://example.com/"
STATE = ".sitemap-crawler/example.com.db"
DONE = with_defaults(
    facts_of(Balance(1_190, OUTCOMES))
    | {
        "files": [file("sitemap.xml.gz", 14_213, 1_024)],
        "folder": "./sitemaps",
        "robots_line": "Sitemap: https://example.com/sitemap.xml.gz",
        "elapsed": 251.3,
        "fetched": 1_166,
        "examples": {"failed:not-found": ["https://example.com/old", "https://example.com/b?x=1&y=2"]},
        "dated": {"header": 970, "page": 10},
        "state": STATE,
        "state_words": START,
    }
)


def changed(facts: Facts, **changes: Any) -> Facts:
    return {**facts, **changes}


def shown(facts: Facts, width: int = 80, *, terminal: bool = False, quiet: bool = False) -> str:
    stream = io.StringIO()
    show_summary(
        Console(file=stream, width=width, force_terminal=terminal, color_system=None, quiet=quiet), facts
    )
    return "\n".join(line.rstrip() for line in stream.getvalue().split("\n"))


def balanced(outcomes: Mapping[str, int], open_urls: int = 0) -> Facts:
    return with_defaults(facts_of(Balance(sum(outcomes.values()) + open_urls, outcomes, open_urls)))


def test_every_outcome_is_shown_with_sentence_and_count() -> None:
    rows = [tuple(line.split("  ")) for line in shown(DONE).splitlines()]
    told = [tuple(part.strip() for part in row if part) for row in rows]
    assert told[3:8] == [
        ("listed", "in the sitemap", "1,024"),
        ("not listed", "canonical URL is another page", "80"),
        ("marked noindex", "31"),
        ("moved", "redirects to another URL", "44"),
        ("failed", "not found (404, 410)", "9"),
    ]
    assert ("certificate or TLS handshake failed", "2") in told


def test_counts_are_aligned() -> None:
    lines = shown(DONE).splitlines()
    assert {len(line) for line in lines if line.endswith((" 1,024", " 31", " 44", " 9"))} == {80}


def test_matching_totals_are_confirmed() -> None:
    assert "\n1,190 URLs discovered, all accounted for\n" in shown(DONE)


def test_totals_that_do_not_match_are_a_warning() -> None:
    text = shown(changed(DONE, **facts_of(Balance(1_200, OUTCOMES, open=3))))
    assert "all accounted for" not in text
    assert "The totals do not add up: 1,200 URLs discovered, 1,193 accounted for." in text


def test_open_urls_are_part_of_the_totals() -> None:
    text = shown(balanced({"listed": 2}, open_urls=7))
    assert "\n9 URLs discovered, all accounted for\n" in text
    assert "open         not visited yet" in text


@pytest.mark.parametrize(
    "code", [*(f"unlisted:{w.value}" for w in Why), *(f"failed:{c.value}" for c in Cause)]
)
def test_every_reason_has_a_row(code: str) -> None:
    assert says(code)[:40] in shown(balanced({code: 5}))


def test_a_code_from_a_newer_version_does_not_break_the_summary() -> None:
    assert "failed:gremlins" in shown(balanced({"failed:gremlins": 3}))


def test_dates_files_and_state_are_shown() -> None:
    text = shown(DONE)
    assert "dates        980 of 1,024 listed pages with a lastmod (95%)" in text
    assert "files        sitemap.xml.gz  1,024 URLs  14.2 kB  written" in text
    assert "folder       ./sitemaps" in text
    assert "state        .sitemap-crawler/example.com.db" in text


def test_many_files_become_one_line() -> None:
    files = [file(f"sitemap-{n:05}.xml.gz", 1_000_000, 50_000, unchanged=n % 2 == 0) for n in range(1, 41)]
    text = shown(changed(DONE, files=files))
    assert "sitemap-00005.xml.gz" in text
    assert "sitemap-00006.xml.gz" not in text
    assert "and 35 more           1,750,000 URLs  35.0 MB  18 unchanged" in text


@pytest.mark.parametrize("name", ["sitemap.xml.gz", "sitemap-of-a-very-long-name-" + "x" * 60])
def test_an_index_has_no_number_of_urls(name: str) -> None:
    files = [file("sitemap-00001.xml.gz", 1_000, 12), file(name, 216, 0)]
    text = shown(changed(DONE, files=files))
    assert "12 URLs" in text
    assert " 0 URLs" not in text
    assert "216 B" in text


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({}, "Published  1,166 pages fetched in 4 min 11 s"),
        ({"files": (file("sitemap.xml.gz", 1, 1, unchanged=True),)}, "Nothing changed  1,166"),
        ({"files": (), "folder": None, "robots_line": None, "unfinished": "x"}, "Not finished  1,166"),
        (
            {"files": (), "folder": None, "robots_line": None, "unfinished": "x", "dry_run": True},
            "Not finished  1,166",
        ),
        ({"unfinished": "x"}, "Partly published  1,166"),
        ({"files": (), "folder": "-", "robots_line": None}, "Written to stdout  1,166"),
        (
            {"files": (), "folder": "-", "robots_line": None, "unfinished": "x"},
            "Partly written to stdout  1,166",
        ),
        ({"refused": "too small"}, "Not published  1,166"),
        ({"dry_run": True}, "Dry run: state written, sitemap not  1,166"),
        ({"dry_run": True, "reports": ["r.md"]}, "Dry run: state and report written, sitemap not"),
        ({"dry_run": True, "state": None}, "Dry run: nothing written  1,166"),
        ({"files": ()}, "Nothing published  1,166"),
        ({"files": (), "published_by": "web-1:4711"}, "Finished, published by web-1:4711  1,166"),
        ({"files": (), "published_by": "web-1:4711", "refused": "small"}, "Not published  1,166"),
        ({"fetched": 0}, "Published\n"),
    ],
)
def test_the_headline_tells_how_the_run_ended(change: dict[str, Any], words: str) -> None:
    assert shown(changed(DONE, **change)).startswith(f"\n{words}")


def test_kept_pages_count_as_listed_and_are_reported() -> None:
    told = changed(balanced({"listed": 60, "kept:server-error": 40}), dated={"header": 50})
    words = shown(told)
    assert "50 of 100 listed pages with a lastmod (50%)" in words
    assert "40 of 100 listed pages failed and stay in the sitemap for now" in " ".join(words.split())
    assert problem(told) == "", "a few are not worth waking anybody"
    assert problem(changed(told, keeps_many=True)).startswith("40 of 100 listed pages failed")
    assert as_json(told)["kept"] == 40


@pytest.mark.parametrize(
    ("outcomes", "words"),
    [
        ({"failed:wall": 1}, "in place of 1 page (https://a.example/w?\\x1b): let it"),
        ({"failed:wall": 2, "kept:wall": 3}, "in place of 5 pages (https://a.example/w?\\x1b): let it"),
        ({"kept:wall": 3}, "in place of 3 pages: let it"),
    ],
)
def test_pages_behind_a_firewall_are_a_line_under_quiet(outcomes: dict[str, int], words: str) -> None:
    told = changed(
        balanced({"listed": 60, **outcomes}), examples={"failed:wall": ["https://a.example/w?\x1b"]}
    )
    assert problem(told).count("\n") == 0
    assert f"A firewall answered {words}" in problem(told)
    assert "send a secret header that it lets pass with -H" in " ".join(shown(told).split())
    refused = problem(changed(told, refused="Too few."))
    assert refused.startswith("Not published: Too few. A firewall answered")


def test_a_run_without_progress_is_reported() -> None:
    told = changed(balanced({"listed": 60}, 40), unfinished="every request to the host fails", stalled=True)
    assert "No progress" in shown(told)
    assert "40 of 100 URLs are still open" in problem(told)


def test_the_robots_line_is_never_broken() -> None:
    line = "Sitemap: https://example.com/" + "long/" * 60 + "sitemap.xml.gz"
    assert f"\n  {line}\n" in shown(changed(DONE, robots_line=line), 60)
    assert "robots.txt;" not in shown(changed(DONE, robots_line=None))


def test_an_interrupted_run_tells_how_to_continue() -> None:
    assert "To continue: run the same command again" in shown(
        changed(DONE, resume="run the same command again")
    )


@pytest.mark.parametrize(
    ("change", "promised"),
    [({}, True), ({"folder": None, "unfinished": "x"}, False), ({"refused": "x", "folder": None}, False)],
)
def test_a_dry_run_suggests_publication_only_if_it_would_succeed(
    change: dict[str, Any], promised: bool
) -> None:
    told = changed(DONE, dry_run=True, files=(), **change)
    assert ("without --dry-run to publish." in shown(told)) is promised


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({}, ""),
        ({"refused": "Too few."}, "Not published: Too few."),
        ({"unfinished": "interrupted"}, "Not finished: interrupted."),
        (
            {"unfinished": "stopped at --max-pages", "resume": "run it again"},
            "Not finished: stopped at --max-pages. To continue: run it again.",
        ),
    ],
)
def test_a_failure_is_one_line_and_success_none(change: dict[str, Any], words: str) -> None:
    assert problem(changed(DONE, **change)) == words


def test_singular_and_plural() -> None:
    text = shown(changed(balanced({"listed": 1}), files=(file("sitemap.xml.gz", 1, 1),)))
    assert "\n1 URL discovered, all accounted for\n" in text
    assert "1 URLs" not in text


def test_stdout_is_not_shown_as_a_folder() -> None:
    assert "folder" not in shown(changed(DONE, files=(), folder="-", robots_line=None))


def test_a_refusal_tells_why() -> None:
    assert "the published one 1,200" in shown(changed(DONE, refused="20 URLs, the published one 1,200."))


def test_failures_suggest_a_command_to_copy() -> None:
    text = shown(DONE, 60)
    assert "11 URLs failed." in text
    assert "\n    sitemap-crawler explain https://example.com/old\n" in text


@pytest.mark.parametrize(
    ("url", "words", "arguments"),
    [
        ("https://example.com/$(reboot);`id`'&x", START, ["https://example.com/$(reboot);`id`'&x"]),
        ("https://example.com/" + "long/" * 60, START, ["--state", STATE, "URL"]),
        ("https://other.example.com/", START, ["--state", STATE, "https://other.example.com/"]),
        (HOSTILE, START, ["--state", STATE, "URL"]),
        ("https://example.com/", "--state 'a b.db'", ["--state", "a b.db", "https://example.com/"]),
        ("https://example.com/", "--site shop", ["--site", "shop", "https://example.com/"]),
    ],
)
def test_urls_are_quoted_in_the_command(url: str, words: str, arguments: list[str]) -> None:
    text = shown(changed(DONE, examples={"failed:tls": [url]}, state_words=words))
    (command,) = (line for line in text.splitlines() if "sitemap-crawler explain" in line)
    assert shlex.split(command) == ["sitemap-crawler", "explain", *arguments]


def test_without_a_state_no_explain_command_is_suggested() -> None:
    assert "explain" not in shown(changed(DONE, state=None, state_words=""))


def test_the_two_most_frequent_failures_get_advice() -> None:
    text = shown(balanced({"failed:timeout": 3, "failed:tls": 9, "failed:rate-limited": 5}), 110)
    assert "--ca-file" in text
    assert "--rate " in text
    assert "raise --timeout" not in text


def test_missing_dates_are_reported() -> None:
    assert "Last-Modified" in shown(changed(DONE, dated={}))
    assert "No page has a reliable date" not in shown(DONE)


def test_dates_are_counted_by_source_and_headers_explained() -> None:
    lying = changed(
        DONE, unreliable={"https://example.com": "it sends the time of the request on 9 of 9 pages"}
    )
    assert "970 from the Last-Modified header" in shown(lying)
    assert "10 from the date stated in the page" in shown(lying)
    assert "is not trusted: it sends the time of the request on 9 of 9 pages" in " ".join(
        shown(lying).split()
    )


def test_traps_are_shown_with_the_flag_that_crawls_them() -> None:
    traps = trap_facts(
        [Trap("query", f"https://example.com/{n}?…", f"https://example.com/{n}?a=\x1b[2J") for n in range(20)]
    )
    text = " ".join(shown(changed(DONE, traps=traps)).split())
    assert "endless query combinations: https://example.com/0?…" in text
    assert "(--allow-trap query crawls it)" in text
    assert "and 12 more" in text
    assert "\x1b[2J" not in text
    assert as_json(changed(DONE, traps=traps))["traps"][0]["flag"] == "--allow-trap query"


def test_each_failure_has_three_examples() -> None:
    examples = {"failed:tls": [f"https://example.com/{n}" for n in range(9)]}
    text = shown(changed(DONE, examples=examples, state_words=""))
    assert [n for n in range(9) if f"https://example.com/{n}\n" in text] == [0, 1, 2]


@pytest.mark.parametrize("terminal", [False, True])
def test_hostile_text_is_escaped(terminal: bool) -> None:
    told = changed(
        balanced({"failed:tls": 3}),
        files=(file(HOSTILE, 1, 1),),
        folder=HOSTILE,
        robots_line=HOSTILE,
        examples={"failed:tls": [HOSTILE]},
        state=HOSTILE,
        state_words=HOSTILE,
        resume=HOSTILE,
        refused=HOSTILE,
    )
    text = shown(told, 120, terminal=terminal)
    assert all(line.isprintable() for line in text.split("\n"))
    assert text.count(r"\x1b[31m\u202e[red]x[/red]\n:boom:") >= 6


@pytest.mark.parametrize("width", [60, 80, 120])
def test_the_summary_fits_the_terminal(width: int) -> None:
    told = changed(
        DONE, examples={"failed:tls": ["https://example.com/" + "x" * 500]}, robots_line=None, state_words=""
    )
    assert max(map(len, shown(told, width, terminal=True).splitlines())) <= width


def test_a_pipe_gets_no_rules() -> None:
    assert "─" in shown(DONE, terminal=True)
    assert not set(shown(DONE)) & set("─━│┃\x1b")


def test_an_ascii_terminal_gets_ascii() -> None:
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    show_summary(Console(file=stream, width=80, force_terminal=True), DONE)
    stream.flush()


def test_a_quiet_console_prints_nothing() -> None:
    assert shown(DONE, quiet=True) == ""


@pytest.mark.parametrize(
    ("count", "words"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1_000, "1.0 kB"),
        (14_213, "14.2 kB"),
        (999_960, "1.0 MB"),
        (5 * 10**13, "50.0 TB"),
    ],
)
def test_sizes_are_powers_of_ten(count: int, words: str) -> None:
    assert size(count) == words


def test_the_json_form_has_everything_as_plain_values() -> None:
    said = json.loads(json.dumps(as_json(DONE)))
    assert said["outcomes"] == OUTCOMES
    assert (said["discovered"], said["open"], said["balanced"], said["dated"]) == (
        1_190,
        0,
        True,
        {"header": 970, "page": 10},
    )
    assert said["files"] == [{"name": "sitemap.xml.gz", "size": 14_213, "urls": 1_024, "unchanged": False}]
    assert (said["elapsed"], said["fetched"], said["dry_run"], said["resume"]) == (251.3, 1_166, False, None)
    assert said["examples"] == {key: list(value) for key, value in DONE["examples"].items()}


def test_a_limit_is_named_with_the_way_to_continue() -> None:
    told = changed(balanced({"listed": 6}, 4), unfinished="stopped at --max-pages 10", unpublished=True)
    for words in (shown(told), problem(told)):
        text = " ".join(words.split())
        assert "stopped at --max-pages 10." in text
        assert "Nothing was published; --allow-partial publishes what was found so far." in text


def test_command_for_a_database_names_the_crawl() -> None:
    pytest.importorskip("psycopg")
    settings = Settings(state=State(state="postgresql://me@db.internal/crawls?sslmode=require"))
    assert state_words(settings, START) == "--state 'postgresql://db.internal/crawls#example.com'"


@pytest.mark.parametrize(
    ("mean", "oldest", "words"),
    [
        (0.0, 0.0, "less than a day ago on average, less than a day at most"),
        (0.4, 2.0, "less than a day ago on average, 2.0 days at most"),
        (1.5, 1_200.0, "1.5 days ago on average, 1,200.0 days at most"),
    ],
)
def test_the_age_of_what_is_known_is_shown(mean: float, oldest: float, words: str) -> None:
    known = {
        "visited": 3,
        "pages": 9,
        "mean_days": mean,
        "oldest_days": oldest,
        "waiting": 0,
        "max_age": 0.0,
    }
    text = " ".join(shown(changed(DONE, knowledge=known)).split())
    assert f"3 of 9 listed pages in this run; the last visits were {words}" in text


def test_orphans_sitemaps_and_unmatched_patterns_are_reported() -> None:
    orphans = {f"https://a.example/{n}.xml": 5 - n for n in range(5)}
    told = changed(
        balanced({"listed": 60, "unlisted:depth": 3}),
        orphans=orphans,
        sitemaps={"read": 4, "failed": 1, "passed": 2_000},
        unmatched=("--exclude /typo/*",),
    )
    text = " ".join(shown(told).split())
    assert "15 listed pages that no page links to 5 from https://a.example/0.xml" in text
    assert "and 2 sitemaps more" in text
    assert "4 read, 1 could not be read, 2,000 skipped (too many)" in text
    assert "--exclude /typo/* matched no URL in this crawl." in text
    assert "--max-depth limited the crawl: 3 URLs are deeper" in text
    assert as_json(told)["orphans"] == orphans
