"""Which addresses may be spellings of one, and which of the pages there is listed.

Addresses that fold together only suggest one page: the pages must also be the same by evidence, such as the
same bytes. Equal pages at unrelated addresses are all listed. Pure.
"""

from collections import defaultdict
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain
from typing import Final
from urllib.parse import unquote

from msgspec import Struct

from crawler.parse import languages
from crawler.parse import url as urls
from crawler.parse.late import late

_PAGES: Final = r"(?:html?|xhtml|shtml|php\d?|aspx?|jspx?|cfm|cgi|pl)"
_DOCUMENT: Final = late(rf"(?:index|default|home)(?:\.{_PAGES})?|(?:index|default)\..*")
_SCRIPT: Final = late(rf"(?:index|default)\.{_PAGES}")  # before the path that it answers for
_EXTENSION: Final = late(rf"(?<=.)\.{_PAGES}$")
_INFO: Final = late(rf"(.*?[^/]\.{_PAGES})/.")  # a page, and more of the path behind it
_FIRST: Final = late(r"/([a-zA-Z]+[-_]?)?0*1/?$")  # at the end of a path: the first page of a list
_PATH_PARAMETER: Final = late(r";[^/]*")
_SESSION: Final = late(r"(?:\(?s|sid|sess|session|session_?id)?[-_=(]*([0-9a-z]+(?:-[0-9a-z]+)*)\)*")
_TURNS: Final = late(r"(?<=[0-9])(?=[a-z])|(?<=[a-z])(?=[0-9])")
MOST_PARAMETERS: Final = 8  # of which one may be ignored
SHORTEST_SESSION: Final = 6  # characters
TURNS: Final = 3  # from letters to digits or back, in a session id that is no number; 2 in a long one
LONG_SESSION: Final = 8  # characters


def folded(url: str) -> str:
    """What the spellings of an address have in common.

    Without trailing and double slashes, the name of a default document, the extension, case, escapes, and
    of parameters their order, and those that are empty.
    """
    address, _, query = url.partition("?")
    path = _PATH_PARAMETER.sub("", unquote(urls.target(address)).casefold())
    segments = [segment for segment in path.split("/") if segment]
    segments = [*(it for it in segments[:-1] if not _SCRIPT.fullmatch(it)), *segments[-1:]]
    if segments and _DOCUMENT.fullmatch(segments[-1]):
        segments.pop()
    elif segments:
        segments[-1] = _EXTENSION.sub("", segments[-1])
    given = sorted({unquote(part).casefold() for part in query.split("&") if part.partition("=")[2]})
    return f"{urls.origin(address)}/{'/'.join(segments)}?{'&'.join(given)}"


def without_extension(segment: str) -> str:
    """A segment in lower case without the extension of a page: `a` of `a.html`."""
    return _EXTENSION.sub("", segment)


def without_info(url: str) -> str | None:
    """The page before more of the path, which some servers ignore: `/a.php` of `/a.php/b`."""
    address, mark, query = url.partition("?")
    found = _INFO.match(urls.target(address))
    return f"{urls.origin(address)}{found[1]}{mark}{query}" if found else None


def without_number(url: str) -> Iterator[str]:
    """The list whose first page is at a URL: `/a` of `/a/page-1`, and of `/a/page/1/` also `/a/page`."""
    found = _FIRST.search(url, len(urls.origin(url))) if "?" not in url else None
    if found:
        base = url[: found.start()]
        yield base
        if not found[1] and len(base) > len(urls.origin(url)):
            yield base.rpartition("/")[0]


def is_session(part: str) -> bool:
    """Whether a segment or a value looks like the id of a session."""
    return len(part) >= SHORTEST_SESSION and "." not in part and _is_session(part)


@lru_cache(1_024)  # folders come again
def _is_session(part: str) -> bool:
    found = _SESSION.fullmatch(part.lower())
    if found is None or len(found[1]) < SHORTEST_SESSION:
        return False
    turns = TURNS - (len(found[1]) >= LONG_SESSION)
    return found[1].isdigit() or len(_TURNS.findall(found[1])) >= turns


def sessions(url: str) -> Iterator[tuple[str, str]]:
    """The places where a URL may carry the id of a session, and the URL without it."""
    address, _, query = url.partition("?")
    segments = address.split("/")
    for at, segment in enumerate(segments[3:], 3):
        if is_session(segment):
            yield "/".join([*segments[:at], ""]), "/".join([*segments[:at], "…", *segments[at + 1 :]])
            return
    parts = query.split("&") if query else ()
    for at, part in enumerate(parts):
        name, _, value = part.partition("=")
        if is_session(value):
            left = "&".join([*parts[:at], *parts[at + 1 :]])
            yield f"{urls.origin(address)}?{name}", f"{address}?{left}" if left else address
            return


def visitor_urls(url: str, places: Collection[str]) -> Iterator[str]:
    """The pages for visitors without a session, folded: the text is the same, links may have other ids."""
    return (folded(rest.replace("/…", "", 1)) for place, rest in sessions(url) if place in places)


def without_session(url: str) -> str:
    """The URL without what looks like the id of a session."""
    return next((rest for _, rest in sessions(url)), url)


class Copy(Struct, frozen=True):
    """A listed page that another one may be a copy of."""

    id: int
    url: str
    evidence: tuple[Hashable, ...]  # what pages have in common that are the same
    announced: str | None  # another URL of it, by its Content-Location
    is_canonical: bool  # other pages name it as canonical
    linked: int  # pages that link to it
    is_start: bool = False  # a start URL
    text: str | None = None  # its content, whatever it links to
    is_published: bool = False  # it is in the last publication

    @property
    def rank(self) -> tuple[bool, bool, int, bool, int, bool, str]:
        """The least of its group is listed. A site is known by its start URL, whatever its pages link to.

        Where as many pages link to several, what was published stays.
        """
        spelling = len(self.url), self.url != self.url.lower(), self.url
        return not self.is_canonical, not self.is_start, -self.linked, not self.is_published, *spelling


def copies(pages: Sequence[Copy], session_places: Iterable[str] = ()) -> Mapping[int, str]:
    """The pages that are the same as another one that is listed, with the URL of that one.

    `session_places`: where URLs carry ids of sessions, by `places_of_sessions`.
    """
    places, routed = frozenset(session_places), _by_last_segments(pages)
    groups: dict[Hashable, list[tuple[Copy, bool]]] = defaultdict(list)
    for page in pages:
        names = list(_names(page, places))
        for name, is_own in chain(names, [(routed[page.url], True)]) if page.url in routed else names:
            for evidence in page.evidence:
                groups[name, evidence].append((page, is_own))
    leaders = _Leaders()
    for group in groups.values():
        if own := [page for page, is_own in group if is_own]:
            leaders.join(own)
    bases = _for_visitors(pages, places) if places else defaultdict[int, list[Copy]](list)
    for group in groups.values():
        own = [page for page, is_own in group if is_own]
        for number in (page.id for page, is_own in group if not is_own):
            bases[number] += own
    # Such a page joins one of them, and never makes two of them one.
    for page in sorted(pages, key=lambda page: (len(page.url), page.url)):
        leaders.follow(page, bases[page.id])
    return {page.id: leaders.of(page).url for page in pages if leaders.of(page) is not page}


def _for_visitors(pages: Sequence[Copy], places: Collection[str]) -> defaultdict[int, list[Copy]]:
    """Of pages with the id of a session, those with their text for visitors without one."""
    found, named = defaultdict[int, list[Copy]](list), defaultdict[tuple[str, str | None], list[Copy]](list)
    for page in pages:
        named[folded(page.url), page.text].append(page)
    for page in pages:
        for name in visitor_urls(page.url, places) if page.text else ():
            found[page.id] += named.get((name, page.text), ())
    return found


class Repeat(Struct, frozen=True):
    """A listed page with the content of one that was read before it."""

    id: int
    url: str
    original: str


def unlisted_repeats(pages: Iterable[Repeat], listed_instead: Mapping[str, str]) -> Mapping[int, str]:
    """The repeats that are not listed, with the URL of the page that is.

    `listed_instead`: of pages that are duplicates. One of them may be the original of the very page that is
    listed in its place: that page stays. So does a page that is not translated yet.
    """
    ahead, found = dict(listed_instead), dict[int, str]()
    for page in pages:
        if _is_translation(page.url, page.original):
            continue
        seen, at = {page.url}, page.original
        while at in ahead and at not in seen:
            seen.add(at)
            at = ahead[at]
        if at not in seen:
            ahead[page.url] = found[page.id] = at
    return found


def _is_translation(url: str, original: str) -> bool:
    """Whether two URLs differ only in a segment that names a language, which one of them may lack."""
    pair = [one.split("/") for one in (url, original)]
    plain = [[segment for segment in one if not languages.canonical(segment)] for one in pair]
    return plain[0] == plain[1] and all(
        len(one) - len(rest) < 2 for one, rest in zip(pair, plain, strict=True)
    )


class _Leaders:
    """The page that is listed in place of each one."""

    def __init__(self) -> None:
        self._ahead: dict[int, Copy] = {}

    def of(self, page: Copy) -> Copy:
        """The page that is listed in its place: itself, if none is."""
        while (ahead := self._ahead.get(page.id, page)) is not page:
            page = ahead
        return page

    def join(self, pages: Sequence[Copy]) -> None:
        """Makes pages one, with those that they were one with before."""
        first = min(map(self.of, pages), key=lambda page: page.rank)
        for page in pages:
            self._ahead[self.of(page).id] = self._ahead[page.id] = first

    def follow(self, page: Copy, bases: Iterable[Copy]) -> None:
        """Puts a page behind one of those with a shorter URL, whichever is listed in its place."""
        shorter = {self.of(base) for base in bases if len(base.url) < len(page.url)} - {page}
        if shorter and self.of(page) is page:
            self._ahead[page.id] = min(shorter, key=lambda base: base.rank)


def _names(page: Copy, places: frozenset[str]) -> Iterator[tuple[str, bool]]:
    """What the addresses of one page have in common; whether it is its own, or that of another page that must
    be there.
    """
    yield folded(page.url), True
    if page.announced:
        yield folded(page.announced), True
    if base := without_info(page.url):
        yield folded(base), False
    for base in without_number(page.url):
        yield folded(base), False
    path, mark, query = page.url.partition("?")
    if mark:
        parts = query.split("&")
        yield folded(path), False
        for at in range(len(parts) if 1 < len(parts) <= MOST_PARAMETERS else 0):
            yield folded(f"{path}?{'&'.join(parts[:at] + parts[at + 1 :])}"), False
    for place, rest in sessions(page.url):
        if place in places:
            yield folded(rest), True


def _by_last_segments(pages: Iterable[Copy]) -> Mapping[str, str]:
    """URLs of sites that look only at the last segments of a path, with the folded address that these give.

    Below the name of each page, all pages are there again, and below these again: `/a/b/a` is `/a`. A site
    whose folders have copies of some file does not show that: its folders are no such names.
    """
    groups = defaultdict[tuple[str, Hashable], list[tuple[tuple[str, ...], str]]](list)
    for page in pages:
        site, _, path = folded(page.url).partition("://")[2].partition("/")
        segments = tuple(path.partition("?")[0].split("/"))
        for evidence in page.evidence if segments[0] and "?" not in page.url else ():
            groups[site, evidence].append((segments, page.url))
    found = dict[str, tuple[tuple[str, ...], str, str]]()
    names = defaultdict[str, set[str]](set)
    for (site, _), some in groups.items():
        base, first = min(some, key=lambda one: (len(one[0]), one))
        longer = [(segments, url) for segments, url in some if segments[-len(base) :] == base]
        if any(len(segments) > len(base) + 1 for segments, _ in longer):
            names[site].add(base[-1])
            for segments, url in longer:
                way = segments[: -len(base)], site, first
                found[url] = min(way, found.get(url, way))
    return {
        url: folded(first)
        for url, (before, site, first) in found.items()
        if len(names[site]) > 1 and names[site].issuperset(before)
    }


def places_of_sessions(pages: Iterable[tuple[str, Sequence[Hashable]]]) -> frozenset[str]:
    """The places in URLs where ids of sessions stand: the pages are the same with another id.

    `pages`: URLs, and what pages have in common that are the same. What names the pages of different things
    shows other pages with another id.
    """
    found: dict[str, dict[str, list[Sequence[Hashable]]]] = defaultdict(lambda: defaultdict(list))
    for url, evidence in pages:
        for place, rest in sessions(url):
            found[place][rest].append(evidence)
    return frozenset(place for place, rests in found.items() if _agree(rests.values()))


def _agree(rests: Iterable[Sequence[Sequence[Hashable]]]) -> bool:
    """Whether most pages that were seen with several ids were always the same, and at least two."""
    several = [rest for rest in rests if len(rest) > 1]
    same = sum(bool(set.intersection(*map(set, rest))) for rest in several)
    return same > 1 and 4 * same >= 3 * len(several)
