"""Runs one crawler on one site and compares what it asked and listed with the truth."""

import asyncio
import os
import signal
import tempfile
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from benchmarks.zoo.crawlers import Crawler
from benchmarks.zoo.server import serving
from benchmarks.zoo.site import Site

LONGEST: Final = 600  # seconds for one crawl: a net for a crawler that stands still, no measure


@dataclass(frozen=True)
class Result:
    """What one crawler did on one site."""

    site: Site
    requests: int
    lost: frozenset[str]  # contents of true pages that it does not list
    vain: frozenset[str]  # targets that it lists though they are worthless or repeat another
    code: int | None  # of its exit; None: it was stopped at the limit
    said: str = ""  # on standard error, at the end

    @property
    def ended(self) -> bool:
        """By itself, within the limit of requests."""
        return self.code is not None

    @property
    def each(self) -> float:
        """Requests per distinct content."""
        return self.requests / self.site.contents

    def __str__(self) -> str:
        end = f"exit code {self.code}" if self.ended else "stopped at the limit"
        return (
            f"{self.site.name}: {self.requests} requests for {self.site.contents} contents, {end}; "
            f"lost {len(self.lost)} {some(self.lost)}, in vain {len(self.vain)} {some(self.vain)}\n{self.said}"
        )


def some(names: Iterable[str]) -> list[str]:
    """Enough of them to see what they are."""
    return sorted(names)[:5]


async def measure(crawler: Crawler, site: Site, limit: int) -> Result:
    """`limit`: requests after which the crawler is stopped."""
    with tempfile.TemporaryDirectory(prefix="zoo-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        async with serving(site, limit) as counted:
            with (folder / "said").open("wb") as said:
                process = await asyncio.create_subprocess_exec(
                    *crawler.command(counted.origin + "/", folder),
                    cwd=crawler.folder or folder,
                    stdout=said,
                    stderr=said,
                    start_new_session=True,
                )
            code = await _end(process, counted.exhausted)
            requests, got = counted.requests, counted.got
        if code is not None:
            (folder / "ended").touch()
        if crawler.listed:
            got = set(map(_target, await asyncio.to_thread(crawler.listed, folder)))
        lost, vain = site.judge(got)
        end = (folder / "said").read_text(errors="replace")[-2_000:]
        return Result(site, requests, frozenset(lost), frozenset(vain), code, end)


async def _end(process: asyncio.subprocess.Process, exhausted: asyncio.Event) -> int | None:
    """Its exit code, or None if it had to be stopped."""
    ended, full = asyncio.create_task(process.wait()), asyncio.create_task(exhausted.wait())
    await asyncio.wait((ended, full), timeout=LONGEST, return_when=asyncio.FIRST_COMPLETED)
    full.cancel()
    if ended.done():
        return process.returncode
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)  # the leader of a session of its own
    await ended
    return None


def _target(url: str) -> str:
    parts = urlsplit(url)
    return (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
