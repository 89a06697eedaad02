"""The site of a crawl: which URLs belong to it, how its pages are requested outside the queue and judged,
and which of them are rendered.

It leases and settles nothing: see `crawl` and `visit`.
"""

import zlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from crawler.engine.aliases import Aliases
from crawler.engine.finish.answers import plain_markup
from crawler.engine.missing_pages import MissingPages
from crawler.engine.random_pages import RandomPages
from crawler.engine.robots import Access
from crawler.engine.start_urls import StartUrls
from crawler.model.note import RENDERED, SCRIPTED
from crawler.model.outcome import Moved
from crawler.model.reasons import Cause
from crawler.model.rendering import LONGEST_RENDERED, Inputs, Needs, RenderedPage, Rendering
from crawler.model.reply import Broken, Headers, Reply, Response
from crawler.model.trap import DoubtfulPattern, ImpossibleValues
from crawler.model.visit import Lease, ScriptedPages, Visit
from crawler.parse.extract import Extract
from crawler.parse.publish_base import PublishBase
from crawler.parse.url import Url, origin
from crawler.ports import Frontier, Request, reads
from crawler.rules import rendering
from crawler.rules.candidates import Candidates
from crawler.rules.impossible_values import (
    REFUSED,
    REFUSING,
    all_show,
    hardly_larger,
    leads_elsewhere,
    questions,
    shown,
)
from crawler.rules.judge import PAGE_STATUSES, Judge
from crawler.rules.redirects import target_of


class QueryValues(Struct, eq=False):
    """Asks what is shown for values that a parameter cannot have, of patterns that may be endless.

    The leader asks at a barrier, so what is asked depends on the site alone. What follows from the answers is
    decided by `rules.impossible_values` and `frontier.query_values`.
    """

    judge: Judge
    fetch: Callable[[Url], Awaitable[Reply | None]]

    async def ask(self, patterns: Sequence[DoubtfulPattern]) -> dict[int, ImpossibleValues]:
        """What is shown in each pattern for values that do not exist."""
        return {pattern.id: await self._shown(pattern) for pattern in patterns}

    async def _shown(self, pattern: DoubtfulPattern) -> ImpossibleValues:
        answers = list[tuple[str | None, str | None]]()
        for one, other in questions(pattern.pages):
            answers.append((await self._answer(one), await self._answer(other)))
            if shown(pattern.pages, answers) is None:
                break
        found, near = shown(pattern.pages, answers), hardly_larger(pattern.pages)
        if found is None or near is None or all_show(pattern.pages, found):
            return ImpossibleValues(found, 2 * len(answers))
        return ImpossibleValues(found, 2 * len(answers) + 1, await self._answer(near) == found)

    async def _answer(self, url: Url) -> str | None:
        """None as well for a page that may stall the parser, or lacks what scripts make of it."""
        reply = await self.fetch(url)
        if not isinstance(reply, Response):
            return None
        if reply.status in REFUSING or leads_elsewhere(url, target_of(url, reply)):
            return REFUSED
        markup = plain_markup(self.judge, url, reply)
        if markup is None or self.judge.renders:
            return None
        return replace(markup, wanted=markup.wanted - {Extract.SPARING} | {Extract.ECHOLESS}).read().content


MOST_SAMPLES: Final = 20  # pages that are rendered as samples


class ScriptedSite(Struct, eq=False):
    """Which pages are rendered with --render auto, beside those that show nothing without scripts.

    The leader chooses when nothing else is to be visited. Of each kind of pages (`rules.rendering`) one is
    rendered, the first by URL; if its scripts showed more, those of its kind that were not rendered are read
    again. What was chosen is a note of the run, so that all members render such pages.
    """

    frontier: Frontier
    is_sampled: bool  # with --render auto
    _chosen: ScriptedPages | None = None

    def prepared(self, lease: Lease) -> Lease:
        """The lease with what was chosen so far."""
        return replace(lease, scripted=self._chosen) if self._chosen else lease

    async def recall(self, *, anew: bool = False) -> None:
        """Restores what this run has chosen."""
        if self.is_sampled and (self._chosen is None or anew):
            self._chosen = await self.frontier.recall(SCRIPTED)

    async def choose(self) -> int:
        """Has samples and pages like them rendered; how many are read again."""
        if not self.is_sampled:
            return 0
        await self.recall()
        chosen = self._chosen or ScriptedPages()
        known = await self.frontier.read(reads.KindsOfScripted())
        proven, samples = rendering.decided(known)
        samples = samples[: max(0, MOST_SAMPLES - len(known.samples))]
        now = ScriptedPages(chosen.samples.union(samples), chosen.kinds | proven)
        if now != chosen:
            self._chosen = now
            await self.frontier.remember(SCRIPTED, now)
        again = await self.frontier.read(reads.UnrenderedPages(sorted(now.kinds))) if known.plain else ()
        return await self.frontier.read_again(list(dict.fromkeys([*samples, *again])), once=False)


MOST_KEPT: Final = 60  # pages rendered outside the queue that are remembered
_KEPT: Final = frozenset({"content-type", "link", "x-robots-tag"})  # headers that are read of them


@dataclass(eq=False, repr=False)
class CrawledSite:
    """The site of one crawl. `base` is updated when the first start URL redirects to another origin."""

    frontier: Frontier
    access: Access
    candidates: Candidates
    judge: Judge
    base: PublishBase | None = None
    # At least one start URL must lead to a page.
    checks_starts: bool = True
    aliases: Aliases = field(init=False)
    starts: StartUrls = field(init=False)
    missing: MissingPages = field(init=False)
    values: QueryValues = field(init=False)
    random: RandomPages = field(init=False)
    scripted: ScriptedSite = field(init=False)
    questions_left: int | None = None  # pages that may be asked for outside the queue; None: any number
    # Of earlier runs and this one; None: not recalled yet.
    _rendered: dict[str, RenderedPage] | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        """Creates its parts."""
        self.aliases = Aliases(self.frontier, self.access, self.candidates)
        self.missing = MissingPages(self.frontier, self.judge, self.fetch)
        self.values = QueryValues(self.judge, self.fetch)
        self.random = RandomPages(self.frontier, self.missing.read)
        self.scripted = ScriptedSite(self.frontier, self.judge.renders_samples)
        self.starts = StartUrls(self.frontier, self.candidates, self.aliases, self.base, self.target_of)

    @property
    def origins(self) -> set[str]:
        """The origins of the start URLs and of the targets of their redirects."""
        return {origin(url) for url in self.starts.urls}

    async def fetch(self, url: Url, inputs: Inputs | None = None) -> Reply | None:
        """A page outside the queue; None if robots.txt forbids it, or none may be asked for any more.

        `inputs`: see `Request`.
        """
        if self.questions_left is not None:
            if not self.questions_left:
                return None
            self.questions_left -= 1
        if not (await self.access.permit(url)).allowed:
            return None
        request = Request(url, wants_body=self.judge.wants_body, inputs=inputs)
        reply = await self.access.fetch(request)
        # What a connection lost would be decided on as if the site had refused to answer.
        is_lost = isinstance(reply, Broken) and reply.transient and reply.cause is not Cause.TIMEOUT
        return await self.access.fetch(request) if is_lost else reply

    async def target_of(self, url: Url, *, by_scripts: bool = False) -> Url | None:
        """Where a page redirects, also by a refresh; None if it does not, or does not answer."""
        if (reply := await (self.render if by_scripts else self.fetch)(url)) is None:
            return None
        markup = plain_markup(self.judge, url, reply)
        if markup is None and isinstance(reply, Response) and reply.status in PAGE_STATUSES:
            return None
        page = markup.read() if markup else None
        outcome = self.judge(Lease(0, 0, Visit(url)), reply, datetime.now(UTC), page).outcome
        return outcome.to if isinstance(outcome, Moved) else None

    async def render(self, url: Url) -> Reply | None:
        """The same, as its scripts make it. It is that of an earlier run if what made it is unchanged."""
        known = await self._known_pages()
        before = known.get(url)
        reply = await self.fetch(url, before.inputs if before else None)
        if before and isinstance(reply, Response) and reply.status == 304:
            known[url] = known.pop(url)
            return Response(200, Headers(before.headers), zlib.decompress(before.body))
        if not isinstance(reply, Response) or reply.status not in PAGE_STATUSES:
            return reply
        rendered = await self.access.render(url, reply, Rendering(Needs.PATTERN))
        known.pop(url, None)
        if isinstance(rendered, Response) and rendered.rendering and rendered.rendering.inputs:
            headers = tuple(field for field in rendered.headers if field[0] in _KEPT)
            page = RenderedPage(rendered.rendering.inputs, headers, zlib.compress(rendered.body))
            if len(page.body) <= LONGEST_RENDERED:
                known[url] = page
        return rendered

    async def _known_pages(self) -> dict[str, RenderedPage]:
        if self._rendered is None:
            earlier: Mapping[str, RenderedPage] = await self.frontier.recall(RENDERED, "earlier")
            self._rendered = dict(earlier)
        return self._rendered

    async def remember_rendered(self) -> None:
        """Stores what was rendered outside the queue, for the next run."""
        if self._rendered is not None:
            await self.frontier.remember(RENDERED, dict([*self._rendered.items()][-MOST_KEPT:]))

    async def on_site(self, urls: Sequence[Url]) -> Sequence[Url]:
        """The URLs that are on a host of the site, in any folder."""
        await self.aliases.check(urls)
        return [url for url in urls if self.candidates.scope.on_site(url)]

    async def seeded(self, urls: Sequence[Url]) -> Sequence[Visit]:
        """The visits of URLs that a seed contains."""
        await self.aliases.check(urls)
        scope = self.candidates.scope
        return [self.candidates.visit(scope.ours(url), 0, None) for url in urls]

    async def checked_again(self, filtered: Sequence[Visit]) -> Sequence[Visit]:
        """The visits of URLs that were filtered, in the scope of now."""
        await self.aliases.check(visit.url for visit in filtered)
        ours = [replace(visit, url=self.candidates.scope.ours(visit.url)) for visit in filtered]
        return [self.candidates.visit(visit.url, visit.depth, visit.via, visit.hops) for visit in ours]
