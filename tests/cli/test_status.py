"""`status` names the site, the pace, what is left, and whether a process is at work."""

import json
import re
from contextlib import AsyncExitStack

import anyio

from crawler.app.state import open_frontier
from crawler.cli.demo.site import Site
from crawler.model.visit import Visit
from crawler.parse.url import Url
from crawler.settings.sections import Settings, State
from tests.commands import Run


def crawled(run: Run, *words: str) -> str:
    site = Site()
    site.page("/", links=[f"/{number}" for number in range(40)])
    with site.serve() as origin:
        run("crawl", origin, "--retries", "0", "-q", "--state", "s.db", *words)
    return origin


def test_status_of_an_unfinished_crawl(run: Run) -> None:
    origin = crawled(run, "--rate", "4", "--max-pages", "1")
    _, out, _ = run("status", "--state", "s.db")
    assert out.startswith("Run 1, unfinished, not running: crawl again\n")
    assert f"  site       {origin}/\n" in out
    assert "  pace       at most 4 requests/s\n" in out
    assert re.search(r"  left       at least 1[05] s\n", out), out
    facts = json.loads(run("status", "--state", "s.db", "--format", "json")[1])
    assert (facts["site"], facts["running"], facts["delay"]) == (f"{origin}/", False, 0.25)
    assert 10 <= facts["at_least"] <= 12


def test_status_of_a_complete_crawl_has_no_rest(run: Run) -> None:
    crawled(run, "--rate", "0")
    _, out, _ = run("status", "--state", "s.db")
    assert out.startswith("Run 1, complete\n")
    assert "pace" not in out
    assert json.loads(run("status", "--state", "s.db", "--format", "json")[1])["at_least"] is None


def test_status_says_whether_the_crawl_runs(run: Run) -> None:
    async def look() -> str:
        async with AsyncExitStack() as closing:
            frontier = open_frontier(Settings(state=State(state="s.db")), None)
            closing.push_async_callback(frontier.close)
            await frontier.begin("settings", "reading")
            await frontier.add([Visit(Url("https://a.example/"))])
            return run("status", "--state", "s.db")[1]

    assert anyio.run(look).startswith("Run 1, unfinished, running\n")
