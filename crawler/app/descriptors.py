"""File descriptors: as many as the requests in flight need, or fewer requests in flight.

The soft limit of this process is raised, up to the hard one; child processes inherit it. What happens when
the machine itself has none left is decided where connections are opened (`fetch.pool`).
"""

from dataclasses import replace
from typing import Final

from crawler.errors import ConfigError
from crawler.model.log import log
from crawler.settings.sections import Settings

try:
    import resource
except ImportError:  # not on Windows
    resource = None  # type: ignore[assignment]

OTHERS: Final = 64  # descriptors for state, logs, robots.txt, publication and libraries
EACH: Final = 2  # for a request in flight: its connection, and one that is kept or being opened
CHILDREN: Final = 4  # for a worker process
FEWEST: Final = 32  # with fewer, not even modules can be imported while a crawl goes on


def fitted(settings: Settings) -> Settings:
    """The settings with a concurrency that the limit of file descriptors allows; the limit is raised."""
    pace = settings.pace
    others = OTHERS + CHILDREN * pace.processes
    soft = raised(others + EACH * pace.concurrency)
    most = max(1, (soft - others) // EACH)
    if pace.concurrency <= most:
        return settings
    log.warning(
        "concurrency reduced: the limit of open files allows no more (raise it with ulimit -n)",
        limit=soft,
        concurrency=pace.concurrency,
        used=most,
    )
    return replace(settings, pace=replace(pace, concurrency=most))


def raised(wanted: int = FEWEST) -> int:
    """The soft limit, after it was raised to `wanted` as far as possible. Raises `ConfigError`."""
    if resource is None:
        return wanted
    limit = _raised(wanted)
    if limit < FEWEST:
        raise ConfigError(f"The limit of open files is {limit}: raise it to at least {FEWEST} (ulimit -n).")
    return limit


def _raised(wanted: int) -> int:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return max(soft, wanted)
    most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
    except (OSError, ValueError):
        return soft
    return most
