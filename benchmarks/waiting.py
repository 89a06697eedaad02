"""How well a crawl waits: what it makes of the time that servers and paces leave it.

    .venv/bin/python benchmarks/waiting.py            # or: latency slots hosts rate again start

    latency  100 ms a response, 16, 64 and 256 in flight: pages a second beside concurrency / latency
    slots    the same at 32 to 64 a second, which the CPU is no limit to: whether places stand empty for another reason
    hosts    200 hosts at 5 pages a second each (by Crawl-delay): pages a second, CPU
    rate     --rate 5 for a minute: CPU
    again    2,000 pages with validators: a crawl, and the next one, which gets 304 for all
    start    --help, and a crawl of one page

The server is `asyncio`, in a process of its own; hosts are addresses of 127.0.0.0/8. CPU is of the whole tree of the crawl's
processes. All figures include the start; "under way" is the speed between the first and the last tenth of the answers, which
the server tells. The program is compiled before anything is measured.
"""

import argparse
import asyncio
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import ClassVar, NamedTuple, Self

import synthetic

PORT = 8296
SECONDS = 60  # of `rate`
HOSTS = 200
EACH = 40  # pages of a host
DELAY = 0.2  # seconds between the requests to a host
COMPILED = Path(tempfile.gettempdir()) / "waiting-compiled"


class Waiting(asyncio.Protocol):
    """Answers after a while: robots.txt, and the pages of `synthetic`."""

    answered: ClassVar[list[float]] = []

    def __init__(self, total: int, latency: float, delay: float) -> None:
        self._total, self._latency, self._delay = total, latency, delay

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._out, self._rest = transport, b""

    def data_received(self, data: bytes) -> None:
        *heads, self._rest = (self._rest + data).split(b"\r\n\r\n")
        for head in heads:
            asyncio.get_running_loop().call_later(self._latency, self._answer, head)

    def _answer(self, head: bytes) -> None:
        path = head.split(b" ", 2)[1].decode("ascii")
        number = (
            0
            if path == "/"
            else int(path.removesuffix(".html").rpartition("-")[2] or 0)
            if "page-" in path
            else -1
        )
        kind, status, body = "text/html", "200 OK", b""
        if path == "/robots.txt":
            rules = f"User-agent: *\nCrawl-delay: {self._delay:g}\n" if self._delay else "User-agent: *\n"
            kind, body = "text/plain", rules.encode()
        elif not 0 <= number < self._total:
            status = "404 Not Found"
        elif b'If-None-Match: "x"' in head or b'if-none-match: "x"' in head:
            status = "304 Not Modified"
        else:
            body = synthetic.page(number, self._total)
        fields = f'Content-Type: {kind}\r\nETag: "x"\r\nLast-Modified: {synthetic.DATE}\r\n'
        length = "" if status.startswith("304") else f"Content-Length: {len(body)}\r\n"
        self.answered.append(time.monotonic())
        if not self._out.is_closing():
            self._out.write(f"HTTP/1.1 {status}\r\n{fields}{length}\r\n".encode() + body)


async def serve(total: int, latency: float, delay: float) -> None:
    server = await asyncio.get_running_loop().create_server(
        lambda: Waiting(total, latency, delay),
        "0.0.0.0",
        PORT,
        backlog=1024,
    )
    ended = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ended.set)
    await ended.wait()
    server.close()
    times = Waiting.answered[len(Waiting.answered) // 10 : len(Waiting.answered) * 9 // 10]
    print(len(times) / (times[-1] - times[0]) if len(times) > 1 else 0.0)


class Site:
    """The server, in a process of its own, for as long as the block lasts. `under_way`: pages a second, afterwards."""

    under_way = 0.0

    def __init__(self, total: int, latency: float = 0.0, delay: float = 0.0) -> None:
        self._words = [sys.executable, __file__, "serve", str(total), str(latency), str(delay)]

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(self._words, stdout=subprocess.PIPE, text=True)
        if not synthetic.answers(f"http://127.0.0.1:{PORT}/"):
            sys.exit("the server did not start")
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self.under_way = float(self._process.communicate()[0] or 0)


class Ran(NamedTuple):
    """What a run took, in seconds."""

    wall: float
    cpu: float


def run(*words: str) -> Ran:
    began = time.monotonic()
    environment = os.environ | {"PYTHONPYCACHEPREFIX": str(COMPILED)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    process = subprocess.Popen(
        [sys.executable, "-m", "crawler", *words],
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    _, status, used = os.wait4(process.pid, 0)
    if status:
        print(f"  {' '.join(words[:2])} ended with {os.waitstatus_to_exitcode(status)}")
    return Ran(time.monotonic() - began, used.ru_utime + used.ru_stime)


def crawl(folder: Path, *words: str, hosts: int = 1) -> Ran:
    """A crawl into that folder."""
    starts = [f"http://127.0.{number // 250}.{number % 250 + 1}:{PORT}/" for number in range(hosts)]
    return run(
        "crawl",
        *starts,
        "--quiet",
        "--output",
        str(folder / "out"),
        "--state",
        str(folder / "state.db"),
        *words,
    )


def latency(folder: Path) -> None:
    for concurrency, total in ((16, 1_500), (64, 5_000), (256, 8_000)):
        wait_for(folder, concurrency, 0.1, total)


def slots(folder: Path) -> None:
    for concurrency, seconds, total in ((16, 0.5, 600), (64, 2.0, 700), (256, 4.0, 1_500)):
        wait_for(folder, concurrency, seconds, total)


def wait_for(folder: Path, concurrency: int, seconds: float, total: int) -> None:
    with Site(total, seconds) as site:
        took = crawl(folder / str(concurrency), "--rate", "0", "--concurrency", str(concurrency))
    most = concurrency / seconds
    print(
        f"{seconds * 1e3:,.0f} ms, {concurrency} in flight: {total / took.wall:,.0f} pages/s, {total / took.wall / most:.0%} of {most:,.0f}; "
        f"under way {site.under_way:,.0f}, {site.under_way / most:.0%}; {took.cpu / total * 1e3:.2f} ms of CPU a page"
    )


def hosts(folder: Path) -> None:
    with Site(EACH, delay=DELAY) as site:
        took = crawl(folder, "--rate", "0", "--concurrency", "64", hosts=HOSTS)
    total, most = HOSTS * EACH, HOSTS / DELAY
    print(
        f"{HOSTS} hosts, {1 / DELAY:g} a second each: {total / took.wall:,.0f} pages/s of {most:,.0f}, under way "
        f"{site.under_way:,.0f}; {took.cpu / total * 1e3:.2f} ms of CPU a page"
    )


def rate(folder: Path) -> None:
    with Site(100_000):
        took = crawl(folder, "--rate", "5", "--max-time", f"{SECONDS}s", "--allow-partial")
    with Site(1):
        one = crawl(folder / "one", "--rate", "0")
    print(f"--rate 5 for {SECONDS} s: {took.cpu:.2f} s of CPU, of which {one.cpu:.2f} for the start")


def again(folder: Path) -> None:
    with Site(2_000):
        first, second = (crawl(folder, "--rate", "0") for _ in range(2))
    print(
        f"2,000 pages: {first.cpu:.2f} s of CPU, again with 304: {second.cpu:.2f} s, {second.cpu / first.cpu:.2f} of it; wall {first.wall:.1f} and {second.wall:.1f} s"
    )


def start(folder: Path) -> None:
    shown = min(run("--help") for _ in range(5))
    with Site(1):
        one = min(crawl(folder / str(number), "--rate", "0") for number in range(5))
    print(
        f"--help: {shown.wall:.2f} s, {shown.cpu:.2f} s of CPU; a crawl of one page: {one.wall:.2f} s, {one.cpu:.2f} s of CPU (best of five)"
    )


PARTS = {"latency": latency, "slots": slots, "hosts": hosts, "rate": rate, "again": again, "start": start}


def main() -> None:
    if sys.argv[1:2] == ["serve"]:
        asyncio.run(serve(int(sys.argv[2]), float(sys.argv[3]), float(sys.argv[4])))
        return
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], help="all of them, if none is named")
    work = Path(tempfile.mkdtemp(prefix="waiting-"))
    try:
        with Site(1):
            crawl(work / "compiled", "--rate", "0")
        for name in parser.parse_args().parts or PARTS:
            PARTS[name](work / name)
    finally:
        shutil.rmtree(work, ignore_errors=True)


if __name__ == "__main__":
    main()
