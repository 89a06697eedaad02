"""Soft 404s: pages with status 200 that say that there is no such page.

What nonexistent pages of a site (`rules.nonexistent_pages`) have in common, and no true ones, shows which
others do not exist. Pure.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from typing import Final
from urllib.parse import unquote

from msgspec import Struct

from crawler.model.visit import Links, MissingPage
from crawler.parse import url as urls
from crawler.parse.fingerprint import PageText
from crawler.parse.late import late
from crawler.parse.url import Url
from crawler.rules.nonexistent_pages import NAME, above, around, has_shape
from crawler.rules.traps import calendar_of, days_of

DOUBTFUL: Final = 20  # pages with one title to which pages of their own folder or path led first
FEW: Final = 3  # the same in each of several folders, which have so many together
MOST_FRONTS: Final = 10  # pages that a site may show for all that is missing, that are asked
SETTLED: Final = 2  # more nonexistent pages that took nothing from what those before have in common
# Only a reason to ask: pages are also written about errors, and sites say this in any words.
_ERRORS: Final = (
    "404", "not found", "be found", "no longer available", "no longer exist", "no longer exists", "not exist",
    "doesn't exist", "nicht gefunden", "nicht mehr", "nicht vorhanden", "introuvable", "n'existe",
    "no existe", "no encontrada", "no encontrado", "non trovata", "non trovato", "non esiste",
    "niet gevonden", "bestaat niet", "hittades inte", "ikke fundet", "ikke funnet", "nie znaleziono",
    "nie istnieje", "nenalezena", "nenalezeno", "ei löyt", "não encontrad", "não existe", "nem található",
    "bulunamad", "не найден", "не существует", "не знайден", "見つかりません", "未找到", "找不到", "不存在",
    "찾을 수 없", "غير موجود", "לא נמצא",
)  # fmt: skip
_WORD: Final = late(r"[^\W\d_]+")
_LETTERS: Final = bytes(ord(chr(code).lower() if chr(code).isalpha() else " ") for code in range(256)).ljust(
    256
)


class ShownPage(Struct, frozen=True):
    """What is shown at an address."""

    url: Url
    said: Sequence[PageText]
    content: str | None
    links: Sequence[Url]

    @property
    def blocks(self) -> frozenset[int]:
        """Without what repeats the address."""
        return frozenset(self.said[0].blocks) if self.said else frozenset()

    @property
    def all_blocks(self) -> frozenset[int]:
        """With and without what repeats the address."""
        return frozenset[int]().union(*(way.blocks for way in self.said))


def doubtful_places(url: str) -> tuple[str, ...]:
    """The calendar, folder or path of a page, and the calendar whose day it may be in spite of its folder."""
    days = days_of(url)
    if days is None:
        return (around(url),)
    is_in_folder = "?" in url or "/" in days.rpartition("}")[2]
    return (around(url), days) if is_in_folder and calendar_of(url) is None else (days,)


def is_within(url: str, place: str) -> bool:
    """Whether a page is in a place, at any depth."""
    return has_shape(url, place) if NAME in place else url.startswith(place)


def is_calendar(place: str) -> bool:
    """Whether a place is a calendar, of which the days are asked for."""
    return "{" in place and NAME not in place


def is_sure_calendar(place: str, days: Collection[Url], contents: int) -> bool:
    """Whether its days are many, or have several contents, and nothing but their dates in their addresses
    tells them apart.
    """
    is_dated = "{date}" in place and "…" not in place
    is_clear = len(days) >= DOUBTFUL or contents > 1
    return is_dated and is_clear and all(("?" in url) is ("?" in place) for url in days)


def names_error(title: str) -> bool:
    """Whether a title has words of an error, in one of many languages."""
    if title.isascii() and "404" not in title and _LAST_WORDS.isdisjoint(_words(title)):
        return False  # as of most
    text = title.casefold().replace("’", "'")  # noqa: RUF001 - the apostrophe of good typesetting
    return any(map(text.__contains__, _ERRORS))


def title_words(url: str, title: str | None) -> str:
    """The title of a page, without numbers and words of its URL."""
    own = _words(unquote(urls.target(url)))
    return " ".join([word for word in _words(title or "") if word not in own])


def _words(text: str) -> Sequence[str]:
    """The words in lower case, without numbers."""
    if text.isascii():  # as most
        return text.encode().translate(_LETTERS).decode().split()
    return _WORD.findall(text.casefold())


_LAST_WORDS: Final = frozenset(
    word for words in _ERRORS if words.isascii() for word in _words(words)[-1:]
)  # one of these is in each title in ASCII that names an error, unless it has a number


def missing_page(
    asked: Sequence[ShownPage], start: Collection[int], others: Sequence[ShownPage]
) -> MissingPage | None:
    """What shows of a page that it does not exist; None if that is not clear.

    `asked`: nonexistent pages; `start`: the blocks of the start page; `others`: pages to which it links.
    Where all that were asked show the same, a page that does so is missing, and none that shows more: what
    they show may be in the template of true pages. Otherwise it is what only those that were asked show, not
    the others, as what these have in common may be on every page of the site; one of them that shows all of
    it among others that do not is an error page itself.
    """
    own = shared([page.blocks for page in asked]).difference(start)
    if not own:
        return None
    if exact := exactly(asked):
        return None if all(is_missing(exact, page.said) for page in others) else exact
    true = [page.all_blocks for page in others if not own.issubset(page.all_blocks)]
    own = own.difference(*true)
    return MissingPage(tuple(sorted(own)), _most(asked)) if true and own else None


def exactly(asked: Sequence[ShownPage]) -> MissingPage | None:
    """What nonexistent pages show, if they all show the same."""
    if len({page.blocks for page in asked}) > 1:
        return None
    content = asked[0].said[0].content if len({page.said[0].content for page in asked}) == 1 else None
    return MissingPage(tuple(sorted(asked[0].blocks)), _most(asked), is_exact=True, content=content)


def _most(asked: Sequence[ShownPage]) -> int:
    """How much a nonexistent page shows at most, if others differ as much as these do."""
    counts = [max(len(way.blocks) for way in page.said) for page in asked]
    return 2 * max(counts) - min(counts)


def shared(pages: Sequence[Collection[int]]) -> frozenset[int]:
    """The blocks that all pages have."""
    return frozenset.intersection(*map(frozenset, pages))


def is_settled(asked: Sequence[Collection[int]]) -> bool:
    """Whether enough nonexistent pages were asked: the last two took nothing from what all have in common.

    Pages that suggest others may have some of these in common by chance.
    """
    return len(asked) > SETTLED and shared(asked) == shared(asked[:-SETTLED])


def is_missing(missing: MissingPage, said: Sequence[PageText]) -> bool:
    """Whether a page says that there is no such page, also with what repeats its address, as "Page not found"
    does at `/page/7`. Where that is always said alike, numbers and pictures are compared as well.
    """
    if not missing.blocks or not said or not said[0].blocks:
        return False  # only contents tell
    own, blocks = set(missing.blocks), [set(way.blocks) for way in said]
    if missing.is_exact:
        alike = [way.content for some, way in zip(blocks, said, strict=True) if some == own]
        return bool(alike) if missing.content is None else missing.content in alike
    return max(map(len, blocks)) <= missing.most and own.issubset(set().union(*blocks))


def leading_on(url: Url, links: Links, missing: MissingPage) -> Links:
    """The links of a page that its folder shows for anything: those to the folder only if it always has them.

    What is shown in place of all that is missing may lead to true pages, and says so at each address.
    """
    place = missing.place
    if url in shown_instead(place):
        return links
    always = frozenset(missing.links)
    return links._replace(
        followed=tuple(to for to in links.followed if to in always or not is_within(to, place))
    )


def known_links(links: Links, missing: MissingPage) -> Links:
    """The links of a page that is missing: those that all such pages have. What leads to pages may be shown
    in place of all that is missing, and at no address of its own.
    """
    return Links(tuple(to for to in links.followed if to in missing.links))


def front_pages(links: Collection[Url]) -> Sequence[Url]:
    """The pages that a site may show for all that is missing, beside its start page, by the links of that:
    those of folders in which at least half of them are, as that of a language.
    """
    folders = Counter(folder for to in links for folder in _folders(to))
    most = [folder for folder, count in folders.items() if 2 * count >= len(links)]
    return [Url(url) for folder in sorted(most) for url in (folder, folder[:-1])]


def linked_fronts(
    links: Collection[Url], on_start: Sequence[Url], true: Sequence[ShownPage]
) -> Sequence[Url]:
    """The same by the links of a menu: pages to which the start page leads, and what is shown for all that is
    missing; most linked by other pages first. What leads to nothing else than these is an error.
    """
    linked = Counter(to for page in true for to in page.links)
    if linked.keys() >= set(links):
        return ()
    return sorted((to for to in on_start if to in links), key=lambda to: -linked[to])[:MOST_FRONTS]


def _folders(url: str) -> Iterator[str]:
    """The folders that a page is in, without the origin."""
    folder = urls.in_folder(url)[0]
    while up := above(folder):
        yield folder
        folder = up


def has_beside(place: str, others: Collection[str]) -> bool:
    """Whether enough other folders are in the same one: each may have a page of its own."""
    up = above(place) if place.endswith("/") else None
    return up is not None and sum(one.endswith("/") and above(one) == up for one in others) >= FEW


def shown_instead(place: str) -> tuple[Url, ...]:
    """The page that a site may show in a place for all that is missing there: that of the folder or path."""
    return (Url(place), Url(place.removesuffix("/")), Url(place.removesuffix("?")))
