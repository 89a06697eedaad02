"""The exceptions with which the program fails.

A failing page is not an exception but an outcome (see `model`). Each exception has one clear sentence (what,
where, what to do) and the exit code of the command line::

    CrawlerError
    ├── ConfigError        a setting, a flag or a start URL is wrong                     exit 2
    ├── OutputError        the sitemap cannot be written                                 exit 3
    │   └── OutputBusy     another run is publishing to the same place                   exit 9
    ├── FrontierError      the state cannot be opened, read or written                   exit 3
    │   ├── StateBusy      another run is using the state                                exit 9
    │   ├── StateAway      the database of the state does not answer                     exit 3
    │   └── LeadershipLost another member leads the run; caught, the crawl continues as a follower
    ├── StartUnreachable   no start URL answered with a page                             exit 4
    ├── StartForbidden     robots.txt disallows every start URL                          exit 5
    ├── PublishRefused     the guard refused to replace the published sitemap            exit 6
    └── NotSubmitted       a search engine did not accept the changed URLs, for now      exit 7
"""

from collections.abc import Iterator
from contextlib import contextmanager
from enum import IntEnum
from typing import ClassVar, Final


class Exit(IntEnum):
    """The exit codes of the program (README, "Every night, unattended")."""

    OK = 0
    INTERNAL = 1
    USAGE = 2
    STORAGE = 3
    UNREACHABLE = 4
    ROBOTS = 5
    GUARD = 6
    PARTIAL = 7
    FINDINGS = 8
    BUSY = 9
    INTERRUPTED = 130
    TERMINATED = 143


SUCCESS: Final = frozenset({Exit.OK, Exit.FINDINGS})
"""The exit codes of a crawl that was complete and published, or had nothing to publish."""


class CrawlerError(Exception):
    """Base class; `str(error)` is a sentence for people."""

    exit: ClassVar[Exit] = Exit.INTERNAL


class ConfigError(CrawlerError):
    """A setting, a flag or a start URL is wrong."""

    exit = Exit.USAGE


class OutputError(CrawlerError):
    """The sitemap cannot be written."""

    exit = Exit.STORAGE


class OutputBusy(OutputError):  # noqa: N818 - its base class has the suffix
    """Another run is publishing to the same place."""

    exit = Exit.BUSY


class FrontierError(CrawlerError):
    """The state cannot be opened, read or written."""

    exit = Exit.STORAGE


class StateBusy(FrontierError):  # noqa: N818 - its base class has the suffix
    """Another run is using the state."""

    exit = Exit.BUSY


class StateAway(FrontierError):  # noqa: N818 - as above
    """The database of the state does not answer, but may do so a little later."""


class LeadershipLost(FrontierError):  # noqa: N818 - as above
    """Another member leads the run by now, because this one was silent for too long."""


class StartUnreachable(CrawlerError):  # noqa: N818
    """No start URL answered with a page."""

    exit = Exit.UNREACHABLE


class StartForbidden(CrawlerError):  # noqa: N818
    """robots.txt disallows every start URL."""

    exit = Exit.ROBOTS


class PublishRefused(CrawlerError):  # noqa: N818
    """The guard refused to replace the published sitemap."""

    exit = Exit.GUARD


class NotSubmitted(CrawlerError):  # noqa: N818
    """A search engine did not accept the changed URLs, for now."""

    exit = Exit.PARTIAL


class Interrupted(Exception):  # noqa: N818
    """A signal ended a command; `cli.signals.noted` has the signal. Not a failure of the program."""


@contextmanager
def ungrouped() -> Iterator[None]:
    """Raises the first error of a task group in the block, which wraps even a single one."""
    try:
        yield
    except BaseExceptionGroup as group:
        error: BaseException = group
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        raise error from group
