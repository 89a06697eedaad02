"""The command line as a person uses it: one clear sentence for each mistake, the right exit code, files in place."""

import errno
import gzip
import json
import os
import re
import signal
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import anyio
import pytest
import trustme
from lxml import etree

from crawler.__main__ import main
from crawler.app.state import open_frontier
from crawler.cli.demo.site import Site
from crawler.errors import OutputError
from crawler.frontier.sqlite.state_file import Lock
from crawler.parse.url import Url
from crawler.settings.sections import Settings
from tests.commands import Run
from tests.server import free_port, taken_port
from tests.sites import star
from tests.tls import serve_tls
from tests.waiting import send_signal, until

XSD = etree.XMLSchema(etree.parse(Path(__file__).parents[1] / "data/sitemap/sitemap.xsd"))


def little_site() -> Site:
    site = Site()
    site.page("/", links=["/a", "/b", "/gone"], lastmod=datetime(2024, 1, 1, tzinfo=UTC))
    site.page("/a", links=["/deep"])
    site.page("/b", noindex=True)
    site.page("/deep")
    return site


QUICK = ("--rate", "0", "--retries", "0")


def locs(path: Path) -> list[str]:
    root = etree.fromstring(gzip.decompress(path.read_bytes()))
    XSD.assertValid(root)
    return [element.text or "" for element in root.iter("{*}loc")]


def sentence(err: str) -> str:
    """The last line, which must be the only one, and no traceback."""
    assert "Traceback" not in err
    lines = err.strip().splitlines()
    assert len(lines) == 1, err
    assert lines[0].startswith("sitemap-crawler: ")
    return lines[0]


def test_a_crawl_publishes_and_prints_a_summary(run: Run, tmp_path: Path) -> None:
    with little_site().serve() as origin:
        code, out, err = run("crawl", origin + "/", *QUICK)
    assert code == 0, err
    assert out == ""
    assert locs(tmp_path / "sitemaps/sitemap.xml.gz") == [origin + path for path in ("/", "/a", "/deep")]
    assert "all accounted for" in err
    assert f"Sitemap: {origin}/sitemap.xml.gz" in err
    manifest = json.loads((tmp_path / "sitemaps/manifest.json").read_text())
    assert manifest["outcomes"] == {"failed:not-found": 1, "listed": 3, "unlisted:noindex": 1}
    assert list((tmp_path / ".sitemap-crawler").glob("127.0.0.1_*.db"))


def test_an_unchanged_site_leaves_all_files_unchanged(run: Run, tmp_path: Path) -> None:
    with little_site().serve() as origin:
        run("crawl", origin + "/", *QUICK)
        before = (tmp_path / "sitemaps/sitemap.xml.gz").stat().st_mtime_ns
        code, _, err = run("crawl", origin + "/", *QUICK)
    assert code == 0
    assert (tmp_path / "sitemaps/sitemap.xml.gz").stat().st_mtime_ns == before
    assert "Nothing changed" in err


def test_stdout_contains_only_the_sitemap(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    with little_site().serve() as origin, pytest.raises(SystemExit) as left:
        main(["crawl", origin + "/", *QUICK, "-o", "-", "--state", ":memory:"])
    assert left.value.code == 0
    out = capfdbinary.readouterr().out
    root = etree.fromstring(gzip.decompress(out) if out.startswith(b"\x1f\x8b") else out)
    assert len(list(root.iter("{*}loc"))) == 3


@pytest.mark.usefixtures("run")
@pytest.mark.slow
def test_summary_of_sitemap_on_stdout_reports_it_as_written() -> None:
    with little_site().serve() as origin:
        code, out, err = run_in_its_own_process(
            "crawl", origin + "/", *QUICK, "-o", "-", "--state", ":memory:"
        )
    assert (code, out.count("<loc>")) == (0, 3)
    assert "Written to stdout" in err
    assert "robots.txt" not in err


def test_status_says_what_is_waited_for(run: Run) -> None:
    async def pause(origin: str) -> None:
        async with AsyncExitStack() as closing:
            frontier = open_frontier(Settings(), Url(origin + "/"))
            closing.push_async_callback(frontier.close)
            await frontier.slow(origin, time.time() + 600)

    with little_site().serve() as origin:
        run("crawl", origin + "/", *QUICK, "--max-pages", "1")
        assert "waits for" not in run("status", origin)[1]
        anyio.run(pause, origin)
        _, out, _ = run("status", origin)
        assert re.search(rf"waits for +{origin} until \d{{4}}-.* UTC, \d+ pages?\n", out)
        [wait] = json.loads(run("status", origin, "--format", "json")[1])["waits"]
        assert re.fullmatch(r"20\d\d-\d\d-\d\dT[\d:]{8}Z", wait["until"])
        assert wait["host"] == origin
        run.ok("crawl", origin + "/", *QUICK, "--fresh")
        assert "waits for" not in run("status", origin)[1], "a complete run waits for nothing"


def test_status_explain_export_and_robots_read_the_state(run: Run, tmp_path: Path) -> None:
    with little_site().serve() as origin:
        run("crawl", origin + "/", *QUICK)
        out, _ = run.ok("status", origin)
        assert "complete" in out
        assert "5  discovered, all accounted for" in out
        out, _ = run.ok("explain", origin + "/b")
        assert "unlisted:noindex" in out
        assert f"found by   {origin}/" in out
        code, out, _ = run("explain", origin + "/deep#x?utm_source=y")
        assert f"{origin}/ → {origin}/a" in out
        assert "was normalised to the URL above" in out
        code, out, _ = run("explain", origin + "/never", "--format", "json")
        assert json.loads(out)["known"] is False
        code, out, _ = run("robots", origin + "/a")
        assert (code, out.splitlines()[0]) == (0, f"allowed  {origin}/a")
    run.ok("export", origin, "-o", "again")
    assert (tmp_path / "again/sitemap.xml.gz").read_bytes() == (
        tmp_path / "sitemaps/sitemap.xml.gz"
    ).read_bytes()


def test_explain_shows_all_that_is_known(run: Run) -> None:
    site = little_site()
    site.page("/", links=["/a", "/b", "/old", "/gone"], lastmod=datetime(2024, 1, 1, tzinfo=UTC))
    site.redirect("/old", "/older", 302)
    site.redirect("/older", "/a")
    with site.serve() as origin:
        run.ok("crawl", origin + "/", *QUICK)
        _, out, _ = run("explain", origin + "/old")
        hops = [line.split() for line in out.splitlines() if line.startswith("  hop")]
        assert [(hop[4], hop[5].removeprefix(origin), hop[6]) for hop in hops] == [
            ("302", "/old", "moved"), ("301", "/older", "moved"), ("200", "/a", "listed"),
        ]  # fmt: skip
        assert "not in any published file" in out
        _, out, _ = run("explain", origin + "/deep")
        assert "file       sitemap.xml.gz, entry 3" in out
        assert "changed    found for the first time" in out
        site.page("/", links=["/b", "/old"], lastmod=datetime(2024, 5, 5, tzinfo=UTC))
        site.page("/deep", noindex=True)
        run.ok("crawl", origin + "/", *QUICK, "--force")
        _, out, _ = run("explain", origin + "/")
        assert "changed    lastmod was 2024-01-01T00:00:00+00:00" in out
        _, out, _ = run("explain", origin + "/deep")
        assert "changed    listed before" in out
        _, out, _ = run("explain", origin + "/gone")
        assert "no longer found: run 1 was the last to find it, this is run 2" in out
        _, out, _ = run("explain", origin + "/a", "--format", "json")
        story = json.loads(out)
        assert (story["was"], story["file"], story["position"]) == ("listed", "sitemap.xml.gz", 2)
        assert story["hops"][0]["status"] == 200


def test_json_logs_are_one_object_per_line(run: Run) -> None:
    with little_site().serve() as origin:
        code, _, err = run("crawl", origin + "/", *QUICK, "--log-format", "json")
    assert code == 0
    events = [json.loads(line) for line in err.splitlines()]
    done = events[-1]
    assert done["event"] == "done"
    assert done["outcomes"]["listed"] == 3
    assert done["balanced"] is True
    assert any(event["event"] == "settled" and event["outcome"] == "failed:not-found" for event in events)


def test_dangerous_settings_are_reported(run: Run) -> None:
    with little_site().serve() as origin:
        _, _, err = run("crawl", origin + "/", *QUICK, "--ignore-robots", "--insecure")
    assert "warning robots.txt is ignored" in err
    assert "warning certificates are not verified" in err


@pytest.mark.slow
def test_the_demo_is_silent_with_quiet(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("crawler.cli.demo.command.RATE", 0.0)
    assert run("demo", "-q", "-o", "out") == (0, "", "")
    assert locs(tmp_path / "out/sitemap.xml.gz")[0] == "https://lanterns.example/"
    code, _, err = run("demo", "-o", "out")
    assert (code, "for each line above there is an example page" in err) == (0, True)
    assert "\n  sitemap-crawler crawl https://" in err
    monkeypatch.setenv("_SITEMAP_CRAWLER_CALLED_AS", "./dev run")
    assert "\n  ./dev run crawl https://" in run("demo", "-o", "out")[2]


@pytest.mark.parametrize(
    ("flags", "code", "said"),
    [
        (("--min-urls", "50"), 6, "error Not published: URLs listed: 3, fewer than --min-urls 50"),
        (
            ("--max-pages", "2"),
            7,
            "error Not finished: stopped at --max-pages 2. Nothing was published; --allow-partial publishes what was found so far. To continue: run the same command",
        ),
        (("--budget", "2"), 7, "error Not finished: stopped at --budget 2. Nothing was published; "),
        (("--budget", "9", "--max-pages", "2"), 7, "error Not finished: stopped at --max-pages 2. Nothing"),
    ],
)
def test_quiet_reports_a_failure_once(run: Run, flags: Sequence[str], code: int, said: str) -> None:
    with little_site().serve() as origin:
        words = ("crawl", origin + "/", *QUICK, *flags)
        got, out, err = run(*words, "-q", "--state", "quiet.db")
        assert (got, out, len(err.splitlines())) == (code, "", 1), err
        assert said in err
        _, _, err = run(*words, "-q", "--state", "json.db", "--log-format", "json")
        (event,) = map(json.loads, [line for line in err.splitlines() if "settled" not in line])
        assert (event["event"], event["level"]) == ("done", "error")
        assert event["refused"] if code == 6 else event["unfinished"] in said
        _, _, err = run(*words, "--state", "loud.db")
        assert " error " not in err
        assert err.count("--min-urls" if code == 6 else "To continue") == 1


def test_quiet_prints_nothing_on_success(run: Run) -> None:
    with little_site().serve() as origin:
        assert run("crawl", origin + "/", *QUICK, "-q") == (0, "", "")


def test_a_dry_run_writes_no_sitemap(run: Run, tmp_path: Path) -> None:
    with little_site().serve() as origin:
        code, _, err = run("crawl", origin + "/", *QUICK, "--dry-run")
    assert code == 0
    assert "Dry run: state written, sitemap not" in err
    assert not (tmp_path / "sitemaps").exists(), "not even the folder"


UNPUBLISHED = [
    ("--dry-run", 0), ("--dry-run --max-pages 1", 7), ("--max-pages 1", 7), ("--min-urls 100", 6),
]  # fmt: skip


@pytest.mark.parametrize(("words", "code"), UNPUBLISHED)
@pytest.mark.parametrize("folder", ["sitemaps", "new/below", "there", "there/below"])
def test_run_that_publishes_nothing_leaves_no_folder(
    run: Run, words: str, code: int, folder: str, tmp_path: Path
) -> None:
    there = tmp_path / "there"
    there.mkdir(mode=0o700)
    (there / "page.html").touch()
    with little_site().serve() as origin:
        assert run("crawl", origin + "/", *QUICK, *words.split(), "-o", folder)[0] == code
    assert [path.name for path in tmp_path.iterdir() if path.name[0] != "."] == ["there"]
    assert [path.name for path in there.iterdir()] == ["page.html"]
    assert there.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("down", [True, False])
def test_failed_crawl_leaves_no_folder(run: Run, down: bool, tmp_path: Path) -> None:
    site = little_site()
    site.robots("User-agent: *\nDisallow: /")
    with site.serve() as origin:
        start = f"http://127.0.0.1:{free_port()}/" if down else f"{origin}/"
        assert run("crawl", start, *QUICK)[0] == (4 if down else 5)
    assert [path.name for path in tmp_path.iterdir() if path.name[0] != "."] == []


def test_an_unfinished_dry_run_does_not_promise_publication(run: Run) -> None:
    with little_site().serve() as origin:
        code, _, err = run("crawl", origin + "/", *QUICK, "--dry-run", "--max-pages", "1")
    assert code == 7
    assert "Not finished" in err
    assert "Run without --dry-run" not in err


def test_export_reports_a_dry_run(run: Run, tmp_path: Path) -> None:
    with little_site().serve() as origin:
        run("crawl", origin + "/", *QUICK)
        code, _, err = run("export", origin, "--dry-run", "-o", "again")
    assert code == 0
    assert "Dry run: nothing written" in err
    assert not (tmp_path / "again/sitemap.xml.gz").exists()


def test_explain_marks_results_of_an_unfinished_run(run: Run) -> None:
    site = little_site()
    with site.serve() as origin:
        run.ok("crawl", origin + "/", *QUICK)
        assert run("crawl", origin + "/", *QUICK, "--max-pages", "1", "--exclude", "/none")[0] == 7
        _, out, _ = run("explain", origin + "/deep")
        assert "not yet    run 2 is unfinished and has not reached it yet; run 1 recorded listed" in out
        assert "no longer found" not in out
        assert "so far; found at depth" in out
        _, out, _ = run("explain", origin + "/a")
        assert "not yet    run 2 is unfinished and has not finished it yet; listed before" in out
        assert "settled  " not in out
        assert "linked     from 1 page so far" in out
        _, out, _ = run("explain", origin + "/deep", "--format", "json")
        assert (json.loads(out)["newest_run"], json.loads(out)["newest_complete"]) == (2, False)
        run.ok("crawl", origin + "/", *QUICK)
        _, out, _ = run("explain", origin + "/deep")
        assert "not yet" not in out


def test_a_limit_is_exit_7_and_publishes_only_if_allowed(run: Run, tmp_path: Path) -> None:
    with little_site().serve() as origin:
        assert "Not finished" in run.fails(7, "crawl", origin + "/", *QUICK, "--max-pages", "2")
        assert not (tmp_path / "sitemaps/sitemap.xml.gz").exists()
        code, _, _ = run("crawl", origin + "/", *QUICK, "--max-pages", "1", "--allow-partial")
        assert code == 7
        assert (tmp_path / "sitemaps/sitemap.xml.gz").exists()


def test_unfinished_crawl_calls_no_page_an_orphan(run: Run) -> None:
    """Pages that were not visited yet may link to it."""
    site = Site()
    site.robots("Sitemap: {origin}/all.xml\n")
    site.sitemap("/all.xml", ["/hidden"])
    site.page("/", links=["/0"])
    site.page("/hidden")
    for number in range(9):
        site.page(f"/{number}", links=[f"/{number + 1}"])
    with site.serve() as origin:
        told = [run("crawl", origin + "/", *QUICK, "--max-pages", most) for most in ("1", "5", "9")]
    assert [code for code, *_ in told] == [7, 7, 0]
    assert [" no page links to" in err for *_, err in told] == [False, False, True]


def test_a_shrunken_site_is_refused_and_the_old_file_stays(run: Run, tmp_path: Path) -> None:
    site = star(*(f"/{n}" for n in range(20)))
    with site.serve() as origin:
        run.ok("crawl", origin + "/", *QUICK)
        old = (tmp_path / "sitemaps/sitemap.xml.gz").read_bytes()
        site.page("/", links=["/1"])
        err = run.fails(6, "crawl", origin + "/", *QUICK)
        assert "Not published" in err
        assert "--max-shrink" in err
        assert (tmp_path / "sitemaps/sitemap.xml.gz").read_bytes() == old
        run.ok("crawl", origin + "/", *QUICK, "--force")
    assert len(locs(tmp_path / "sitemaps/sitemap.xml.gz")) == 2


# -- mistakes --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["crawl"], "No start URL"),
        (["crawl", "ftp://example.com"], "'ftp://example.com' is not an http or https URL."),
        (["crawl", "http://"], "is not an http or https URL."),
        (["crawl", "http://a.b:99999/"], "is not an http or https URL."),
        (["crawl", "example.com", "--rate", "fast"], "--rate: 'fast' must be a number"),
        (
            ["crawl", "example.com", "--max-urls", "50001"],
            "--max-urls: '50001' must be a whole number from 1 to 50000.",
        ),
        (["crawl", "example.com", "--exclude", "re:("], "is not a valid regular expression"),
        (
            ["crawl", "example.com", "--max-dept", "3"],
            "No such option '--max-dept'. (Did you mean one of: ",
        ),
        (["crawl", "example.com", "--config", "none.toml"], "none.toml: cannot be read"),
        (["crawl", "example.com", "--header", "x"], "--header: *** must have the form 'Name: value'."),
        (["crawl", "example.com", "--auth-env", "NOT_SET"], "the variable NOT_SET is not set"),
        (["crawl", "example.com", "--allow-address", "10.0.0.0/99"], "--allow-address"),
        (["crawl", "example.com", "--input", "none.txt"], "--input: none.txt cannot be read"),
        (["crawl", "example.com", "--state", "redis://x"], "--state: redis is not supported"),
        (["crwl"], "No such command 'crwl'. Did you mean"),
        (["explain"], "Missing argument 'URL'"),
        (["list"], "Missing argument: one of pages, links, images, findings, runs. (See"),
        (["list", "page"], "sitemap-crawler: 'page' is not one of 'pages', 'links'"),
        (
            ["crawl", "http:/example.com"],
            "'http:/example.com' is not an http or https URL; did you mean http://example.com?",
        ),
        (["explain", "nonsense://"], "is not an http or https URL."),
        (["config", "check", "none.toml"], "none.toml: cannot be read"),
    ],
)
def test_bad_usage_is_exit_2_and_one_sentence(run: Run, words: Sequence[str], said: str) -> None:
    code, out, err = run(*words)
    assert code == 2
    assert said in sentence(err)
    assert out == ""


def test_http2_without_its_extra_is_exit_2_before_the_crawl(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "h2", None)
    monkeypatch.setattr("crawler.app.compose.find_spec", lambda _: None)
    code, out, err = run("crawl", "http://127.0.0.1:8009/", "--http2", "--ignore-robots")
    assert (code, out) == (2, "")
    assert "sitemap-crawler[http2]" in sentence(err)
    assert list(tmp_path.iterdir()) == []


def test_a_bad_file_is_exit_2_and_names_the_key(run: Run, tmp_path: Path) -> None:
    (tmp_path / "c.toml").write_text("[pace]\nraet = 1\n")
    err = run.fails(2, "crawl", "example.com", "--config", "c.toml")
    assert sentence(err).endswith("c.toml: [pace] has no key 'raet'; did you mean rate?")


def test_an_unreachable_host_is_exit_4(run: Run) -> None:
    err = run.fails(4, "crawl", f"http://127.0.0.1:{free_port()}/", *QUICK)
    assert "could not connect" in sentence(err)


def test_a_host_name_without_address_is_exit_4(run: Run) -> None:
    err = run.fails(4, "crawl", "http://no-such-host.invalid/", *QUICK)
    assert "host name could not be resolved" in sentence(err)


def test_an_untrusted_certificate_is_exit_4(run: Run) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    trustme.CA().issue_cert("127.0.0.1").configure_cert(context)
    with serve_tls(little_site(), context) as origin:
        code, _, err = run("crawl", origin + "/", *QUICK)
    assert code == 4
    assert "TLS" in sentence(err)


def test_a_start_page_that_is_missing_is_exit_4(run: Run) -> None:
    with little_site().serve() as origin:
        code, _, err = run("crawl", origin + "/nowhere", *QUICK)
    assert code == 4
    assert "not found (404, 410): 404" in sentence(err)


@pytest.mark.parametrize(
    ("status", "body", "said"),
    [
        (200, b"User-agent: *\nDisallow: /\n", "line 2: Disallow: /"),
        (503, b"", "robots.txt could not be read"),
    ],
)
def test_robots_txt_that_forbids_or_fails_is_exit_5(run: Run, status: int, body: bytes, said: str) -> None:
    site = little_site()
    site.raw("/robots.txt", body=body, status=status)
    with site.serve() as origin:
        err = run.fails(5, "crawl", origin + "/", *QUICK)
        assert said in sentence(err)
        assert site.requests("/") == 0
        if status == 200:
            assert run("robots", origin + "/a")[0] == 5


def test_unreachable_robots_txt_is_exit_4_and_not_forbidden(run: Run) -> None:
    url = f"http://127.0.0.1:{free_port()}/a"
    code, out, _ = run("robots", url)
    assert (code, out.splitlines()[0]) == (4, f"unreachable  {url}")
    assert "could not be reached" in out
    assert "forbidden" not in out
    code, out, _ = run("robots", url, "--format", "json")
    assert (code, json.loads(out)["status"], json.loads(out)["allowed"]) == (4, "unreachable", False)


# -- stdout that nobody reads, or that is full -------------------------------------------------------------


def run_in_its_own_process(
    *words: str, stdout: int = subprocess.PIPE, shell: str = ""
) -> tuple[int, str, str]:
    command = [sys.executable, "-m", "crawler", *words]
    done = subprocess.run(
        ["sh", "-c", f'exec "$@" {shell}', "sh", *command] if shell else command,
        stdout=stdout, stderr=subprocess.PIPE, text=True, check=False,
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])},
    )  # fmt: skip
    return done.returncode, done.stdout or "", done.stderr


ANSWERS = [("config",), ("--help",), ("config", "check", os.devnull)]


@pytest.mark.parametrize("words", ANSWERS)
@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.slow
def test_a_closed_pipe_is_exit_3_without_a_message(
    words: Sequence[str], unbuffered: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONUNBUFFERED", unbuffered)
    reads, writes = os.pipe()
    os.close(reads)
    assert run_in_its_own_process(*words, stdout=writes) == (3, "", "")
    os.close(writes)


@pytest.mark.usefixtures("run")
@pytest.mark.slow
def test_closed_pipe_for_sitemap_is_exit_3_without_message() -> None:
    reads, writes = os.pipe()
    os.close(reads)
    with little_site().serve() as origin:
        words = ("crawl", origin + "/", *QUICK, "-q", "--state", ":memory:", "-o", "-")
        assert run_in_its_own_process(*words, stdout=writes) == (3, "", "")
    os.close(writes)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
@pytest.mark.parametrize("words", ANSWERS)
@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.slow
def test_output_to_a_full_disk_is_exit_3_and_one_sentence(
    words: Sequence[str], unbuffered: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONUNBUFFERED", unbuffered)
    with open("/dev/full", "w") as full:
        code, _, err = run_in_its_own_process(*words, stdout=full.fileno())
    assert (code, sentence(err)) == (3, "sitemap-crawler: The output cannot be written: the disk is full.")


@pytest.mark.slow
def test_a_closed_stdin_is_not_an_error(run: Run, tmp_path: Path) -> None:
    with little_site().serve() as origin:
        assert run_in_its_own_process("crawl", origin + "/", *QUICK, "-q", shell="<&-") == (0, "", "")
        run.ok("status", origin)
    assert (tmp_path / "sitemaps/sitemap.xml.gz").exists()


@pytest.mark.slow
def test_closed_stdout_is_exit_3_and_descriptor_is_not_reused(run: Run, tmp_path: Path) -> None:
    with little_site().serve() as origin:
        assert run_in_its_own_process("crawl", origin + "/", *QUICK, "-q", shell=">&-") == (0, "", "")
        assert run("status", origin)[0] == 0, "the state is whole"
        code, _, err = run_in_its_own_process("status", origin, shell=">&-")
    assert (code, sentence(err)) == (3, "sitemap-crawler: The output cannot be written: stdout is closed.")
    assert (tmp_path / "sitemaps/sitemap.xml.gz").exists()


@pytest.mark.parametrize("shell", ["2>&-", "2>/dev/full"])
@pytest.mark.usefixtures("run")
@pytest.mark.slow
def test_an_unwritable_stderr_does_not_stop_a_crawl(tmp_path: Path, shell: str) -> None:
    with little_site().serve() as origin:
        assert run_in_its_own_process("crawl", origin + "/", *QUICK, shell=shell) == (0, "", "")
    assert (tmp_path / "sitemaps/sitemap.xml.gz").exists()


def test_shell_completion(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("_SITEMAP_CRAWLER_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", "sitemap-crawler cr")
    monkeypatch.setenv("COMP_CWORD", "1")
    assert run_in_its_own_process() == (0, "plain,crawl\n", "")


def test_output_that_cannot_be_written_is_exit_3_crawl_is_kept(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: Path) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    (tmp_path / "sitemaps").write_text("a file, not a folder")
    site = little_site()
    with site.serve() as origin:
        err = run.fails(3, "crawl", origin + "/", *QUICK)
        assert "The sitemap cannot be written to sitemaps: a file is in the way" in sentence(err)
        assert site.log == [], "told before the crawl"
        (tmp_path / "sitemaps").unlink()
        monkeypatch.setattr("crawler.sitemap.publish.swap._sync", full)
        assert "the disk is full; the old files are kept" in run.fails(3, "crawl", origin + "/", *QUICK)
        monkeypatch.undo()
        monkeypatch.chdir(tmp_path)
        asked = len(site.log)
        run.ok("crawl", origin + "/", *QUICK, "--link-pages", "0")
        assert len(site.log) == asked, "what was crawled is published without asking again"


def test_a_damaged_state_is_exit_3_and_fresh_replaces_it(run: Run, tmp_path: Path) -> None:
    state = tmp_path / "s.db"
    with little_site().serve() as origin:
        crawl = ("crawl", origin + "/", *QUICK, "--state", "s.db")
        run.ok(*crawl)
        state.write_bytes(state.read_bytes()[:4096] + b"garbage" * 5000)
        err = run.fails(3, *crawl)
        assert "is damaged" in sentence(err)
        _, err = run.ok(*crawl, "--fresh")
        assert "state file is damaged; kept under another name file=s.db.kept" in err


@pytest.mark.parametrize("fresh", [(), ("--fresh",)])
def test_a_file_that_is_not_a_state_is_left_untouched(
    run: Run, tmp_path: Path, fresh: tuple[str, ...]
) -> None:
    (tmp_path / "notes.txt").write_text("my notes")
    err = run.fails(3, "crawl", "http://127.0.0.1:49151/", "--state", "notes.txt", *fresh)
    assert sentence(err).endswith(
        "notes.txt is not a state file of sitemap-crawler and is left untouched: name another file with --state."
    )
    assert (tmp_path / "notes.txt").read_text() == "my notes"


@pytest.mark.parametrize("place", [".", "..", "/", "folder"])
def test_a_folder_as_state_is_one_sentence(run: Run, tmp_path: Path, place: str) -> None:
    (tmp_path / "folder").mkdir()
    for words in (
        ("crawl", "http://127.0.0.1:49151/"),
        ("crawl", "http://127.0.0.1:49151/", "--fresh"),
        ("status",),
    ):
        err = run.fails(3, *words, "--state", place)
        assert f"The state {place} is a folder: name a file with --state." in sentence(err)


def test_a_missing_state_is_exit_3(run: Run) -> None:
    err = run.fails(3, "status", "https://example.com/")
    assert "There is no state at" in sentence(err)


def test_a_second_run_on_the_same_state_is_exit_9(run: Run, tmp_path: Path) -> None:
    lock = Lock(tmp_path / "s.db")
    code, _, err = run("crawl", "http://127.0.0.1:8009/", "--state", "s.db")
    lock.release()
    assert code == 9
    assert "Another run is using the state" in sentence(err)


def test_a_bug_is_exit_1_and_one_sentence(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("crawler.settings.load.resolve", lambda *_: 1 / 0)
    err = run.fails(1, "config")
    assert "internal error (ZeroDivisionError" in sentence(err)
    *_, err = run("config", *re.findall(r"run again with (--\S+ \S+) ", err)[0].split())
    assert "ZeroDivisionError" in json.loads(err)["exception"], "as the sentence advises, for any command"


def test_config_shows_where_each_value_comes_from(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "c.toml").write_text('[pace]\nrate = 2\n[http]\nheader = ["X-Key: secret"]\n')
    monkeypatch.setenv("SITEMAP_CRAWLER_CONCURRENCY", "4")
    out, _ = run.ok("config", "--config", "c.toml")
    lines = {line.split("=")[0].strip(): line for line in out.splitlines() if "=" in line}
    assert lines["rate"].split("#")[1].strip() == "c.toml [pace] rate"
    assert lines["concurrency"].split("#")[1].strip() == "SITEMAP_CRAWLER_CONCURRENCY"
    assert lines["retries"].split("#")[1].strip() == "default"
    assert "secret" not in out
    assert run("config", "check", "c.toml") == (0, "c.toml: valid, 2 settings.\n", "")


def test_help_lists_every_setting_without_heavy_imports() -> None:
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "crawler", "crawl", "--help"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    from crawler.settings.sections import keys  # noqa: PLC0415

    for key in keys():
        assert not key.option.flag or f"--{key.name}" in done.stdout
    for heavy in ("httpx", "lxml", "rich", "selectolax", "publicsuffixlist"):
        assert f" {heavy}\n" not in done.stderr, f"--help loads {heavy}"


# -- signals ---------------------------------------------------------------------------------------------


def slow_site() -> Site:
    return star(*(f"/{n}" for n in range(300)))


def started(origin: str, folder: Path, site: Site, pages: int, *more: str) -> subprocess.Popen[str]:
    """A crawl in a process of its own that has asked for so many pages."""
    process = subprocess.Popen(
        [sys.executable, "-m", "crawler", "crawl", origin + "/", "--rate", "30", "--state", "s.db", *more],
        cwd=folder, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])},
    )  # fmt: skip
    until(lambda: len(site.log) >= pages)
    return process


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
@pytest.mark.slow
def test_after_a_signal_the_crawl_can_be_resumed(tmp_path: Path, run: Run, number: int, code: int) -> None:
    site = slow_site()
    with site.serve() as origin:
        process = started(origin, tmp_path, site, 20)
        process.send_signal(number)
        _, err = process.communicate(timeout=3000)
        assert process.returncode == code, err
        assert "To continue: run the same command again" in err
        run.ok("crawl", origin + "/", *QUICK, "--state", "s.db")
    assert len(locs(tmp_path / "sitemaps/sitemap.xml.gz")) == 301
    assert all(site.requests(f"/{n}") == 1 for n in range(300)), "nothing was asked for twice"


@pytest.mark.slow
def test_a_second_signal_exits_at_once_with_a_consistent_state(tmp_path: Path, run: Run) -> None:
    asked, hold = threading.Event(), threading.Event()
    site = Site()
    site.page("/", links=["/stuck"])

    def stuck(_: object) -> object:
        asked.set()
        hold.wait(300)
        return site.answer(200, b"<p>late")

    site.respond("/stuck", stuck)
    with site.serve() as origin:
        process = started(origin, tmp_path, site, 0)
        assert asked.wait(300)

        def left() -> bool:
            process.send_signal(signal.SIGINT)  # again and again: two that come together are one
            return process.poll() is not None

        until(left)
        process.communicate()
        assert process.returncode == 130
        hold.set()
        run.ok("crawl", origin + "/", *QUICK, "--state", "s.db")
    assert len(locs(tmp_path / "sitemaps/sitemap.xml.gz")) == 2


@pytest.mark.slow
def test_a_crawl_resumed_after_sigkill_gives_the_same_bytes(tmp_path: Path, run: Run) -> None:
    site = slow_site()
    with site.serve() as origin:
        run.ok("crawl", origin + "/", *QUICK, "--state", ":memory:", "-o", "undisturbed")
        site.log.clear()
        for _ in range(3):
            process = started(origin, tmp_path, site, len(site.log) + 40)
            process.kill()
            process.communicate()
        run.ok("crawl", origin + "/", *QUICK, "--state", "s.db")
        asked = len(site.log)
    undisturbed = (tmp_path / "undisturbed/sitemap.xml.gz").read_bytes()
    assert (tmp_path / "sitemaps/sitemap.xml.gz").read_bytes() == undisturbed
    assert asked <= 302 + 3 * (2 * 16 + 64), "a crash costs what was in hand, no more"


LATE = """
import sys
from crawler.sitemap.publish import publish
from crawler.__main__ import main
swap = publish.swap
def slow(*args):
    print("publishing", flush=True)
    sys.stdin.readline()  # until the signal has arrived
    return swap(*args)
publish.swap = slow
main(sys.argv[1:])
"""

AT_IMPORT = """
import os, signal, sys

# Sends the signal when the module is looked for: at that very instruction, on any machine.
class Sends:
    def find_spec(self, name, path=None, target=None):
        if name == os.environ["AT_IMPORT"]:
            sys.meta_path.remove(self)
            os.kill(os.getpid(), int(os.environ["SIGNAL"]))

sys.meta_path.insert(0, Sends())
"""


@pytest.fixture
def sends_at_import(tmp_path: Path) -> Path:
    """A folder for PYTHONPATH whose `sitecustomize` sends a signal at the import of a module."""
    (tmp_path / "custom").mkdir()
    (tmp_path / "custom/sitecustomize.py").write_text(AT_IMPORT)
    return tmp_path / "custom"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("module", "said", "number", "code"),
    [
        ("crawler.cli.main", "before the start", signal.SIGINT, 130),
        ("crawler.errors", "before the start", signal.SIGTERM, 143),
        ("click", "before the start", signal.SIGINT, 130),
        ("crawler.settings.load", "before the start", signal.SIGTERM, 143),
        ("anyio", "before the crawl started", signal.SIGINT, 130),
        ("uvloop", "before the crawl started", signal.SIGTERM, 143),
        ("crawler.cli.crawl", "before the crawl started", signal.SIGINT, 130),
        ("selectolax", "before the crawl started", signal.SIGTERM, 143),
        ("sqlite3", "before the crawl started", signal.SIGINT, 130),
        ("certifi", "run the same command again", signal.SIGTERM, 143),
        ("tenacity", "run the same command again", signal.SIGINT, 130),
    ],
)
def test_signal_during_any_import_ends_program_before_crawl(
    tmp_path: Path, sends_at_import: Path, module: str, said: str, number: int, code: int
) -> None:
    """Nothing raises within an import: no traceback, one sentence, and nothing was asked for or written."""
    site = Site()
    site.raw("/", status=503)
    with site.serve() as origin:
        start = origin.replace("http:", "https:") if module == "certifi" else origin
        process = subprocess.run(
            [sys.executable, "-m", "crawler", "crawl", start + "/", "--rate", "0", "--state", "s.db", "-q"],
            cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False,
            env=os.environ | {
                "PYTHONPATH": f"{sends_at_import}:{Path(__file__).parents[2]}", "AT_IMPORT": module,
                "SIGNAL": str(int(number)),
            },
        )  # fmt: skip
    assert process.returncode == code, process.stderr
    assert said in process.stderr
    assert len(process.stderr.splitlines()) == 1
    if "began" in said:
        assert site.log == []
        assert not (tmp_path / "sitemaps").exists()


@pytest.mark.slow
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
@pytest.mark.parametrize(
    "words", [["validate"], ["robots"], ["diff", "none.xml"], ["explain", "--state", "s.db"]]
)
def test_a_signal_ends_every_command(
    tmp_path: Path, words: list[str], number: int, code: int, sends_at_import: Path
) -> None:
    asked, hold = threading.Event(), threading.Event()
    site = Site()

    def stuck(_: object) -> object:
        asked.set()
        hold.wait(300)
        return site.answer(200, b"late")

    (tmp_path / "none.xml").write_text("")
    site.respond("/sitemap.xml", stuck)
    site.respond("/robots.txt", stuck)
    with site.serve() as origin:
        process = subprocess.Popen(
            [sys.executable, "-m", "crawler", *words, origin + "/sitemap.xml"],
            cwd=tmp_path, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env=os.environ | {
                "PYTHONPATH": f"{sends_at_import}:{Path(__file__).parents[2]}",
                "AT_IMPORT": "anyio" if words[0] == "explain" else "", "SIGNAL": str(int(number)),
            },
        )  # fmt: skip
        if words[0] != "explain":
            assert asked.wait(300)
            process.send_signal(number)
        _, err = process.communicate(timeout=300)
        hold.set()
    assert process.returncode == code, err
    assert (
        err.splitlines()[-1]
        == f"sitemap-crawler: {'interrupted' if number == signal.SIGINT else 'terminated'}."
    )


def test_a_second_signal_before_the_event_loop_exits_at_once(tmp_path: Path, sends_at_import: Path) -> None:
    (sends_at_import / "sitecustomize.py").write_text(
        AT_IMPORT.replace("sys.meta_path.remove(self)", "os.kill(os.getpid(), signal.SIGTERM)")
    )
    process = subprocess.run(
        [sys.executable, "-m", "crawler", "--help"],
        cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False,
        env=os.environ | {
            "PYTHONPATH": f"{sends_at_import}:{Path(__file__).parents[2]}", "AT_IMPORT": "click", "SIGNAL": "2",
        },
    )  # fmt: skip
    assert (process.returncode, process.stdout, process.stderr) == (143, "", "")


@pytest.mark.slow
def test_importing_the_library_installs_no_signal_handlers() -> None:
    words = (
        "import signal; before = [signal.getsignal(n) for n in range(1, 32)]\n"
        "import crawler; from crawler import open_job; import crawler.__main__\n"
        "print([signal.getsignal(n) for n in range(1, 32)] == before)"
    )
    done = subprocess.run([sys.executable, "-c", words], capture_output=True, text=True, check=True)
    assert done.stdout == "True\n"


def test_other_keyboard_interrupts_are_reported_as_interrupted(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object, **__: object) -> object:
        raise KeyboardInterrupt

    monkeypatch.setattr("crawler.settings.load.resolve", interrupted)
    code, _, err = run("config")
    assert (code, sentence(err)) == (130, "sitemap-crawler: interrupted.")


EARLY = """
import sys, anyio
from contextlib import asynccontextmanager
from crawler.__main__ import main
from crawler.cli import crawl
@asynccontextmanager
async def never(*_, **__):
    print("opening", flush=True)
    await anyio.sleep_forever()
    yield
crawl.open_checked_job = never
main(sys.argv[1:])
"""


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
@pytest.mark.parametrize(
    ("program", "published", "said"),
    [(EARLY, False, "before the crawl started"), (LATE, True, "")],
    ids=["opening", "publishing"],
)
@pytest.mark.slow
def test_a_signal_takes_effect_at_any_time(
    tmp_path: Path, program: str, published: bool, said: str, number: int, code: int
) -> None:
    with little_site().serve() as origin:
        process = subprocess.Popen(
            [sys.executable, "-c", program, "crawl", origin + "/", *QUICK, "-q"],
            cwd=tmp_path, stdin=subprocess.PIPE, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])},
        )  # fmt: skip
        assert process.stdout
        assert process.stdout.readline()
        send_signal(process, number)
        _, err = process.communicate("\n", timeout=600)
    assert process.returncode == code, err
    assert said in err
    assert len(err.splitlines()) == bool(said)
    files = {path.name for path in (tmp_path / "sitemaps").glob("*")}
    assert files == ({"sitemap.xml.gz", "manifest.json"} if published else set()), "nothing is left half done"


def test_without_arguments_help_is_shown(run: Run) -> None:
    code, out, err = run()
    assert (code, err) == (0, "")
    assert out == run("--help")[1]
    assert "crawl " in out


@pytest.mark.slow
@pytest.mark.parametrize(("words", "left"), [((), 1), (("-q",), 0)])
def test_the_demo_leaves_only_the_files_it_reports(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], left: int
) -> None:
    monkeypatch.setattr("crawler.cli.demo.command.RATE", 0.0)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    _, err = run.ok("demo", *words)
    folders = list(tmp_path.iterdir())
    assert len(folders) == left
    assert all(folder.name in "".join(err.split()) for folder in folders)


@pytest.mark.slow
def test_the_demo_can_serve_its_website_for_other_commands(run: Run) -> None:
    with taken_port() as taken:
        port = str(taken)
        code, _, err = run("demo", "--serve", port)
        assert (code, f"Port {port} cannot be used" in err) == (2, True)
    command = [sys.executable, "-m", "crawler", "demo", "--serve", port]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as served:
        assert served.stderr
        assert f"http://127.0.0.1:{port}/" in served.stderr.readline()
        assert run("robots", f"http://127.0.0.1:{port}/basket")[0] == 5
        served.terminate()
    assert served.returncode == 143


def test_a_failed_demo_leaves_nothing(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def fails(_: object) -> None:
        raise OutputError("full")

    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr("crawler.cli.demo.command.crawl_site", fails)
    assert run("demo")[0] == 3
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_too_many_processes_are_reported(run: Run) -> None:
    with little_site().serve() as origin:
        words = ("crawl", origin + "/", *QUICK, "--concurrency", "2")
        _, err = run.ok(*words, "--processes", "3")
        assert "processes reduced" in err
        assert "processes=3 used=1 concurrency=2" in err
        assert "processes reduced" not in run(*words, "--fresh")[2]


def test_the_only_state_and_its_output_folder_are_found(run: Run, tmp_path: Path) -> None:
    site, other = little_site(), little_site()
    assert "There is no state at .sitemap-crawler/" in sentence(run("status")[2])
    with site.serve() as origin, other.serve() as second:
        run.ok("crawl", origin + "/", *QUICK, "-o", "public")
        (tmp_path / ".sitemap-crawler" / "notes.db").write_text("no state")
        run.ok("status")
        run.ok("export", "-o", "again")
        assert "sitemap.xml.gz, entry 1" in run("explain", origin + "/")[1]
        assert "unknown" not in run("explain", "https://www.elsewhere.example/")[1]
        code, _, err = run("status", "https://www.elsewhere.example/")
        assert (code, "or one of these: --state .sitemap-crawler/127.0.0.1_" in sentence(err)) == (
            3,
            True,
        )
        run.ok("crawl", second + "/", *QUICK)
        code, _, err = run("status")
        assert (code, "There are 2 states in .sitemap-crawler/" in sentence(err)) == (2, True)
        assert all(f"_{place.rpartition(':')[2]}.db" in err for place in (origin, second))
        assert "sitemap.xml.gz, entry 1" in run("explain", origin + "/")[1]
        run.ok("status", second + "/")
        (tmp_path / "public" / "sitemap.xml.gz").unlink()
        assert "not in any published file" in run("explain", origin + "/")[1]


def test_a_resumed_run_keeps_the_number_of_known_urls(run: Run) -> None:
    site = Site()
    names = [f"/{number}" for number in range(20)]
    site.page("/", links=[*names, "https://elsewhere.example/a", "https://elsewhere.example/b"])
    for name in names:
        site.page(name)
    told = []
    with site.serve() as origin:
        for words in (("--max-pages", "3"), ("--max-pages", "3")):

            async def log_periodically(stats: Any, _console: object = None) -> None:
                told.append(stats)
                await anyio.sleep_forever()

            with pytest.MonkeyPatch.context() as patch:
                patch.setattr("crawler.cli.progress.log_periodically", log_periodically)
                run("crawl", origin + "/", *QUICK, "--concurrency", "1", *words)
    assert [stats.known for stats in told] == [21, 21]
    assert told[1].done > told[0].done


@pytest.mark.parametrize("columns", ["40", "80", "120"])
def test_output_to_a_pipe_has_no_trailing_blanks(
    run: Run, monkeypatch: pytest.MonkeyPatch, columns: str
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    with little_site().serve() as origin:
        _, out, err = run("crawl", origin + "/", *QUICK)
        for words in (("status", origin + "/"), ("explain", origin + "/"), ("config",), ("--help",)):
            out += run(*words)[1]
    assert [line for line in (out + err).splitlines() if line != line.rstrip()] == []
    assert re.search(r"^files +sitemap\.xml\.gz(?!\S)", err, re.MULTILINE), "no name is broken"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["crawl", "a.example", "--header"], "requires an argument. (See `sitemap-crawler crawl --help`.)"),
        (["status", "--alive", "x"], "'x' is not a number of at least 0."),
        (["validate", "http//example.com/s.xml"], "did you mean http://example.com/s.xml?"),
        (["diff", "a", "htps://example.com/s.xml"], "did you mean https://example.com/s.xml?"),
        (["validate", "example.com/sitemap.xml"], "is not a file: if it is a URL, write https:// before it."),
        (
            ["diff", "example.com/sitemap.xml", "b"],
            "is not a file: if it is a URL, write https:// before it.",
        ),
    ],
)
def test_an_error_suggests_a_solution(run: Run, words: list[str], said: str) -> None:
    err = run.fails(2, *words)
    assert said in sentence(err)
