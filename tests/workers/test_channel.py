"""Channels: messages that are ready together travel together, and a cancelled send loses nothing."""

import json
import socket
from typing import Any

import anyio
import msgspec
import pytest

from crawler.workers import channel
from crawler.workers.channel import Channel

pytestmark = [pytest.mark.anyio, pytest.mark.both_loops]

ANY = msgspec.json.Decoder(list[Any])


def pair() -> tuple[Channel, Channel]:
    one, other = socket.socketpair()
    return Channel(one), Channel(other)


async def post_all(here: Channel, count: int, more: str = "") -> None:
    async with anyio.create_task_group() as tasks:
        for number in range(count):
            tasks.start_soon(here.post, ["said", number, more])


async def test_messages_of_several_tasks_are_one_batch() -> None:
    here, there = pair()
    await post_all(here, 20)
    (batch,) = await there.receive()
    assert sorted(json.loads(batch)) == [["said", number, ""] for number in range(20)]
    await post_all(here, 3)
    await here.post(["end"])
    received = list[Any]()
    while ["end"] not in received:
        received += await there.receive_batches(ANY)
    assert len(received) == 4
    here.close()
    assert await there.receive_batches(ANY) == []
    there.close()


async def test_large_messages_are_sent_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(channel, "MOST_TOGETHER", 1_000)
    here, there = pair()
    await post_all(here, 5, "x" * 300)
    batches = await there.receive()
    assert [len(json.loads(batch)) for batch in batches] == [1] * 5
    here.close()
    there.close()


async def test_what_a_cancelled_task_did_not_send_is_sent_by_the_next() -> None:
    here, there = pair()
    large = b"x" * 3_000_000  # more than a socket holds
    with anyio.move_on_after(0):
        await here.send(large)
    received = list[bytes]()

    async def receive() -> None:
        while len(received) < 2:
            received.extend(await there.receive())

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(receive)
        await here.send(b"last")
    assert received == [large, b"last"]
    here.close()
    there.close()


@pytest.mark.parametrize("sent", [{}, "text", 1, None])
async def test_batch_that_is_no_list_is_refused(sent: object) -> None:
    here, there = pair()
    await here.send(json.dumps(sent).encode())
    with pytest.raises(ValueError, match="Expected `array`"):
        await there.receive_batches(ANY)
    here.close()
    there.close()
