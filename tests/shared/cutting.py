"""A proxy before PostgreSQL that loses answers: it passes a COMMIT on, and closes the connection in place of the answer."""

import select
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from urllib.parse import urlsplit


class Cutting:
    """Cuts every second COMMIT while `is_on`."""

    def __init__(self) -> None:
        self.is_on, self.commits, self.cuts = False, 0, 0
        self._lock = threading.Lock()

    def decide(self) -> bool:
        with self._lock:
            self.commits += self.is_on
            cut = self.is_on and self.commits % 2 == 1
            self.cuts += cut
            return cut


class _Connection(threading.Thread):
    """Both directions in one thread, so that no answer passes once it was decided to cut."""

    def __init__(self, client: socket.socket, port: int, cutting: Cutting) -> None:
        super().__init__(daemon=True)
        self._client, self._server = client, socket.create_connection(("127.0.0.1", port))
        self._cutting = cutting

    def run(self) -> None:
        try:
            self._pass_on()
        finally:
            for end in (self._client, self._server):
                end.close()

    def _pass_on(self) -> None:
        both = [self._client, self._server]
        with suppress(OSError):
            while True:
                ready, _, _ = select.select(both, [], [])
                for end in ready:
                    data = end.recv(65_536)
                    if not data:
                        return
                    if end is self._client and b"COMMIT\0" in data and self._cutting.decide():
                        self._server.sendall(data)
                        self._server.recv(65_536)  # it is committed
                        return
                    (self._server if end is self._client else self._client).sendall(data)


@contextmanager
def cutting(address: str) -> Iterator[tuple[str, Cutting]]:
    """The address of the proxy, and what it does."""
    parts, how = urlsplit(address), Cutting()
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
