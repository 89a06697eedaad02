"""`--metrics-file` and `--metrics-port` over real crawls. The format is judged by Prometheus's own parser."""

import errno
import json
import os
import shlex
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import anyio
import pytest
from prometheus_client.parser import text_string_to_metric_families

from crawler.app import metrics_server
from crawler.app.metrics_server import LONGEST, serving
from crawler.cli.demo import demo_site
from crawler.cli.demo.site import Site
from crawler.errors import OutputError
from crawler.report.catalogue import NEEDS_COMPLETE, Code
from crawler.report.metrics import CATALOGUE, OUTCOMES, PREFIX
from tests import program
from tests.commands import Run
from tests.server import free_port, taken_port
from tests.waiting import until

QUICK = ("--rate", "0", "--retries", "0", "-q", "--state", "crawl.db")
FILE = ("--metrics-file", "site.prom")
Samples = Mapping[tuple[str, ...], float]


def told(text: str) -> dict[str, Samples]:
    """The samples by name; their labels without `site`, which must be the same in all."""
    found: dict[str, dict[tuple[str, ...], float]] = {}
    sites = set()
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            labels = dict(sample.labels)
            sites.add(labels.pop("site"))
            found.setdefault(sample.name.removeprefix(PREFIX), {})[tuple(labels.values())] = sample.value
    assert len(sites) == 1
    return found  # type: ignore[return-value]


def read(name: str = "site.prom") -> dict[str, Samples]:
    return told(Path(name).read_text())


def one(samples: Mapping[str, Samples], name: str) -> float:
    [value] = samples[name].values()
    return value


@pytest.fixture
def port() -> int:
    return free_port()


def shop(pages: int = 10) -> Site:
    site = Site()
    site.page("/", links=[f"/{n}" for n in range(pages)])
    for n in range(pages):
        site.page(f"/{n}", text=f"<p>page {n}</p>" * 9)
    return site


# -- the file ----------------------------------------------------------------------------------------------


def test_metrics_of_file_and_catalogue_are_the_same(run: Run) -> None:
    words = (
        *QUICK,
        *FILE,
        "--submit",
        "--indexnow-key",
        "0123abcd",
        "--check-external",
        "--max-external-time",
        "0",
    )
    with demo_site().serve() as origin:
        run.ok("crawl", origin + "/", *words)
        run.ok("crawl", origin + "/", *words)
    families = {
        family.name: family for family in text_string_to_metric_families(Path("site.prom").read_text())
    }
    wanted = {PREFIX + metric.name: metric for metric in CATALOGUE if not metric.port_only}
    assert {name.removesuffix("_total") for name in wanted} == set(families)
    for name, metric in wanted.items():
        family = families[name.removesuffix("_total")]
        assert (family.type, family.documentation) == (metric.kind, metric.says)
        for sample in family.samples:
            assert {"site", *metric.labels} == set(sample.labels) - {"le"}
            assert sample.labels["site"] == origin.removeprefix("http://")
            assert sample.timestamp is None


def test_the_values_of_a_run_that_published(run: Run) -> None:
    began = time.time()
    with demo_site().serve() as origin:
        run.ok("crawl", origin + "/", *QUICK, *FILE)
    found = read()
    assert one(found, "exit_code") == 0
    for name in ("last_completion", "last_success", "last_publication"):
        assert began - 1 <= one(found, f"{name}_timestamp_seconds") <= time.time() + 1
    assert sum(found["urls"].values()) == one(found, "urls_discovered") == 65
    assert {outcome for (outcome,) in found["urls"]} >= set(OUTCOMES)
    assert found["urls"]["listed",] == one(found, "sitemap_urls") == 28
    assert {code for code, _ in found["findings"]} == {
        code.value
        for code in Code
        if code is not Code.BROKEN_EXTERNAL  # links to other sites were not checked
    }, "those without any, too"
    assert found["findings"]["broken-link", "error"] == 2
    assert sum(found["lastmod_urls"].values()) == 28
    assert found["sitemap_files"] == {(): 1}
    assert one(found, "sitemap_bytes") == Path("sitemaps/sitemap.xml.gz").stat().st_size
    assert one(found, "request_duration_seconds_count") == sum(found["requests_total"].values()) > 50
    assert Path("site.prom").stat().st_mode & 0o777 == 0o666 & ~_umask(), (
        "for node_exporter, which is another user"
    )


def _umask() -> int:
    before = os.umask(0)
    os.umask(before)
    return before


@pytest.mark.slow
def test_retries_and_answers_are_counted(run: Run) -> None:
    site = shop(2)
    answers = [503, 503, 200]
    site.respond("/0", lambda _: Site.answer(answers.pop(0) if answers else 200, b"<p>at last</p>"))
    with site.serve() as origin:
        run.ok("crawl", origin + "/", "--rate", "0", "-q", *FILE)
    found = read()
    assert one(found, "retries_total") == 2
    assert found["requests_total"]["5xx",] == 2
    assert sum(found["requests_total"].values()) == len(site.log)
    assert one(found, "received_bytes_total") > 300


@pytest.mark.slow
def test_requests_of_worker_processes_are_counted(run: Run) -> None:
    site = shop(20)
    with site.serve() as origin:
        run.ok("crawl", origin + "/", *QUICK, *FILE, "--processes", "2")
    assert sum(read()["requests_total"].values()) == len(site.log)


def test_run_that_changes_nothing_keeps_time_of_publication(run: Run) -> None:
    with shop().serve() as origin:
        run("crawl", origin + "/", *QUICK, *FILE)
        first = read()
        run("crawl", origin + "/", *QUICK, *FILE)
    second = read()
    assert one(second, "last_publication_timestamp_seconds") == one(
        first, "last_publication_timestamp_seconds"
    )
    assert one(second, "last_success_timestamp_seconds") > one(first, "last_success_timestamp_seconds")
    assert second["sitemap_changes"] == {("added",): 0, ("removed",): 0, ("changed",): 0}


def _down(site: Site) -> None:
    site.answers.clear()
    site.respond("/", lambda _: Site.answer(500))
    site.respond("/robots.txt", lambda _: Site.answer(404))


def _shrunk(site: Site) -> None:
    site.page("/", links=["/1"])


@pytest.mark.parametrize(
    ("worsen", "words", "wanted"),
    [
        (_down, (), 4),
        (_shrunk, (), 6),
        (lambda _: None, ("--max-pages", "1", "--exclude", "/none"), 7),
        (lambda _: None, ("--report", "nowhere/x.html"), 2),
        (lambda _: None, ("--report", "x" * 250 + ".html"), 3),
    ],
    ids=["unreachable", "refused", "limit", "usage", "storage"],
)  # fmt: skip
def test_a_run_that_fails_keeps_the_last_success(
    run: Run, worsen: Callable[[Site], None], words: tuple[str, ...], wanted: int
) -> None:
    site = shop()
    with site.serve() as origin:
        run.ok("crawl", origin + "/", *QUICK, *FILE)
        good = read()
        worsen(site)
        assert run("crawl", origin + "/", *QUICK, *FILE, *words)[0] == wanted
    bad = read()
    assert one(bad, "exit_code") == wanted
    assert one(bad, "last_success_timestamp_seconds") == one(good, "last_success_timestamp_seconds")
    assert one(bad, "last_completion_timestamp_seconds") > one(good, "last_completion_timestamp_seconds")
    assert one(bad, "sitemap_urls") == 11, "what is published"
    unknown = {2: set(Code), 4: set(Code), 7: set(NEEDS_COMPLETE)}.get(wanted, set()) | {Code.BROKEN_EXTERNAL}
    missing = {code.value for code in Code} - {code for code, _ in bad.get("findings", {})}
    assert missing == {code.value for code in unknown}, "a gap, not a zero"


def test_a_first_run_that_fails_knows_no_success(run: Run) -> None:
    site = shop()
    site.robots("User-agent: *\nDisallow: /\n")
    with site.serve() as origin:
        assert run("crawl", origin + "/", *QUICK, *FILE)[0] == 5
    found = read()
    assert one(found, "exit_code") == 5
    assert one(found, "last_success_timestamp_seconds") == 0, "so that an alert on its age fires"
    assert "sitemap_urls" not in found


def test_a_damaged_state_is_reported_as_a_failure(run: Run) -> None:
    with shop().serve() as origin:
        run.ok("crawl", origin + "/", *QUICK)
        os.truncate("crawl.db", 10_000)
        assert run("crawl", origin + "/", *QUICK, *FILE)[0] == 3
    found = read()
    assert (one(found, "exit_code"), one(found, "last_success_timestamp_seconds")) == (3, 0)


def test_findings_that_end_with_exit_8_are_a_success(run: Run) -> None:
    with demo_site().serve() as origin:
        assert run("crawl", origin + "/", *QUICK, *FILE, "--fail-on", "broken-link")[0] == 8
    found = read()
    assert one(found, "exit_code") == 8
    assert one(found, "last_success_timestamp_seconds") > 0


@pytest.mark.slow
def test_run_that_finds_another_at_work_leaves_file_as_it_is(run: Run) -> None:
    codes = list[int | None]()
    site = shop(1)

    def second(_: Any) -> Any:
        codes.append(program.run(["crawl", origin + "/", *QUICK, *FILE]).returncode)
        codes.append(Path("site.prom").exists())
        return Site.answer(200, b"<p>page</p>")

    site.respond("/0", second)
    with site.serve() as origin:
        run.ok("crawl", origin + "/", *QUICK, *FILE)
    assert codes == [9, False]
    assert one(read(), "exit_code") == 0


@pytest.mark.slow
def test_killed_run_leaves_file_whole_and_next_one_resumes_it(run: Run) -> None:
    site, children = shop(3), list[program.Program]()
    with site.serve() as origin:
        words = ("crawl", origin + "/", *QUICK, *FILE)
        run.ok(*words)
        before = Path("site.prom").read_text()

        def kill(_: Any) -> Any:
            until(lambda: children)
            children[0].kill()
            return Site.answer(200, b"<p>never read</p>")

        site.respond("/new", kill)
        site.page("/", links=["/0", "/1", "/2", "/new"])
        children.append(program.start(words))
        assert children[0].wait() == -9
        assert Path("site.prom").read_text() == before
        site.page("/new")
        run.ok(*words)
    assert one(read(), "sitemap_urls") == 5


@pytest.mark.slow
@pytest.mark.usefixtures("run")
def test_a_run_that_is_terminated_writes_its_metrics() -> None:
    site, children = shop(30), list[program.Program]()

    def terminate(_: Any) -> Any:
        until(lambda: children)
        children[0].send_signal(signal.SIGTERM)
        return Site.answer(200, b"<p>page</p>")

    site.respond("/0", terminate)
    with site.serve() as origin:
        children.append(program.start(["crawl", origin + "/", "--rate", "5", "-q", *FILE]))
        assert children[0].wait() == 143
    found = read()
    assert one(found, "exit_code") == 143
    assert found["urls"]["open",] > 0


# -- what can be wrong with the file --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("metrics.txt", "must end in .prom"),
        ("nowhere/site.prom", "no folder nowhere"),
        ("folder.prom", "a folder"),
    ],
)
def test_a_wrong_file_is_reported_before_the_crawl(run: Run, name: str, says: str) -> None:
    Path("folder.prom").mkdir()
    site = shop(1)
    with site.serve() as origin:
        code, _, err = run("crawl", origin + "/", *QUICK, "--metrics-file", name)
    assert (code, site.log) == (2, [])
    assert says in err


def test_unwritable_file_is_exit_3_and_affects_nothing_else(run: Run) -> None:
    with shop().serve() as origin:
        assert "cannot be written: File name too long" in run.fails(
            3, "crawl", origin + "/", *QUICK, "--metrics-file", "x" * 250 + ".prom"
        )
        assert Path("sitemaps/sitemap.xml.gz").exists()
        _, out, _ = run("list", "runs", "--state", "crawl.db", "--format", "jsonl")
        assert json.loads(out)["exit"] == 3
        code, _, err = run(
            "crawl", origin + "/", *QUICK, "--metrics-file", "x" * 250 + ".prom", "--min-urls", "99"
        )
    assert code == 6, "the worse end wins"
    assert "cannot be written" in err


@pytest.mark.parametrize("why", [errno.ENOSPC, errno.EACCES])
def test_what_cannot_be_written_leaves_the_old_file(
    run: Run, monkeypatch: pytest.MonkeyPatch, why: int
) -> None:
    """A full disk, and a folder that may not be written, which root always may."""

    def full(*_: Any, **__: Any) -> Any:
        raise OSError(why, os.strerror(why))

    with shop().serve() as origin:
        run.ok("crawl", origin + "/", *QUICK, *FILE)
        before = Path("site.prom").read_text()
        monkeypatch.setattr("crawler.app.atomic.tempfile.mkstemp", full)
        code, _, err = run("crawl", origin + "/", *QUICK, *FILE)
    assert code == 3
    assert os.strerror(why) in err
    assert Path("site.prom").read_text() == before


@pytest.mark.slow
def test_the_demo_sends_nothing_and_runs_once(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the variables of a container."""
    for name, value in {"METRICS_FILE": "m.prom", "WEBHOOK_ENV": "HOOK", "EVERY": "24h"}.items():
        monkeypatch.setenv(f"SITEMAP_CRAWLER_{name}", value)
    run.ok("demo", "-q", "-o", "out")
    assert not Path("m.prom").exists()


def test_nothing_from_the_network_becomes_a_label(run: Run) -> None:
    site = Site()
    evil = 'x"} 1\nsitemap_crawler_exit_code{site="\\'
    site.page("/", links=["/a", "/missing?q=%22%7D%201%0Aevil"], title=evil)
    site.page("/a", title=evil, canonical="/missing?q=%22%7D%201%0Aevil")
    with site.serve() as origin:
        run.ok("crawl", origin + "/", *QUICK, *FILE, "--min-urls", "1")
    text = Path("site.prom").read_text()
    assert "evil" not in text
    assert "missing?" not in text
    assert one(told(text), "exit_code") == 0


# -- the port -------------------------------------------------------------------------------------------------


def get(port: int, path: str = "/metrics") -> str:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=600) as answer:
        assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
        return str(answer.read().decode())


def test_the_port_serves_the_running_crawl(run: Run, port: int) -> None:
    site, scraped = shop(3), list[str]()

    def scrape(_: Any) -> Any:
        scraped.append(get(port))
        return Site.answer(200, b"<p>page</p>")

    site.respond("/2", scrape)
    with site.serve() as origin:
        words = ("crawl", origin + "/", *QUICK, "--metrics-port", str(port))
        run.ok(*words)
        run.ok(*words)
    first, second = map(told, scraped)
    assert one(first, "in_flight") >= 1
    assert first["queued"] == {(): one(first, "queued")}
    assert first["pace_seconds"] == {(): 0}
    assert sum(first["urls"].values()) == one(first, "urls_discovered") >= 2
    assert one(first, "last_success_timestamp_seconds") == 0
    assert "sitemap_urls" not in first
    assert one(second, "last_success_timestamp_seconds") > 0
    assert one(second, "sitemap_urls") == 4
    assert {PREFIX + metric.name for metric in CATALOGUE} >= {
        family.name + ("_total" if family.type == "counter" else "")
        for text in scraped
        for family in text_string_to_metric_families(text)
    }


def test_one_port_serves_all_sites(run: Run, port: int, tmp_path: Path) -> None:
    first, second, scraped = shop(3), shop(3), list[str]()

    def scrape(_: Any) -> Any:
        scraped.append(get(port))
        return Site.answer(200, b"<p>page</p>")

    second.respond("/2", scrape)
    with first.serve() as here, second.serve() as there:
        tables = [
            f'[[site]]\nname = "{name}"\nstart = "{url}"\n' for name, url in (("a", here), ("b", there))
        ]
        (tmp_path / "sitemap-crawler.toml").write_text("\n".join(tables))
        run.ok("crawl", "-q", "--rate", "0", "--metrics-port", str(port))
    [families] = [list(text_string_to_metric_families(text)) for text in scraped]
    assert len({family.name for family in families}) == len(families)
    by_name = {family.name.removeprefix(PREFIX): family for family in families}
    [known] = by_name["sitemap_urls"].samples
    assert (known.labels, known.value) == ({"site": "a"}, 4), "the first is done, and its numbers stay"
    assert {sample.labels["site"] for sample in by_name["urls_discovered"].samples} == {"a", "b"}


def test_a_port_that_is_taken_ends_the_run_before_it_begins(run: Run) -> None:
    site = shop(1)
    with site.serve() as origin, taken_port() as taken:
        code, _, err = run("crawl", origin + "/", *QUICK, "--metrics-port", str(taken))
    assert (code, site.log) == (3, [])
    assert f"127.0.0.1:{taken} cannot be used: another program listens there" in err


@pytest.mark.parametrize("value", ["0", "65536", "http", "host:", "1.2.3.4:x"])
def test_a_wrong_port_is_a_usage_error(run: Run, value: str) -> None:
    assert "must be a port such as 9464, or HOST:PORT" in run.fails(
        2, "crawl", "http://127.0.0.1:9/", "--metrics-port", value
    )


REQUESTS = {
    "post": (b"POST /metrics HTTP/1.1\r\nHost: a\r\n\r\n", b"HTTP/1.1 405 "),
    "another path": (b"GET /admin HTTP/1.1\r\nHost: a\r\n\r\n", b"HTTP/1.1 404 "),
    "a query": (b"GET /metrics?name[]=x HTTP/1.0\r\n\r\n", b"HTTP/1.1 200 "),
    "head": (b"HEAD /metrics HTTP/1.1\r\n\r\n", b"HTTP/1.1 200 "),
    "garbage": (b"\x00\xff\r\n\r\n", b"HTTP/1.1 405 "),
    "no end": (b"GET /" + b"a" * (LONGEST + 1), b""),
    "gone": (b"GET", b""),
}


async def everything(client: anyio.abc.SocketStream) -> bytes:
    got = b""
    with suppress(anyio.EndOfStream, anyio.BrokenResourceError):
        while True:
            got += await client.receive()
    return got


@pytest.mark.parametrize("case", REQUESTS)
@pytest.mark.anyio
async def test_invalid_requests(case: str, port: int) -> None:
    said, answer = REQUESTS[case]

    async def scrape() -> str:
        return "up 1\n"

    async with serving(f"127.0.0.1:{port}", scrape):
        async with await anyio.connect_tcp("127.0.0.1", port) as client:
            await client.send(said)
            if case == "gone":
                await client.send_eof()
            got = await everything(client)
        assert got.startswith(answer)
        assert got == b"" or answer
        assert got.endswith(b"\r\n\r\n") == (case == "head") or not got


@pytest.mark.anyio
async def test_silent_clients_and_errors_do_not_hold_it_up(
    port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("crawler.app.metrics_server.PATIENCE", 0.2)

    async def scrape() -> str:
        raise OutputError("the disk is gone")

    async with serving(f"127.0.0.1:{port}", scrape):
        silent = [await anyio.connect_tcp("127.0.0.1", port) for _ in range(40)]
        for client in silent:
            assert await everything(client) == b""
            await client.aclose()
        monkeypatch.setattr("crawler.app.metrics_server.PATIENCE", 600.0)
        with pytest.raises(urllib.error.HTTPError, match="503") as refused:
            await anyio.to_thread.run_sync(get, port)
        refused.value.close()


@pytest.mark.parametrize(("path", "said"), [("/", b"sitemap-crawler: see /metrics\n"), ("/healthz", b"ok\n")])
@pytest.mark.anyio
async def test_other_paths_that_answer(path: str, said: bytes, port: int) -> None:
    async def scrape() -> str:
        raise AssertionError

    async with (
        serving(f"127.0.0.1:{port}", scrape),
        await anyio.connect_tcp("127.0.0.1", port) as client,
    ):
        await client.send(f"GET {path} HTTP/1.1\r\n\r\n".encode())
        got = await everything(client)
    assert got.startswith(b"HTTP/1.1 200 OK\r\n")
    assert got.endswith(b"\r\n\r\n" + said)


@asynccontextmanager
async def accepting(
    port: int, monkeypatch: pytest.MonkeyPatch, failures: int = 0
) -> AsyncIterator[list[anyio.abc.SocketStream]]:
    """The connections that the port accepts, after it could not as often as told."""
    accepted, errors = (
        list[anyio.abc.SocketStream](),
        [OSError(errno.EMFILE, "Too many open files")] * failures,
    )
    serve = metrics_server.serve

    async def watched(accept: Callable[[], Awaitable[anyio.abc.SocketStream]], scrape: Any) -> None:
        async def accept_or_fail() -> anyio.abc.SocketStream:
            if errors:
                raise errors.pop()
            accepted.append(await accept())
            return accepted[-1]

        await serve(accept_or_fail, scrape)

    async def scrape() -> str:
        return "up 1\n"

    monkeypatch.setattr(metrics_server, "serve", watched)
    async with serving(f"127.0.0.1:{port}", scrape):
        yield accepted


@pytest.mark.anyio
async def test_silent_connections_are_closed_for_a_scrape(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics_server, "PATIENCE", 600)
    async with accepting(port, monkeypatch) as accepted, AsyncExitStack() as stack:
        silent = [
            await stack.enter_async_context(await anyio.connect_tcp("127.0.0.1", port))
            for _ in range(3 * metrics_server.CLIENTS)
        ]
        assert "up 1" in await anyio.to_thread.run_sync(get, port)
        assert len(accepted) == len(silent) + 1
        for client in silent[: -metrics_server.CLIENTS]:
            assert await everything(client) == b""


@pytest.mark.anyio
async def test_a_connection_that_cannot_be_accepted_is_a_pause(
    port: int, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(metrics_server, "PAUSE", 0)
    async with accepting(port, monkeypatch, failures=3):
        assert "up 1" in await anyio.to_thread.run_sync(get, port)
    [warning] = [record for record in caplog.records if record.levelname == "WARNING"]
    assert warning.message == "metrics port accepts no connections, trying again"


@pytest.mark.slow
def test_many_idle_clients_do_not_end_the_crawl(tmp_path: Path, port: int) -> None:
    site, idle = shop(30), list[socket.socket]()

    def crowd(_: Any) -> Any:
        for _ in range(400):
            idle.append(client := socket.socket())
            client.setblocking(False)
            client.connect_ex(("127.0.0.1", port))
        return Site.answer(200, b"<p>page</p>")

    site.respond("/2", crowd)
    with site.serve() as origin:
        words = [sys.executable, "-m", "crawler", "crawl", origin + "/", *QUICK, "--metrics-port", str(port)]
        command = f"ulimit -n 160 && exec {shlex.join(words)}"
        done = subprocess.run(
            ["sh", "-c", command], cwd=tmp_path, capture_output=True, text=True, check=False
        )
    for client in idle:
        client.close()
    assert (done.returncode, len(idle)) == (0, 400), done.stderr
    assert len(site.log) > 30


@pytest.mark.anyio
async def test_a_host_that_is_not_ours(port: int) -> None:
    async def scrape() -> str:
        return ""

    with pytest.raises(OutputError, match="--metrics-port: 192"):
        async with serving(f"192.0.2.1:{port}", scrape):
            pass
