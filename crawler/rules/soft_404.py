"""Soft 404s: pages with status 200 that say that there is no such page.

What nonexistent pages of a site (`rules.nonexistent_pages`) have in common, and no true ones, shows which
others do not exist. Pure.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from typing import Final
from urllib.parse import unquote

from crawler.model.visit import Links, MissingPage
from crawler.parse import url as urls
from crawler.parse.late import late
from crawler.parse.url import Url
from crawler.rules.nonexistent_pages import NAME, above, around, has_shape
from crawler.rules.traps import calendar_of, days_of

DOUBTFUL: Final = 20  # pages with one title to which pages of their own folder or path led first
FEW: Final = 3  # the same in each of several folders, which have so many together
SETTLED: Final = 2  # more nonexistent pages that took nothing from what those before have in common
LEAST_SAMPLES: Final = 1  # true pages, beside the start page, that show what all pages of the site have
_WORD: Final = late(r"[^\W\d_]+")
_LETTERS: Final = bytes(ord(chr(code).lower() if chr(code).isalpha() else " ") for code in range(256)).ljust(
    256
)


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


def is_sure_calendar(place: str, days: Collection[Url]) -> bool:
    """Whether its days are many, and nothing but their dates in their addresses tells them apart."""
    is_dated = "{date}" in place and "…" not in place
    return is_dated and len(days) >= DOUBTFUL and all(("?" in url) is ("?" in place) for url in days)


def title_words(url: str, title: str | None) -> str:
    """The title of a page, without numbers and words of its URL."""
    own = _words(unquote(urls.target(url)))
    return " ".join([word for word in _words(title or "") if word not in own])


def _words(text: str) -> Sequence[str]:
    """The words in lower case, without numbers."""
    if text.isascii():  # as most
        return text.encode().translate(_LETTERS).decode().split()
    return _WORD.findall(text.casefold())


def missing_page(
    asked: Sequence[Collection[int]], start: Collection[int], others: Sequence[Collection[int]]
) -> MissingPage | None:
    """What only pages show that say that there is no such page; None if that is not clear.

    `asked`: the blocks of nonexistent pages. `start`, `others`: those of the start page and of pages to
    which it links. What all of these others show, too, may be on every page of the site; one that shows it
    among others that do not is an error page itself.
    """
    own = shared(asked).difference(start)
    true = [frozenset(page) for page in others if not own.issubset(page)]
    if len(true) < LEAST_SAMPLES:
        return None
    own = own.difference(*true)
    return MissingPage(tuple(sorted(own)), 2 * max(map(len, asked))) if own else None


def shared(pages: Sequence[Collection[int]]) -> frozenset[int]:
    """The blocks that all pages have."""
    return frozenset.intersection(*map(frozenset, pages))


def is_settled(asked: Sequence[Collection[int]]) -> bool:
    """Whether enough nonexistent pages were asked: the last two took nothing from what all have in common.

    Pages that suggest others may have some of these in common by chance.
    """
    return len(asked) > SETTLED and shared(asked) == shared(asked[:-SETTLED])


def is_missing(page: MissingPage, blocks: Collection[int], *echoed: Collection[int]) -> bool:
    """Whether a page with these blocks says that there is no such page.

    `echoed`: the same with what repeats its address, as "Page not found" does at `/page/7`.
    """
    said = {*blocks}.union(*echoed)
    if page.is_exact or not page.blocks:
        is_alike = set(blocks) <= set(page.blocks) <= said or any(
            set(way) == set(page.blocks) for way in echoed
        )
        return bool(blocks) and is_alike
    return len(blocks) <= page.most and said.issuperset(page.blocks)


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


def _folders(url: str) -> Iterator[str]:
    """The folders that a page is in, without the origin."""
    folder = urls.in_folder(url)[0]
    while up := above(folder):
        yield folder
        folder = up


def shown_instead(place: str) -> tuple[Url, ...]:
    """The page that a site may show in a place for all that is missing there: that of the folder or path."""
    return (Url(place), Url(place.removesuffix("/")), Url(place.removesuffix("?")))
