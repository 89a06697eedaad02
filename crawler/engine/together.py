"""Asks the state for several things that do not depend on each other: at once, if it is far away."""

from collections.abc import Coroutine
from typing import Any, TypeVar, overload

import anyio

from crawler.errors import ungrouped

A = TypeVar("A")
B = TypeVar("B")
C = TypeVar("C")
D = TypeVar("D")
E = TypeVar("E")


@overload
async def together(first: Coroutine[Any, Any, A], second: Coroutine[Any, Any, B], /) -> tuple[A, B]: ...
@overload
async def together(
    first: Coroutine[Any, Any, A], second: Coroutine[Any, Any, B], third: Coroutine[Any, Any, C], /
) -> tuple[A, B, C]: ...
@overload
async def together(
    first: Coroutine[Any, Any, A],
    second: Coroutine[Any, Any, B],
    third: Coroutine[Any, Any, C],
    fourth: Coroutine[Any, Any, D],
    /,
) -> tuple[A, B, C, D]: ...
@overload
async def together(
    first: Coroutine[Any, Any, A],
    second: Coroutine[Any, Any, B],
    third: Coroutine[Any, Any, C],
    fourth: Coroutine[Any, Any, D],
    fifth: Coroutine[Any, Any, E],
    /,
) -> tuple[A, B, C, D, E]: ...
@overload
async def together(*calls: Coroutine[Any, Any, A]) -> tuple[A, ...]: ...
async def together(*calls: Coroutine[Any, Any, Any]) -> tuple[Any, ...]:
    """The results of the calls, which run at the same time. Raises the first error of any of them."""
    if not calls:
        return ()
    results = dict[int, Any]()

    async def wait(place: int, call: Coroutine[Any, Any, Any]) -> None:
        results[place] = await call

    try:
        with ungrouped():
            async with anyio.create_task_group() as tasks:
                for place, call in enumerate(calls[1:], 1):
                    tasks.start_soon(wait, place, call)
                await wait(0, calls[0])  # a task costs more than a call of a state on this machine
    finally:
        for call in calls:
            call.close()  # of one that did not begin
    return tuple(results[place] for place in range(len(calls)))
