"""A socket that can be read wakes whoever waits, and nobody else for long."""

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
    """As every reader of a socket that does not block."""
    while True:
        await ready.wait()
        with suppress(BlockingIOError):
            return ours.recv(9)


async def test_it_waits_for_each_answer(pair: Pair) -> None:
    ours, theirs = pair
    ready = readiness(ours.fileno())
    for number in range(5):
        with anyio.move_on_after(0.01) as waited:
            await received(ours, ready)
        assert waited.cancelled_caught, "nothing has come"
        theirs.send(bytes([number]))
        with anyio.fail_after(120):
            assert await received(ours, ready) == bytes([number])
    ready.close()


async def test_the_end_is_something_to_read(pair: Pair) -> None:
    ours, theirs = pair
    ready = readiness(ours.fileno())
    theirs.close()
    with anyio.fail_after(120):
        assert await received(ours, ready) == b""
    ready.close()


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_socket_that_nobody_reads_does_not_keep_the_loop_busy(pair: Pair) -> None:
    ours, theirs = pair
    ready = readiness(ours.fileno())
    theirs.send(b"unasked")
    for _ in range(10):
        await anyio.lowlevel.checkpoint()
    assert not asyncio.get_running_loop().remove_reader(ours.fileno()), "the loop was to forget it"
    with anyio.fail_after(120):
        assert await received(ours, ready) == b"unasked", "it is told again when somebody waits"
    ready.close()
