"""The frontier on PostgreSQL: what members cost, clients and server, beside one process on SQLite.

    .venv/bin/python benchmarks/members.py crawl 10000            # 1, 2 and 4 members on the site of synthetic.py
    .venv/bin/python benchmarks/members.py verbs 1000000          # lease and settle alone; or 10000000

Each starts a private server with the settings of `SERVER`, durable as they are by default. `crawl` prints a line for each
number of members: pages a second, and CPU a page of all clients and of the server, starts included. `verbs` leases and
settles pages of 20 links as the engine does, without a network, and prints a line for each tenth: CPU a page within it.
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
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import anyio
import psycopg
from frontier import GROUP, LEASES, SITE, rss, settled, url  # beside this file
from synthetic import answers

from crawler.frontier.postgres.address import parsed
from crawler.frontier.postgres.frontier import PostgresFrontier
from crawler.model.robots import RobotsFile
from crawler.model.visit import Visit
from tests.postgres import server

if TYPE_CHECKING:
    from crawler.model.settlement import Settlement

SERVER: Final = "-c shared_buffers=256MB -c max_wal_size=4GB -c max_connections=60"
TICKS: Final = os.sysconf("SC_CLK_TCK")
HERE: Final = Path(__file__).parent
MEMBERS: Final = ((1, "1 member"), (2, "2 members"), (4, "4 members"))


class Server:
    """A private server, and the CPU that it has used."""

    def __init__(self) -> None:
        address = server(SERVER).address
        self.address = address
        with psycopg.connect(address) as connection:
            [(data,)] = connection.execute("SHOW data_directory").fetchall()
        self._pid = int((Path(data) / "postmaster.pid").read_text().split()[0])

    def state(self) -> str:
        """The address of a new crawl."""
        return f"{self.address}#{uuid.uuid4().hex}"

    def cpu(self) -> float:
        """Seconds, of all its processes, also of those that have ended."""
        children = Path(f"/proc/{self._pid}/task/{self._pid}/children").read_text().split()
        return sum(_used(pid, ended=pid == str(self._pid)) for pid in (str(self._pid), *children))


def _used(pid: str, *, ended: bool) -> float:
    """Seconds of CPU of a process; `ended`: and of its children that have ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:  # it has ended since; then it is among the ended children next time
        return 0.0
    return sum(int(field) for field in fields[11 : 15 if ended else 13]) / TICKS


# -- whole crawls ----------------------------------------------------------------------------------------


class Cost(NamedTuple):
    """Of some processes together."""

    seconds: float
    cpu: float
    largest: float  # MB


def crawled(commands: Sequence[Sequence[str]]) -> Cost:
    """Run members at the same time until all have ended."""
    began = time.monotonic()
    members = [subprocess.Popen(command, stdout=subprocess.DEVNULL) for command in commands]
    cpu = largest = 0.0
    try:
        for member in members:
            _, status, used = os.wait4(member.pid, 0)
            member.returncode = os.waitstatus_to_exitcode(status)
            if status:
                raise SystemExit(f"a member ended with exit {member.returncode}")
            cpu, largest = cpu + used.ru_utime + used.ru_stime, max(largest, used.ru_maxrss / 1024)
    finally:
        for member in members:
            if member.returncode is None:
                member.kill()
    return Cost(time.monotonic() - began, cpu, largest)


def crawl(total: int, port: int) -> None:
    folder = Path(tempfile.mkdtemp(prefix="members-"))
    site = subprocess.Popen([sys.executable, HERE / "synthetic.py", str(total), "--port", str(port)])
    base = f"http://127.0.0.1:{port}/"
    try:
        if not answers(base):
            raise SystemExit("the site does not answer")
        database = Server()
        print(
            "| | pages/s | ms of CPU a page, clients | server | MB, largest client |\n|---|---|---|---|---|"
        )
        for name, state, members in (
            ("SQLite, one process", str(folder / "state.db"), 1),
            *((f"PostgreSQL, {counted}", database.state(), number) for number, counted in MEMBERS),
        ):
            out = folder / uuid.uuid4().hex
            words = ["crawl", base, "--rate", "0", "-q", "--state", state, "-o", str(out)]
            before = database.cpu()
            cost = crawled([[sys.executable, "-m", "crawler", *words]] * members)
            served = 1_000 * (database.cpu() - before) / total
            print(
                f"| {name} | {total / cost.seconds:,.0f} | {1_000 * cost.cpu / total:.2f} | "
                f"{f'{served:.2f}' if state.startswith(database.address) else '-'} | {cost.largest:.0f} |",
                flush=True,
            )
    finally:
        site.terminate()
        site.wait()
        shutil.rmtree(folder)


# -- lease and settle alone ------------------------------------------------------------------------------


async def verbs(total: int) -> None:
    database, chance = Server(), random.Random(1)
    state = database.state()
    frontier = PostgresFrontier(state)
    await frontier.begin("x")
    await frontier.lead()
    await frontier.add([Visit(url(0))])
    await frontier.store_robots(SITE, RobotsFile("none", fetched=frontier.clock()), 0.0)
    print("| settled | known | µs of CPU a page, client | server | bytes a known URL | MB of the client |")
    print("|---|---|---|---|---|---|")
    done, told, own = 0, 0, -time.process_time()
    served, step = database.cpu(), max(1, total // 10)
    group: list[Settlement] = []
    while not (batch := await frontier.lease(LEASES)).finished or group:
        made = time.process_time()
        group += [settled(lease, total, chance) for lease in batch.leases]
        own -= time.process_time() - made  # what the benchmark itself does
        if len(group) >= GROUP or not batch.leases:
            await frontier.settle(group)
            done, group = done + len(group), []
        if done - told >= step:
            spent, at_server, pages = own + time.process_time(), database.cpu() - served, done - told
            balance, size = await frontier.balance(), _size(state)
            print(
                f"| {done:,} | {balance.discovered:,} | {1e6 * spent / pages:,.0f} | {1e6 * at_server / pages:,.0f} | "
                f"{size / balance.discovered:,.0f} | {rss():.0f} |",
                flush=True,
            )
            told, own, served = done, -time.process_time(), database.cpu()
    await frontier.close()
    print(f"peak of the client: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")


def _size(state: str) -> int:
    address = parsed(state)
    with psycopg.connect(address.conninfo) as connection:
        [(size,)] = connection.execute(
            "SELECT sum(pg_total_relation_size(oid))::bigint FROM pg_class WHERE relnamespace = %s::regnamespace AND relkind = 'r'",
            [address.schema],
        ).fetchall()
    return int(size)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=["crawl", "verbs"])
    parser.add_argument("total", type=int, help="pages")
    parser.add_argument("--port", type=int, default=8298)
    chosen = parser.parse_args()
    if chosen.what == "crawl":
        crawl(chosen.total, chosen.port)
    else:
        anyio.run(verbs, chosen.total)


if __name__ == "__main__":
    main()
