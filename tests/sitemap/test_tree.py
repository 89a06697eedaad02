"""The files of a sitemap: an index before what it names, in its order, and no deeper than the protocol has it."""

from pathlib import Path

import pytest

from crawler.model.reply import Reply
from crawler.ports import Request
from crawler.sitemap.tree import LEVELS, Places, Unreadable, walk

INDEX = "https://a.example/sitemap.xml"


class NoFetcher:
    async def fetch(self, request: Request) -> Reply:
        raise AssertionError(request)


async def no_turn() -> None:
    pass


PLACES = Places(NoFetcher(), no_turn)


def walked(place: str, names: dict[str, list[str]]) -> list[tuple[str, int]]:
    """Places and depths of the files, if each names what `names` says."""
    found = []
    for node in walk(place):
        try:
            found.append((PLACES.locate(node), node.depth))
        except Unreadable as error:
            found.append((str(error), -1))
        node.children = names.get(node.place, ())
    return found


def test_index_precedes_its_sitemaps_nested_ones_are_not_read() -> None:
    first, second = "https://a.example/1.xml", "https://a.example/2.xml"
    names = {INDEX: [first, second], first: ["https://a.example/deeper.xml"]}
    assert walked(INDEX, names) == [(INDEX, 0), (first, 1), (second, 1)]
    assert LEVELS == 2


def test_offsite_sitemaps_of_web_index_are_skipped() -> None:
    names = {INDEX: ["https://b.example/1.xml", "/etc/passwd", "https://a.example/2.xml"]}
    (_, elsewhere, relative, last) = walked(INDEX, names)
    assert elsewhere == ("https://b.example/1.xml is on another host", -1)
    assert relative == ("/etc/passwd", -1)
    assert last == ("https://a.example/2.xml", 1)


def test_sitemaps_of_index_on_disk_are_read_from_its_folder(tmp_path: Path) -> None:
    index, beside = str(tmp_path / "sitemap.xml"), tmp_path / "1.xml"
    beside.touch()
    names = {index: ["https://a.example/maps/1.xml", "https://a.example/maps/2.xml"]}
    there, missing = walked(index, names)[1:]
    assert there == (str(beside), 1)
    assert missing == ("there is no file 2.xml next to it", -1)


@pytest.mark.parametrize("place", ["sitemap.xml", "./a b/sitemap.xml.gz", INDEX])
def test_entry_point_is_used_as_given(place: str) -> None:
    assert walked(place, {}) == [(place, 0)]
