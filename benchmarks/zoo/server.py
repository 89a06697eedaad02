"""Serves one site on a port of its own, counts its requests, and says when a limit is reached."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from http import HTTPStatus

from benchmarks.zoo.site import Reply, Request, Site, number


class Counted:
    """A site that is being served."""

    def __init__(self, site: Site, limit: int, delay: int = 0) -> None:
        """`limit`: requests after which `exhausted` is set; it is still answered.

        `delay`: milliseconds at most until an answer, another time for each address.
        """
        self.site, self.limit, self.delay = site, limit, delay
        self.origin = ""
        self.requests = 0
        self.asked = Counter[str]()
        self.got = set[str]()  # targets of pages that were answered with status 200
        self.exhausted = asyncio.Event()

    async def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the requests of a connection."""
        with suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
                if self.delay:
                    await asyncio.sleep(number(head.split(" ", 2)[1], below=self.delay) / 1_000)
                writer.write(self._answered(head))
                await writer.drain()
        writer.close()

    def _answered(self, head: str) -> bytes:
        first, *lines = head.strip().split("\r\n")
        method, target, _ = first.split(" ", 2)
        fields = (line.partition(":") for line in lines)
        headers = {name.lower(): value.strip() for name, _, value in fields}
        self.requests += 1
        self.asked[target] += 1
        if self.requests > self.limit:
            self.exhausted.set()
        reply = self.site.reply(Request(target, headers, method))
        if reply.status == 200 and target != "/robots.txt":
            self.got.add(target)
        return _wire(reply, method)


def _wire(reply: Reply, method: str) -> bytes:
    body = reply.body.encode()
    fields = {"Content-Type": "text/html; charset=utf-8", **reply.headers, "Content-Length": str(len(body))}
    lines = [
        f"HTTP/1.1 {reply.status} {HTTPStatus(reply.status).phrase}",
        *(f"{name}: {value}" for name, value in fields.items()),
    ]
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + (b"" if method == "HEAD" else body)


@asynccontextmanager
async def serving(site: Site, limit: int, port: int = 0, delay: int = 0) -> AsyncIterator[Counted]:
    """The site at a port of loopback; 0 is any that is free. `delay`: as of `Counted`."""
    counted = Counted(site, limit, delay)
    server = await asyncio.start_server(counted.connected, "127.0.0.1", port, limit=1 << 20)
    counted.origin = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield counted
    finally:
        server.close()
