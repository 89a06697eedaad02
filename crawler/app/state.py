"""Finds and opens the state of a site by the settings: its path, its progress, and its frontier.

It makes no requests. What a crawl needs is imported when a frontier is opened, to keep the often used
`status` fast.
"""

import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from threading import Timer
from typing import TYPE_CHECKING, Final

from crawler.errors import ConfigError, StateAway
from crawler.frontier.pace import FAR
from crawler.frontier.postgres.address import Address, parsed
from crawler.frontier.sqlite.ownership import Owner, owner_of
from crawler.frontier.sqlite.progress import read_progress
from crawler.frontier.sqlite.state_file import lock_of, remove_state
from crawler.model.log import log
from crawler.model.run import Progress
from crawler.parse import url as urls
from crawler.parse.url import Url
from crawler.settings.object_url import state_object
from crawler.settings.sections import Settings

if TYPE_CHECKING:
    from crawler.frontier.frontier import FrontierOptions
    from crawler.ports import Frontier


MEMORY: Final = ":memory:"
DATABASES: Final = ("postgresql://", "postgres://")
IN_NAMES: Final = str.maketrans(":", "_", "[]")  # of states, from the host and port of a URL
FOLDER: Final = Path(".sitemap-crawler")
AWAY: Final = 120.0  # seconds for which a crawl waits for the database of its state
SLOW: Final = 2.0  # seconds after which it says so


def state_path(settings: Settings, start: Url | None) -> str:
    """The path of the state of a site. Raises `ConfigError` if neither --state nor a start URL is given."""
    if address := _address_of(settings, start):
        return str(address)
    if settings.state.state:
        return settings.state.state
    if start is None:
        raise ConfigError("Which state? Give --state, or the URL that was crawled.")
    return str(FOLDER / (name_of(start) + ".db"))


def is_file(settings: Settings) -> bool:
    """Whether the state is a file, so that others can lie beside it."""
    is_elsewhere = is_database(settings) or state_object(settings.state.state)
    return settings.state.state != MEMORY and not is_elsewhere


def new_file(settings: Settings, start: Url) -> Path | None:
    """The path of a state file that does not exist yet."""
    if not is_file(settings) or (path := Path(state_path(settings, start))).exists():
        return None
    return path


def remove_files(states: Iterable[Path]) -> None:
    """Removes closed state files in which nothing is known, and their folder if that is empty then."""
    for path in states:
        remove_state(path)
        lock_of(path).unlink(missing_ok=True)
        if path.parent == FOLDER:
            with suppress(OSError):
                FOLDER.rmdir()


def is_database(settings: Settings) -> bool:
    """Whether the state is in a database, where several processes may share it."""
    return (settings.state.state or "").startswith(DATABASES)


def name_of(start: Url) -> str:
    """The name of the crawl of a site."""
    return urls.netloc(start).translate(IN_NAMES)


def address_of(settings: Settings, default: str = "") -> Address | None:
    """The address of a state in a database; None for a file. Raises `ConfigError`."""
    state = settings.state.state or ""
    if not state.startswith(DATABASES):
        return None
    if find_spec("psycopg") is None:
        raise ConfigError("--state postgresql:// needs an extra: pip install 'sitemap-crawler[postgres]'.")
    return parsed(state, default)


def _address_of(settings: Settings, start: Url | None) -> Address | None:
    address = address_of(settings, name_of(start) if start else "")
    if address and not address.name:
        raise ConfigError("Which crawl? Give its name behind the address of --state, as in #NAME.")
    return address


def states() -> list[str]:
    """The states in the default folder, sorted by name."""
    return sorted(str(path) for path in FOLDER.glob("*.db") if owner_of(path) is Owner.OURS)


def progress(
    settings: Settings, start: Url | None, says: Callable[[str], None], *, counted: bool = True
) -> Progress | None:
    """The newest run and who works on it; None before the first. Raises `FrontierError` or `ConfigError`.

    `counted`: with the balance, even where many members look often at a large state. `says`: gets a sentence
    about a state in an object store.
    """
    if address := _address_of(settings, start):
        from crawler.frontier.postgres import progress as shared  # noqa: PLC0415 - the driver is an extra

        return shared.read_progress(address, counted=counted)
    if url := state_object(settings.state.state):
        from crawler.app.stored_frontier import copied  # noqa: PLC0415 - the library is an extra

        with copied(url, settings.output.publish_timeout, says) as path:
            return read_progress(str(path))
    return read_progress(_file_of(settings, start))


def open_frontier(settings: Settings, start: Url | None, *, read_only: bool = False) -> "Frontier":
    """The frontier of a site. Raises `FrontierError`, `StateBusy` or `ConfigError`."""
    if address := _address_of(settings, start):
        return _open_shared(settings, address, read_only=read_only)
    from crawler.frontier.sqlite.frontier import SqliteFrontier  # noqa: PLC0415 - see above

    path = _file_of(settings, start)
    begins_anew = settings.state.fresh and path != MEMORY and not read_only
    if begins_anew and (kept := remove_state(path)):
        log.warning("state file is damaged; kept under another name", file=str(kept))
    return SqliteFrontier(path, **_options(settings), clock=time.time, read_only=read_only)


async def opened_copy(settings: Settings, start: Url | None, says: Callable[[str], None]) -> "Frontier":
    """The frontier of a site, for reading. `says`: gets a sentence about a state in an object store."""
    if url := state_object(settings.state.state):
        from crawler.app.stored_frontier import open_copy  # noqa: PLC0415 - the library is an extra

        return await open_copy(url, settings.output.publish_timeout, says, _options(settings))
    return open_frontier(settings, start, read_only=True)


async def opened(
    settings: Settings, start: Url | None, left: Callable[[], float] | None = None
) -> "Frontier":
    """As `open_frontier`, but waits for a database that does not answer yet, for `AWAY` seconds.

    A state in an object store is fetched. `left`: seconds until the program must have ended.
    """
    if url := state_object(settings.state.state):
        from crawler.app.stored_frontier import forever, open_stored  # noqa: PLC0415 - as above

        seconds, fresh = settings.output.publish_timeout, settings.state.fresh
        return await open_stored(url, seconds, _options(settings), fresh=fresh, left=left or forever)
    try:
        return open_frontier(settings, start)
    except StateAway as error:
        log.warning("database does not answer; trying again", seconds=AWAY, error=str(error))
    import anyio  # noqa: PLC0415 - see above

    from crawler.rules import retries  # noqa: PLC0415 - see above

    opening = retries.while_error(lambda error: isinstance(error, StateAway), seconds=AWAY, sleep=anyio.sleep)
    found: Frontier = await opening(partial(open_frontier, settings, start))
    return found


def _open_shared(settings: Settings, address: Address, *, read_only: bool) -> "Frontier":
    from crawler.frontier.postgres.connection import renew  # noqa: PLC0415 - the driver is an extra
    from crawler.frontier.postgres.frontier import PostgresFrontier  # noqa: PLC0415 - the same

    # A pooler accepts connections while its server is down, and answers later.
    waiting = Timer(SLOW, lambda: log.warning("still waiting for the database to answer", state=str(address)))
    waiting.start()
    try:
        if settings.state.fresh and not read_only:
            renew(address, settings.state.run or "")
        return PostgresFrontier(
            f"{address.conninfo}#{address.name}", **_options(settings), read_only=read_only
        )
    finally:
        waiting.cancel()


def _options(settings: Settings) -> "FrontierOptions":
    """What every frontier is told by the settings."""
    return {
        "delay": 1 / settings.pace.rate if settings.pace.rate else 0.0,
        "keep_runs": settings.state.keep_runs,
        "keep_failing": settings.guard.keep_failing,
        "far": far_of(settings),
        "max_hosts": settings.scope.max_hosts,
    }


def _file_of(settings: Settings, start: Url | None) -> str:
    path = state_path(settings, start)
    if "://" in path:
        raise ConfigError(
            f"--state: {path.partition(':')[0]} is not supported; name a file, or give a URL with "
            "postgresql://, s3://, gs:// or az://"
        )
    return path


def far_of(settings: Settings) -> float:
    """The furthest plausible slot, in seconds from now: later ones were booked with a wrong clock."""
    pace = settings.pace
    return max(FAR, 2 * pace.max_wait, 2 / pace.rate if pace.rate else 0.0)
