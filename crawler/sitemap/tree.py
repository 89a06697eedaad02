"""Opens sitemaps, files or URLs, as streams of bytes, and locates the sitemaps of an index.

The sitemaps of an index on disk are looked for next to it, by file name. An index on the web is followed on
its own origin only. `validate` and `diff` walk in memory; a crawl walks with the frontier as its memory
(`app/seeding`), as it may be interrupted. How deep either goes is here.
"""

from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct

from crawler.model.protocol import MAX_BYTES, MAX_ENTRIES
from crawler.model.reasons import Cause
from crawler.model.reply import Broken, Reply
from crawler.parse.url import Url, origin, target
from crawler.ports import Fetcher, Request
from crawler.rules.redirects import PLAIN, Redirects

CHUNK: Final = 65_536  # bytes
# An index and its sitemaps: the protocol has no more, and `validate` and `diff` read no more.
LEVELS: Final = 2
NESTED: Final = 500  # sitemaps that a crawl reads all the same from indexes that an index names
# Sitemaps that a crawl reads, by the number of indexes above them.
ROOM_BY_LEVEL: Final = (MAX_ENTRIES, MAX_ENTRIES, NESTED)
ENTRY_POINTS: Final = tuple(
    f"sitemap.{suffix}{gz}" for suffix in ("xml", "txt", "jsonl") for gz in (".gz", "")
)


class Unreadable(Exception):  # noqa: N818 - caught by the caller and reported
    """A place that cannot be read; `str` tells why. `too_large`: it exceeds the size limit of a sitemap."""

    def __init__(self, reason: str, *, too_large: bool = False) -> None:
        super().__init__(reason)
        self.too_large = too_large


def is_web(place: str) -> bool:
    """Whether a place is a URL."""
    return place[:8].lower().startswith(("http://", "https://"))


class Node(Struct, eq=False):
    """A file of a sitemap: the entry point, or what an index names. The reader sets `children`."""

    loc: str  # as the index spells it
    index: str | None = None  # the place of the index that names it
    depth: int = 0  # indexes above it
    children: Sequence[str] = ()  # the locs of an index
    place: str = ""  # where it is, once it was located

    @property
    def is_last(self) -> bool:
        """Whether its children are not read."""
        return self.depth + 1 >= LEVELS


def walk(place: str) -> Iterator[Node]:
    """The files of a sitemap, each index before its files. Set `children` of one before taking the next."""
    waiting = deque([Node(place)])
    while waiting:
        node = waiting.popleft()
        yield node
        if not node.is_last:
            waiting.extend(Node(loc, node.place, node.depth + 1) for loc in node.children)


class Places(Struct, eq=False):
    """Opens places. `turn` waits until the next request may be sent."""

    fetcher: Fetcher
    turn: Callable[[], Awaitable[None]]

    async def open(self, place: str) -> Iterator[bytes]:
        """The raw bytes of a file or URL. Raises `Unreadable`; iterating may raise `OSError`."""
        if is_web(place):
            return slices(await self._body(Url(place)))
        return read_file(place)

    def locate(self, node: Node) -> str:
        """Where a file is. Raises `Unreadable` if it must not be followed or does not exist."""
        node.place = self._child(node.index, node.loc) if node.index else node.loc
        return node.place

    def _child(self, index: str, loc: str) -> str:
        url = PLAIN(loc)
        if url is None:
            raise Unreadable(loc)
        if is_web(index):
            if origin(url) == origin(index):
                return url
            raise Unreadable(f"{loc} is on another host")
        if path := sibling(index, url):
            return str(path)
        raise Unreadable(f"there is no file {_name(url)} next to it")

    async def _body(self, url: Url) -> bytes:
        redirects = Redirects(url)
        reply = await self._ask(url)
        while to := redirects.follow(reply):
            reply = await self._ask(to)
        if isinstance(reply, Broken):
            reason = f"{reply.cause.says}: {reply.detail}".removesuffix(": ")
            raise Unreadable(reason, too_large=reply.cause is Cause.TOO_LARGE)
        if redirects.stopped:
            raise Unreadable(redirects.stopped.value)
        if reply.status != 200:
            raise Unreadable(f"the server responded with status {reply.status}")
        return reply.body

    async def _ask(self, url: Url) -> Reply:
        await self.turn()
        return await self.fetcher.fetch(Request(url, limit=MAX_BYTES + 1))


def resolve(place: str) -> str:
    """The entry point in a folder; any other place unchanged. Raises `Unreadable`."""
    folder = Path(place)
    if is_web(place) or not folder.is_dir():
        return place
    for name in ENTRY_POINTS:
        if (folder / name).is_file():
            return str(folder / name)
    raise Unreadable("there is no sitemap in that folder")


def sibling(index: str, url: str) -> Path | None:
    """The file next to an index on disk with the file name of `url`, if it exists."""
    name = _name(url)
    path = Path(index).with_name(name) if name and name != ".." else None
    return path if path and path.is_file() else None


def _name(url: str) -> str:
    return target(Url(url)).partition("?")[0].rpartition("/")[2]


def slices(body: bytes) -> Iterator[bytes]:
    """Bytes as a stream of chunks."""
    return (body[at : at + CHUNK] for at in range(0, len(body), CHUNK))


def read_file(path: str) -> Iterator[bytes]:
    """A file as a stream of chunks, opened on iteration, which may raise `OSError`."""
    with open(path, "rb") as file:
        while chunk := file.read(CHUNK):
            yield chunk
