"""Checks the images that listed pages show (`--images` with `--check-external`): whether they answer.

Those on hosts of the site are asked as its pages are: by robots.txt, at the pace of the crawl; all others as
links to other sites (`external`). By HEAD, and by GET where that may not tell. What is broken is noted, for
the report and the next sitemap; of images that were not asked, what was known stays.
"""

import logging
from collections.abc import AsyncIterator, Collection, Sequence
from hashlib import blake2b
from heapq import heappop, heappush
from typing import Final

import anyio

from crawler.app.external import asking
from crawler.app.features.feature import readings
from crawler.app.features.images import NAME
from crawler.app.report import note_left_out
from crawler.engine.robots import Access
from crawler.model.external import BROKEN, BrokenFile, CheckedLink, DueLink, kind_of
from crawler.model.note import BROKEN_FILES
from crawler.model.reply import Reply, Response
from crawler.parse.url import Url, origin
from crawler.ports import Frontier, Request, reads
from crawler.rules.external import ANSWER_BY_CAUSE, UNREACHED, answer_of, needs_get
from crawler.rules.redirects import Redirects
from crawler.settings.sections import Settings

log = logging.getLogger("crawler.images")

MOST_NOTED: Final = 10_000  # broken images
SILENCES: Final = frozenset(ANSWER_BY_CAUSE[cause].value for cause in UNREACHED)
SILENT: Final = 3  # images in a row without a response, after which hosts of the site are asked no more


async def check_images(
    frontier: Frontier, settings: Settings, access: Access, run: int, seconds: float
) -> None:
    """Asks for the images of the run, those that were broken first, and notes which are.

    Nothing if the settings do not ask for it.
    `run`: its number; `seconds`: how long it may take, if that is less than `--max-external-time`. Raises
    `FrontierError`.
    """
    if not settings.dates.images:
        return
    hosts = {host.origin for host in await frontier.read(reads.BusiestHosts())}
    known, is_first = await frontier.read(reads.BrokenFiles()), await _is_first(frontier)
    choice = _Choice(run, settings.external.max_external)
    broken: dict[str, BrokenFile] = {}
    asked = set[str]()
    async for page in readings(frontier, NAME):
        for _, image in page.read:
            choice.add(image)
            if image in known:
                broken[image] = known[image]
    images = [*map(Url, broken), *(image for image in choice.chosen() if image not in broken)]
    others = [DueLink(number, url) for number, url in enumerate(images) if origin(url) not in hosts]

    def note(image: Url, code: str, status: int | None) -> None:
        broken.pop(image, None)
        asked.add(image)
        if kind_of(code) == BROKEN:
            before = known.get(image, BrokenFile(code, since=0 if is_first else run))
            broken[image] = before._replace(code=code, status=status)

    async def store(checked: Sequence[CheckedLink]) -> None:
        for one in checked:
            note(images[one.id], one.code, one.status)

    log.info("checking images", extra={"fields": {"urls": len(images)}})
    with anyio.move_on_after(min(seconds, settings.external.max_external_time)) as limit:
        async with asking(settings, store, frontier.clock) as checking, anyio.create_task_group() as tasks:
            tasks.start_soon(checking.ask, others)
            own = [image for image in images if origin(image) in hosts]
            async for answer in _answers(own, access, hosts, settings.http.max_redirects):
                note(*answer)
    await frontier.remember(BROKEN_FILES, dict(sorted(broken.items())[:MOST_NOTED]))
    because = "max-external-time" if limit.cancelled_caught else "no answer"
    await note_left_out(frontier, "images", len(images) - len(asked), because)


class _Choice:
    """Images to ask for in a run: all, or as many as may be asked for, which differ from run to run."""

    def __init__(self, run: int, most: int) -> None:
        self._run, self._most = run, most
        self._images: dict[int, Url] = {}
        self._heap: list[int] = []  # their hashes, negative

    def add(self, image: Url) -> None:
        """Add an image of a page; it may have been added before."""
        digest = blake2b(f"{self._run} {image}".encode(), digest_size=8).digest()
        place = int.from_bytes(digest)
        if place in self._images or (len(self._heap) >= self._most and place > -self._heap[0]):
            return
        self._images[place] = image
        heappush(self._heap, -place)
        if len(self._heap) > self._most:
            del self._images[-heappop(self._heap)]

    def chosen(self) -> list[Url]:
        """The images, in the order in which they are asked for."""
        return [image for _, image in sorted(self._images.items())]


async def _is_first(frontier: Frontier) -> bool:
    """Whether no run has asked for images yet: then none of them is newly broken."""
    of_this, earlier = await frontier.recall(BROKEN_FILES), await frontier.recall(BROKEN_FILES, "earlier")
    return of_this is None and earlier is None


async def _answers(
    images: Sequence[Url], access: Access, hosts: Collection[str], hops: int
) -> AsyncIterator[tuple[Url, str, int | None]]:
    """The answers for images on hosts of the site, while these answer."""
    silent = 0
    for image in images:
        code, status = await _answer(image, access, hosts, hops)
        silent = silent + 1 if code in SILENCES else 0
        if silent >= SILENT:
            return
        if not silent:  # else it says nothing about the image
            yield image, code, status


async def _answer(image: Url, access: Access, hosts: Collection[str], hops: int) -> tuple[str, int | None]:
    """The code of the answer for an image on a host of the site, empty if it may not be asked for; and the
    status.
    """
    redirects, reply = Redirects(image, hops=hops), None
    while reply is None or redirects.follow(reply):
        if origin(redirects.url) not in hosts or not (await access.permit(redirects.url)).allowed:
            return "", None
        reply = await _reply(redirects.url, access)
    code = answer_of(reply, redirects, sets_cookie=False).value
    return str(code), reply.status if isinstance(reply, Response) else None


async def _reply(url: Url, access: Access) -> Reply:
    reply = await access.fetch(Request(url, head=True))
    return await access.fetch(Request(url, wants_body=lambda *_: False)) if needs_get(reply) else reply
