"""A page that stalls or kills the parser costs that page only."""

import json
import os
import platform
import subprocess
import sys
import time
from pathlib import Path

import anyio
import msgspec
import pytest

from crawler.model.reasons import Cause
from crawler.model.reply import Broken
from crawler.parse.extract import Extract
from crawler.parse.html import PageSource
from crawler.parse.parsed_page import ParsedPage
from crawler.parse.risk import SHORT_BYTES
from crawler.workers import sandbox
from crawler.workers.sandbox import Sandbox
from crawler.workers.sandbox_child import LARGE_TREE, PAGE_MEMORY, PageAnswer
from crawler.workers.spawn import python, start
from tests.waiting import eventually, tick

pytestmark = [pytest.mark.anyio, pytest.mark.slow]
both_loops = pytest.mark.both_loops  # for what depends on how the loop starts, hears and ends processes

URL = "http://site.example/page"
# One of those that `test_pathological_html_is_bounded` crawls.
STALLING = b"<p " + b" ".join(b"a%d" % n for n in range(100_000)) + b">"


def script(tmp_path: Path, body: str) -> list[str]:
    """The command of a child that runs `body` for each page.

    `body` may use `question`, `body`, `say(bytes)` and `folder`; each start is recorded in the file `starts`.
    """
    file = tmp_path / "child.py"
    file.write_text(
        f"""
import json, os, signal, socket, struct, sys, time, pathlib
folder = pathlib.Path({str(tmp_path)!r})
with (folder / "starts").open("a") as starts:
    starts.write("x")
stream = socket.socket(fileno=0).makefile("rwb")
def send(data): stream.write(data); stream.flush()
def say(data): send(struct.pack("!I", len(data)) + data)
while size := stream.read(4):
    question = json.loads(stream.read(*struct.unpack("!I", size)))
    body = stream.read(*struct.unpack("!I", stream.read(4)))
    {body}
"""
    )
    return [sys.executable, str(file)]


@pytest.mark.measured
async def test_sandboxed_parse_equals_direct_parse() -> None:
    body = "<base href='/b/'><a href=x>ö</a><a href=y rel=nofollow><meta name=robots content=noindex>"
    body += (
        "<meta http-equiv=refresh content='3;url=z'><meta property=article:modified_time content=2024-01-02>"
    )
    markup = PageSource(
        body.encode("latin-1"), URL, "latin1", wanted=frozenset({Extract.DATES, Extract.FINGERPRINT})
    )
    async with Sandbox().running() as apart:
        assert await apart.read(markup) == markup.read()
        assert await apart.read(markup) == markup.read()


@both_loops
async def test_stalled_parse_times_out_without_blocking_event_loop() -> None:
    pulse: list[float] = []

    async def beat() -> None:
        while True:
            pulse.append(time.monotonic())
            await tick()

    async with Sandbox(deadline=1.0).running() as apart, anyio.create_task_group() as tasks:
        tasks.start_soon(beat)
        stuck = await apart.read(PageSource(STALLING, URL))
        good = await apart.read(PageSource(b"<a href=x>", URL))
        tasks.cancel_scope.cancel()
    assert stuck == Broken(Cause.PARSE, "the parser did not finish within 1 s")
    assert isinstance(good, ParsedPage)
    assert good.followed == ("x",)
    assert len(pulse) >= 3, "the event loop was blocked"


async def test_deadline_shrinks_with_each_stalled_page(tmp_path: Path) -> None:
    command = script(tmp_path, "os.kill(os.getpid(), signal.SIGXCPU)")
    apart = Sandbox(command, deadline=3.0)
    async with apart.running():
        said = [await apart.read(PageSource(b"", URL)) for _ in range(3)]
    assert [reply.detail for reply in said if isinstance(reply, Broken)] == [
        "the parser did not finish within 3 s",
        "the parser did not finish within 2 s",
        "the parser did not finish within 1 s",
    ]


@both_loops
async def test_idle_child_is_killed_at_deadline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox, "ELAPSED_PER_CPU_SECOND", 1.0)
    async with Sandbox(script(tmp_path, "time.sleep(600)"), deadline=1.0).running() as apart:
        said = await apart.read(PageSource(b"", URL))
    assert said == Broken(Cause.PARSE, "the parser did not finish within 1 s")


@pytest.mark.skipif(sys.platform == "win32", reason="Windows limits no processor time")
async def test_cpu_time_limit_does_not_count_waiting(tmp_path: Path) -> None:
    """On a busy machine: the child waits before it answers."""
    page = msgspec.json.encode(PageAnswer(ParsedPage(URL)))
    async with Sandbox(script(tmp_path, f"time.sleep(2); say({page!r})"), deadline=1.0).running() as apart:
        assert await apart.read(PageSource(b"", URL)) == ParsedPage(URL)


@both_loops
async def test_page_that_crashes_parser_is_tried_three_times(tmp_path: Path) -> None:
    apart = Sandbox(script(tmp_path, "os.kill(os.getpid(), signal.SIGSEGV)"))
    async with apart.running():
        assert await apart.read(PageSource(b"x" * 1_000_000, URL)) == Broken(
            Cause.CRASHED, "the parser crashed on it 3 times"
        )
    assert (tmp_path / "starts").read_text() == "xxx"


@both_loops
async def test_one_child_parses_large_and_small_pages(tmp_path: Path) -> None:
    page = msgspec.json.encode(PageAnswer(ParsedPage(URL)))
    apart = Sandbox(script(tmp_path, f"say({page!r})"))
    async with apart.running():
        for size in (2 * LARGE_TREE, 1, 2 * LARGE_TREE):
            assert await apart.read(PageSource(b"x" * size, URL)) == ParsedPage(URL)
    assert (tmp_path / "starts").read_text() == "x"


@pytest.mark.skipif(
    platform.libc_ver()[0] != "glibc", reason="only glibc returns memory on request (malloc_trim)"
)
async def test_memory_of_large_page_is_returned() -> None:
    def held(apart: Sandbox) -> int:
        pages = Path(f"/proc/{apart._free[0].process.pid}/statm").read_text().split()[1]
        return int(pages) * os.sysconf("SC_PAGE_SIZE")

    async with Sandbox().running() as apart:
        await apart.read(PageSource(b"<p>x", URL))
        before = held(apart)
        links = "".join(f"<p><a href={number}>some</a> text {number}" for number in range(LARGE_TREE // 20))
        await apart.read(PageSource(links.encode(), URL))
        await apart.read(PageSource(b"<p>x", URL))  # memory is returned before the next page is parsed
        assert held(apart) < before + 10_000_000


@both_loops
async def test_single_parser_crash_is_retried(tmp_path: Path) -> None:
    page = msgspec.json.encode(PageAnswer(ParsedPage(URL, ("x",))))
    once = f"(os._exit(1) if (folder / 'starts').read_text() == 'x' else None); say({page!r})"
    apart = Sandbox(script(tmp_path, once))
    async with apart.running():
        assert await apart.read(PageSource(b"", URL)) == ParsedPage(URL, ("x",))


@pytest.mark.parametrize(
    "said",
    [
        "say(b'nonsense')",
        "say(b'{}')",
        "say(b'[1]')",
        "send(b'\\xff' * 8)",
        'say(b\'{"type": "PageAnswer", "page": [1, 3]}\')',
    ],
)
async def test_malformed_child_message_counts_as_crash(said: str, tmp_path: Path) -> None:
    apart = Sandbox(script(tmp_path, said))
    async with apart.running():
        assert await apart.read(PageSource(b"", URL)) == Broken(
            Cause.CRASHED, "the parser crashed on it 3 times"
        )


async def test_missing_executable_fails_the_page_only(tmp_path: Path) -> None:
    async with Sandbox([str(tmp_path / "nothing")]).running() as apart:
        said = await apart.read(PageSource(b"", URL))
    assert isinstance(said, Broken)
    assert said.cause is Cause.PARSE
    assert "No such file" in said.detail


@both_loops
async def test_a_start_is_not_cancelled_half_way() -> None:
    """It would leave a process for which nobody waits."""
    with anyio.CancelScope() as scope:
        scope.cancel()
        child = await start([sys.executable, "-c", "input()"])
        with anyio.CancelScope(shield=True):
            await child.end()
    assert child.process.returncode is not None


@both_loops
async def test_child_is_killed_on_cancellation(tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    command = script(tmp_path, "(folder / 'pid').write_text(str(os.getpid())); time.sleep(600)")
    async with Sandbox(command, deadline=300.0).running() as apart, anyio.create_task_group() as tasks:
        tasks.start_soon(apart.read, PageSource(b"", URL))
        await eventually(lambda: pid.exists() and pid.read_text())
        tasks.cancel_scope.cancel()
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid.read_text()), 0)


async def test_out_of_memory_in_parser_fails_the_page() -> None:
    page = PageSource(b"<p>text" * 1_000_000, URL)
    async with Sandbox(python("crawler.workers.sandbox_entry:serve", memory=128 << 20)).running() as apart:
        said = await apart.read(page)
    assert isinstance(said, Broken)
    assert said.cause is Cause.CRASHED or said.detail.startswith("the parser failed")


CRAFTED = """
import anyio, resource, sys
from crawler.parse.html import PageSource
from crawler.workers.sandbox import Sandbox

opened = "".join(f"<b {number}>" for number in range(3_000))
closed = "".join(f"<i {number}>{sys.argv[1]}</b>" for number in range(3_000))


async def main():
    async with Sandbox(deadline=60.0).running() as apart:
        print(await apart.read(PageSource((opened + closed).encode(), "http://site.example/")))
        print(await apart.read(PageSource(b"<a href=/x>x</a>", "http://site.example/")))


anyio.run(main)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the limit is computed from /proc")
@pytest.mark.parametrize("between", ["", "<p>"])
def test_small_page_of_crafted_markup_does_not_take_a_gigabyte(between: str) -> None:
    """Misnested formatting elements that differ from each other: 60 KB took the parser 1.5 GB."""
    ran = subprocess.run([sys.executable, "-c", CRAFTED, between], capture_output=True, text=True, check=True)
    crafted, plain, peak = ran.stdout.splitlines()
    assert crafted.startswith("Broken(")
    assert "followed=('/x',)" in plain
    assert int(peak) * 1024 < PAGE_MEMORY + 60_000_000  # with the process itself


@pytest.mark.parametrize("tag", ["<br>", "<li>x", "<a href=/{}>x</a>", "<div class=c>x</div>"])
@pytest.mark.parametrize("size", [1_000_000, 10_000_000])
async def test_dense_pages_are_read_within_the_limit_of_memory(tag: str, size: int) -> None:
    body = "".join(tag.format(number) for number in range(size // len(tag)))
    async with Sandbox(deadline=60.0).running() as apart:
        said = await apart.read(PageSource(body.encode(), URL))
    assert isinstance(said, ParsedPage)


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc for open files")
async def test_child_inherits_no_secrets_or_open_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SITEMAP_CRAWLER_HEADER", "Authorization: secret")
    monkeypatch.setenv("HTTPS_PROXY", "http://name:secret@proxy.example")
    page = msgspec.json.encode(PageAnswer(ParsedPage(URL)))
    told = "(folder / 'seen').write_text(json.dumps([dict(os.environ), [os.path.realpath(f) for f in pathlib.Path('/proc/self/fd').iterdir()]]))"
    with (tmp_path / "open").open("w") as ours:
        os.set_inheritable(ours.fileno(), True)
        async with Sandbox(script(tmp_path, f"{told}; say({page!r})")).running() as apart:
            assert await apart.read(PageSource(b"", URL)) == ParsedPage(URL)
    environment, files = json.loads((tmp_path / "seen").read_text())
    assert "secret" not in str(environment)
    assert str(tmp_path / "open") not in files


NAMES = [b"%c" % code for code in range(ord("a"), ord("z") + 1)]


@pytest.mark.parametrize(
    "body",
    [
        b"".join(b"<b %s z=%d>" % (b" ".join(NAMES[:24]), number) for number in range(900)),
        b"".join(b"<I %s z=%d>" % (b"".join(name + b"=''" for name in NAMES[:16]), n) for n in range(800)),
        b"".join(b"<em q='><' %s z=%d>" % (b" ".join(NAMES), number) for number in range(490)),
        b"".join(b'<u q=a" y=">" %s z=%d>' % (b"/".join(NAMES[:20]), number) for number in range(800)),
        b"<html " + b" ".join(b"a%x" % n for n in range(5_000)) + b"><html " + b" ".join(b"b%x" % n for n in range(5_000)) + b">",
    ],
    ids=["formatting", "quoted", "odd quotes", "odd values", "merged"],
)  # fmt: skip
def test_many_distinct_attributes_are_risky(body: bytes) -> None:
    assert len(body) < SHORT_BYTES
    assert PageSource(body, URL).is_risky


def test_page_with_icons_scripts_and_long_text_is_not_risky() -> None:
    icons = (
        b"<p>Some words of text <i class='fa fa-x fa-fw' aria-hidden=true></i> and <b class=x>more</b> words "
        * 45
    )
    script = b"<script type='text/javascript'>" + b"if (a > b) { c = 'd e f'; } " * 700 + b"</script>"
    assert not PageSource(b"<html lang=en><body class='a b'>" + icons + script, URL).is_risky
