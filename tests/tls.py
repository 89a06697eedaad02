"""Serves a site over TLS, on request also without, at the same port."""

import socket
import ssl
from contextlib import AbstractContextManager
from typing import Any

from crawler.cli.demo.site import Site, SiteServer

HANDSHAKE = b"\x16"  # the first byte of a connection (RFC 8446 5.1)


def serve_tls(site: Site, context: ssl.SSLContext, *, plain: bool = False) -> AbstractContextManager[str]:
    """As `Site.serve`. `plain`: http is answered, too."""

    class Server(SiteServer):
        scheme = "https"

        def finish_request(self, request: Any, client_address: Any) -> None:
            if plain and request.recv(1, socket.MSG_PEEK) != HANDSHAKE:
                super().finish_request(request, client_address)
                return
            with context.wrap_socket(request, server_side=True) as secured:
                super().finish_request(secured, client_address)

    site.server = Server
    return site.serve()
