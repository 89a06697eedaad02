"""Numbers for the URLs in the results of a worker: each URL is sent once, then by its number.

A worker and the main process keep the same table: URLs are numbered in the order in which they are sent, and
a table that is full is cleared by both after the same message. Nothing else is agreed on. What is received is
validated: it is untrusted.
"""

from collections.abc import Callable, Sequence
from typing import Annotated, Final, NamedTuple

from msgspec import Meta

from crawler.model.visit import Links
from crawler.parse.url import Url

MOST_NUMBERED: Final = 30_000  # URLs in a table,
MOST_NUMBERED_CHARACTERS: Final = 4_000_000  # or their characters, after which it is cleared
Number = Annotated[int, Meta(ge=0)]


class NumberedLinks(NamedTuple):
    """The links of a page: URLs that were not sent yet, and the numbers of all. To be sent in this order."""

    new: list[Url]
    followed: list[Number]
    avoided: list[Number]


class SentUrls:
    """The table of a worker."""

    def __init__(self) -> None:
        self._numbers: dict[Url, int] = {}
        self._characters = 0

    def written(self, links: Links) -> NumberedLinks:
        """The links of a page, to be sent before the next are written."""
        numbers = self._numbers
        new = list[Url]()
        for url in links.urls:
            if url not in numbers:
                numbers[url] = len(numbers)
                new.append(url)
        self._characters += sum(map(len, new))
        followed, avoided = (list(map(numbers.__getitem__, side)) for side in links)
        if is_full(len(numbers), self._characters):
            self._numbers, self._characters = {}, 0
        return NumberedLinks(new, followed, avoided)


class ReceivedUrls:
    """The table of the main process for one worker. `most`: links of a page."""

    def __init__(self, urls_of: Callable[[Sequence[str]], Sequence[Url]], most: int) -> None:
        self._urls_of, self._most = urls_of, most
        self._urls: list[Url] = []
        self._characters = 0

    def read(self, message: NumberedLinks) -> Links:
        """The links of a page. To be read in order. Raises `ValueError` or `LookupError` if invalid."""
        new, followed, avoided = message
        if max(len(new), len(followed) + len(avoided)) > self._most:
            raise ValueError("no links of one page")
        urls = self._urls
        urls.extend(self._urls_of(new))
        self._characters += sum(map(len, new))
        links = Links(*(tuple(map(urls.__getitem__, side)) for side in (followed, avoided)))
        if is_full(len(urls), self._characters):
            self._urls, self._characters = [], 0
        return links


def is_full(count: int, characters: int) -> bool:
    """Whether a table with that many URLs and characters is cleared."""
    return count > MOST_NUMBERED or characters > MOST_NUMBERED_CHARACTERS
