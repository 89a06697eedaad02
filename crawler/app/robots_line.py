"""Whether robots.txt names the published sitemap: the line that it should have, and what it names instead.

`Sitemap:` lines count if they are absolute URLs (sitemaps.org), compared after normalisation; the case of the
path counts.
"""

import time
from typing import Final

import anyio
from msgspec import Struct

from crawler.app.settings_urls import product_token
from crawler.engine.robots import ask_robots, origin_rules
from crawler.model.reply import RobotsFile
from crawler.parse import url as urls
from crawler.parse.normalise import Normaliser
from crawler.parse.url import Url
from crawler.ports import Fetcher, Hosts, Reads, reads
from crawler.settings.sections import Settings

SECONDS: Final = 10.0  # for the robots.txt of a published site that was not crawled
RESERVED: Final = frozenset({"example", "invalid"})  # top-level domains without names (RFC 2606 2)


class RobotsLine(Struct, frozen=True):
    """What a robots.txt says of the sitemap at `entry`."""

    is_named: bool | None = None  # None: robots.txt is not known, or could not be read
    others: tuple[Url, ...] = ()  # sitemaps that it names, and that are not written with this one


def compare(file: RobotsFile | None, settings: Settings, entry: str) -> RobotsLine:
    """Compares a robots.txt with the URL of the entry point."""
    if file is None:
        return RobotsLine()
    site = urls.origin(entry)
    rules = origin_rules(file, product_token(settings.http.user_agent), site).rules
    if rules is None:
        return RobotsLine()
    normalise = Normaliser(strip=(), sessions=None)
    named = dict.fromkeys(url for text in rules.sitemaps if (url := normalise.literal(text)))
    ours = normalise.literal(entry)
    stem, _, ending = entry.rpartition("/")[2].partition(".")
    parts = f"{entry.rpartition('/')[0]}/{stem}-"
    others = [url for url in named if url != ours and not (url.startswith(parts) and url.endswith(ending))]
    return RobotsLine(ours in named, tuple(others))


async def compared(rows: Reads, settings: Settings, line: str) -> RobotsLine:
    """The same for a whole line, with the robots.txt in the state. `line`: empty if nothing was published."""
    entry = line.partition(" ")[2]
    return (
        compare(await rows.read(reads.RobotsOf(urls.origin(entry), stale=True)), settings, entry)
        if entry
        else RobotsLine()
    )


async def ask_published(hosts: Hosts, fetcher: Fetcher, line: str, crawled: str) -> None:
    """Reads the robots.txt of the published site once, if a copy of it was crawled, and stores it.

    `crawled`: the origin that was crawled. A site that does not answer in time stays unknown.
    """
    site = urls.origin(line.partition(" ")[2]) if line else crawled
    is_real = urls.host(site).rpartition(".")[2] not in RESERVED
    if site == crawled or not is_real or await hosts.read(reads.RobotsOf(site)) is not None:
        return
    with anyio.move_on_after(SECONDS):
        await hosts.store_robots(site, await ask_robots(site, fetcher, time.time), 0.0)
