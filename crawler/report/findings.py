"""The findings about a site: a pure function of the rows of the state.

Three passes over the rows, none of which stores a row: `add_page` takes every page that may have a finding,
`link` every edge, and `found` gives the findings of a page. Memory grows by a few bytes per URL.
Findings that need a complete run are left out if the run is not; one that the run before did not have is new.
"""

from array import array
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Final, Self

from msgspec import Struct
from msgspec.structs import replace

from crawler.model import external, rendering
from crawler.model.external import ExternalCheck
from crawler.model.outcome import says
from crawler.model.reasons import SeedKind
from crawler.model.rendering import Needs
from crawler.model.rows import EdgeRow, PageRow
from crawler.parse.url import origin
from crawler.report.catalogue import GROUPED, NEEDS_COMPLETE, Code
from crawler.report.formatting import counted
from crawler.report.groups import Texts
from crawler.report.history import EarlierFindings
from crawler.report.inbound_links import InboundLinks
from crawler.report.report import Finding, Known
from crawler.report.site_findings import site_findings
from crawler.report.url_kind import (
    BY_KIND,
    FAILED,
    LINK_CODES,
    LINKED,
    OFF_SITE,
    WHY,
    UrlKind,
    is_listed,
    kind_of,
)

# A link is site-wide if this fraction of at least so many pages with links have it.
SITE_WIDE: Final = 0.9
FEWEST: Final = 10

_STALE: Final = FAILED | {UrlKind.MOVED, UrlKind.ROBOTS, UrlKind.NOINDEX, UrlKind.CANONICAL, UrlKind.DROPPED}


class PageFinding(Struct, frozen=True):
    """One finding about one URL. Other URLs are given by id."""

    code: Code
    page: PageRow
    detail: str
    links: int = 0  # pages that link to it
    sources: Sequence[int] = ()  # the first of these pages
    named_by: str = ""  # what names it if no page links to it
    hops: Sequence[int] = ()  # of a redirect
    new: bool = False
    site_wide: bool = False
    group: int | None = None  # the group it belongs to,
    size: int = 1  # the number of pages in the group,
    first: bool = True  # and whether this is the first of them


class Findings:
    """The passes over one run, in this order: `add_page`, `close`, `link`, `found`. Listed pages that have no
    finding may be left out.
    """

    def __init__(
        self,
        run: int,
        *,
        complete: bool,
        check: ExternalCheck | None = None,
        before: Mapping[str, str] | None = None,
    ) -> None:
        """`run`: the number of the newest run; `check`: its check of links to other sites; `before`: what it
        is compared with, as in the note.
        """
        self.run, self.complete, self._check = run, complete, check
        self.before = None if before is None else EarlierFindings(before)
        self._kinds, self._wanted = bytearray(1024), bytearray(1024)
        self._redirects, self._targets = array("I"), array("I")
        self._same = Texts()
        self._titled = 0  # pages of groups with one title that were found
        self.inbound = InboundLinks(bytearray(), bytearray())
        self.faults: dict[int, list[tuple[Code, str]]] = {}  # of language versions and images, by page
        self.files: Sequence[Finding] = ()  # about images, scripts and style sheets that do not answer
        self.pages: Sequence[int] = ()  # by URL: those that may have a finding, or had one before

    @classmethod
    def of(cls, known: Known) -> Self:
        """For the newest run."""
        run = known.run
        return cls(run.number, complete=run.complete, check=known.check, before=known.before)

    def add_page(self, page: PageRow) -> None:
        """The first pass, by URL."""
        if page.run != self.run:
            return
        if page.id >= len(self._kinds):
            more = bytes(max(page.id + 1 - len(self._kinds), len(self._kinds)))
            for of_urls in (self._kinds, self._wanted):
                of_urls.extend(more)
        if page.redirect:
            self._redirects.append(page.id)
            self._targets.append(page.redirect)
        kind = self._kinds[page.id] = self._kind_of(page)
        self._wanted[page.id] = kind in LINKED or _is_named(page)
        if self.complete and page.outcome == "listed":
            self._same.add(*_texts(page))

    def _kind_of(self, page: PageRow) -> UrlKind:
        if self._check and page.outcome == OFF_SITE and _is_broken(page.external and page.external.code):
            return UrlKind.EXTERNAL
        return kind_of(page.outcome, page.status)

    def targets(self) -> Sequence[int]:
        """The ids of what redirects lead to that was not added, if it matters whether it is listed."""
        if self.complete or self.before is None:
            return ()
        return [to for to in set(self._targets) if to >= len(self._kinds) or not self._kinds[to]]

    def close(self) -> None:
        """End the first pass."""
        self._same.close()
        redirects = zip(self._redirects, self._targets, strict=True)
        self.inbound = InboundLinks(self._kinds, self._wanted, redirects)
        # A link to a redirect that ends in a failure is a link to a failure.
        for number in self._redirects:
            hops, is_endless = self.inbound.hops(number)
            end = UrlKind.LOOP if is_endless else UrlKind(self._kinds[hops[-1]]) if hops else UrlKind.MOVED
            if end in FAILED:
                self._kinds[number] = end

    @property
    def needs_links(self) -> bool:
        """Whether any finding depends on links: if not, the second pass may be left out."""
        return any(self._wanted) or UrlKind.CANONICAL in self._kinds

    def has(self, kinds: Collection[UrlKind]) -> bool:
        """Whether there is a URL of any of these kinds."""
        return any(kind in self._kinds for kind in kinds)

    def link(self, edges: EdgeRow) -> None:
        """The second pass: the edges of every page of the run."""
        self.inbound.add(edges)

    def about_site(self, known: Known) -> Iterator[Finding]:
        """The findings about the site as a whole, after the first pass."""
        yield from site_findings(known)
        yield from self.files

    def found(self, page: PageRow) -> Iterator[PageFinding]:
        """The third pass: the findings of a page. Pages come in the order of the report."""
        if page.run != self.run or not page.outcome:
            return
        for rule in _LISTED if page.outcome == "listed" else _OTHERS:
            for found in rule(self, page):
                yield from self._judged(found)
        yield from self.stated(page, self.faults.get(page.id, ()))

    def stated(self, page: PageRow, faults: Sequence[tuple[Code, str]]) -> Iterator[PageFinding]:
        """The findings about the language versions and images of a page."""
        for code, detail in faults:
            yield from self._judged(PageFinding(code, page, detail))

    def _judged(self, found: PageFinding) -> Iterator[PageFinding]:
        if self.complete or found.code not in NEEDS_COMPLETE:
            yield replace(found, new=self._is_new(found.code, found.page))

    def pages_in(self, code: Code) -> int:
        """Number of pages that link to the URLs with this finding, or are in its groups; else 0."""
        if code in GROUPED:
            return self._same.texts.pages if code is Code.DUPLICATE_CONTENT else self._titled
        if code is Code.REDIRECT_CHAIN:
            return self.inbound.pages_to_chains
        return sum(self.inbound.linking[kind] for kind, other in BY_KIND.items() if other is code)

    def worst_pages(self, code: Code) -> Sequence[tuple[int, int]]:
        """Pages with links to most URLs with this finding, by id, and to how many."""
        if code not in LINK_CODES:
            return ()
        return next(self.inbound.worst(kind) for kind, other in BY_KIND.items() if other is code)

    def _is_new(self, code: Code, page: PageRow) -> bool:
        """Whether the run before did not have the finding, though it could tell."""
        if self.before is None or code in GROUPED:
            return False
        if code is Code.NO_LASTMOD:
            return page.was is None or page.was_lastmod is not None
        answer = page.external if code is Code.BROKEN_EXTERNAL else None
        if answer and answer.was is None and page.was is not None:
            return False  # asked for the first time, though linked for long
        if page.redirect and not self.complete and self._end_is_open(page.id):
            return False  # the URL may have another finding, which it had before
        return self.before.sought(code) and not self.before.has(code, page.id)

    def _end_is_open(self, redirect: int) -> bool:
        hops, _ = self.inbound.hops(redirect)
        return not hops or self._kinds[hops[-1]] in {UrlKind.ABSENT, UrlKind.OPEN}

    # -- the rules: what makes each finding -----------------------------------------------------------------

    def _linked(self, page: PageRow) -> Iterator[PageFinding]:
        """URLs that links or sitemaps should not lead to."""
        kind = self._kind_of(page)
        links, redirected = self.inbound.count[page.id], self.inbound.redirected[page.id]
        if kind is UrlKind.EXTERNAL and (links or redirected):
            yield self._external(page)
        elif kind is UrlKind.MOVED:
            yield from self._redirect(page)
        # Where only a redirect or a canonical leads to a failure, that redirect or page is reported.
        elif kind in BY_KIND and (links or (kind in FAILED and page.seed)):
            yield self._found(BY_KIND[kind], page, _failure_detail(page))

    def _external(self, page: PageRow) -> PageFinding:
        """A broken link to another site, with the status of its host."""
        status = page.external and page.external.status
        return self._found(Code.BROKEN_EXTERNAL, page._replace(status=status), _external_detail(page))

    def _redirect(self, page: PageRow) -> Iterator[PageFinding]:
        """A redirect: to a failure, to another redirect, or one that pages link to."""
        hops, is_endless = self.inbound.hops(page.id)
        end, links = UrlKind(self._kinds[page.id]), self.inbound.count[page.id]
        is_first = not self.inbound.redirected[page.id]
        if end in FAILED and (links or page.seed or is_first or is_endless):
            yield replace(self._found(BY_KIND[end], page, page.detail), hops=hops)
        if end in FAILED:
            return
        if len(hops) > 1 and is_first:
            yield replace(self._found(Code.REDIRECT_CHAIN, page, page.detail), hops=hops)
        if links:
            yield replace(self._found(Code.REDIRECT_LINKED, page, page.detail), hops=hops[-1:])

    def _canonical(self, page: PageRow) -> Iterator[PageFinding]:
        """Problems with the canonical URL of a page."""
        kind, target = kind_of(page.outcome), self.inbound.canonical[page.id]
        if kind is UrlKind.NOINDEX and target:
            yield PageFinding(Code.NOINDEX_CANONICAL, page, "", hops=(target,))
        if kind is not UrlKind.CANONICAL or not target:
            return
        other = UrlKind(self._kinds[target])
        if other in WHY:
            is_broken = other in FAILED or other is UrlKind.EXTERNAL
            code = Code.CANONICAL_BROKEN if is_broken else Code.CANONICAL_CHAIN
            yield PageFinding(code, page, f"{page.detail}: {WHY[other]}")

    def _barred(self, page: PageRow) -> Iterator[PageFinding]:
        """Listed pages that are not for every search engine, or whose canonical is ignored."""
        if page.barred:
            yield PageFinding(Code.NOINDEX_FOR_BOT, page, page.barred)
        if page.detail:
            yield PageFinding(Code.CANONICAL_CONFLICT, page, page.detail)

    def _named(self, page: PageRow) -> Iterator[PageFinding]:
        """URLs that a sitemap should not contain, or that only a sitemap contains."""
        seed, inbound = page.seed, self.inbound
        if _is_named(page):
            if not inbound.count[page.id] and not inbound.redirected[page.id]:
                yield self._found(Code.ORPHAN, page, "")
        elif seed and seed.kind is SeedKind.SITEMAP and kind_of(page.outcome) in _STALE:
            yield PageFinding(Code.SITEMAP_STALE, page, _sentence(page), named_by=seed.name)

    def _grouped(self, page: PageRow) -> Iterator[PageFinding]:
        """Pages that share their content or title with other listed pages."""
        same = self._same
        content, title = same.of(*_texts(page))
        for code, groups, group in (
            (Code.DUPLICATE_CONTENT, same.texts, content),
            (Code.DUPLICATE_TITLE, same.titles, title),
        ):
            if group:
                number, size = group
                first = groups.is_first(number)
                self._titled += size if first and code is Code.DUPLICATE_TITLE else 0
                yield PageFinding(code, page, page.title or "", group=number, size=size, first=first)

    def _rendered(self, page: PageRow) -> Iterator[PageFinding]:
        """Pages whose scripts make their content."""
        if page.rendering is None:
            return
        seen = rendering.read(page.rendering)
        if seen.hash_routes:
            yield PageFinding(Code.HASH_ROUTES, page, counted(seen.hash_routes, "link"))
        if seen.is_due:
            yield PageFinding(Code.NOT_RENDERED, page, seen.failed.value if seen.failed else "")
        if seen.after and seen.needs is not Needs.ALWAYS and seen.needs_scripts:
            before = counted(seen.before.links, "link")
            yield PageFinding(
                Code.NEEDS_SCRIPTS, page, f"{before} without scripts, {seen.after.links:,} with them"
            )

    def _undated(self, page: PageRow) -> Iterator[PageFinding]:
        if page.lastmod is None:
            yield PageFinding(Code.NO_LASTMOD, page, "")

    def _found(self, code: Code, page: PageRow, detail: str) -> PageFinding:
        inbound, links = self.inbound, self.inbound.count[page.id]
        sources, named_by = inbound.sources(page.id), ""
        if not links and (redirect := inbound.redirected[page.id]):
            sources = [redirect]
        elif not links and page.seed:
            named_by = page.seed.name or str(page.seed)
        wide = inbound.pages >= FEWEST and links >= SITE_WIDE * inbound.pages
        return PageFinding(code, page, detail, links, sources, named_by, site_wide=wide)


_Rule = Callable[[Findings, PageRow], Iterator[PageFinding]]
_LISTED: Final[Sequence[_Rule]] = (
    Findings._barred,  # noqa: SLF001 - our own
    Findings._named,  # noqa: SLF001
    Findings._grouped,  # noqa: SLF001
    Findings._rendered,  # noqa: SLF001
    Findings._undated,  # noqa: SLF001
)
_OTHERS: Final[Sequence[_Rule]] = (
    Findings._linked,  # noqa: SLF001
    Findings._canonical,  # noqa: SLF001
    Findings._named,  # noqa: SLF001
    Findings._rendered,  # noqa: SLF001
)
"""The rules for listed pages, and for all other URLs."""


def _texts(page: PageRow) -> tuple[str, str, str, str]:
    """What `Texts` has of a listed page."""
    return origin(page.url), page.title or "", page.content or "", page.digest or ""


def _is_named(page: PageRow) -> bool:
    """Whether the page is listed, and a sitemap or --input contains it."""
    return page.seed is not None and page.seed.kind is not SeedKind.START and is_listed(page.outcome)


def _is_broken(code: str | None) -> bool:
    return code is not None and external.kind_of(code) == external.BROKEN


def _external_detail(page: PageRow) -> str:
    """What the host of another site answered, beside the status."""
    answer = page.external
    if answer is None:
        return ""
    words = "" if answer.code == external.Answer.NOT_FOUND.value else external.says(answer.code)
    return ": ".join(filter(None, [words, answer.detail]))


def _failure_detail(page: PageRow) -> str:
    """The detail of a failure, beside the status."""
    kind = kind_of(page.outcome)
    if kind in {UrlKind.MOVED, UrlKind.ROBOTS, UrlKind.NOINDEX}:
        return page.detail
    if kind is UrlKind.BROKEN and page.status in {404, 410}:
        return ""
    return _sentence(page)


def _sentence(page: PageRow) -> str:
    """The sentence for the outcome, with its detail beyond the status."""
    sort, _, reason = page.outcome.partition(":")
    words = says(f"failed:{reason}" if sort == "kept" else page.outcome)
    return words if page.detail in {"", str(page.status)} else f"{words}: {page.detail}"
