"""A fetcher that counts the exchanges of another one, for the metrics. It changes nothing."""

import time

from crawler.model.reply import Reply, Response
from crawler.ports import Fetcher, Request
from crawler.report.traffic import Traffic


class Metered:
    """A `ports.Fetcher` that counts into `traffic`."""

    def __init__(self, fetcher: Fetcher, traffic: Traffic) -> None:
        self._fetcher, self._traffic = fetcher, traffic

    async def fetch(self, request: Request) -> Reply:
        """See `ports.Fetcher.fetch`."""
        began = time.monotonic()
        reply = await self._fetcher.fetch(request)
        status, size = (reply.status, len(reply.body)) if isinstance(reply, Response) else (None, 0)
        self._traffic.answered(status, size, time.monotonic() - began)
        return reply
