"""Resolves the links of a page into URLs, each once, within a limit of bytes. Pure."""

from collections.abc import Collection, Iterable
from typing import Final, NamedTuple

from crawler.parse.normalise import Normaliser
from crawler.parse.parsed_page import ParsedPage
from crawler.parse.url import LONGEST_URL, Url

MAX_LINK_BYTES: Final = 4_000_000  # of the resolved URLs: a long base makes a long URL of each short link


class Resolved(NamedTuple):
    """The http(s) URLs that a page links to, each once."""

    followed: dict[Url, None]
    avoided: dict[Url, None]  # linked only with nofollow; `in_head` may have them as well
    left: int  # bytes left for further URLs; negative: some were dropped
    in_head: dict[Url, None]  # those of `followed` that only link elements name


def resolve(page: ParsedPage, normalise: Normaliser, most: int = MAX_LINK_BYTES) -> Resolved:
    """The URLs of a page's links in order, up to `most` bytes."""
    # URLs relative to a longer base are longer.
    base = page.base if len(page.base) <= LONGEST_URL else ""
    hrefs = [href for href in page.followed if href not in page.in_head] if page.in_head else page.followed
    followed, left = within(normalise.chunks(hrefs, base), most)
    in_head: dict[Url, None] = {}
    if page.in_head:
        in_head, left = within(normalise.chunks(page.in_head, base), left, known=followed)
    rest = normalise.chunks(page.avoided, base) if page.avoided else ()  # most pages avoid none
    avoided, left = within(rest, left, known=followed)
    return Resolved(
        followed | in_head if in_head else followed,
        avoided,
        -1 if page.followed and not base else left,
        in_head,
    )


def within(
    found: Iterable[Iterable[Url]], most: int, known: Collection[Url] = ()
) -> tuple[dict[Url, None], int]:
    """The distinct URLs that are not `known`, up to `most` bytes; and the bytes left, negative if some were
    dropped.
    """
    taken: dict[Url, None] = {}
    for some in found:
        new = dict.fromkeys(some)
        if taken or known:
            new = {url: None for url in new if url not in taken and url not in known}
        size = sum(map(len, new))
        if size > most:
            return _first(taken, new, most)
        most -= size
        taken.update(new)
    return taken, most


def _first(taken: dict[Url, None], new: Iterable[Url], most: int) -> tuple[dict[Url, None], int]:
    """`taken` and those URLs of `new` for which the bytes suffice."""
    for url in new:
        most -= len(url)
        if most < 0:
            break
        taken[url] = None
    return taken, most
