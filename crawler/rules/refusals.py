"""What a 429 or a Retry-After concerns: one page, its folder, or the whole host.

The first one of a host in a run pauses the host. From the second on only the page waits, and, if another page
of its folder is refused as well, the folder: a stranger who posts links to a login must not stop the crawl.
But if nothing else has answered since, or a third folder refuses, the host is meant. Pure but for its memory.
"""

from enum import Enum
from typing import Final

from msgspec import Struct, field

from crawler.parse.url import Url, in_folder, origin, target

UNSTATED: Final = 10.0  # seconds that a folder waits after a 429 without Retry-After
MOST_FOLDERS: Final = 2  # of a host that wait at the same time; with more of them, the host is meant
MOST_HOSTS: Final = 10_000  # that are remembered


class HostPause(Enum):
    """Whether a refusal pauses the host."""

    NO = 0
    ONCE = 1  # if it is the first one of the run, in any process
    YES = 2


class _FolderRefusals(Struct, eq=False):
    """A folder with refusals. Times in seconds since the epoch."""

    since: float  # of the first one
    until: float
    pages: set[Url] = field(default_factory=set)  # one of those that were refused, or two

    def holds(self, url: Url) -> bool:
        return len(self.pages) > 1 or url in self.pages


class _HostRefusals(Struct, eq=False):
    """The folders of a host with refusals."""

    folders: dict[str, _FolderRefusals] = field(default_factory=dict)
    answered: float = 0.0  # when the last request began that was answered well


class Refusals:
    """The refusals of all hosts. Times in seconds since the epoch."""

    def __init__(self) -> None:
        self._hosts: dict[str, _HostRefusals] = {}

    def wait(self, url: Url, now: float) -> float:
        """Seconds for which a page is not to be requested, by refusals that concern it or its folder."""
        host = self._hosts.get(origin(url))
        folder = host.folders.get(folder_of(url)) if host else None
        return max(0.0, folder.until - now) if folder and folder.holds(url) else 0.0

    def refused(self, url: Url, wait: float, now: float) -> HostPause:
        """Notes a refusal; whether the host is to wait. `wait`: seconds by Retry-After; 0: unstated."""
        site = origin(url)
        host = self._hosts.get(site)
        if host is None:
            if len(self._hosts) >= MOST_HOSTS:
                self._hosts.clear()
            self._hosts[site] = _HostRefusals()
            return HostPause.ONCE
        name, until = folder_of(url), now + (wait or UNSTATED)
        waiting = {key: folder for key, folder in host.folders.items() if folder.until > now}
        others = [folder for key, folder in waiting.items() if key != name]
        if len(others) >= MOST_FOLDERS or any(host.answered <= folder.since for folder in others):
            host.folders = {}
            return HostPause.YES
        known = waiting.setdefault(name, _FolderRefusals(now, until))
        known.until = max(known.until, until)
        if len(known.pages) < 2:
            known.pages.add(url)
        host.folders = waiting
        return HostPause.NO

    def answered(self, url: Url, began: float) -> None:
        """Notes a good answer to a request that began then."""
        host = self._hosts.get(origin(url))
        if host is None or not host.folders:
            return
        host.answered = max(host.answered, began)
        folder = host.folders.get(folder_of(url))
        if folder and began > folder.since:
            folder.pages = set(list(folder.pages)[:1])


def folder_of(url: Url) -> str:
    """The folder of a URL, or its path if it has a query: the queries of one path are one place."""
    path, mark, _ = target(url).partition("?")
    return path if mark else target(in_folder(url)[0])
