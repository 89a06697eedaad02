"""Numbers for the URLs in the results of a worker: each URL is sent once, then by its number.

A worker and the main process keep the same table: URLs are numbered in the order in which they are sent, and a table that
is full is cleared by both after the same message. Nothing else is agreed on. What is received is validated: it is untrusted.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final

from crawler.model.visit import Links
from crawler.parse.url import Url

MOST: Final = 30_000  # URLs in a table,
WEIGHT: Final = 4_000_000  # or characters, after which it is cleared
JSON = Any


class SentUrls:
    """The table of a worker."""

    def __init__(self) -> None:
        self._numbers: dict[Url, int] = {}
        self._weight = 0

    def written(self, links: Links) -> JSON:
        """URLs that were not sent yet, and the numbers of all: of followed and of avoided links. To be sent in this order."""
        numbers = self._numbers
        new = list[Url]()
        for url in links.urls:
            if url not in numbers:
                numbers[url] = len(numbers)
                new.append(url)
        self._weight += sum(map(len, new))
        followed, avoided = (list(map(numbers.__getitem__, side)) for side in links)
        if is_full(len(numbers), self._weight):
            self._numbers, self._weight = {}, 0
        return [new, followed, avoided]


class ReceivedUrls:
    """The table of the main process, one for each worker. `urls_of` validates URLs, and `most` limits the links of a page."""

    def __init__(self, urls_of: Callable[[JSON, int], Sequence[Url]], most: int) -> None:
        self._urls_of, self._most = urls_of, most
        self._urls: list[Url] = []
        self._weight = 0

    def read(self, message: JSON) -> Links:
        """The links of a page. Every message must be read, in order. Raises `ValueError` or another error if it is invalid."""
        new, followed, avoided = message
        if len(followed) + len(avoided) > self._most:
            raise ValueError("no links of one page")
        urls = self._urls
        urls.extend(self._urls_of(new, self._most))
        self._weight += sum(map(len, new))
        links = Links(*(tuple(map(urls.__getitem__, _places(side))) for side in (followed, avoided)))
        if is_full(len(urls), self._weight):
            self._urls, self._weight = [], 0
        return links


def is_full(count: int, weight: int) -> bool:
    """Whether a table with that many URLs and characters is cleared."""
    return count > MOST or weight > WEIGHT


def _places(numbers: JSON) -> list[int]:
    """Numbers, checked to be none that count from the end."""
    if not isinstance(numbers, list) or (numbers and ({*map(type, numbers)} != {int} or min(numbers) < 0)):
        raise ValueError("no numbers of URLs")
    return numbers
