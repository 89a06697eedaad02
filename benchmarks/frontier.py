"""A frontier of a million URLs: memory, bytes of state, and settles a second, without a network.

    .venv/bin/python benchmarks/frontier.py            # 1,000,000; or another number

Each page links to 20 others: 10 that every page links to, 6 neighbours, 4 anywhere. The groups are those of the engine.
Prints a line for each tenth, then publishes.
"""

import argparse
import os
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

import anyio

from crawler.frontier.sqlite.frontier import SqliteFrontier
from crawler.model.facts import Facts, Validators
from crawler.model.outcome import Listed
from crawler.model.reasons import Source
from crawler.model.reply import RobotsFile
from crawler.model.settlement import Settlement, Verdict
from crawler.model.survey import Doubts
from crawler.model.visit import Lease, Visit
from crawler.parse.url import Url
from crawler.ports import reads

SITE = "https://www.example.com"
GROUP, LEASES = 64, 32


def rss() -> float:
    """MB at present."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 1e6


def url(number: int) -> Url:
    return Url(f"{SITE}/section-{number % 997}/page-{number:07}.html")


def content(number: int) -> str:
    """A digest of what a page says. Its first digits, for the text without links, differ as well."""
    return 2 * f"{number * 0x9E3779B1 % 2**32:08x}"


def settled(lease: Lease, total: int, chance: random.Random) -> Settlement:
    number = int(lease.visit.url[-12:-5])
    near = [number * 2 + 1, number * 2 + 2, *range(number + 1, number + 5)]
    links = dict.fromkeys([*range(10), *near, *(chance.randrange(total) for _ in range(4))])
    found = tuple(Visit(url(n), lease.visit.depth + 1, lease.visit.url) for n in links if n < total)
    at = datetime(2024, 1, 1 + number % 28, tzinfo=UTC)
    facts = Facts(
        200,
        Validators(f'"{number:x}"', "Mon, 01 Jan 2024 00:00:00 GMT"),
        header=at,
        content=content(number),
    )
    return Settlement(lease, Verdict(Listed(), facts), found)


async def run(total: int, folder: Path) -> None:
    chance = random.Random(1)
    path = folder / "state.db"
    frontier = SqliteFrontier(str(path))
    await frontier.begin("x")
    await frontier.add([Visit(url(0))])
    await frontier.store_robots(SITE, RobotsFile("none", fetched=time.time()), 0.0)
    began, done, step = time.monotonic(), 0, max(1, total // 10)
    group: list[Settlement] = []
    while not (batch := await frontier.lease(LEASES)).finished or group:
        group += [settled(lease, total, chance) for lease in batch.leases]
        if len(group) >= GROUP or not batch.leases:
            await frontier.settle(group)
            if done // step != (done + len(group)) // step:
                balance = await frontier.read(reads.RunBalance())
                print(
                    f"{done + len(group):>9,} settled, {balance.discovered:>9,} known, {rss():>4.0f} MB, "
                    f"{(done + len(group)) / (time.monotonic() - began):>6,.0f} settles/s",
                    flush=True,
                )
            done, group = done + len(group), []
    print(f"{path.stat().st_size / done:,.0f} bytes of state for a URL with 20 links")
    began = time.monotonic()
    await frontier.date((Source.HEADER,), Doubts())
    await frontier.finish()
    print(f"dates: {time.monotonic() - began:.1f} s")
    await frontier.close()
    export(path)
    began = time.monotonic()
    again = SqliteFrontier(str(path))
    print(f"opening the state again, with a check of the whole file: {time.monotonic() - began:.1f} s")
    await again.close()


def export(state: Path) -> None:
    """Publish, in a process of its own."""
    began = time.monotonic()
    command = [
        sys.executable,
        "-m",
        "crawler",
        "export",
        "--quiet",
        "--state",
        str(state),
        "--output",
        str(state.parent / "out"),
    ]
    process = subprocess.Popen(command)
    _, status, used = os.wait4(process.pid, 0)
    print(
        f"publication: {time.monotonic() - began:.1f} s, {used.ru_utime + used.ru_stime:.1f} s of CPU, "
        f"peak {used.ru_maxrss / 1024:.0f} MB, exit {os.waitstatus_to_exitcode(status)}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("total", nargs="?", type=int, default=1_000_000)
    total = parser.parse_args().total
    folder = Path(tempfile.mkdtemp(prefix="frontier-"))
    try:
        anyio.run(run, total, folder)
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
