"""Crawls with a browser, in this process; what became of each page."""

from collections.abc import Mapping
from pathlib import Path

from crawler import Settings, open_job
from crawler.cli.demo.site import Site
from crawler.model.rows import UrlRecord
from crawler.parse.url import target
from crawler.ports import reads
from crawler.settings.sections import Http, Output, Pace, Render, Scope, State


def settings(origin: str, folder: Path, mode: str = "auto", **http: object) -> Settings:
    return Settings(
        scope=Scope(start=(f"{origin}/",), seed_sitemaps="off"),
        pace=Pace(rate=0),
        http=Http(**http),  # type: ignore[arg-type]
        render=Render(render=mode),
        output=Output(output=str(folder / "out"), gzip=False),
        state=State(state=str(folder / "state.db")),
    )


async def crawled(chosen: Settings) -> Mapping[str, UrlRecord]:
    """What is known of each page of the run, by path."""
    async with open_job(chosen) as job:
        await job.crawl()
        found: dict[str, UrlRecord] = {}
        async for chunk in job.frontier.stream(reads.Pages()):
            for page in chunk:
                record = await job.frontier.read(reads.RecordOf(page.url))
                assert record
                found[target(page.url) if page.url.startswith(chosen.scope.start[0]) else page.url] = record
        return found


def shell(site: Site, path: str, script: str, *, head: str = "", body: str = "<div id=app></div>") -> None:
    """A page that is made by one inline script."""
    markup = f"<!doctype html><title>Shell</title>{head}{body}<script>{script}</script>"
    site.raw(path, body=markup.encode())


def links(*targets: str) -> str:
    """A script that makes links."""
    made = "".join(f"<a href='{to}'>to {to}</a> " for to in targets)
    return f'document.querySelector("#app").innerHTML = "{made}";'
