"""What a way out of the program is: it sends a GET and gives the answer as it comes.

Which ways there are, and which of them a crawl takes, is for `routes`.
"""

from collections.abc import Callable, Mapping
from typing import Protocol, TypeAlias

from crawler.model.reasons import Cause


class Answering(Protocol):
    """An answer whose head is there: ours, or one of httpx."""

    status: int
    fields: list[tuple[str, str]]

    async def read(self) -> bytes:
        """More of the body; nothing at its end."""
        ...

    async def close(self) -> None:
        """The rest is not wanted."""
        ...


Causes: TypeAlias = tuple[tuple[type[Exception], Cause, bool], ...]
"""What may be raised, what it means, and whether it may pass."""


class Way(Protocol):
    """Sends a GET."""

    causes: Causes  # what it may raise beside what `connection`, `pool` and `guard` do

    async def ask(
        self, url: str, headers: Mapping[str, str], allowance: int, heard: Callable[[int], None]
    ) -> Answering:
        """Send it, and wait for the head of the answer. `allowance`: bytes that may come; `heard` is told of each."""
        ...

    async def close(self) -> None:
        """Let go of every connection."""
        ...
