"""What `--images` costs: storing the images of pages, and writing them into the sitemap.

    .venv/bin/python benchmarks/images.py 50000            made pages with 20 images of their own and a logo
    .venv/bin/python benchmarks/images.py 3 on             three times 50 pages are judged; count with valgrind
    .venv/bin/python benchmarks/images.py 3 off

Prints CPU seconds, and the peak memory of `export`.
"""

import asyncio
import gc
import os
import resource
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

from crawler.app.features.images import Images
from crawler.frontier.sqlite.frontier import SqliteFrontier
from crawler.model.facts import Facts, LabelledUrl
from crawler.model.outcome import Listed
from crawler.model.reply import Headers, Response, RobotsFile
from crawler.model.settlement import Settlement, Verdict
from crawler.model.visit import Lease, Visit
from crawler.parse.normalise import Normaliser
from crawler.parse.url import Url
from crawler.ports import reads
from crawler.rules.judge import Judge, JudgeRules
from crawler.settings.sections import DEFAULTS

SITE = "https://shop.example"
OWN = 20  # images of a page
LOGO = Url(f"{SITE}/logo.svg")


def images(page: int) -> tuple[LabelledUrl, ...]:
    own = (Url(f"https://cdn.example/media/catalog/{page:07}-{n:02}-large.jpg") for n in range(OWN))
    return tuple(("", url) for url in (*own, LOGO))


async def store(state: str, pages: int, *, shown: bool) -> float:
    """Makes a complete run, and returns the microseconds that settling one page took."""
    frontier, spent = SqliteFrontier(state), 0.0
    await frontier.begin("made", "made")
    await frontier.store_robots(SITE, RobotsFile("none", fetched=time.time()), 0.0)
    for at in range(0, pages, 1_000):
        await frontier.add([Visit(Url(f"{SITE}/page-{n:07}")) for n in range(at, min(pages, at + 1_000))])
        while leases := (await frontier.lease(200)).leases:
            began = time.process_time()
            verdicts = [
                Verdict(Listed(), Facts(200), features={"images": images(one.id)} if shown else {})
                for one in leases
            ]
            await frontier.settle([Settlement(one, seen) for one, seen in zip(leases, verdicts, strict=True)])
            spent += time.process_time() - began
    await frontier.finish()
    if shown:
        began = time.process_time()
        found = await frontier.read(reads.CommonUrls("images", 20, 30))
        print(f"site-wide images: {len(found)}, found in {time.process_time() - began:.2f} s")
    await frontier.conclude()
    await frontier.close()
    return 1e6 * spent / pages


def export(state: str, folder: Path, *flags: str) -> None:
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    command = [
        sys.executable,
        "-m",
        "crawler",
        "export",
        "--state",
        state,
        "-o",
        str(folder),
        "--quiet",
        *flags,
    ]
    child = subprocess.Popen(command)
    _, code, used = os.wait4(child.pid, 0)
    assert code == 0, "the export failed"
    took = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before
    print(f"export {' '.join(flags) or 'without images'}: {took:.1f} s, {used.ru_maxrss >> 10} MB")


def body(page: int) -> bytes:
    links = "".join(f'<li><a href="/p/{page * 7 + n}">page {n} of the shop</a>' for n in range(100))
    own = "".join(
        f'<img src="/{page}-{n}-s.jpg" srcset="/{page}-{n}-s.jpg 300w, /{page}-{n}-m.jpg 600w, /{page}-{n}-l.jpg 1200w" alt=x>'
        for n in range(OWN)
    )
    return f"<!doctype html><title>{page}</title><img src=/logo.svg><ul>{links}</ul>{own}".encode()


def judge(times: int, *, shown: bool) -> None:
    gc.disable()  # its runs would depend on what else is in memory
    reader = Images().reader(DEFAULTS, Normaliser(), None)
    decide = Judge(JudgeRules("sitemap-crawler", Normaliser(), features=(reader,) if shown else ()))
    headers, now = Headers([("Content-Type", "text/html; charset=utf-8")]), datetime(2026, 1, 1, tzinfo=UTC)
    replies = [(Lease(1, 1, Visit(Url(f"{SITE}/p/{n}"))), Response(200, headers, body(n))) for n in range(50)]
    count = sum(
        len(decide(lease, reply, now).features.get("images", ()))
        for _ in range(times)
        for lease, reply in replies
    )
    print(f"{count} images of {50 * times} pages")


def main() -> None:
    number, mode = int(sys.argv[1]), sys.argv[2:]
    if mode:
        judge(number, shown=mode == ["on"])
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for shown in (False, True):
            took = asyncio.run(store(str(folder / f"{shown}.db"), number, shown=shown))
            size = (folder / f"{shown}.db").stat().st_size / number
            print(f"settle a page {'with' if shown else 'without'} images: {took:.0f} µs, {size:,.0f} bytes")
        export(str(folder / "True.db"), folder / "off")
        export(str(folder / "True.db"), folder / "on", "--images")


if __name__ == "__main__":
    main()
