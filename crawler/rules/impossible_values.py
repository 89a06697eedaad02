"""Whether the values of a parameter exist: what a site shows for values that none can have.

Pages of a query pattern that only repeat their addresses may be real pages with little to say, or answers to
anything that is asked; an impossible value tells which. Each parameter that differs among the pages is asked
for alone, in two of them; the pages of a calendar, for years to come. `engine.site` asks. Pure.
"""

from collections.abc import Sequence
from typing import Final

from crawler.model.trap import PatternPage
from crawler.parse.url import Url
from crawler.rules.nonexistent_pages import (
    NUMBERS,
    YEARS,
    differing,
    impossible_value,
    in_year,
    parameters,
    with_values,
)
from crawler.rules.traps import calendar_of, date_in

REFUSED: Final = ""  # an error, or a redirect
REFUSING: Final = frozenset({400, 404, 410, 422, 500})  # statuses
MOST_PARAMETERS: Final = 4  # that differ among the pages of a pattern that is asked


def questions(pages: Sequence[PatternPage]) -> Sequence[tuple[Url, Url]]:
    """Two pages with an impossible value, for each parameter that differs; none if too many do."""
    if len(pages) < len(YEARS):
        return ()
    one, other = _examples(pages)
    if calendar_of(one.url) is not None:
        days = [(page.url, date_in(page.url), year) for page, year in zip((one, other), YEARS, strict=True)]
        first, second = (in_year(url, dated, year) if dated else url for url, dated, year in days)
        return ((first, second),) if first != one.url and second != other.url else ()
    names = sorted(differing(page.url for page in pages))
    if not 0 < len(names) <= MOST_PARAMETERS:
        return ()
    return [(_impossible(one.url, name, 0), _impossible(other.url, name, 1)) for name in names]


def hardly_larger(pages: Sequence[PatternPage]) -> Url | None:
    """A page whose number has two digits more than any, where pages differ in one number only."""
    seen = differing(page.url for page in pages)
    for name, values in seen.items() if len(seen) == 1 else ():
        number = NUMBERS[0][: max(map(len, values)) + 2]
        if all(map(str.isdecimal, values)) and len(number) < len(NUMBERS[0]):
            return with_values(_examples(pages)[0].url, {name: number})
    return None


def leads_elsewhere(url: Url, to: Url | None) -> bool:
    """Whether a redirect refuses a value. One to the same path may only drop what means nothing."""
    path, _, query = url.partition("?")
    return to is not None and (to.partition("?")[0] != path or (to == path and "&" not in query))


def shown(pages: Sequence[PatternPage], answers: Sequence[tuple[str | None, str | None]]) -> str | None:
    """The content of what is shown for values that do not exist, or `REFUSED`; None if that is not clear.

    `answers`: to the questions, in pairs; None is no answer. Where one parameter is refused and the pages
    ignore another one, they may be true ones.
    """
    found = {answer for pair in answers for answer in pair}
    pages_shown = found - {REFUSED}
    if not found or None in found or len(pages_shown) > 1 or any(one != other for one, other in answers):
        return None
    is_clear = REFUSED not in found or not all(all_show(pages, answer) for answer in pages_shown)
    return next(iter(pages_shown), REFUSED) if is_clear or not pages_shown else None


def all_show(pages: Sequence[PatternPage], content: str | None) -> bool:
    """Whether all pages show this content."""
    return all(page.content == content for page in pages)


def _examples(pages: Sequence[PatternPage]) -> tuple[PatternPage, PatternPage]:
    """Two pages of different contents, if there are any."""
    first, *others = sorted(pages, key=lambda page: (len(page.url), page.url))
    return first, next((page for page in others if page.content != first.content), others[0])


def _impossible(url: Url, name: str, which: int) -> Url:
    value = next(value for key, value in parameters(url) if key == name)
    return with_values(url, {name: impossible_value(url, value, which)})
