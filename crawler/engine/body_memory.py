"""The memory for large bodies that one process holds at the same time, in bytes.

A site of pages of ten megabytes would otherwise fill it with as many as there are requests in flight, each of
them once more in the parser. Small bodies need no place here. A visit that waits holds no place, so that
nobody waits for ever.
"""

from typing import Self

import anyio
from msgspec import Struct, field


class BodyMemory(Struct, eq=False):
    """Places for large bodies, given in the order in which they are asked for."""

    size: int  # bytes
    _taken: int = 0
    _turn: anyio.Lock = field(default_factory=anyio.Lock)
    _freed: anyio.Event = field(default_factory=anyio.Event)

    def visit(self) -> "BodyPlace":
        """What a visit reserves is free again at the end of this context."""
        return BodyPlace(self)

    async def take(self, size: int) -> int:
        """Waits for a place of that size. One that is larger than all is alone. Returns the size."""
        size = min(size, self.size)
        async with self._turn:
            while self._taken + size > self.size:
                self._freed = anyio.Event()
                await self._freed.wait()
            self._taken += size
        return size

    def give_back(self, size: int) -> None:
        """That much is free again."""
        self._taken -= size
        self._freed.set()


class BodyPlace(Struct, eq=False):
    """The place of one visit, which its context frees. A `ports.Room`."""

    _memory: BodyMemory
    size: int = 0  # 0: none yet
    waited: float = 0.0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.size:
            self._memory.give_back(self.size)

    async def reserve(self, size: int) -> None:
        if not self.size:
            began = anyio.current_time()
            self.size = await self._memory.take(size)
            self.waited = anyio.current_time() - began
