"""How our processes run an event loop: on uvloop where it is there, and with the garbage collector seldom awake.

Not for the library: there, loop and collector are those of the program that imports it.
"""

from collections.abc import Awaitable, Callable
from importlib.util import find_spec
from typing import TypeVar

from crawler.workers.garbage import calm_collector

T = TypeVar("T")


def run(call: Callable[..., Awaitable[T]], *args: object) -> T:
    """`call(*args)`, to its end."""
    import anyio  # noqa: PLC0415 - takes long to import, for --help and for those who have no loop

    calm_collector()
    return anyio.run(call, *args, backend_options={"use_uvloop": find_spec("uvloop") is not None})
