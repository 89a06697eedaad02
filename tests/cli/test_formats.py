"""`--format` means the same in every command that prints, and `--log-format` only the log on stderr."""

import csv
import io
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest

from crawler.cli.commands import cli
from crawler.cli.demo.site import Site
from crawler.settings.load import FILE
from tests.commands import Run

FORMS = ["text", "json", "jsonl", "csv"]
OF_FILES = ("crawl", "export")  # whose --format is that of the files they write
SILENT = {"init", "demo", "completion"}
KEY = ("--indexnow-key", "0f3c9a51d2e84b76")
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|\+00:00)")
TIMES = re.compile("started|ended|settled|failing|at|until|checked|time|(was_)?lastmod|waits_until")


def small_site() -> Site:
    site = Site()
    site.page("/", links=["/a", "/gone"])
    site.page("/a")
    return site


def crawled(run: Run) -> str:
    with small_site().serve() as origin:
        run.ok("crawl", origin, "--rate", "0", "--retries", "0", "-q", "--state", "s.db")
    return origin


@pytest.mark.parametrize("name", [name for name in cli.commands if name not in OF_FILES])
def test_a_format_has_the_same_name_in_each_command(name: str) -> None:
    of_command = {param.name: param for param in cli.commands[name].params}
    form = of_command.get("form")
    assert (form is None) is (name in SILENT)
    if isinstance(form, click.Option):
        assert isinstance(form.type, click.Choice)
        assert list(form.type.choices) == FORMS
        assert (form.help or "").startswith("what is printed: text, one JSON document (json), one object")


@pytest.mark.parametrize("name", OF_FILES)
def test_where_a_format_is_that_of_files_the_help_says_so(run: Run, name: str) -> None:
    words = " ".join(run(name, "--help")[1].split())
    assert "format of the sitemap files (html: xml, with pages for people beside it); in other" in words


def test_json_is_one_document(run: Run) -> None:
    origin, state = crawled(run), ("--state", "s.db", "--format", "json")
    kinds = {
        ("status", *state): dict, ("explain", f"{origin}/a", *state): dict, ("report", *state): dict,
        ("list", "pages", *state): list, ("list", "runs", *state): list,
        ("list", "findings", "--only", "trap", *state): list,
        ("submit", *state, "--dry-run", "--indexnow-key", "0f3c9a51d2e84b76"): dict,
        ("config", "--format", "json"): list, ("validate", "sitemaps", "--format", "json"): dict,
        ("diff", "sitemaps", "sitemaps", "--format", "json"): dict,
        ("submit", "--new-key", "--state", "s.db", "--format", "json"): dict,
    }  # fmt: skip
    for words, kind in kinds.items():
        _, out, err = run(*words)
        assert type(json.loads(out)) is kind, (words, out, err)


def test_the_first_publication_adds_all_its_urls(run: Run) -> None:
    """As its summary says."""
    crawled(run)
    [listed] = documents(run, "list", "runs", "--state", "s.db", form="jsonl")
    assert [listed[name] for name in ("added", "removed", "changed")] == [2, 0, 0]


def test_lines_have_the_objects_of_the_document(run: Run) -> None:
    origin, state = crawled(run), ("--state", "s.db")
    lists: tuple[tuple[str, ...], ...] = (("list", "pages", *state), ("config",))
    for words in lists:
        assert documents(run, *words, form="json") == [documents(run, *words, form="jsonl")]
    ones: tuple[tuple[str, ...], ...] = (("explain", "/a", *state), ("robots", origin))
    for words in (*ones, ("submit", "--new-key", *state)):
        [line], [document] = (documents(run, *words, form=form) for form in ("jsonl", "json"))
        assert line.keys() == document.keys(), words
    with_items: dict[str, tuple[str, ...]] = {
        "findings": ("report", *state),
        "urls": ("submit", *state, "--dry-run", "--all", *KEY),
        "changes": ("diff", "none.txt", "sitemaps"),
    }
    for items, words in with_items.items():
        Path("none.txt").write_text(f"{origin}/none\n")
        [document], lines = (documents(run, *words, form=form) for form in ("json", "jsonl"))
        assert document[items], words
        assert lines == [*document.pop(items), document], words


def test_a_table_has_the_items_of_the_document(run: Run) -> None:
    origin = crawled(run)
    Path("none.txt").write_text(f"{origin}/none\n")
    for words in (("list", "pages", "--state", "s.db"), ("diff", "none.txt", "sitemaps")):
        [document], table = documents(run, *words, form="json"), run(*words, "--format", "csv")[1]
        items = document["changes"] if isinstance(document, dict) else document
        rows = list(csv.DictReader(io.StringIO(table, newline="")))
        assert [row["url"] for row in rows] == [item["url"] for item in items]
        assert list(rows[0]) == list(items[0])
    assert run("validate", "sitemaps", "--format", "csv")[1] == "place,line,severity,code,says\r\n"
    table = run("report", "--state", "s.db", "--format", "csv", "--report", "r.csv")[1]
    assert table == ""
    table = run("report", "--state", "s.db", "--format", "csv", "--most", "1")[1]
    assert table.encode() == Path("r.csv").read_bytes(), "nothing is left out"
    rows = list(csv.DictReader(io.StringIO(table)))
    assert ("broken-link", f"{origin}/gone") in [(row["code"], row["url"]) for row in rows]


def test_one_object_is_a_table_of_one_row(run: Run) -> None:
    origin, state = crawled(run), ("--state", "s.db")
    ones: tuple[tuple[str, ...], ...] = (("status", *state), ("explain", "/a", *state), ("robots", origin))
    for words in (*ones, ("submit", *state, "--new-key")):
        [document] = documents(run, *words, form="json")
        [row] = csv.DictReader(io.StringIO(run(*words, "--format", "csv")[1], newline=""))
        assert list(row) == list(document), words
    table = run("submit", *state, "--dry-run", "--all", *KEY, "--format", "csv")[1]
    assert next(iter(csv.DictReader(io.StringIO(table)))) == {"change": "added", "url": f"{origin}/"}
    assert run("submit", *state, "--dry-run", *KEY, "--format", "csv")[1] == "change,url\r\n"
    settings = {row["name"]: row for row in csv.DictReader(io.StringIO(run("config", "--format", "csv")[1]))}
    assert (settings["rate"]["value"], settings["rate"]["from"]) == ("5.0", "default")


def test_columns_of_a_table_are_those_of_its_rows(run: Run) -> None:
    crawled(run)
    words = ("list", "pages", "--state", "s.db", "--fields", "outcome,url,outcome", "--format", "csv")
    assert {len(row) for row in csv.reader(io.StringIO(run(*words)[1]))} == {2}


def test_the_reason_for_no_submission_is_said_once(run: Run) -> None:
    with small_site().serve() as origin:
        run("crawl", origin, "-q", "--state", "s.db", "--max-pages", "1")
    for form in ("text", "json", "jsonl"):
        _, out, err = run("submit", "--state", "s.db", "--dry-run", *KEY, "--format", form)
        assert (out + err).count("not complete") == 1, out + err
        assert bool(err) is (form == "text")


def test_times_in_json_are_text(run: Run) -> None:
    site = small_site()
    site.page("/dated", lastmod="Wed, 01 Jul 2026 12:00:00 GMT")
    site.page("/", links=["/a", "/gone", "/dated", "/moved"])
    site.redirect("/moved", "/a")
    found = list[Any]()
    state, others = ("--state", "s.db"), list[tuple[str, ...]]()
    with site.serve() as origin:
        for _ in range(2):
            words = ("--rate", "0", "--retries", "0", "--log-format", "json", "--report", "r.json", "-v")
            found += map(json.loads, run("crawl", origin, *words, *state)[2].splitlines())
        found += [json.loads(Path(name).read_text()) for name in ("r.json", "sitemaps/manifest.json")]
        others += [("explain", path, *state) for path in ("/", "/a", "/gone", "/moved", "/dated")]
        others += [("list", what, *state) for what in ("pages", "links", "findings", "runs")]
        others += [("status", *state), ("report", *state), ("submit", "--dry-run", "--all", *KEY, *state)]
        others += [("robots", origin), ("validate", "sitemaps"), ("diff", "s.db", "sitemaps"), ("config",)]
        for command in others:
            found += documents(run, *command, form="json")
    times = [
        pair
        for value in found
        for pair in members(value)
        if TIMES.fullmatch(pair[0]) and not isinstance(pair[1], dict)
    ]
    assert {name for name, _ in times} >= {"started", "ended", "settled", "at", "time", "lastmod"}
    assert [pair for pair in times if not TIME.fullmatch(str(pair[1]))] == []
    assert [pair for value in found for pair in members(value) if is_moment(pair[1])] == []


def documents(run: Run, *words: str, form: str) -> list[Any]:
    _, out, err = run(*words, "--format", form)
    assert out, err
    return [json.loads(out)] if form == "json" else [json.loads(line) for line in out.splitlines()]


def members(value: Any) -> Iterator[tuple[str, Any]]:
    """The names and values in a document, at all depths, without what is null."""
    match value:
        case dict():
            yield from ((name, one) for name, one in value.items() if one is not None)
            value = value.values()
        case list():
            pass
        case _:
            return
    for one in value:
        yield from members(one)


def is_moment(value: Any) -> bool:
    """Whether a number is a time of these years, in seconds since the epoch."""
    return isinstance(value, int | float) and 1.5e9 < value < 4e9


def test_the_format_of_the_log_does_not_change_the_output(run: Run) -> None:
    crawled(run)
    for words in (("status", "--state", "s.db"), ("list", "pages", "--state", "s.db")):
        assert run(*words, "--log-format", "json")[:2] == run(*words)[:2]


def test_settings_as_json_have_types_and_no_secrets(run: Run) -> None:
    Path("c.toml").write_text('[scope]\nexclude = ["/a*"]\n[http]\nheader = ["X-Key: sesame"]\n')
    _, out, _ = run("config", "--config", "c.toml", "--format", "json")
    assert "sesame" not in out
    settings = {item["name"]: item for item in json.loads(out)}
    assert settings["exclude"]["value"] == ["/a*"]
    assert settings["exclude"]["from"].startswith("c.toml")
    assert settings["timeout"] == {
        "site": None,
        "section": "http",
        "name": "timeout",
        "value": 20.0,
        "from": "default",
    }
    assert settings["dry-run"]["value"] is False


@pytest.mark.parametrize(
    ("words", "code", "name"),
    [
        (("status", "--state", "none.db"), 3, "storage"),
        (("list", "pages", "--state", "none.db"), 3, "storage"),
        (("crawl", "http://127.0.0.1:9/", "-q"), 2, "usage"),
        (("crawl", "ftp://example.com/"), 2, "usage"),
        (("crawl", "--no-such-option"), 2, "usage"),
        (("nothing",), 2, "usage"),
    ],
)
def test_error_that_ends_program_is_object_of_json_log(
    run: Run, words: tuple[str, ...], code: int, name: str
) -> None:
    got, out, err = run(*words, "--log-format", "json")
    assert (got, out) == (code, "")
    event = json.loads(err.splitlines()[-1])
    assert (event["event"], event["level"]) == ("failed", "error")
    assert (event["exit"], event["code"]) == (code, name)
    assert run(*words)[2].splitlines()[-1].endswith(event["error"])


@pytest.mark.parametrize("words", [("crawl", "x.invalid"), ("status", "--nope"), ("config", "check")])
@pytest.mark.parametrize("name", ["sitemap-crawler.toml", "named.toml", "variable.toml"])
def test_settings_file_says_the_format_of_errors_in_it(
    run: Run, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], name: str
) -> None:
    Path(name).write_text('[log]\nlog-format = "json"\n[pace]\nrat = 5\n')
    named = ("--config", name) if name == "named.toml" else ()
    if name == "variable.toml":
        monkeypatch.setenv("SITEMAP_CRAWLER_CONFIG", name)
    code, _, err = run(words[0], *named, *words[1:])
    event = json.loads(err)
    assert (code, event["event"], event["code"]) == (2, "failed", "usage")
    assert run(*words, *named, "--log-format", "text")[2].startswith("sitemap-crawler: ")


def test_settings_file_of_another_user_is_not_read_unless_named(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path(FILE).write_text('[output]\npublish-command = "touch here"\n')
    monkeypatch.setattr(os, "geteuid", lambda: Path(FILE).stat().st_uid + 1)
    if Path(FILE).stat().st_uid == 0:
        os.chown(FILE, 1000, 1000)
    code, _, err = run("config")
    assert (code, f"belongs to another user: to use it, name it with --config {FILE}" in err) == (2, True)
    run.ok("config", "--config", FILE)
    run.ok("completion", "bash")


def test_what_is_said_beside_the_output_is_object_of_json_log(run: Run) -> None:
    crawled(run)
    Path("none.txt").write_text("https://a.example/none\n")
    for words in (("validate", "sitemaps"), ("diff", "none.txt", "sitemaps")):
        text = run(*words)[2].splitlines()
        events = [json.loads(line) for line in run(*words, "--log-format", "json")[2].splitlines()]
        assert [(event["event"], event["says"]) for event in events] == [("remark", line) for line in text]


def test_bug_is_object_of_json_log_with_traceback(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object, **_more: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("crawler.cli.export.export_sitemap", fails)
    code, _, err = run("export", "--log-format=json", "-v")
    event = json.loads(err)
    assert (code, event["exit"], event["code"]) == (1, 1, "internal")
    assert "Traceback" in event["exception"]
