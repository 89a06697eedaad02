"""Runs the event loop of the crawler's processes: on uvloop if installed, and with rarer garbage collections.

Not used by the library: there, the importing program controls event loop and garbage collector.
"""

import gc
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TypeVar

from crawler.app.descriptors import raised
from crawler.workers.child import tune_collector

T = TypeVar("T")


@contextmanager
def loading() -> Iterator[None]:
    """While many modules are imported, which are no garbage, there are no collections."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def run(call: Callable[..., Awaitable[T]], *args: object) -> T:
    """Runs `call(*args)` in a new event loop and returns its result. Raises `ConfigError`."""
    raised()
    import anyio  # noqa: PLC0415 - slow to import, and not needed for --help or commands without a loop

    tune_collector()
    return anyio.run(call, *args, backend_options={"use_uvloop": find_spec("uvloop") is not None})
