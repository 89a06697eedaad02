"""The entry point of each child process: signals, the function that it was started for, limits, its socket.

`spawn` started it. Only what that function needs is imported: a crawl waits for the start of its children.
"""

import signal
import socket
from contextlib import suppress
from importlib import import_module

from crawler.workers.garbage import calm_collector


def main(entry: str, memory: str) -> None:
    """Call `entry` (`module:function`) with our socket, in no more than `memory` bytes of address space; 0: in any."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    calm_collector()
    module, _, function = entry.partition(":")
    serve = getattr(import_module(module), function)
    if int(memory):
        _limit(int(memory))
    with socket.socket(fileno=0) as end:
        serve(end)


def _limit(memory: int) -> None:
    with suppress(ImportError):  # not on Windows
        import resource  # noqa: PLC0415 - see above

        _, most = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (memory, most))
