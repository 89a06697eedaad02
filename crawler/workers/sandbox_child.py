"""What the process does that reads pages apart: they come on standard input, and what they say goes out as JSON.

It imports little, as a crawl waits for its start and its memory counts; and it limits itself, in case nobody is left
to kill it.
"""

import json
import struct
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from typing import BinaryIO, Final

from crawler.parse.html import PageSource
from crawler.workers.garbage import calm_collector

LARGE: Final = 4_000_000  # bytes of a page, after which the memory it took is given back: 40 MB or more
MEMORY: Final = 1 << 30  # bytes of address space that a child may have
ORPHANED: Final = 30  # seconds of processor time for one page
SIZE: Final = struct.Struct("!I")  # before each question, body and answer


def serve(source: BinaryIO | None = None, sink: BinaryIO | None = None) -> None:
    """Read pages until there are no more."""
    source, sink = source or sys.stdin.buffer, sink or sys.stdout.buffer
    limit = _limiter()
    calm_collector()
    while len(size := source.read(SIZE.size)) == SIZE.size:
        question = json.loads(source.read(*SIZE.unpack(size)))
        body = source.read(*SIZE.unpack(source.read(SIZE.size)))
        limit()
        answer = _answer(PageSource(body=body, **question))
        sink.write(SIZE.pack(len(answer)) + answer)
        sink.flush()
        if len(body) > LARGE:
            give_back()


def _answer(markup: PageSource) -> bytes:
    try:
        page = markup.read()
        said = page._asdict()
    except (MemoryError, RuntimeError, ValueError) as error:  # Lexbor ran out of memory, in its words
        said = {"failed": f"the parser failed ({type(error).__name__})"}
    return json.dumps(said).encode()


def give_back() -> None:
    """Hand free memory to the system, where the C library can (glibc): by itself it keeps most of a large tree."""
    with suppress(ImportError, OSError, AttributeError, TypeError):
        import ctypes  # noqa: PLC0415 - seldom needed, and not in every build of Python

        ctypes.CDLL(None).malloc_trim(0)


def _limiter() -> Callable[[], None]:
    """Bounds memory now, and processor time at each call."""
    try:
        import resource  # noqa: PLC0415 - not on Windows
    except ImportError:
        return lambda: None
    _, most = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, most))

    def limit() -> None:
        _, most = resource.getrlimit(resource.RLIMIT_CPU)
        resource.setrlimit(resource.RLIMIT_CPU, (int(time.process_time()) + ORPHANED, most))

    return limit
