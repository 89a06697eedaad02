"""Crawlers on the sites of the zoo: requests, true pages lost, pages listed in vain, and whether they end.

.venv/bin/python -m benchmarks.zoo                        every site, every crawler that is at hand
.venv/bin/python -m benchmarks.zoo two-calendars draws    these sites
.venv/bin/python -m benchmarks.zoo --serve slashes        serves one site until it is interrupted
"""

import argparse
import asyncio
import statistics
import sys
from pathlib import Path

from benchmarks.zoo import SITES
from benchmarks.zoo.crawlers import Crawler, ours, peers
from benchmarks.zoo.measure import Result, measure
from benchmarks.zoo.server import serving
from benchmarks.zoo.site import Site

HEAD = "site | contents | requests | per content | lost | in vain | ended"
TOTAL = "crawler | ended | requests per content, median | at most | sites with true pages lost | with pages in vain | true pages lost | listed in vain"


def table(head: str, *rows: str) -> str:
    """Markdown."""
    rule = " | ".join("---" for _ in head.split("|"))
    return "\n".join(f"| {row} |" for row in (head, rule, *rows))


def row(result: Result) -> str:
    """Of the table of one crawler."""
    ended = {None: "no", 0: "yes"}.get(result.code, f"exit {result.code}")
    return (
        f"{result.site.name} | {result.site.contents} | {result.requests:,} | {result.each:.1f} | "
        f"{len(result.lost)} | {len(result.vain):,} | {ended}"
    )


def total(name: str, results: list[Result]) -> str:
    """Of the table of all crawlers."""
    each = sorted(result.each for result in results)
    lost, vain = ([len(getattr(result, kind)) for result in results] for kind in ("lost", "vain"))
    return (
        f"{name} | {sum(result.ended for result in results)} of {len(results)} | {statistics.median(each):.1f} | "
        f"{each[-1]:,.0f} | {sum(map(bool, lost))} | {sum(map(bool, vain))} | {sum(lost):,} | {sum(vain):,}"
    )


async def run(crawler: Crawler, sites: list[Site], jobs: int) -> list[Result]:
    """On each site, `jobs` at a time; a line is printed when it is known."""
    gate = asyncio.Semaphore(jobs)

    async def one(site: Site) -> Result:
        async with gate:
            result = await measure(crawler, site, site.limit(20, 3_000))
            print(f"{crawler.name} | {row(result)}", file=sys.stderr, flush=True)
            return result

    return list(await asyncio.gather(*map(one, sites)))


async def serve(site: Site, port: int) -> None:
    """Until it is interrupted."""
    async with serving(site, 1 << 62, port) as counted:
        print(f"{site.name}: {counted.origin}/ ({site.about})", flush=True)
        try:
            await asyncio.Event().wait()
        finally:
            print(f"{counted.requests:,} requests, {len(counted.asked):,} URLs for {site.contents} contents")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("sites", nargs="*", metavar="SITE", help=f"of: {' '.join(SITES)}")
    parser.add_argument("--only", default="", metavar="NAME", help="crawlers whose names start so")
    parser.add_argument("--scrapy", metavar="PYTHON", help="a Python that has Scrapy")
    parser.add_argument(
        "--npm", type=Path, metavar="DIR", help="a folder with node_modules/sitemap-generator"
    )
    parser.add_argument("--jobs", type=int, default=2, help="crawls at a time (2)")
    parser.add_argument("--serve", choices=SITES, metavar="SITE")
    parser.add_argument("--port", type=int, default=0, help="of --serve (any)")
    chosen = parser.parse_args()
    if chosen.serve:
        asyncio.run(serve(SITES[chosen.serve], chosen.port))
        return
    present = [ours(), *peers(chosen.scrapy, chosen.npm)]
    crawlers = [crawler for crawler in present if crawler.name.startswith(chosen.only)]
    results = {
        crawler.name: asyncio.run(run(crawler, [SITES[name] for name in chosen.sites or SITES], chosen.jobs))
        for crawler in crawlers
    }
    for name, done in results.items():
        print(f"\n{name}\n\n{table(HEAD, *map(row, done))}")
    print(f"\n{table(TOTAL, *(total(name, done) for name, done in results.items()))}")
    names = " ".join(crawler.name for crawler in present)
    if absent := [name for name in ("Scrapy", "wget2", "sitemap-generator") if name not in names]:
        print(f"\nnot at hand: {', '.join(absent)}")


if __name__ == "__main__":
    main()
