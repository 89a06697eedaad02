"""The CPU time of planning a night: a published site of many known pages, a tenth of which is visited.

    .venv/bin/python benchmarks/planning.py            # 100,000 pages; or another number

Through the frontier (SQLite), without a network: a whole crawl, then nights with a budget. Planning is to begin the
run, which takes over what is known, and to choose and open the pages.
"""

import argparse
import asyncio
import shutil
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from crawler.frontier.sqlite.frontier import SqliteFrontier
from crawler.model.facts import Facts, Validators
from crawler.model.outcome import Listed
from crawler.model.reply import RobotsFile
from crawler.model.rows import PublicationRow
from crawler.model.run import Terms
from crawler.model.settlement import Settlement, Verdict
from crawler.model.visit import Lease, Visit
from crawler.parse.url import Url

SITE = "https://www.example.com"
START = Url(f"{SITE}/")
DAY = 86_400
NIGHTS = 3
GROUP = 256


class Clock:
    """Moves when it is told to."""

    now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


def settled(lease: Lease, total: int) -> Settlement:
    """The start page links to all others."""
    url = lease.visit.url
    links = [Url(f"{SITE}/section-{n % 997}/page-{n:07}.html") for n in range(total)] if url == START else []
    facts = Facts(
        200,
        Validators('"x"', None),
        header=datetime(2024, 1, 1, tzinfo=UTC),
        content=f"{hash(url) % 2**64:016x}",
    )
    return Settlement(lease, Verdict(Listed(), facts), tuple(Visit(link, 1, url) for link in links))


async def night(frontier: SqliteFrontier, clock: Clock, total: int, budget: int | None) -> None:
    """One run, and a line of how long its parts took."""
    began = time.process_time()
    await frontier.begin("x", "", Terms(max_pages=budget))
    begin, choosing, done = time.process_time() - began, 0.0, 0
    await frontier.add([Visit(START)])
    await frontier.store_robots(SITE, RobotsFile("none", fetched=clock.now), 0.0)
    while True:
        batch = await frontier.lease(GROUP)
        if batch.leases:
            await frontier.settle([settled(lease, total) for lease in batch.leases])
            done += len(batch.leases)
            continue
        clock.now += 1
        if batch.finished:
            began = time.process_time()
            released = (await frontier.advance()).released
            choosing += time.process_time() - began
            if not released:
                break
    await frontier.finish()
    await frontier.mark_published(PublicationRow(total, 1, 1))
    await frontier.conclude()
    clock.now += DAY
    print(f"{done:>8,} visited: {begin:.2f} s to begin, {choosing:.2f} s to choose", flush=True)


async def measure(total: int) -> None:
    """A whole crawl, then nights."""
    folder, clock = tempfile.mkdtemp(), Clock()
    frontier = SqliteFrontier(str(Path(folder) / "state.db"), clock=clock)
    try:
        for number in range(NIGHTS + 1):
            await night(frontier, clock, total, total // 10 if number else None)
    finally:
        await frontier.close()
        shutil.rmtree(folder)


def main() -> None:
    """Prints a line for each night."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("pages", nargs="?", type=int, default=100_000)
    asyncio.run(measure(parser.parse_args().pages))


if __name__ == "__main__":
    main()
