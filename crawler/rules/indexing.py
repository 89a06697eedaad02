"""For which search engines a page may be indexed, by its robots elements and X-Robots-Tag fields. Pure.

A sitemap is read by search engines: a page that one of `--bots` may not index is left out, as is one that
none may. If it is kept from another engine only, that is a finding. Which links are followed depends only on
what is said to this crawler.
"""

from collections.abc import Iterable
from datetime import datetime
from typing import Final

from msgspec import Struct

from crawler.parse import robots_meta
from crawler.parse.robots_meta import Directives

ALL: Final = frozenset({"robots", "*"})  # names that mean every crawler

SEARCH_BOTS: Final = frozenset({
    "applebot", "baiduspider", "bingbot", "daum", "duckduckbot", "googlebot", "kagibot", "mojeekbot",
    "msnbot", "petalbot", "qwantbot", "seznambot", "slurp", "sogou", "teoma", "yandex", "yandexbot", "yeti",
})  # fmt: skip
"""The crawlers of search engines, by the names that they heed."""


class Indexing(Struct, frozen=True):
    """What a page says."""

    directives: Directives = Directives()  # to this crawler
    noindex: str | None = None  # why it is not to be indexed, as a detail: "" says it to all; None: it may be
    until: datetime | None = None  # when it stops being indexed, if that is still to come
    barred: str = ""  # other search engines that are not to index it, by the names of their crawlers


NOTHING_SAID: Final = Indexing()


class Audience(Struct, frozen=True):
    """Whom a sitemap is for."""

    agent: str  # product token of this crawler, in lower case
    bots: frozenset[str]  # crawlers of the search engines, in lower case


def indexing(rules: Iterable[tuple[str, str]], audience: Audience, now: datetime) -> Indexing:
    """What `rules`, names of crawlers with directives, say. Their order does not matter."""
    directives, until = Directives(), None
    reasons, barred = set[str](), set[str]()
    for name, text in rules:
        is_own, is_heeded = name in ALL or name == audience.agent, name in audience.bots
        if not (is_own or is_heeded or name in SEARCH_BOTS):
            continue
        said = robots_meta.directives(text)
        directives |= said if is_own else Directives()
        ends = robots_meta.unavailable_after(text)
        is_over = ends is not None and ends <= now
        if not (is_own or is_heeded):
            barred |= {name} if said.noindex or is_over else set()
            continue
        if said.noindex:
            reasons.add("" if is_own else f"for {name}")
        elif is_over and ends:
            reasons.add(f"unavailable after {ends:%Y-%m-%d}" + ("" if is_own else f" for {name}"))
        elif ends:
            until = min(ends, until or ends)
    return Indexing(directives, min(reasons, default=None), until, ", ".join(sorted(barred)))
