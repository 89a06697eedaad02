"""What `validate` and `diff` share: what was named, read as a file or a URL, and opened at the pace that was asked for."""

import re
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import anyio

from crawler import urls
from crawler.errors import ConfigError
from crawler.fetch import AddressGuard, HttpFetcher, Turns
from crawler.fetch.identity import Identity
from crawler.places import Places, is_web
from crawler.settings import Settings
from crawler.urls import Normaliser, Url
from crawler.visiting import start_url

_HOST: Final = re.compile(r"[\w-]+(\.[\w-]+)+(:\d+)?/")


def place_named(text: str) -> str:
    """A file or folder as it was typed; a URL in our one spelling. Raises `ConfigError` for what is no URL."""
    if is_web(text.strip()):
        return start_url(text, Normaliser(strip=()))
    if _HOST.match(text) and not Path(text).parent.exists():
        raise ConfigError(f"{text} is no file: if it is a URL, write https:// before it.")
    return text


@asynccontextmanager
async def reading_places(settings: Settings, web: Sequence[str]) -> AsyncIterator[Places]:
    """`web`: the URLs that were named, in our spelling; their hosts are exempt from the address guard."""
    starts = [Url(place) for place in web]
    guard = AddressGuard(starts, settings.http.allow_address)
    identity = Identity(settings.http, {urls.origin(url) for url in starts})
    gap = 1 / settings.pace.rate if settings.pace.rate else 0.0
    turns, slot = Turns(time.time, anyio.sleep), time.time()

    async def turn() -> None:
        nonlocal slot
        await turns("", slot)
        slot = max(slot + gap, time.time())

    async with HttpFetcher(settings.http, guard, identity) as fetcher:
        yield Places(fetcher, turn)
