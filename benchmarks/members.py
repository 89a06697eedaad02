"""The frontier on PostgreSQL: what members cost, clients and server, beside one process on SQLite.

    .venv/bin/python benchmarks/members.py crawl 10000            # 1, 2 and 4 members on the site of synthetic.py
    .venv/bin/python benchmarks/members.py crawl 10000 --delay 0 10 50   # with so many ms to the database and back
    .venv/bin/python benchmarks/members.py crawl 300 --chain --delay 10    # each page links to one new page
    .venv/bin/python benchmarks/members.py crawl 10137 --real jdk --delay 0 10 50  # of a site of real_sites.py
    .venv/bin/python benchmarks/members.py faults 36 --delay 0 10 # members that are killed, frozen, and told to leave
    .venv/bin/python benchmarks/members.py verbs 1000000          # lease and settle alone
    .venv/bin/python benchmarks/members.py verbs 20000 --known 100000 1000000 10000000   # of states with so many URLs
    .venv/bin/python benchmarks/members.py verbs 20000 --known 60000 --held   # while an old transaction stays open

Each starts a private server with the settings of `SERVER`, durable as they are by default. `crawl` prints a line for each
number of members: pages a second, CPU a page of all clients and of the server, starts included, and round trips a page. `verbs` leases and
settles pages of 20 links as the engine does, without a network, and prints a line for each tenth: CPU a page within it.
`--known` first fills states with URLs, of which a fifth are settled; their sites have twice as many, so that each page links
to two that are new. The states take turns, so that what else the machine does slows all of them.
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
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import partial
from itertools import cycle, islice, product
from pathlib import Path
from signal import SIGCONT, SIGKILL, SIGSTOP, SIGTERM
from typing import TYPE_CHECKING, Final, NamedTuple

import anyio
import psycopg
import real_sites
from frontier import GROUP, LEASES, SITE, content, rss, settled, url  # beside this file
from synthetic import answers

from crawler.frontier.postgres.address import parsed
from crawler.frontier.postgres.dialect import PostgresDialect
from crawler.frontier.postgres.frontier import PostgresFrontier
from crawler.model.reply import RobotsFile
from crawler.model.visit import Visit
from tests.postgres import server
from tests.server import Origin, http, page, serving
from tests.shared.members import LIFE, Crew, crew
from tests.shared.proxy import proxy_before
from tests.shared.sites import asked, files, put, words
from tests.waiting import outlive

if TYPE_CHECKING:
    from crawler.model.settlement import Settlement

SERVER: Final = "-c shared_buffers=1GB -c max_wal_size=4GB -c max_connections=60"
TICKS: Final = os.sysconf("SC_CLK_TCK")
HERE: Final = Path(__file__).parent
SIGNS: Final = (SIGKILL, SIGSTOP, SIGTERM)
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

    def wal(self) -> int:
        """Bytes that were written to its log."""
        with psycopg.connect(self.address) as connection:
            [(written,)] = connection.execute("SELECT (pg_current_wal_lsn() - '0/0')::bigint").fetchall()
        return int(written)

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


@contextmanager
def made_up(total: int, port: int) -> Iterator[str]:
    """The start URL of a site of so many pages."""
    site = subprocess.Popen([sys.executable, HERE / "synthetic.py", str(total), "--port", str(port)])
    try:
        if not answers(base := f"http://127.0.0.1:{port}/"):
            raise SystemExit("the site does not answer")
        yield base
    finally:
        site.terminate()
        site.wait()


@contextmanager
def chain(total: int) -> Iterator[str]:
    """The start URL of a site of which each page links to one new page."""
    site = Origin("chain", "127.0.77.3")
    for number in range(total):
        more = [f"/{number + 1}"] if number + 1 < total else []
        site.put(f"/{number or ''}", http(page(*more, text=f"page {number} of the chain")))
    with serving(site):
        yield site.url()


@contextmanager
def real(name: str) -> Iterator[str]:
    """The start URL of a documentation site."""
    with tempfile.TemporaryDirectory(prefix="real-site-") as work:
        real_sites.serve(Path(work), [name])
        try:
            yield f"http://127.0.0.1:{real_sites.SITES[name][1]}/"
        finally:
            os.kill(int((Path(work) / "nginx.pid").read_text()), SIGTERM)


def crawl(total: int, site: AbstractContextManager[str], delays: Sequence[int]) -> None:
    folder = Path(tempfile.mkdtemp(prefix="members-"))
    with site as base:
        database = Server()
        print(
            "| ms to the database | | pages/s | ms of CPU a page, clients | server | MB, largest client | round trips a page |"
            "\n|---|---|---|---|---|---|---|"
        )
        sqlite = crawled([[sys.executable, "-m", "crawler", *flags(base, folder, str(folder / "state.db"))]])
        print(_line("-", "SQLite, one process", total, sqlite, "- |", "-"), flush=True)
        for delay, (number, counted) in product(delays, MEMBERS):
            before = database.cpu()
            with proxy_before(database.state(), delay / 2_000) as (state, proxy):
                cost = crawled([[sys.executable, "-m", "crawler", *flags(base, folder, state)]] * number)
            served, turns = (database.cpu() - before) / total, proxy.turns / total
            print(_line(delay, counted, total, cost, f"{1_000 * served:.2f} |", f"{turns:.3f}"), flush=True)
    shutil.rmtree(folder)


# -- lease and settle alone ------------------------------------------------------------------------------


async def verbs(total: int, known: Sequence[int], *, held: bool) -> None:
    database = Server()
    sizes = [_Verbs(database, max(total, 2 * size)) for size in known]
    for size, urls in zip(sizes, known, strict=True):
        await size.begin(urls)
    old = psycopg.connect(database.address, autocommit=not held)
    old.execute("SELECT txid_current()")
    print(
        "| settled | known | µs of CPU a page, client | server | kB of WAL a page | bytes a known URL | MB of the client |"
    )
    print("|---|---|---|---|---|---|---|")
    for _ in range(10):
        for size in sizes:
            print(await size.settle(max(1, total // 10)), flush=True)
    for size in sizes:
        await size.frontier.close()
    old.close()
    print(f"peak of the client: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")


class _Verbs:
    """A member of a crawl of its own, of a site with `total` pages."""

    def __init__(self, database: Server, total: int) -> None:
        self._database, self._total, self._chance = database, total, random.Random(1)
        self._state, self._done = database.state(), 0
        self.frontier = PostgresFrontier(self._state)

    async def begin(self, known: int) -> None:
        await self.frontier.begin("x")
        await self.frontier.take_leadership()
        await self.frontier.add([Visit(url(0))])
        file = RobotsFile("none", fetched=self.frontier.clock())
        await self.frontier.store_robots(SITE, file, 0.0)
        if known:
            fill(self._state, known, self._chance)

    async def settle(self, pages: int) -> str:
        """A line of the table, after so many more pages."""
        own, served, wal, done = -time.process_time(), self._database.cpu(), self._database.wal(), 0
        group: list[Settlement] = []
        while done < pages and (not (batch := await self.frontier.lease(LEASES)).finished or group):
            made = time.process_time()
            group += [settled(lease, self._total, self._chance) for lease in batch.leases]
            own -= time.process_time() - made  # what the benchmark itself does
            if len(group) >= GROUP or not batch.leases:
                await self.frontier.settle(group)
                done, group = done + len(group), []
        spent, at_server = own + time.process_time(), self._database.cpu() - served
        self._done += done
        known, size = _counted(self._state)
        return (
            f"| {self._done:,} | {known:,} | {1e6 * spent / done:,.0f} | {1e6 * at_server / done:,.0f} | "
            f"{(self._database.wal() - wal) / 1e3 / done:.1f} | {size / known:,.0f} | {rss():.0f} |"
        )


fp = PostgresDialect().key_of


def fill(state: str, known: int, chance: random.Random) -> None:
    """Add URLs, except the first, which is known already; a fifth of them are settled, and the others are open."""
    began, address, settled_pages = time.monotonic(), parsed(state), known // 5
    with psycopg.connect(address.conninfo, autocommit=True) as connection:
        connection.execute(f'SET search_path TO "{address.schema}"')
        for table, lines in (
            ("url (id, fp, host, via, run, depth, hops, url)", _urls(known)),
            (
                "visit (id, host, depth, state)",
                (f"{n + 1}\t1\t{_depth(n)}\t0\n" for n in range(settled_pages, known)),
            ),
            (
                "page (id, settled, facts_run, attempts, outcome, status, etag, header, content, links)",
                (_page(n, known, chance) for n in range(1, settled_pages)),
            ),
        ):
            with connection.cursor().copy(f"COPY {table} FROM STDIN") as copy:
                while chunk := "".join(islice(lines, 10_000)):
                    copy.write(chunk)
        connection.execute(f"SELECT setval('url_id', {known})")
        connection.execute("UPDATE member SET discovered = %s", [known])
        connection.execute("VACUUM ANALYZE")
    print(f"{known:,} URLs in {time.monotonic() - began:,.0f} s", flush=True)


def _urls(known: int) -> Iterator[str]:
    for number in range(1, known):
        page = url(number)
        yield f"{number + 1}\t{fp(page)}\t1\t{(number - 1) // 2 + 1}\t1\t{_depth(number)}\t0\t{page}\n"


def _page(number: int, known: int, chance: random.Random) -> str:
    links = [*range(1, 11), number * 2 + 2, number * 2 + 3, *range(number + 2, number + 6)]
    links += [chance.randrange(known) + 1 for _ in range(4)]
    ids = ",".join(map(str, links))
    return f'{number + 1}\t1\t1\t1\tlisted\t200\t"{number:x}"\t1704067200\t{content(number)}\t{{{ids}}}\n'


def _depth(number: int) -> int:
    return (number + 1).bit_length() - 1


def _counted(state: str) -> tuple[int, int]:
    """The number of known URLs, and the size of the crawl in bytes."""
    address = parsed(state)
    with psycopg.connect(address.conninfo) as connection:
        connection.execute(f'SET search_path TO "{address.schema}"')
        [known] = connection.execute("SELECT sum(discovered)::bigint FROM member").fetchone() or [0]
        [size] = connection.execute(
            "SELECT sum(pg_total_relation_size(oid))::bigint FROM pg_class WHERE relnamespace = %s::regnamespace AND relkind = 'r'",
            [address.schema],
        ).fetchone() or [0]
    return int(known), int(size)


def flags(base: str, folder: Path, state: str) -> list[str]:
    out = str(folder / uuid.uuid4().hex)
    joined = ["--run", "once"] if state.startswith("postgresql:") else []
    return ["crawl", base, "--rate", "0", "-q", *joined, "--state", state, "-o", out]


def _line(delay: object, name: str, total: int, cost: Cost, served: str, turns: str) -> str:
    each = f"{total / cost.seconds:,.0f} | {1_000 * cost.cpu / total:.2f}"
    return f"| {delay} | {name} | {each} | {served} {cost.largest:.0f} | {turns} |"


# -- faults ----------------------------------------------------------------------------------------------


def faults(rounds: int, delays: Sequence[int]) -> None:
    """Members that are killed, frozen and told to leave, until the run is published; then look at the truth."""
    here, there = Origin("here", "127.0.77.1"), Origin("there", "127.0.77.2")
    chance, folder = random.Random(1), Path(tempfile.mkdtemp(prefix="members-"))
    database = Server()
    with serving(here, there), crew(folder / "members") as members:
        put(here, there)
        alone = members.start(words(here, str(folder / "state.db"), folder / "alone"))
        if alone.wait():
            raise SystemExit(alone.said)
        print(
            "| round | ms to the database | killed | frozen | told to leave | asked twice | published | same |"
        )
        print("|---|---|---|---|---|---|---|---|")
        for number, delay in islice(enumerate(cycle(delays), 1), rounds):
            out = folder / str(number)
            direct = database.state()
            with proxy_before(direct, delay / 2_000) as (state, _):
                flags = ["--run", "once", "--concurrency", "4", "--log-format", "json"]
                command = [word for word in words(here, state, out, *flags) if word != "-q"]
                before, told = len(here.log), _disturb(members, here, command, chance)
            requests = [request.path for request in here.log[before:]]
            told += [len(requests) - len(set(requests)), _publications(direct)]
            told += ["yes" if files(out) == files(folder / "alone") else "NO"]
            print(f"| {number} | {delay} | {' | '.join(map(str, told))} |", flush=True)
    shutil.rmtree(folder)


def _disturb(members: Crew, site: Origin, command: Sequence[str], chance: random.Random) -> list[object]:
    """How many were killed, frozen, and told to leave."""
    living, done = [members.start(command) for _ in range(3)], dict.fromkeys(SIGNS, 0)
    while sum(done.values()) < 5 and all(member.poll() is None for member in living):
        asked(site, chance.randint(10, 40), living)
        victim, sign = living.pop(chance.randrange(3)), chance.choice(list(done))
        done[sign] += victim.poll() is None
        with suppress(ProcessLookupError):
            os.kill(victim.pid, sign)
        living.append(members.start(command))
        if sign is SIGSTOP:
            outlive(LIFE + 1)
            with suppress(ProcessLookupError):  # it had ended before
                os.kill(victim.pid, SIGCONT)
            living.append(victim)
    for member in living:
        if member.wait():
            raise SystemExit(f"exit {member.wait()}: {member.said}")
    return list(done.values())


def _publications(state: str) -> int:
    address = parsed(state)
    with psycopg.connect(address.conninfo) as connection:
        [count] = connection.execute(f'SELECT count(*) FROM "{address.schema}".publication').fetchone() or [0]
    return int(count)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=["crawl", "faults", "verbs"])
    parser.add_argument("total", type=int, help="pages, or rounds of faults")
    parser.add_argument("--delay", type=int, nargs="+", default=[0], help="ms to the database and back")
    parser.add_argument("--port", type=int, default=8298)
    parser.add_argument("--known", type=int, nargs="+", default=[0], help="URLs of each state before")
    parser.add_argument("--held", action="store_true", help="an old transaction stays open")
    parser.add_argument("--real", choices=[*real_sites.SITES], help="a site to crawl, of that many pages")
    parser.add_argument(
        "--chain", action="store_true", help="a site on which each page links to one new page"
    )
    chosen = parser.parse_args()
    if chosen.what == "crawl":
        site = real(chosen.real) if chosen.real else made_up(chosen.total, chosen.port)
        crawl(chosen.total, chain(chosen.total) if chosen.chain else site, chosen.delay)
    elif chosen.what == "faults":
        faults(chosen.total, chosen.delay)
    else:
        anyio.run(partial(verbs, held=chosen.held), chosen.total, chosen.known)


if __name__ == "__main__":
    main()
