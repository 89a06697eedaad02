"""Pages that a folder shows for all that is missing, where they are lists that lead on."""

from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest

from crawler.engine.finish.soft_404s import _keep_first
from crawler.model.facts import Entry
from crawler.model.reasons import Why
from crawler.parse.url import Url
from crawler.rules.nonexistent_pages import Place

pytestmark = [pytest.mark.anyio, pytest.mark.both_loops]
FOLDER = "https://example.com/list/"
SAME = frozenset({"content"})


class State:
    """Listed pages, and which of them were unlisted as the duplicate of which."""

    def __init__(self, listed: Sequence[Url]) -> None:
        self.listed, self.withdrawn = listed, list[tuple[Sequence[Url], str]]()

    async def stream(self, _: object) -> AsyncIterator[Sequence[Entry]]:
        yield [Entry(url) for url in self.listed]

    async def withdraw(self, pages: Sequence[Url], why: Why, detail: str) -> None:
        assert why is Why.DUPLICATE
        self.withdrawn.append((list(pages), detail))


class Answers:
    """A site all of whose pages are the same."""

    async def read(self, page: Url, as_if_at: Sequence[Url]) -> Sequence[frozenset[str]]:
        return [SAME for _ in (page, *as_if_at)]


@pytest.mark.parametrize(
    ("listed", "example", "withdrawn"),
    [
        (["10", "1", "2"], "10", [(["2", "10"], "1")]),
        (["1"], "1", [([], "1")]),
        # Unlisted meanwhile, as the page of a list above this folder.
        (["1", "2"], "9", [(["2"], "1")]),
        ([], "9", [([], "9")]),
    ],
)
async def test_first_page_of_a_list_stays(
    listed: list[str], example: str, withdrawn: list[tuple[list[str], str]]
) -> None:
    pages: Any = State([Url(FOLDER + name) for name in listed])
    answers: Any = Answers()
    place = Place(FOLDER, (Url(FOLDER + "x"), Url(FOLDER + "y")))
    await _keep_first(pages, answers, place, Url(FOLDER + example), SAME)
    assert pages.withdrawn == [
        ([FOLDER + name for name in rest], FOLDER + first) for rest, first in withdrawn
    ]
