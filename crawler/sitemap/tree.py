"""Where sitemaps lie: files and URLs, opened as streams of bytes, and what an index names found from there.

An index on disk names URLs: the files are looked for beside it, by name. An index on the web is followed on its own
host only. What is in the bytes is for `sitemap`.
"""

from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from crawler.model.protocol import MAX_BYTES, REDIRECTS
from crawler.model.reasons import Cause
from crawler.model.reply import Broken
from crawler.parse.normalise import Normaliser
from crawler.parse.url import Url, origin, target
from crawler.ports import Fetcher, Request

CHUNK: Final = 65_536  # bytes
HOPS: Final = 5  # redirects in a row
ENTRY_POINTS: Final = tuple(
    f"sitemap.{suffix}{gz}" for suffix in ("xml", "txt", "jsonl") for gz in (".gz", "")
)


_PLAIN: Final = Normaliser(strip=())  # every parameter counts where a file is named


class Unreadable(Exception):  # noqa: N818 - a value to whoever asks, and no fault of the program
    """A place that cannot be read; `str` says why. `too_large`: it has more bytes than a sitemap may."""

    def __init__(self, reason: str, *, too_large: bool = False) -> None:
        super().__init__(reason)
        self.too_large = too_large


def is_web(place: str) -> bool:
    """Whether it is a URL."""
    return place[:8].lower().startswith(("http://", "https://"))


@dataclass
class Places:
    """Opens places. `turn` waits until the next request may go."""

    fetcher: Fetcher
    turn: Callable[[], Awaitable[None]]

    async def open(self, place: str) -> Iterator[bytes]:
        """The bytes of a file or URL, as they lie there. Raises `Unreadable`; reading on may raise `OSError`."""
        if is_web(place):
            return slices(await self._body(Url(place)))
        return read_file(place)

    def child(self, index: str, loc: str) -> str:
        """The place of what an index names. Raises `Unreadable` when it is not to be followed."""
        url = _PLAIN(loc)
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
        for _ in range(HOPS + 1):
            await self.turn()
            reply = await self.fetcher.fetch(Request(url, limit=MAX_BYTES + 1))
            if isinstance(reply, Broken):
                reason = f"{reply.cause.says}: {reply.detail}".removesuffix(": ")
                raise Unreadable(reason, too_large=reply.cause is Cause.TOO_LARGE)
            if reply.status == 200:
                return reply.body
            location = reply.headers.get("location") if reply.status in REDIRECTS else None
            to = _PLAIN(location, url) if location else None
            if to is None:
                raise Unreadable(f"the server responded with status {reply.status}")
            url = to
        raise Unreadable("too many redirects")


def resolve(place: str) -> str:
    """A folder as the entry point that lies in it; any other place as it is. Raises `Unreadable`."""
    folder = Path(place)
    if is_web(place) or not folder.is_dir():
        return place
    for name in ENTRY_POINTS:
        if (folder / name).is_file():
            return str(folder / name)
    raise Unreadable("there is no sitemap in that folder")


def sibling(index: str, url: str) -> Path | None:
    """The file beside an index on disk that has the last name in the path of `url`, if there is one."""
    name = _name(url)
    path = Path(index).with_name(name) if name and name != ".." else None
    return path if path and path.is_file() else None


def _name(url: str) -> str:
    return target(Url(url)).partition("?")[0].rpartition("/")[2]


def slices(body: bytes) -> Iterator[bytes]:
    """Bytes in memory as a stream."""
    return (body[at : at + CHUNK] for at in range(0, len(body), CHUNK))


def read_file(path: str) -> Iterator[bytes]:
    """A file as a stream, opened when it is read. Reading may raise `OSError`."""
    with open(path, "rb") as file:
        while chunk := file.read(CHUNK):
            yield chunk
