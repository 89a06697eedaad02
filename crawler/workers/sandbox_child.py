"""What the sandbox's process does: pages come in over its socket, and what they say goes out as JSON.

It imports little, as a crawl waits for its start and its memory counts. It limits its own processor time for each page
to what the question allows: the system ends it with SIGXCPU, however busy the machine is, and also when its parent is gone.
"""

import json
import math
import socket
import time
from contextlib import suppress
from typing import Final

from crawler.parse.html import PageSource
from crawler.workers import framing

LARGE: Final = 4_000_000  # bytes of a page, after which the memory it took is given back: 40 MB or more


def serve(end: socket.socket) -> None:
    """Read pages until there are no more: of each a question, then its body."""
    with end.makefile("rb") as source:
        while (question := framing.read(source)) is not None:
            body = framing.read(source)
            if body is None:
                return
            asked = json.loads(question)
            _limit_time(asked["seconds"])
            answer = _answer(PageSource(body=body, **asked["page"]))
            end.sendall(framing.length_of(answer) + answer)
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


def _limit_time(seconds: float) -> None:
    """Processor time from now on; the system counts whole seconds."""
    with suppress(ImportError):  # not on Windows
        import resource  # noqa: PLC0415 - see above

        _, most = resource.getrlimit(resource.RLIMIT_CPU)
        resource.setrlimit(resource.RLIMIT_CPU, (math.ceil(time.process_time() + seconds), most))
