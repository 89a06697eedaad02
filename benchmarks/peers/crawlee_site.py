"""crawlee's PlaywrightCrawler, for comparison. usage: crawlee_site.py URL OUT BROWSER; OUT gets a URL a line.

It waits for each page until its network is idle, and follows the links that are there then. `pip install
'crawlee[playwright]'`, in an environment of its own.
"""

import asyncio
import sys
import tempfile
from datetime import timedelta

from crawlee import ConcurrencySettings
from crawlee.configuration import Configuration
from crawlee.crawlers import PlaywrightCrawler, PlaywrightCrawlingContext

START, OUT, BROWSER = sys.argv[1:4]


async def main(folder: str) -> None:
    crawler = PlaywrightCrawler(
        configuration=Configuration(storage_dir=folder, purge_on_start=True),
        headless=True,
        browser_launch_options={"executable_path": BROWSER, "chromium_sandbox": False},
        concurrency_settings=ConcurrencySettings(min_concurrency=4, desired_concurrency=4, max_concurrency=4),
        request_handler_timeout=timedelta(seconds=120),
    )
    with open(OUT, "w", encoding="utf-8") as found:

        @crawler.router.default_handler
        async def page(context: PlaywrightCrawlingContext) -> None:
            await context.page.wait_for_load_state("networkidle")
            found.write(f"{context.request.url}\n")
            await context.enqueue_links(strategy="same-origin")

        await crawler.run([START])


with tempfile.TemporaryDirectory() as place:
    asyncio.run(main(place))
