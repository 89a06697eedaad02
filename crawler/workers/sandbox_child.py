"""Runs in the sandbox process: receives pages over its socket, and sends them back parsed, as JSON.

It imports little, to start fast and to use little memory. It limits its own CPU time for each page, as set in
the request: the system then kills it with SIGXCPU, regardless of the load of the machine, and even if its
parent is gone.
"""

import math
import socket
import time
from contextlib import suppress
from dataclasses import replace
from typing import Final

import msgspec
from msgspec import Struct

from crawler.parse.html import Page, PageSource
from crawler.workers import framing

# Bytes of a page after which free memory is returned to the system: 40 MB or more.
LARGE_TREE: Final = 4_000_000


class Question(Struct):
    """What is sent before the body of a page. `seconds`: of CPU time; `source`: with an empty body."""

    seconds: float
    source: PageSource

    def written(self) -> bytes:
        """As JSON."""
        return msgspec.json.encode(self)


class ParsedPage(Struct, tag=True):
    """The answer."""

    page: Page


class NoPage(Struct, tag=True):
    """Why there is none."""

    failed: str


QUESTION: Final = msgspec.json.Decoder(Question)
ANSWER: Final[msgspec.json.Decoder[ParsedPage | NoPage]] = msgspec.json.Decoder(ParsedPage | NoPage)


def serve(end: socket.socket) -> None:
    """Parses pages until the socket is closed. For each, two messages arrive: a request, then the body."""
    with end.makefile("rb") as source:
        while (question := framing.read(source)) is not None:
            body = framing.read(source)
            if body is None:
                return
            request = QUESTION.decode(question)
            _limit_time(request.seconds)
            answer = _answer(replace(request.source, body=body))
            end.sendall(framing.length_of(answer) + answer)
            if len(body) > LARGE_TREE:
                return_memory()


def _answer(markup: PageSource) -> bytes:
    try:
        return msgspec.json.encode(ParsedPage(markup.read()))
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
