"""The longest time for which the event loop is blocked while a hostile site is crawled in the same process.

    .venv/bin/python -m benchmarks.stall

The site is `tests.hostile.sites.large`: markup that stalls parsers, pages of hundreds of thousands of links, bodies without
end. The server shares the process, so what it takes counts as well.
"""

import tempfile
import time
from pathlib import Path

import anyio

from tests.engine.test_hostile import crawl, web
from tests.hostile import sites

PAUSE = 0.01  # seconds


async def main() -> None:
    """One crawl, and the five longest stalls."""
    late: list[float] = []

    async def beat() -> None:
        while True:
            began = time.monotonic()
            await anyio.sleep(PAUSE)
            late.append(time.monotonic() - began - PAUSE)

    here = sites.large()
    with web(here), tempfile.TemporaryDirectory() as folder:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(beat)
            result = await crawl(here, Path(folder), exclude=("/l/*",))
            tasks.cancel_scope.cancel()
    print("longest stalls:", ", ".join(f"{stall * 1e3:.0f} ms" for stall in sorted(late)[-5:]))
    print("outcomes:", dict(result.balance.outcomes))


anyio.run(main)
