"""The exceptions with which the program fails.

A failing page is not an exception but an outcome (see `model`). Each exception has one clear sentence (what,
where, what to do) and the exit code of the command line::

    CrawlerError
    ├── ConfigError        a setting, a flag or a start URL is wrong                     exit 2
    ├── OutputError        the sitemap cannot be written                                 exit 3
    │   └── OutputBusy     another run is publishing to the same place                   exit 9
    ├── FrontierError      the state cannot be opened, read or written                   exit 3
    │   ├── StateBusy      another run is using the state                                exit 9
    │   ├── NoState        nothing was crawled with it yet                               exit 3
    │   ├── StateAway      the database of the state does not answer                     exit 3
    │   └── LeadershipLost another member leads the run; caught, the crawl continues as a follower
    ├── StartUnreachable   no start URL answered with a page                             exit 4
    │   └── StartSilent    nothing answers there: perhaps it is misspelt                 exit 4
    ├── StartForbidden     robots.txt disallows every start URL                          exit 5
    ├── PublishRefused     the guard refused to replace the published sitemap            exit 6
    └── NotSubmitted       a search engine did not accept the changed URLs, for now      exit 7
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
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


_WORST_FIRST: Final = (
    Exit.INTERRUPTED, Exit.TERMINATED, Exit.INTERNAL, Exit.USAGE, Exit.STORAGE, Exit.UNREACHABLE,
    Exit.ROBOTS, Exit.GUARD, Exit.PARTIAL, Exit.BUSY, Exit.FINDINGS, Exit.OK,
)  # fmt: skip


def worst(codes: Iterable[int]) -> Exit:
    """The exit code of a command for several sites."""
    found = set(codes)
    return next((code for code in _WORST_FIRST if code in found), Exit.OK)


SUCCESS: Final = frozenset({Exit.OK, Exit.FINDINGS})
"""The exit codes of a crawl that was complete and published, or had nothing to publish."""


_wording: ContextVar[Callable[[str], str]] = ContextVar("wording", default=str)


class CrawlerError(Exception):
    """Base class; `str(error)` is a sentence for people. It names settings as flags, unless `worded`."""

    exit: ClassVar[Exit] = Exit.INTERNAL

    def __init__(self, sentence: str = "") -> None:
        super().__init__(_wording.get()(sentence))


@contextmanager
def worded(how: Callable[[str], str]) -> Iterator[None]:
    """Errors raised in the block, also in tasks and threads that it starts, have the words of `how`."""
    before = _wording.get()
    _wording.set(how)  # not reset by its token: the block of an async generator may end in another context
    try:
        yield
    finally:
        _wording.set(before)


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


class NoState(FrontierError):  # noqa: N818 - as above
    """There is no such state, or nothing in it: no crawl has begun."""


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


class StartSilent(StartUnreachable):
    """Nothing answers at the start URL, though its host has an address: perhaps the scheme is another one."""


class StartForbidden(CrawlerError):  # noqa: N818
    """robots.txt disallows every start URL."""

    exit = Exit.ROBOTS


class PublishRefused(CrawlerError):  # noqa: N818
    """The guard refused to replace the published sitemap. `codes`: outcomes to give examples of."""

    exit = Exit.GUARD

    def __init__(self, words: str, codes: Iterable[str] = ()) -> None:
        super().__init__(words)
        self.codes = frozenset(codes)


class NotSubmitted(CrawlerError):  # noqa: N818
    """A search engine did not accept the changed URLs, for now."""

    exit = Exit.PARTIAL


class Interrupted(Exception):  # noqa: N818
    """A signal, or a call of `Job.stop`, ended what was under way. Not a failure of the program."""


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
