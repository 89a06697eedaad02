"""Opens the files and URLs given to `validate` and `diff`, at the rate of --rate."""

import re
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import anyio

from crawler.app.settings_urls import meant, start_url
from crawler.errors import ConfigError
from crawler.fetch.exchange import fetcher_of
from crawler.fetch.politeness import Politeness
from crawler.parse import url as urls
from crawler.parse.normalise import Normaliser
from crawler.report.printable import printable
from crawler.settings.object_url import is_object_url
from crawler.settings.sections import Settings
from crawler.sitemap.tree import Places, is_web

_HOST: Final = re.compile(r"[\w-]+(\.[\w-]+)+(:\d+)?/")


def source_named(text: str) -> str:
    """A file or folder unchanged; a URL normalised. Raises `ConfigError` for an invalid URL."""
    if is_web(meant(text.strip())) and not Path(text).exists():
        return start_url(text, Normaliser(strip=()))
    if is_object_url(text):
        raise ConfigError(
            f"{printable(text)} is in an object store: give the URL at which it is served, as in "
            "https://www.example.com/sitemap.xml.gz."
        )
    if _HOST.match(text) and not Path(text).parent.exists():
        raise ConfigError(f"{text} is not a file: if it is a URL, write https:// before it.")
    return text


@asynccontextmanager
async def opened_sources(settings: Settings, web: Sequence[str]) -> AsyncIterator[Places]:
    """`web`: the normalised URLs among the arguments; their hosts are exempt from the address guard."""
    delay = 1 / settings.pace.rate if settings.pace.rate else 0.0
    politeness, slot = Politeness(time.time, anyio.sleep), time.time()

    async def turn() -> None:
        nonlocal slot
        await politeness("", slot)
        slot = max(slot + delay, time.time())

    async with fetcher_of(settings.http, web, set(map(urls.origin, web))) as fetcher:
        yield Places(fetcher, turn)
