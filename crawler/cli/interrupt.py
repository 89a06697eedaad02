"""Waits for signals in an event loop, so that they end a command cleanly.

The signal handlers, and what a second signal does, are in `cli.signals`.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

import anyio
import anyio.lowlevel

from crawler.app import event_loop
from crawler.cli.signals import received
from crawler.errors import Interrupted, ungrouped

T = TypeVar("T")


async def signalled() -> None:
    """Returns after a signal, also one that arrived before the loop ran. Only one task may wait at a time."""
    came, here = asyncio.Event(), asyncio.get_running_loop()

    def wake() -> None:
        here.call_soon_threadsafe(came.set)

    received.listener = wake
    try:
        if received.first is None:
            await came.wait()
    finally:
        received.listener = None


def run(call: Callable[[], Awaitable[T]]) -> T:
    """Runs `call()` in an event loop. A signal cancels it and raises `Interrupted`."""
    result: T = event_loop.run(_until_signalled, call)
    return result


async def _until_signalled(call: Callable[[], Awaitable[T]]) -> T:
    async def watch() -> None:
        await signalled()
        tasks.cancel_scope.cancel()

    with ungrouped():
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(watch)
            await anyio.lowlevel.checkpoint()  # starts `watch`
            if received.first is None:
                result = await call()
                tasks.cancel_scope.cancel()
                return result
    raise Interrupted
