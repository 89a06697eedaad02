"""A website in memory, for the tests of programs that use the library: no server, no network, no waiting.

    site = MemorySite()
    site.page("/", links=["/a"])
    site.page("/a")
    async with crawler.open_job(site.settings(), transport=site.transport) as job: ...

Nothing of the program imports it.
"""

from dataclasses import dataclass, replace
from os import PathLike, fspath
from typing import Any

import httpx

from crawler.cli.demo import site as demo
from crawler.settings.sections import Http, Output, Pace, Scope, Settings, State


@dataclass(eq=False, repr=False)
class MemorySite(demo.Site):
    """Pages by path and query: declared by `page`, `raw`, `redirect`, `robots` and `sitemap`; others are 404.

    `log` has the requests, `requests(path)` counts those for a path.
    """

    origin: str = "https://site.example"

    @property
    def transport(self) -> httpx.MockTransport:
        """A transport on which only this site answers."""
        return httpx.MockTransport(self._answered)

    def settings(self, folder: str | PathLike[str] = "./sitemaps", /, **sections: Any) -> Settings:
        """Settings for a crawl from `/` into a folder: unpaced, without retries, its state in memory.

        `sections`: those that are to be others, as `scope=Scope(...)`; one without start URLs gets `/`.
        """
        scope: Scope = sections.pop("scope", Scope())
        plain = Settings(
            scope=scope if scope.start else replace(scope, start=(f"{self.origin}/",)),
            pace=Pace(rate=0),
            http=Http(retries=0),
            output=Output(output=fspath(folder)),
            state=State(state=":memory:"),
        )
        return replace(plain, **sections)

    def _answered(self, request: httpx.Request) -> httpx.Response:
        if f"{request.url.scheme}://{request.url.netloc.decode('ascii')}" != self.origin:
            raise httpx.ConnectError(f"only {self.origin} is there", request=request)
        target, headers = request.url.raw_path.decode("ascii"), dict(request.headers)
        answer = self.asked(request.method, target, headers, self.origin, request)
        return httpx.Response(answer.status, headers=list(answer.headers), content=answer.body)
