"""Message framing: messages are reassembled from any fragments, and never exceed the limit."""

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler.workers.framing import SIZE, Frames, length_of, read

MESSAGES = st.lists(st.binary(max_size=50), max_size=5)


def framed(messages: list[bytes]) -> bytes:
    return b"".join(length_of(message) + message for message in messages)


@given(MESSAGES, st.integers(1, 20))
def test_messages_are_reassembled_from_any_fragments(messages: list[bytes], step: int) -> None:
    data, frames = framed(messages), Frames(50)
    pieces = [data[at : at + step] for at in range(0, len(data), step)]
    assert [message for piece in pieces for message in frames.feed(piece)] == messages


@given(MESSAGES)
def test_blocking_read_returns_same_messages(messages: list[bytes]) -> None:
    source = io.BytesIO(framed(messages))
    assert [read(source) for _ in messages] == messages
    assert read(source) is None


def test_truncated_message_is_none() -> None:
    whole = framed([b"abc"])
    for end in range(len(whole)):
        assert read(io.BytesIO(whole[:end])) is None
        assert Frames(3).feed(whole[:end]) == []


def test_too_long_message_is_refused_by_its_length() -> None:
    assert Frames(3).feed(framed([b"abc"])) == [b"abc"]
    with pytest.raises(ValueError, match="too long"):
        Frames(3).feed(framed([b"abcd"])[:SIZE])
