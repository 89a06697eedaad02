"""Finds the state for `status`, `explain` and `export` without --state: the only one in the default folder.

If there are several, the error lists them. No state is opened here.
"""

import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from crawler.app.state import FOLDER, state_path, states
from crawler.errors import ConfigError, FrontierError
from crawler.parse.url import Url
from crawler.settings.sections import Settings

SHOWN: Final = 8


def with_state(settings: Settings, url: Url | None, *, is_start: bool = True) -> Settings:
    """The settings with a state: --state, else that of the crawl started with `url`, else the only one.

    `is_start`: `url` is a start URL; otherwise it may be any URL of a crawl. Raises `ConfigError`, `FrontierError`.
    """
    if settings.state.state:
        return settings
    if url and (Path(own := state_path(settings, url))).is_file():
        return _with(settings, own)
    found = states()
    if len(found) == 1 and not (url and is_start):
        return _with(settings, found[0])
    if not found:
        where = state_path(settings, url) if url and is_start else f"{FOLDER}/"
        raise FrontierError(f"There is no state at {where}: crawl first, or give its path with --state.")
    if url:
        raise FrontierError(f"There is no state of {url} in {FOLDER}/: choose one of these. {_choice(found)}")
    raise ConfigError(f"There are {len(found)} states in {FOLDER}/: choose one of these. {_choice(found)}")


def _with(settings: Settings, path: str) -> Settings:
    return replace(settings, state=replace(settings.state, state=path))


def _choice(found: Sequence[str]) -> str:
    more = f" and {len(found) - SHOWN:,} more" if len(found) > SHOWN else ""
    return ", ".join(f"--state {shlex.quote(path)}" for path in found[:SHOWN]) + more
