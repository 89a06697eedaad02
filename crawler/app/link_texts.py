"""Finds the text of links and files that have a finding, and where on a page they stand: reads pages again.

Keeping the text of every link would cost more than a crawl may. So a few pages are chosen once the findings
are known: the first ones that link to each target, and of these the ones with most such links first, so that
the template comes before what strangers post. What was read stays until the content of the page changes.
Nothing here changes what is listed.
"""

from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from typing import Final, NamedTuple

import anyio
from msgspec import Struct

from crawler.app import report as reports
from crawler.app.features.feature import readings
from crawler.app.parts import Parts
from crawler.app.settings_urls import normaliser
from crawler.engine.robots import Access
from crawler.engine.together import together
from crawler.engine.visitor import PageReader
from crawler.model import rendering
from crawler.model.external import BrokenFile
from crawler.model.log import log
from crawler.model.note import BROKEN_FILES, EXTERNAL
from crawler.model.outcome import HTML
from crawler.model.rendering import Rendering
from crawler.model.rows import AnchorRow, PageRow
from crawler.parse.extract import Extract
from crawler.parse.feeds import FEED_TYPES
from crawler.parse.normalise import Normaliser
from crawler.parse.parsed_page import ParsedPage
from crawler.parse.url import Url, origin
from crawler.ports import Frontier, reads
from crawler.report.catalogue import Severity
from crawler.report.findings import Findings
from crawler.report.inbound_links import FIRST_SOURCES
from crawler.report.url_kind import BY_KIND, LINK_CODES

CODES: Final = frozenset(code for code in LINK_CODES if code.severity is not Severity.INFO)
KINDS: Final = frozenset(kind for kind, code in BY_KIND.items() if code in CODES)
EXAMPLES: Final = 3  # pages of a target in the template; of others, those that a report names
READABLE: Final = HTML | FEED_TYPES
MOST_CHOSEN: Final = 1_000  # pages, most of which were read in earlier runs
MOST_TARGETS: Final = 1_000  # of one page
AT_ONCE: Final = 5  # requests
BATCH: Final = 100  # pages that are looked up together, and stored
LONGEST: Final = 120.0  # seconds in all, or
LONGEST_EACH: Final = 2.0  # for each page, if these are more
MOST_UNANSWERED: Final = 5  # pages of an origin in a row, after which it is left alone


Read = Callable[[Url, Collection[Extract], Rendering | None], Awaitable[ParsedPage | None]]


async def read_link_texts(
    frontier: Frontier, parts: Parts, access: Access, run: int, asked: int, seconds: float
) -> int:
    """Reads pages of a run again, as the settings say. How many.

    `run`: its number; `asked`: requests for pages that it made; `seconds`: how long it may take. Raises
    `FrontierError`.
    """
    given = parts.given
    most = given.settings.report.link_pages
    if given.most_pages is not None:
        most = min(most, max(0, given.most_pages - asked))
    if not most:
        return 0
    begun, read = anyio.current_time(), PageReader(access, parts.judge, parts.reader, frontier.clock).read
    texts = LinkTexts(
        frontier,
        Findings(run, complete=True, check=await frontier.recall(EXTERNAL)),
        read,
        normaliser(given.settings, base=given.base),
        most,
        seconds,
    )
    count = await texts()
    left = min(seconds - (anyio.current_time() - begun), LONGEST)
    if given.settings.external.check_external and count < most:
        normalise = Normaliser(strip=(), sessions=None, base=given.base)
        count += await FileTexts(frontier, read, normalise, most - count, left)()
    return count


class _Broken(Struct, frozen=True):
    """A target of links with a finding."""

    links: int  # pages that link to it
    pages: Sequence[int]  # the first of these


class _PageToRead(Struct, frozen=True):
    """A page that is to be read, and its targets with findings."""

    page: PageRow
    targets: Sequence[int]


class LinkTexts(Struct, frozen=True):
    """Reads the pages of one run: at most `most`, by `read`, within `seconds`."""

    frontier: Frontier
    findings: Findings  # without any row
    read: Read
    normalise: Normaliser
    most: int
    seconds: float

    async def __call__(self) -> int:
        """How many pages were read. Raises `FrontierError`."""
        broken = await self._broken()
        due = [one async for one in self._due(broken)] if broken else []
        if not due:
            return 0
        log.info("reading pages again", pages=len(due))
        read, silent = set[int](), Counter[str]()
        longest = max(LONGEST, LONGEST_EACH * len(due))
        with anyio.move_on_after(min(self.seconds, longest)) as limit:
            for at in range(0, len(due), BATCH):
                await self._read(due[at : at + BATCH], read, silent)
        slow = "max-time" if self.seconds < longest else "slow answers"
        left, because = len(due) - len(read), slow if limit.cancelled_caught else "no answer"
        await reports.note_left_out(self.frontier, "pages", left, because)
        if left:
            log.warning("not all pages were read again", left=left, because=because)
        return len(read)

    async def _read(self, due: Sequence[_PageToRead], read: set[int], silent: Counter[str]) -> None:
        """Reads pages, and stores together what they say.

        Adds to `read` those that were read. `silent`: pages without an answer since the last one, by origin.
        """
        names = await reports.names_of(self.frontier, sorted({to for one in due for to in one.targets}))
        rows = list[AnchorRow]()
        try:
            for at in range(0, len(due), AT_ONCE):
                rows += await self._round(due[at : at + AT_ONCE], names, read, silent)
        finally:
            with anyio.CancelScope(shield=True):
                await self.frontier.store_anchors(rows)

    async def _round(
        self, due: Sequence[_PageToRead], names: Mapping[int, str], read: set[int], silent: Counter[str]
    ) -> Sequence[AnchorRow]:
        """Reads a few pages at once. It ends when all have answered, so that the pages that are asked for
        follow from the answers, not from their speed.
        """
        found = dict[int, Sequence[AnchorRow]]()

        async def look(one: _PageToRead) -> None:
            page = await self.read(one.page.url, {Extract.ANCHORS}, rendering_of(one.page))
            if page is not None:
                found[one.page.id] = self._anchors(one, page, names)

        asked = [one for one in due if silent[origin(one.page.url)] < MOST_UNANSWERED]
        async with anyio.create_task_group() as tasks:
            for one in asked:
                tasks.start_soon(look, one)
        read.update(found)
        answered = {origin(one.page.url) for one in asked if one.page.id in read}
        silent.update(origin(one.page.url) for one in asked)
        silent.subtract({site: silent[site] for site in answered})
        return [row for rows in found.values() for row in rows]

    async def _broken(self) -> Mapping[int, _Broken]:
        """The URLs with such a finding."""
        findings = self.findings
        suspects = await reports.read_few(self.frontier, findings, KINDS)
        if not findings.has(KINDS):
            return {}
        return {
            page.id: _Broken(found.links, found.sources[: EXAMPLES if found.site_wide else FIRST_SOURCES])
            async for page in suspects
            for found in findings.found(page)
            if found.code in CODES and found.links
        }

    async def _due(self, broken: Mapping[int, _Broken]) -> AsyncIterator[_PageToRead]:
        """The pages to read: those of which something is not known yet."""
        left, rows = self.most, self.frontier
        pages = await self._chosen(broken)
        for at in range(0, len(pages), BATCH):
            some = pages[at : at + BATCH]
            found, links, known = await together(
                rows.read(reads.PagesOf(some)),
                rows.read(reads.LinksOf(some)),
                rows.read(reads.AnchorsOf(some)),
            )
            for page in (found[number] for number in some if number in found and number in links):
                row = links[page.id]
                leads = {abs(to) for to in (*row.links, *row.named)}
                targets = sorted(leads & broken.keys())[:MOST_TARGETS]
                old = (known.get((page.id, to)) for to in targets)
                if page.type not in READABLE or all(
                    row and row.version == (page.content or "") for row in old
                ):
                    continue
                if left <= 0:
                    return
                left -= 1
                yield _PageToRead(page, targets)

    async def _chosen(self, broken: Mapping[int, _Broken]) -> Sequence[int]:
        """The first page of each target, then the second, and so on; those that tell of most links first."""
        every = sorted({page for one in broken.values() for page in one.pages})
        names = await reports.names_of(self.frontier, every)
        chosen = dict[int, None]()
        for place in range(FIRST_SOURCES):
            links = Counter[int]()
            for one in broken.values():
                if len(one.pages) > place and one.pages[place] in names:
                    links[one.pages[place]] += one.links
            chosen |= dict.fromkeys(sorted(links, key=lambda page: (-links[page], names[page])))
        return list(chosen)[:MOST_CHOSEN]

    def _anchors(self, due: _PageToRead, page: ParsedPage, names: Mapping[int, str]) -> Sequence[AnchorRow]:
        """What the page says of each target; nothing if it does not lead there any more."""
        targets = {names[to]: to for to in due.targets if to in names}
        aliases = {_bare(url): number for url, number in targets.items()}
        number, version = due.page.id, due.page.content or ""
        found = {to: AnchorRow(number, to, version=version) for to in due.targets}
        for anchor in page.anchors:
            url = self.normalise(anchor.href, page.base) or ""
            to = targets.get(url) or aliases.get(_bare(url))
            if to and not found[to].text:
                first = found[to].landmark or anchor.place
                found[to] = AnchorRow(
                    number, to, anchor.text, anchor.place if anchor.text else first, version
                )
        return list(found.values())


def rendering_of(page: PageRow) -> Rendering | None:
    """How the page was rendered; None: it was not."""
    stored = rendering.read(page.rendering) if page.rendering else None
    return stored if stored and stored.after else None


def _bare(url: str) -> str:
    """An address without what aliases of a site differ in."""
    return url.partition("://")[2].removeprefix("www.")


class FileTexts(NamedTuple):
    """The same for broken files, such as the description of an image: by the first page that loads each.

    Reads at most `most` pages, in their order, within `seconds`. `normalise`: as files are stored.
    """

    frontier: Frontier
    read: Read
    normalise: Normaliser
    most: int
    seconds: float

    async def __call__(self) -> int:
        """How many pages were read. Raises `FrontierError`."""
        broken = {kind: dict(files) for kind, files in (await self.frontier.recall(BROKEN_FILES)).items()}
        read, silent = 0, 0
        with anyio.move_on_after(self.seconds):
            for number, urls in (await self._due(broken)).items():
                found = await self._read(number, urls)
                for files in broken.values():
                    for url in found.keys() & files.keys():
                        files[url] = files[url]._replace(text=found[url][0], place=found[url][1])
                read, silent = (read + 1, 0) if found else (read, silent + 1)
                if silent >= MOST_UNANSWERED:
                    break
        if read:
            await self.frontier.remember(BROKEN_FILES, broken)
        return read

    async def _due(self, broken: Mapping[str, Mapping[str, BrokenFile]]) -> Mapping[int, Sequence[Url]]:
        """The pages to read by their number, and the broken files of each."""
        due = defaultdict[int, list[Url]](list)
        for kind, files in broken.items():
            unknown = {url for url, one in files.items() if one.text is None and not one.line}
            if not unknown:
                continue
            async for page in readings(self.frontier, kind):
                if not unknown or (len(due) >= self.most and page.id not in due):
                    break
                if urls := [url for _, url in page.read if url in unknown]:
                    unknown.difference_update(urls)
                    due[page.id] += urls
        return due

    async def _read(self, number: int, urls: Sequence[Url]) -> dict[str, tuple[str, str]]:
        """Text and place of these files of a page; nothing if it did not answer."""
        page = (await self.frontier.read(reads.PagesOf([number]))).get(number)
        parsed = page and await self.read(page.url, {Extract.PICTURES}, rendering_of(page))
        if not parsed:
            return {}
        found: dict[str, tuple[str, str]] = dict.fromkeys(urls, ("", ""))
        for one in parsed.anchors:
            if (url := self.normalise.canonical(one.href, parsed.base)) in found:
                found[url] = (one.text, one.place)
        return found
