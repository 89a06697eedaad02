"""A proxy before PostgreSQL: a network that is slow and counts, and one that loses answers.

What it loses: it passes a COMMIT on, and closes the connection in place of the answer.
"""

import select
import socket
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from urllib.parse import urlsplit


class Proxy:
    """Cuts every second COMMIT while `cuts_commits`. `delay`: seconds that each direction takes."""

    def __init__(self, delay: float) -> None:
        self.delay, self.cuts_commits = delay, False
        self.commits = self.cuts = 0
        self.turns = 0
        """Round trips: how often a client sent something after it had an answer."""
        self._lock = threading.Lock()

    def decide(self) -> bool:
        with self._lock:
            self.commits += self.cuts_commits
            cut = self.cuts_commits and self.commits % 2 == 1
            self.cuts += cut
            return cut

    def note_turn(self) -> None:
        with self._lock:
            self.turns += 1


class _Connection(threading.Thread):
    """Both directions in one thread, so that no answer passes once it was decided to cut."""

    def __init__(self, client: socket.socket, port: int, proxy: Proxy) -> None:
        super().__init__(daemon=True)
        self._client, self._server = client, socket.create_connection(("127.0.0.1", port))
        self._proxy = proxy
        self._is_turn, self._is_doomed = True, False
        self._on_its_way = deque[tuple[float, socket.socket, bytes]]()
        for end in (self._client, self._server):
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def run(self) -> None:
        try:
            with suppress(OSError):
                while self._pass_on():
                    pass
        finally:
            for end in (self._client, self._server):
                end.close()

    def _pass_on(self) -> bool:
        first = self._on_its_way[0][0] - time.monotonic() if self._on_its_way else None
        ready, _, _ = select.select(
            [self._client, self._server], [], [], None if first is None else max(0.0, first)
        )
        for end in ready:
            data = end.recv(65_536)
            if not data or not self._take(end, data):
                return False
        while self._on_its_way and self._on_its_way[0][0] <= time.monotonic():
            _, end, data = self._on_its_way.popleft()
            end.sendall(data)
        return True

    def _take(self, end: socket.socket, data: bytes) -> bool:
        at = time.monotonic() + self._proxy.delay
        if end is self._client:
            if self._is_turn:
                self._proxy.note_turn()
            self._is_doomed = self._is_doomed or (b"COMMIT\0" in data and self._proxy.decide())
            self._on_its_way.append((at, self._server, data))
        elif not self._is_doomed:
            self._on_its_way.append((at, self._client, data))
        elif b"COMMIT\0" in data:  # it is committed
            return False
        self._is_turn = end is self._server
        return True


@contextmanager
def proxy_before(address: str, delay: float = 0.0) -> Iterator[tuple[str, Proxy]]:
    """The address of the proxy, and what it does."""
    parts, how = urlsplit(address), Proxy(delay)
    listener = socket.create_server(("127.0.0.1", 0))

    def accept() -> None:
        with suppress(OSError):
            while True:
                connection = _Connection(listener.accept()[0], parts.port or 5432, how)
                connection.start()

    threading.Thread(target=accept, daemon=True).start()
    try:
        port = listener.getsockname()[1]
        yield address.replace(f":{parts.port}/", f":{port}/"), how
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
