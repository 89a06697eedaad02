"""The ways in which the program itself can fail.

One page failing is not here: that is an outcome, a value (see `model`). Each exception carries one clear
sentence (what, where, what to do) and the exit code that the command line answers with::

    CrawlerError
    ├── ConfigError        a setting, a flag or a start URL is wrong                     exit 2
    ├── OutputError        the sitemap cannot be written                                 exit 3
    ├── FrontierError      the state cannot be opened, read or written                   exit 3
    │   └── StateBusy      another run holds the state                                   exit 9
    ├── StartUnreachable   no start URL answered with a page                             exit 4
    ├── StartForbidden     robots.txt keeps us from every start URL                      exit 5
    └── PublishRefused     the guard kept the published sitemap                          exit 6
"""

from enum import IntEnum
from typing import ClassVar


class Exit(IntEnum):
    """What the program answers to its caller (README, "Every night, unattended")."""

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


class CrawlerError(Exception):
    """Root of the tree; `str(error)` is a sentence for a person."""

    exit: ClassVar[Exit] = Exit.INTERNAL


class ConfigError(CrawlerError):
    """A setting, a flag or a start URL is wrong."""

    exit = Exit.USAGE


class OutputError(CrawlerError):
    """The sitemap cannot be written."""

    exit = Exit.STORAGE


class FrontierError(CrawlerError):
    """The state cannot be opened, read or written."""

    exit = Exit.STORAGE


class StateBusy(FrontierError):  # noqa: N818 - reads as what it is, and its parent carries the suffix
    """Another run holds the state."""

    exit = Exit.BUSY


class StartUnreachable(CrawlerError):  # noqa: N818
    """No start URL answered with a page."""

    exit = Exit.UNREACHABLE


class StartForbidden(CrawlerError):  # noqa: N818
    """robots.txt keeps us from every start URL."""

    exit = Exit.ROBOTS


class PublishRefused(CrawlerError):  # noqa: N818
    """The guard kept the sitemap that is published."""

    exit = Exit.GUARD


class Interrupted(Exception):  # noqa: N818
    """A signal ended a command in the middle. No failure of the program: `cli.signals.noted` knows which it was."""


def first_of(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """What went wrong first: a task group wraps even a single error."""
    error = group.exceptions[0]
    return first_of(error) if isinstance(error, BaseExceptionGroup) else error
