"""A readable socket wakes the task that waits for it, and does not keep the event loop busy otherwise."""

import asyncio
import socket
from collections.abc import Iterator
from contextlib import suppress

import anyio
import pytest

from crawler.fetch.readiness import Readiness, readiness

pytestmark = pytest.mark.anyio

Pair = tuple[socket.socket, socket.socket]


@pytest.fixture
def pair() -> Iterator[Pair]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.setblocking(False)
        yield ours, theirs


async def received(ours: socket.socket, ready: Readiness) -> bytes:
    """Read from a non-blocking socket once it is ready."""
    while True:
        await ready.wait()
        with suppress(BlockingIOError):
            return ours.recv(9)


@pytest.mark.both_loops
async def test_wait_returns_when_data_arrives(pair: Pair) -> None:
    ours, theirs = pair
    ready = readiness(ours.fileno())
    for number in range(5):
        with anyio.move_on_after(0.01) as waited:
            await received(ours, ready)
        assert waited.cancelled_caught, "nothing was sent yet"
        theirs.send(bytes([number]))
        with anyio.fail_after(120):
            assert await received(ours, ready) == bytes([number])
    ready.close()


@pytest.mark.both_loops
async def test_wait_returns_at_end_of_stream(pair: Pair) -> None:
    ours, theirs = pair
    ready = readiness(ours.fileno())
    theirs.close()
    with anyio.fail_after(120):
        assert await received(ours, ready) == b""
    ready.close()


async def test_unread_data_does_not_keep_event_loop_busy(pair: Pair) -> None:
    ours, theirs = pair
    ready = readiness(ours.fileno())
    theirs.send(b"unasked")
    for _ in range(10):
        await anyio.lowlevel.checkpoint()
    assert not asyncio.get_running_loop().remove_reader(ours.fileno()), "the reader should be unregistered"
    with anyio.fail_after(120):
        assert await received(ours, ready) == b"unasked", "a later wait still reports the data"
    ready.close()
