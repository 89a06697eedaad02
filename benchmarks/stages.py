"""Where the time of a page goes: microseconds of CPU for each stage, on the pages of a folder.

    .venv/bin/python benchmarks/stages.py /usr/share/doc/postgresql-doc-15/html

Each stage runs over all pages by itself, three times, and the best counts. The pages are those that are read in the
main process; how many are risky, and go to another one, is told apart. `settle` is a frontier in memory, in the groups
of the engine.
"""

import argparse
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import anyio
import synthetic

from crawler.fetch.address_guard import AddressGuard
from crawler.fetch.exchange import HttpFetcher
from crawler.fetch.request_headers import RequestIdentity
from crawler.frontier.sqlite.frontier import SqliteFrontier
from crawler.model.reply import Broken, Headers, Response, RobotsFile
from crawler.model.settlement import Settlement, Verdict
from crawler.model.visit import Lease, Visit
from crawler.parse import encoding, html, page_links
from crawler.parse.extract import Extract
from crawler.parse.normalise import Normaliser
from crawler.parse.url import Url
from crawler.ports import Request
from crawler.report.stats import Stats
from crawler.rules.judge import Judge, JudgeRules
from crawler.settings.sections import Http

SITE = "https://www.example.com"
FIELDS = [
    ("content-type", "text/html; charset=utf-8"),
    ("last-modified", "Sun, 06 Nov 1994 08:49:37 GMT"),
    ("etag", '"x"'),
]
NOW = datetime(2026, 11, 21, tzinfo=UTC)
MOST = 1_000  # pages


def best(run: Callable[[], Any], pages: int, times: int = 3) -> float:
    """Microseconds of CPU a page."""
    took = []
    for _ in range(times):
        began = time.process_time()
        run()
        took.append(time.process_time() - began)
    return min(took) / pages * 1e6


def markups(folder: Path) -> tuple[list[html.PageSource], int]:
    """Up to MOST pages of a folder, evenly taken, and how many others are risky."""
    files = sorted(folder.resolve().rglob("*.html"))
    found = [
        html.PageSource(
            file.read_bytes(),
            f"{SITE}/{file.relative_to(folder.resolve())}",
            "utf-8",
            frozenset({Extract.DATES, Extract.FINGERPRINT}),
        )
        for file in files[:: max(1, len(files) // MOST)]
    ]
    plain = [markup for markup in found if not markup.is_risky]
    return plain, len(found) - len(plain)


async def settle(settlements: list[Settlement]) -> float:
    """Microseconds of CPU a page for leasing and settling."""
    frontier = SqliteFrontier(":memory:")
    await frontier.begin("x")
    await frontier.store_robots(SITE, RobotsFile("none", fetched=time.time()), 0.0)
    await frontier.add([settlement.lease.visit for settlement in settlements])
    by_url = {settlement.lease.visit.url: settlement for settlement in settlements}
    began, done = time.process_time(), 0
    while leases := (await frontier.lease(32)).leases:
        group = [
            Settlement(lease, by_url[lease.visit.url].verdict, by_url[lease.visit.url].found)
            for lease in leases
            if lease.visit.url in by_url
        ]
        done += len(group)
        await frontier.settle(group)
        if done >= len(settlements):
            break
    took = time.process_time() - began
    await frontier.close()
    return took / max(1, done) * 1e6


async def fetch(count: int) -> float:
    """Microseconds of our CPU a page for one exchange with a server in another process (pages of `synthetic`, 4 kB)."""
    port = 8298
    command = [sys.executable, str(Path(__file__).parent / "synthetic.py"), str(count), "--port", str(port)]
    async with await anyio.open_process(command) as server:
        site = f"http://127.0.0.1:{port}"
        async with HttpFetcher(
            Http(), AddressGuard(allowed=["127.0.0.1"]), RequestIdentity(Http(), [site])
        ) as fetcher:
            for _ in range(200):  # until it is there
                if not isinstance(await fetcher.fetch(Request(Url(site + "/"))), Broken):
                    break
                await anyio.sleep(0.05)
            began = time.process_time()
            for number in range(count):
                await fetcher.fetch(Request(Url(site + synthetic.path(number))))
            took = time.process_time() - began
        server.terminate()
    return took / count * 1e6


async def display(settlements: list[Settlement]) -> float:
    """Microseconds of CPU a page for the counters."""
    stats = Stats(time.monotonic)
    began = time.process_time()
    for at in range(0, len(settlements), 32):
        await stats.settled(settlements[at : at + 32])
    return (time.process_time() - began) / max(1, len(settlements)) * 1e6


def stages(pages: list[html.PageSource]) -> dict[str, float]:
    """All of them."""
    count = len(pages)
    judge, normalise = Judge(JudgeRules("sitemap-crawler", Normaliser())), Normaliser()
    replies = [Response(200, Headers(FIELDS), page.body) for page in pages]
    leases = [Lease(n, 1, Visit(Url(page.url), 1)) for n, page in enumerate(pages)]
    read = [page.read() for page in pages]
    verdicts = [judge(lease, reply, NOW) for lease, reply in zip(leases, replies, strict=True)]
    settlements = [
        Settlement(
            lease,
            Verdict(v.outcome, v.facts),
            tuple(Visit(url, 2, lease.visit.url) for url in v.links.urls if url.startswith(SITE)),
        )
        for lease, v in zip(leases, verdicts, strict=True)
    ]
    return {
        "fetch, of pages of 4 kB": anyio.run(fetch, 2_000),
        "is it risky": best(lambda: [page.is_risky for page in pages], count),
        "encoding": best(lambda: [encoding.sniff(page.body) for page in pages], count),
        "tree (Lexbor)": best(lambda: [html.tree_of(page.body, "utf-8") and None for page in pages], count),
        "tree, links, directives": best(
            lambda: [
                html.extract(html.PageSource(page.body, page.url, charset="utf-8")) and None for page in pages
            ],
            count,
        ),
        "the same, and dates": best(
            lambda: [
                html.extract(
                    html.PageSource(page.body, page.url, charset="utf-8", wanted=frozenset({Extract.DATES}))
                )
                and None
                for page in pages
            ],
            count,
        ),
        "the same, and fingerprint": best(lambda: [page.read() and None for page in pages], count),
        "resolve and normalise": best(
            lambda: [page_links.resolve(page, normalise) and None for page in read], count
        ),
        "judge, with a page that was read": best(
            lambda: [judge(a, b, NOW, c) and None for a, b, c in zip(leases, replies, read, strict=True)],
            count,
        ),
        "judge, all of it": best(
            lambda: [judge(a, b, NOW) and None for a, b in zip(leases, replies, strict=True)], count
        ),
        "lease and settle": anyio.run(settle, settlements),
        "counters": anyio.run(display, settlements),
    }


def main() -> None:
    """One table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    pages, risky = markups(parser.parse_args().folder)
    size = sum(len(page.body) for page in pages) / len(pages) / 1_000
    links = sum(len(page.read().followed) for page in pages) / len(pages)
    print(
        f"{len(pages):,} pages of {size:.0f} kB with {links:.0f} different links; {risky:,} others are risky"
    )
    for name, took in stages(pages).items():
        print(f"{took:8.0f}  {name}")


if __name__ == "__main__":
    main()
