"""`--hreflang`: language versions that pages state about each other, and what of it goes into the sitemap.

A page names its versions; search engines ignore a version that does not name the page in return (Google,
localized versions). Nothing is guessed: a cluster is not completed, and a wrong code is not repaired.
"""

from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from typing import ClassVar, Final, NamedTuple

from msgspec.structs import replace

from crawler.app.features.feature import Feature, Lines, PageFault, in_groups
from crawler.model.facts import LONGEST_LABEL, Element, Entry, Extras, LabelledUrl
from crawler.model.outcome import says
from crawler.model.rows import FeatureRow
from crawler.parse import headers, languages
from crawler.parse.extract import Extract
from crawler.parse.normalise import Normaliser
from crawler.parse.publish_base import PublishBase
from crawler.parse.url import LONGEST_URL, Url
from crawler.ports import Reads, reads
from crawler.ports.features import PageFeature, SeenPage
from crawler.report.catalogue import Code
from crawler.report.url_kind import OFF_SITE, is_listed
from crawler.rules.page_rules import PageRules
from crawler.settings.sections import Settings

MOST_VERSIONS: Final = 500  # versions of one page that are kept
LONGEST_ALL: Final = 65_536  # characters of them
GROUP: Final = 500  # pages that are looked up at a time
NAME: Final = "hreflang"


def stored(stated: Iterable[LabelledUrl]) -> tuple[LabelledUrl, ...]:
    """Codes and URLs as they are stored: each pair once, valid codes in their usual spelling."""
    kept: dict[LabelledUrl, None] = {}
    size = 0
    for code, url in stated:
        spelled = languages.canonical(code) or _plain(code)
        size += len(spelled) + len(url) + 2
        if len(kept) >= MOST_VERSIONS or size > LONGEST_ALL:
            break
        kept[spelled, url] = None
    return tuple(kept)


def _plain(code: str) -> str:
    """An invalid code as visible ASCII."""
    return "".join(char if "!" <= char <= "~" else "?" for char in code[:LONGEST_LABEL]) or "?"


class ClusterMember(NamedTuple):
    """A version that a page names. `fault`: why the version does not go into the sitemap."""

    code: str
    url: Url
    verdict: str
    fault: Code | None = None


class Cluster(NamedTuple):
    """The versions of a page."""

    members: list[ClusterMember]
    links: tuple[tuple[str, Url], ...]  # what goes into the sitemap, by code
    names_itself: bool


def valid(stated: Iterable[LabelledUrl]) -> dict[str, Url]:
    """The URLs by valid code, without codes that have several."""
    found: dict[str, set[Url]] = {}
    for code, url in stated:
        if languages.canonical(code):
            found.setdefault(code, set()).add(url)
    return {code: next(iter(urls)) for code, urls in found.items() if len(urls) == 1}


def cluster(
    page: FeatureRow, others: Mapping[Url, FeatureRow], is_listed: Callable[[FeatureRow], bool]
) -> Cluster:
    """What becomes of each version that a page names. `others`: those of them that the run knows."""
    sure = valid(page.read)
    members = [_member(page, code, url, sure, others.get(url), is_listed) for code, url in page.read]
    links = {member.code: member.url for member in members if not member.fault}
    names_itself = not members or page.url in {member.url for member in members}
    if page.url not in sure.values() and (code := _own_code(page, links, others)) and code not in sure:
        links[code] = page.url
        members.append(ClusterMember(code, page.url, "added, as the others name it"))
    if set(links.values()) <= {page.url}:
        links = {}
    return Cluster(
        members, tuple(sorted(links.items(), key=lambda link: languages.order(link[0]))), names_itself
    )


def _member(
    page: FeatureRow,
    code: str,
    url: Url,
    sure: Mapping[str, Url],
    other: FeatureRow | None,
    is_listed: Callable[[FeatureRow], bool],
) -> ClusterMember:
    if not languages.canonical(code):
        return ClusterMember(code, url, f"invalid code: {languages.hint(code)}", Code.HREFLANG_CODE)
    if code not in sure:
        return ClusterMember(code, url, "this code has several URLs", Code.HREFLANG_CONFLICT)
    if url == page.url:
        return ClusterMember(code, url, "the page itself")
    return ClusterMember(code, url, *_said_of(page, other, is_listed))


def _said_of(
    page: FeatureRow, other: FeatureRow | None, is_listed: Callable[[FeatureRow], bool]
) -> tuple[str, Code | None]:
    """The verdict on another page that a page names, and the fault."""
    if other is None or other.outcome == OFF_SITE:
        return "on another site, not verified", None
    if not is_listed(other):
        return f"not listed: {says(other.outcome)}", Code.HREFLANG_TARGET
    if page.url not in valid(other.read).values():
        return "does not name this page", Code.HREFLANG_NO_RETURN
    return "names this page, too", None


def _own_code(page: FeatureRow, links: Mapping[str, Url], others: Mapping[Url, FeatureRow]) -> str | None:
    """The code that all verified versions use for the page; `x-default` is for none in particular."""
    codes = {
        code
        for url in links.values()
        if (other := others.get(url)) and other.outcome != OFF_SITE
        for code, to in valid(other.read).items()
        if to == page.url and code != languages.X_DEFAULT
    }
    return codes.pop() if len(codes) == 1 else None


def faults(found: Cluster) -> list[PageFault]:
    """The findings about a page: code and detail. Each code once."""
    details: dict[Code, list[str]] = {}
    for member in found.members:
        if member.fault:
            details.setdefault(member.fault, []).append(f"{member.code} {member.url}: {member.verdict}")
    named = [(code, _few(texts)) for code, texts in details.items()]
    return named if found.names_itself else [*named, (Code.HREFLANG_NO_SELF, "")]


def _few(texts: list[str]) -> str:
    return texts[0] if len(texts) == 1 else f"{texts[0]} (and {len(texts) - 1} more)"


async def clusters(
    rows: Reads, pages: Iterable[FeatureRow], rules: PageRules
) -> Sequence[tuple[FeatureRow, Cluster]]:
    """The cluster of each of these pages that names any versions."""
    naming = [page for page in pages if page.read]
    named = {url for page in naming for _, url in page.read}
    others = await rows.read(reads.FeaturesOf(NAME, sorted(named))) if named else {}

    def listed(page: FeatureRow) -> bool:
        return is_listed(page.outcome) and (not rules or rules.lists(page.url))

    return [(page, cluster(page, others, listed)) for page in naming]


class _VersionReader(PageFeature):
    name = NAME
    extract = frozenset({Extract.VERSIONS})

    def __init__(self, normalise: Normaliser) -> None:
        self._normalise = normalise

    def read(self, seen: SeenPage) -> tuple[LabelledUrl, ...]:
        page, url = seen.page, seen.url
        base = page.base if len(page.base) <= LONGEST_URL else url
        stated = [(code, href, base) for code, href in page.alternates]
        for link in headers.links(seen.reply.headers.all("link")):
            if "alternate" in link.rels:
                stated += [(code, link.target, url) for code in link.hreflangs]
        named = ((code, self._normalise(href, base)) for code, href, base in stated)
        return stored((code, to) for code, to in named if to and len(to) <= LONGEST_URL)


class Hreflang(Feature):
    """See `Feature`."""

    name: ClassVar[str] = NAME
    namespace = "xhtml", "http://www.w3.org/1999/xhtml"

    def reader(self, settings: Settings, normalise: Normaliser, base: PublishBase | None) -> PageFeature:  # noqa: ARG002
        return _VersionReader(normalise)

    async def extended(
        self, rows: Reads, settings: Settings, entries: AsyncIterator[Sequence[Entry]]
    ) -> AsyncIterator[Sequence[Entry]]:
        rules = PageRules(settings.rules.rule)
        async for chunk in entries:
            pages = await rows.read(reads.FeaturesOf(NAME, [entry.url for entry in chunk]))
            found = {page.url: some.links for page, some in await clusters(rows, pages.values(), rules)}
            yield [
                replace(entry, extras=(entry.extras or Extras()).with_elements(map(_element, links)))
                if (links := found.get(entry.url))
                else entry
                for entry in chunk
            ]

    async def faults(self, rows: Reads) -> AsyncIterator[tuple[FeatureRow, Sequence[PageFault]]]:
        async for chunk in rows.stream(reads.ReadingPages(NAME)):
            for some in in_groups([page.url for page in chunk], GROUP):
                pages = await rows.read(reads.FeaturesOf(NAME, some))
                for page, found in await clusters(rows, pages.values(), PageRules()):
                    if said := faults(found):
                        yield page, said

    async def about(self, rows: Reads, url: Url) -> tuple[object, Lines] | None:
        pages = await rows.read(reads.FeaturesOf(NAME, [url]))
        for _, found in await clusters(rows, pages.values(), PageRules()):
            lines = [(NAME, f"{member.code} {member.url}: {member.verdict}") for member in found.members]
            return [_json(member) for member in found.members], lines
        return None


def _element(link: LabelledUrl) -> Element:
    return Element(f'<xhtml:link rel="alternate" hreflang="{link[0]}" href="', link[1], '"/>')


def _json(member: ClusterMember) -> dict[str, object]:
    return member._asdict() | {"fault": member.fault.value if member.fault else ""}
