"""What `validate` and `diff` share: sitemaps opened where they lie, at the pace that was asked for."""

import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import anyio

from crawler import urls
from crawler.fetch import AddressGuard, HttpFetcher, Turns
from crawler.fetch.identity import Identity
from crawler.places import Places
from crawler.settings import Settings
from crawler.urls import Url


@asynccontextmanager
async def reading_places(settings: Settings, web: Sequence[str]) -> AsyncIterator[Places]:
    """`web`: the URLs that were named; their hosts are exempt from the address guard."""
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
