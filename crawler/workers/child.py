"""The entry point of each child process started by `spawn`: sets signals and limits, opens the socket, calls
a function.

It imports only what the process needs, as a crawl waits until its children have started.
"""

import gc
import signal
import socket
from contextlib import suppress
from importlib import import_module
from typing import Final

# New objects until a collection: reference counting frees nearly all; collecting costs 2 % of a crawl.
GARBAGE: Final = 20_000


def main(entry: str, memory: str) -> None:
    """Calls `entry` (`module:function`) with the socket. `memory`: bytes of address space; 0: no limit."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    tune_collector()
    module, _, function = entry.partition(":")
    serve = getattr(import_module(module), function)
    if int(memory):
        _limit(int(memory))
    with socket.socket(fileno=0) as end:
        serve(end)


def tune_collector() -> None:
    """Makes collections of cycles rarer, and exempts what exists already: mostly modules."""
    gc.freeze()
    gc.set_threshold(GARBAGE)


def _limit(memory: int) -> None:
    with suppress(ImportError):  # not on Windows
        import resource  # noqa: PLC0415 - see above

        _, most = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (memory, most))
