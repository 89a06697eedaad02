"""Opens the state that a command reads: --state, that of a start URL, or the only one there is."""

import shlex
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Final

from crawler.app.settings_urls import normaliser, start_url
from crawler.app.state import FOLDER, open_frontier, opened, opened_copy, state_path, states
from crawler.cli.output import remark
from crawler.cli.signals import received
from crawler.errors import ConfigError, FrontierError
from crawler.model.outcome import code
from crawler.model.rows import UrlRecord
from crawler.model.run import Run
from crawler.parse import url as urls
from crawler.parse.url import Url
from crawler.ports import Frontier
from crawler.report.report import Known
from crawler.settings.object_url import state_object
from crawler.settings.sections import Settings

STATES_SHOWN: Final = 8


def start_of(settings: Settings) -> Url | None:
    """The first start URL, normalised. Raises `ConfigError`."""
    return start_url(settings.scope.start[0], normaliser(settings)) if settings.scope.start else None


@asynccontextmanager
async def opened_state(
    settings: Settings, url: Url | None, *, read_only: bool = True
) -> AsyncIterator[Frontier]:
    """The state that the settings name. Raises `FrontierError`."""
    if read_only:
        frontier = await opened_copy(settings, url, remark)
    elif state_object(settings.state.state):
        frontier = await opened(settings, url, received.left)
    else:
        frontier = open_frontier(settings, url)
    try:
        yield frontier
    finally:
        await frontier.close()


def with_state(settings: Settings, url: Url | None, *, is_start: bool = True) -> Settings:
    """The settings with a state: --state, else that of the crawl started with `url`, else the only one.

    `is_start`: `url` is a start URL; otherwise it may be any URL of a crawl. Raises `ConfigError`, and
    `FrontierError` that names the states to choose from.
    """
    if settings.state.state:
        return settings
    if url and (Path(own := state_path(settings, url))).is_file():
        return at_state(settings, own)
    found = states()
    if len(found) == 1 and not (url and is_start):
        return at_state(settings, found[0])
    if not found:
        where = state_path(settings, url) if url and is_start else f"{FOLDER}/"
        raise FrontierError(f"There is no state at {where}: crawl first, or give its path with --state.")
    if url:
        words = f"There is no state of {url} in {FOLDER}/: give a URL of a crawled site, or one of these:"
        raise FrontierError(f"{words} {_choice(found)}")
    raise ConfigError(f"There are {len(found)} states in {FOLDER}/: choose one of these: {_choice(found)}")


def at_state(settings: Settings, path: str | None) -> Settings:
    """The settings with the state at `path`."""
    return replace(settings, state=replace(settings.state, state=path))


def remark_other_site(url: Url | None, known: Known) -> None:
    """Says so if the state is of another site than the URL that was given with it."""
    sites = {known.site, known.name, *(host.origin for host in known.hosts)}
    if url and urls.host(url) not in {urls.host(Url(site)) for site in sites}:
        remark(f"This is the state of {known.name}/, not of {url}")


def _choice(found: Sequence[str]) -> str:
    more = f" and {len(found) - STATES_SHOWN:,} more" if len(found) > STATES_SHOWN else ""
    return ", ".join(f"--state {shlex.quote(path)}" for path in found[:STATES_SHOWN]) + more


def why_unknown(record: UrlRecord | None, newest: Run) -> str:
    """Why the run `newest` has no result for a URL yet, and the earlier result; empty if it has one.

    Until a run is complete, it may still find the URL.
    """
    if newest.complete or (record and record.run == newest.number and record.state == "settled"):
        return ""
    unfinished = f"run {newest.number} is unfinished and has not"
    if record is None:
        return f"{unfinished} reached it yet; no earlier run found it"
    if record.run < newest.number:
        earlier = f"recorded {code(record.outcome)}" if record.outcome else "found it, but did not reach it"
        return f"{unfinished} reached it yet; run {record.run} {earlier}"
    before = f"{record.was} before" if record.was else "found for the first time"
    return f"{unfinished} finished it yet; {before}"
