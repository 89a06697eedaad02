"""Runs in the sandbox process: receives pages over its socket, and sends them back parsed, as JSON.

It imports little, to start fast and to use little memory. It limits its own CPU time for each page, as set in
the request: the system then kills it with SIGXCPU, regardless of the load of the machine, and even if its
parent is gone. It limits its memory by the size of the page, as crafted markup takes thousands of times that.
"""

import math
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from crawler.parse.html import PageSource
from crawler.parse.parsed_page import ParsedPage
from crawler.workers import framing

# Bytes of a page after which free memory is returned to the system: 2 MB or more, while the process is idle.
LARGE_TREE: Final = 200_000
# Bytes of memory that a page may take: any page, and for each of its bytes. Honest pages take half of it: a
# megabyte of nothing but tags 50 MB, ten of them 160.
PAGE_MEMORY: Final = 150_000_000
MEMORY_PER_BYTE: Final = 20


class Question(Struct):
    """What is sent before the body of a page. `seconds`: of CPU time; `source`: with an empty body."""

    seconds: float
    source: PageSource

    def written(self) -> bytes:
        """As JSON."""
        return msgspec.json.encode(self)


class PageAnswer(Struct, tag=True):
    """The answer."""

    page: ParsedPage


class NoPage(Struct, tag=True):
    """Why there is none."""

    failed: str


QUESTION: Final = msgspec.json.Decoder(Question)
ANSWER: Final[msgspec.json.Decoder[PageAnswer | NoPage]] = msgspec.json.Decoder(PageAnswer | NoPage)


def serve(end: socket.socket) -> None:
    """Parses pages until the socket is closed. For each, two messages arrive: a request, then the body."""
    limit_memory = _memory_limit()
    with end.makefile("rb") as source:
        while (question := framing.read(source)) is not None:
            body = framing.read(source)
            if body is None:
                return
            request = QUESTION.decode(question)
            _limit_time(request.seconds)
            limit_memory(len(body))
            answer = _answer(replace(request.source, body=body))
            end.sendall(framing.length_of(answer) + answer)
            if len(body) > LARGE_TREE:
                return_memory()


def _answer(markup: PageSource) -> bytes:
    try:
        return msgspec.json.encode(PageAnswer(markup.read()))
    except (MemoryError, RuntimeError, ValueError) as error:  # how Lexbor reports that it is out of memory
        return msgspec.json.encode(NoPage(f"the parser failed ({type(error).__name__})"))


def return_memory() -> None:
    """Returns free memory to the system: glibc otherwise keeps most of a large tree."""
    with suppress(ImportError, OSError, AttributeError, TypeError):
        import ctypes  # noqa: PLC0415 - rarely needed, and not in every build of Python

        ctypes.CDLL(None).malloc_trim(0)


def _limit_time(seconds: float) -> None:
    """Limits CPU time from now on. The system counts whole seconds."""
    with suppress(ImportError):  # not on Windows
        import resource  # noqa: PLC0415 - see above

        _, most = resource.getrlimit(resource.RLIMIT_CPU)
        resource.setrlimit(resource.RLIMIT_CPU, (math.ceil(time.process_time() + seconds), most))


def _memory_limit() -> Callable[[int], None]:
    """Limits the address space for a page of so many bytes, within what the process was started with."""
    try:
        import resource  # noqa: PLC0415 - not on Windows

        used = int(Path("/proc/self/statm").read_bytes().split()[0]) * resource.getpagesize()
    except (ImportError, OSError):  # other than Linux
        return lambda _: None
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)

    def limit(size: int) -> None:
        most = used + PAGE_MEMORY + MEMORY_PER_BYTE * size
        resource.setrlimit(
            resource.RLIMIT_AS, (most if soft == resource.RLIM_INFINITY else min(most, soft), hard)
        )

    return limit
