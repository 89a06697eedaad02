"""Checks the images that listed pages show (`--images` with `--check-external`): whether they answer.

Those on hosts of the site are asked as its pages are: by robots.txt, at the pace of the crawl; all others as
links to other sites (`external`). By HEAD, and by GET where that may not tell. What is broken is noted, for
the report and the next sitemap; of images that were not asked, what was known stays.
"""

import logging
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from hashlib import blake2b
from heapq import heappop, heappush
from itertools import islice
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
from crawler.parse import url as urls
from crawler.parse.url import Url, origin
from crawler.ports import Frontier, Request, reads
from crawler.rules.external import ANSWER_BY_CAUSE, UNREACHED, answer_of, needs_get
from crawler.rules.redirects import Redirects
from crawler.settings.sections import Settings

log = logging.getLogger("crawler.images")

MOST_NOTED: Final = 10_000  # broken images
LAST: Final = 1 << 64  # beyond any hash
SILENCES: Final = frozenset(ANSWER_BY_CAUSE[cause].value for cause in UNREACHED)
SILENT: Final = 3  # images in a row without a response, after which hosts of the site are asked no more


async def check_images(
    frontier: Frontier, settings: Settings, access: Access, run: int, seconds: float
) -> None:
    """Asks for the images of the run, those that were broken first, and notes which are.

    Nothing if the settings do not ask for it. The limits are those on links to other sites, each as if there
    were none of these. `run`: its number; `seconds`: how long it may take, if that is less than
    `--max-external-time`. Raises `FrontierError`.
    """
    if not settings.dates.images:
        return
    limits, hosts = settings.external, {host.origin for host in await frontier.read(reads.BusiestHosts())}
    check = _Check(run, await frontier.read(reads.BrokenFiles()), is_first=await _is_first(frontier))
    choice = _Choice(run, limits.max_external)
    async for page in readings(frontier, NAME):
        for _, image in page.read:
            choice.add(image, is_broken=check.knows(image))
    images = check.images = choice.chosen()
    own = [image for image in images if origin(image) in hosts]
    others = _on_hosts(images, hosts, limits.max_external_hosts)
    log.info("checking images", extra={"fields": {"urls": len(own) + len(others)}})
    with anyio.move_on_after(min(seconds, limits.max_external_time)) as limit:
        async with (
            asking(settings, check.store, frontier.clock) as checking,
            anyio.create_task_group() as tasks,
        ):
            tasks.start_soon(checking.ask, others)
            async for image, code, status in _answers(own, access, hosts, settings.http.max_redirects):
                check.note(image, code, status)
    await frontier.remember(BROKEN_FILES, check.noted())
    because = "no answer" if len(own) + len(others) == len(images) else "max-external-hosts"
    because = because if choice.has_all else "max-external"
    every = len(images) if choice.has_all else await frontier.read(reads.CountUrls(NAME))
    await _note_left(
        frontier, every - len(check.asked), "max-external-time" if limit.cancelled_caught else because
    )


class _Check:
    """What is known of images, of earlier runs and of this one."""

    def __init__(self, run: int, known: Mapping[str, BrokenFile], *, is_first: bool) -> None:
        self._since, self._known = 0 if is_first else run, known
        self._broken = dict[str, BrokenFile]()
        self.images: Sequence[Url] = ()
        self.asked = set[str]()

    def knows(self, image: Url) -> bool:
        """Whether an image that a page shows was broken; it stays so, unless it is asked for."""
        if image in self._known:
            self._broken[image] = self._known[image]
        return image in self._known

    async def store(self, checked: Sequence[CheckedLink]) -> None:
        """Note the answers of other sites."""
        for one in checked:
            self.note(self.images[one.id], one.code, one.status)

    def note(self, image: str, code: str, status: int | None) -> None:
        """Note an answer."""
        self._broken.pop(image, None)
        self.asked.add(image)
        if kind_of(code) == BROKEN:
            before = self._known.get(image, BrokenFile(code, since=self._since))
            self._broken[image] = before._replace(code=code, status=status)

    def noted(self) -> Mapping[str, BrokenFile]:
        """The first of the broken ones."""
        return dict(sorted(self._broken.items())[:MOST_NOTED])


async def _note_left(frontier: Frontier, left: int, because: str) -> None:
    await note_left_out(frontier, NAME, left, because)
    if left:
        log.warning("not all images were checked", extra={"fields": {"left": left, "because": because}})


def _on_hosts(images: Sequence[Url], own: Collection[str], most: int) -> Sequence[DueLink]:
    """The images on the first other hosts, by their place."""
    links = [DueLink(number, url) for number, url in enumerate(images) if origin(url) not in own]
    hosts = {*islice(dict.fromkeys(urls.host(link.url) for link in links), most)}
    return [link for link in links if urls.host(link.url) in hosts]


class _Choice:
    """Images to ask for in a run: all, or as many as may be asked for, which differ from run to run."""

    def __init__(self, run: int, most: int) -> None:
        self._run, self._most = run, most
        self._images: dict[int, Url] = {}
        self._heap: list[int] = []  # their hashes, negative
        self.has_all = True

    def add(self, image: Url, *, is_broken: bool) -> None:
        """Add an image of a page; it may have been added before. Those known to be broken come first."""
        digest = blake2b(f"{self._run} {image}".encode(), digest_size=8).digest()
        place = int.from_bytes(digest) + (0 if is_broken else LAST)
        if place in self._images:
            return
        self.has_all = self.has_all and len(self._heap) < self._most
        if len(self._heap) >= self._most and place > -self._heap[0]:
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
