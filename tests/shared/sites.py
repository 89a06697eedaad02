"""A site on two hosts with most of what makes crawls differ, and how members are told to crawl it."""

from collections.abc import Sequence
from itertools import count
from pathlib import Path

from tests.server import Origin, http, moved, page
from tests.shared.members import Member
from tests.waiting import until

PAGES = 12


def put(here: Origin, there: Origin) -> None:
    """Pages with dates, a query trap, redirects, a copy, and a page that fails, on two hosts that link to each other."""
    home = [*(f"/{n}" for n in range(PAGES)), "/shop?n=0", "/gone", "/moved", there.url("/")]
    here.put("/", http(page(*home, text="home")))
    for number in range(PAGES):
        below = [f"/{number}/{n}" for n in range(3)]
        here.put(f"/{number}", http(page(*below, "/", f"/{number + 1}", text=f"page {number}")))
        for path in below:
            dated = http(page("/", text=f"page {path}"), Last_Modified="Sat, 01 Nov 2025 00:00:00 GMT")
            here.put(path, dated)
    for number in range(320):
        more = (f"/shop?n={number + n}" for n in range(1, 13))
        here.put(f"/shop?n={number}", http(page(*more, text=f"item {number % 7}")))
    here.put("/gone", http("", "404 Not Found"))
    here.put("/moved", moved("/1"))
    there.put("/", http(page(*(f"/{n}" for n in range(10)), here.url("/0"), text="there")))
    for number in range(10):
        there.put(f"/{number}", http(page("/", text=f"there {number // 2}")))


def words(here: Origin, state: str, folder: Path, *more: str) -> list[str]:
    return [
        "crawl", here.url(), "--state", state, "-o", str(folder), "-q", "--rate", "0", "--max-urls", "50", "--retries", "0",
        "--allow-host", "127.0.77.2", *more,
    ]  # fmt: skip


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.glob("*.xml*"))}


def asked(site: Origin, more: int, members: Sequence[Member]) -> None:
    """Waits until that many requests more came, or all members left, whom not each look asks."""
    enough, look = len(site.log) + more, count(1)

    def left() -> bool:
        return next(look) % 10 == 0 and all(member.poll() is not None for member in members)

    until(lambda: len(site.log) >= enough or left())
