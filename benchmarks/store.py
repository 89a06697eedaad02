"""The statements of the state, compared between two checkouts: CPU of each step of three runs.

    .venv/bin/python benchmarks/store.py                                   # this checkout alone
    .venv/bin/python benchmarks/store.py --against ../base                 # in turn, five times each
    .venv/bin/python benchmarks/store.py --against ../base --database      # on a PostgreSQL server of its own
    .venv/bin/python benchmarks/store.py --against ../base --count --until "second: settle"

Three runs over the same made-up pages, in groups as the engine makes them, with its cache of known URLs: all are
new; all are found again and answer, one in ten with other content; all are found again and are unchanged. Without a
network, and without reading pages. `--count` counts instructions with valgrind, up to and with the step `--until`.
"""

import argparse
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import anyio

from crawler.model import settlement as values
from crawler.model.facts import Facts, Lastmod, Validators
from crawler.model.outcome import Listed
from crawler.model.reasons import Source
from crawler.model.reply import RobotsFile
from crawler.model.rows import PublicationRow
from crawler.model.survey import Doubts
from crawler.model.visit import Visit
from crawler.parse.url import Url

if TYPE_CHECKING:
    from collections.abc import Iterator

    from crawler.model.visit import Lease
    from crawler.ports import Frontier

HERE: Final = Path(__file__)
SITE: Final = "https://www.example.com"
GROUP, LEASES = 64, 32
TICKS: Final = os.sysconf("SC_CLK_TCK")
RUNS: Final = ("first", "second", "unchanged")
AFTER: Final = ("date", "publish", "entries")
STEPS: Final = [f"{run}: {step}" for run in RUNS for step in ("lease", "links", "settle", *AFTER)]


class Ended(Exception):  # noqa: N818 - no error
    """The last step was made."""


class Costs:
    """Seconds of CPU by step: of this process, and of the server."""

    def __init__(self, server: Callable[[], float], until: str) -> None:
        self.own, self.served = defaultdict[str, float](float), defaultdict[str, float](float)
        self._server, self._until = server, until

    @contextmanager
    def of(self, step: str) -> "Iterator[None]":
        own, served = time.process_time(), self._server()
        yield
        self.own[step] += time.process_time() - own
        self.served[step] += self._server() - served

    def end(self, step: str) -> None:
        if step == self._until:
            raise Ended


def url(number: int) -> Url:
    return Url(f"{SITE}/section-{number % 997}/page-{number:07}.html")


def links_of(number: int, total: int, chance: random.Random) -> Sequence[Url]:
    near = [number * 2 + 1, number * 2 + 2, *range(number + 1, number + 5)]
    numbers = dict.fromkeys([*range(10), *near, *(chance.randrange(total) for _ in range(4))])
    return [url(n) for n in numbers if n < total]


class Site:
    """Made-up pages, and the numbers of known URLs as the engine keeps them."""

    def __init__(self, total: int, run: str) -> None:
        self._total, self._run, self._chance = total, run, random.Random(1)
        self._numbers: dict[Any, int] = {}

    def settlement(self, lease: "Lease") -> Any:
        number = int(lease.visit.url[-12:-5])
        links = links_of(number, self._total, self._chance)
        ids = [self._numbers.get(link, 0) for link in links]
        found = tuple(
            Visit(link, lease.visit.depth + 1, lease.visit.url)
            for link, known in zip(links, ids, strict=True)
            if not known
        )
        if self._run == "unchanged" and lease.prior:
            verdict = values.Verdict(lease.prior.outcome, lease.prior.facts, unchanged=True)
        else:
            verdict = values.Verdict(Listed(), self._facts(number))
        # An earlier checkout has one list of numbers.
        packed: Any = values.LinkNumbers(ids) if hasattr(values, "LinkNumbers") else ids
        return values.Settlement(lease, verdict, found, links=packed)

    def _facts(self, number: int) -> Facts:
        content = number + (10**9 if self._run == "second" and number % 10 == 0 else 0)
        header = datetime(2024, 1, 1 + number % 28, tzinfo=UTC) if number % 2 else None
        return Facts(
            200,
            Validators(f'"{number:x}"', "Mon, 01 Jan 2024 00:00:00 GMT"),
            lastmod=Lastmod(header, Source.HEADER) if header else None,
            header=header,
            content=2 * f"{content * 0x9E3779B1 % 2**32:08x}",  # its first digits are the text without links
        )

    def learn(self, group: Sequence[Any], settled: Any) -> None:
        visits = [visit for one in group for visit in one.found]
        if hasattr(settled, "known"):
            numbers = [known.number if known and known.settled else 0 for known in settled.known]
        else:
            numbers = [max(number, 0) for number in settled.numbers]
        self._numbers |= {visit.url: known for visit, known in zip(visits, numbers, strict=True) if known}


async def entries(frontier: Any) -> AsyncIterator[Sequence[Any]]:
    if hasattr(frontier, "stream"):
        from crawler.ports import reads  # noqa: PLC0415 - an earlier checkout has none

        rows = frontier.stream(reads.ListedEntries())
    else:
        rows = frontier.entries()
    async for chunk in rows:
        yield chunk


async def made_run(frontier: Any, total: int, name: str, costs: Costs) -> None:
    site, group = Site(total, name), list[Any]()
    await frontier.begin("x")
    await frontier.take_leadership()
    await frontier.add([Visit(url(0))])
    await frontier.store_robots(SITE, RobotsFile("none", fetched=time.time()), 0.0)
    while True:
        with costs.of(f"{name}: lease"):
            batch = await frontier.lease(LEASES)
        if batch.finished and not group:
            break
        if name == "unchanged" and batch.leases:
            with costs.of(f"{name}: links"):
                await frontier.links(batch.leases)
        group += [site.settlement(lease) for lease in batch.leases]
        if len(group) >= GROUP or not batch.leases:
            with costs.of(f"{name}: settle"):
                settled = await frontier.settle(group)
            site.learn(group, settled)
            group = []
    costs.end(f"{name}: settle")
    with costs.of(f"{name}: date"):
        await frontier.date(tuple(Source), Doubts())
    costs.end(f"{name}: date")
    await frontier.finish()
    with costs.of(f"{name}: publish"):
        await frontier.mark_published(PublicationRow(total))
    costs.end(f"{name}: publish")
    with costs.of(f"{name}: entries"):
        listed = sum([len(chunk) async for chunk in entries(frontier)])
    costs.end(f"{name}: entries")
    assert listed == total, listed
    await frontier.conclude()


def server_cpu(postmaster: int) -> float:
    """Seconds of CPU of all processes of a server."""
    spent = 0.0
    for pid in (str(postmaster), *Path(f"/proc/{postmaster}/task/{postmaster}/children").read_text().split()):
        try:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        spent += sum(int(field) for field in fields[11 : 15 if pid == str(postmaster) else 13])
    return spent / TICKS


async def made(total: int, state: str, postmaster: int, until: str) -> None:
    """What a child does: prints the CPU of each step."""
    frontier: Frontier
    if postmaster:
        from crawler.frontier.postgres.frontier import PostgresFrontier  # noqa: PLC0415 - an extra

        frontier = PostgresFrontier(state)
    else:
        from crawler.frontier.sqlite.frontier import SqliteFrontier  # noqa: PLC0415 - as the other

        frontier = SqliteFrontier(state)
    costs = Costs((lambda: server_cpu(postmaster)) if postmaster else (lambda: 0.0), until)
    try:
        for name in RUNS:
            await made_run(frontier, total, name, costs)
    except Ended:
        pass
    await frontier.close()
    for step in STEPS:
        if step in costs.own:
            print(f"{step}\t{costs.own[step]}\t{costs.served[step]}")


# -- comparing ---------------------------------------------------------------------------------------------


class Bench:
    """Runs children, each with a new state."""

    def __init__(self, chosen: argparse.Namespace, folder: Path) -> None:
        self._chosen, self._folder, self._made = chosen, folder, 0
        self._address, self._postmaster = "", 0
        if chosen.database:
            from tests.postgres import server  # noqa: PLC0415 - starts one

            self._address = server("-c shared_buffers=512MB -c max_wal_size=2GB").address
            import psycopg  # noqa: PLC0415 - an extra

            with psycopg.connect(self._address) as connection:
                [(data,)] = connection.execute("SHOW data_directory").fetchall()
            self._postmaster = int((Path(data) / "postmaster.pid").read_text().split()[0])

    def run(self, checkout: Path) -> dict[str, tuple[float, float]]:
        """Seconds of CPU by step: of the client and of the server; or instructions of all."""
        self._made += 1
        state = f"{self._address}#n{self._made}" if self._address else str(self._folder / f"{self._made}.db")
        counted, chosen = self._folder / "counted", self._chosen
        tool = ["valgrind", "--tool=cachegrind", "--cache-sim=no", f"--cachegrind-out-file={counted}"]
        words = [str(chosen.pages), "--child", state, "--postmaster", str(self._postmaster)]
        command = [sys.executable, str(HERE), *words, "--until", chosen.until]
        made = subprocess.run(
            [*tool, *command] if chosen.count else command,
            env=os.environ | {"PYTHONPATH": str(checkout), "PYTHONHASHSEED": "0"},
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL if chosen.count else None,
            text=True,
            check=True,
        )
        for path in self._folder.glob(f"{self._made}.db*"):
            path.unlink()
        if chosen.count:
            return {f"instructions up to {chosen.until}": (int(counted.read_text().split()[-1]) / 1e6, 0.0)}
        rows = [line.split("\t") for line in made.stdout.splitlines()]
        return {step: (float(own), float(served)) for step, own, served in rows}


def compare(chosen: argparse.Namespace) -> None:
    checkouts = [HERE.parent.parent, *([Path(chosen.against).resolve()] if chosen.against else [])]
    with tempfile.TemporaryDirectory(prefix="store-") as folder:
        bench = Bench(chosen, Path(folder))
        found = [[bench.run(checkout) for checkout in checkouts] for _ in range(chosen.rounds)]
    unit = "millions of instructions" if chosen.count else f"µs of CPU a page, {chosen.pages:,} pages"
    print(f"{unit}: this checkout, the other one, the median of the ratios; with a server: its own")
    for step in found[0][0]:
        line = f"{step:24}"
        for place in (0, 1):
            measured = [[row[step][place] for row in rows] for rows in found]
            scale = 1.0 if chosen.count else 1e6 / chosen.pages
            if any(any(row) for row in measured):
                medians = [scale * statistics.median(column) for column in zip(*measured, strict=True)]
                line += "  " + " ".join(f"{median:9,.2f}" for median in medians)
                if len(checkouts) > 1:
                    ratios = [row[0] / row[1] for row in measured if row[1]]
                    line += f" {statistics.median(ratios):6.2f}" if ratios else ""
        print(line, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("pages", nargs="?", type=int, default=20_000)
    parser.add_argument("--against", metavar="CHECKOUT", help="another checkout of this repository")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--database", action="store_true", help="on PostgreSQL")
    parser.add_argument("--count", action="store_true", help="count instructions")
    parser.add_argument("--until", default="", choices=["", *STEPS], metavar="STEP")
    parser.add_argument("--child", metavar="STATE", help=argparse.SUPPRESS)
    parser.add_argument("--postmaster", type=int, default=0, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.child:
        anyio.run(made, chosen.pages, chosen.child, chosen.postmaster, chosen.until)
    else:
        compare(chosen)


if __name__ == "__main__":
    main()
