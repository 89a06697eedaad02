"""What a site of the benchmark is: a pure function of the request, and the truth about it.

The truth is not written beside the site: every answer names the content that it carries, and a listed URL is judged
by asking the site again. Nothing here knows a crawler.
"""

import html
import random
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from hashlib import blake2b
from typing import Final
from urllib.parse import parse_qsl, unquote, urljoin, urlsplit

WORDS: Final = re.findall(
    "[a-z]+",
    "harbour valley engine copper letter window garden season mirror ladder basket candle feather hammer island "
    "jacket kettle lantern marble needle orchard pepper quarry ribbon saddle timber umbrella velvet whistle yellow "
    "anchor bridge cotton donkey ember forest granite hollow ivory jungle kernel lemon meadow nickel oyster pebble "
    "quilt river silver tunnel upland violet willow yonder zinc amber bronze cedar dagger eagle falcon gravel heron",
)
SHOWN: Final = 12  # characters of a word of an address that people get to read


@dataclass(frozen=True)
class Request:
    """What a site may look at."""

    target: str  # path and query, as sent
    headers: Mapping[str, str] = field(default_factory=dict)  # names in lower case
    method: str = "GET"

    @cached_property
    def path(self) -> str:
        """Decoded."""
        return unquote(self.target.partition("?")[0])

    @cached_property
    def query(self) -> dict[str, str]:
        """The last value of each parameter."""
        return dict(parse_qsl(self.target.partition("?")[2], keep_blank_values=True))

    @cached_property
    def segments(self) -> list[str]:
        """Of the path, without empty ones."""
        return [part for part in self.path.split("/") if part]


@dataclass(frozen=True)
class Reply:
    """What a site answers, and what it is worth."""

    body: str = ""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    content: str = ""  # the true page that this is, under whatever URL; empty: none
    optional: bool = False  # a page that is right to list and right to leave out


@dataclass(frozen=True)
class Site:
    """One site of the benchmark."""

    name: str
    answer: Callable[[Request], Reply]
    pages: tuple[str, ...]  # a target of each true page; all are linked
    about: str
    endless: bool = False
    distinct: int = 0  # contents that may honestly be asked for, if these are more than the true pages

    def reply(self, asked: Request) -> Reply:
        """To any request: what its program cannot read is a bad request."""
        try:
            return self.answer(asked)
        except (ValueError, IndexError, OverflowError):
            return Reply("Bad request", 400)

    @property
    def contents(self) -> int:
        """Distinct contents: what the number of requests is compared with."""
        return max(self.distinct, len(self.pages))

    def limit(self, each: int, more: int) -> int:
        """A number of requests in proportion to the contents."""
        return each * self.contents + more

    def judge(self, listed: Iterable[str]) -> tuple[set[str], set[str]]:
        """True pages that a list of targets lacks, and targets that it has in vain: worthless or repeated."""
        true = {self.reply(Request(target)).content for target in self.pages}
        found, vain = set[str](), set[str]()
        for target in sorted(listed, key=lambda text: (len(text), text)):
            reply = self.reply(Request(target))
            if reply.status == 200 and reply.optional:
                continue
            if reply.status != 200 or not reply.content or reply.content in found:
                vain.add(target)
            found.add(reply.content)
        return true - found, vain


def number(*parts: object, below: int = 1 << 32) -> int:
    """A number that looks random and only depends on `parts`."""
    return int.from_bytes(blake2b(repr(parts).encode(), digest_size=8).digest()) % below


def token(*parts: object) -> str:
    """32 hexadecimal digits, as of a session."""
    return blake2b(repr(parts).encode(), digest_size=16).hexdigest()


@cache
def prose(seed: object, words: int = 60) -> str:
    """Text that no other seed has."""
    return " ".join(random.Random(repr(seed)).choices(WORDS, k=words)).capitalize() + "."


def links(targets: Iterable[str]) -> str:
    """A list of links."""
    items = (f'<li><a href="{html.escape(to)}">{html.escape(name_of(to))}</a>' for to in targets)
    return f"<ul>{''.join(items)}</ul>"


@cache
def name_of(target: str) -> str:
    """The text of a link as an editor or a template writes it: no session, no time, no whole address."""
    path, _, query = unquote(target).partition("?")
    words = [
        path.rstrip("/").rpartition("/")[2],
        *(value for _, value in parse_qsl(query) if len(value) < SHOWN),
    ]
    return " ".join(words).replace("-", " ").strip() or "home"


def html_page(title: str, text: str, to: Iterable[str] = (), *, menu: Iterable[str] = ()) -> str:
    """A page as a template makes it: menu, heading, text, links, footer. `text` is markup."""
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{html.escape(title)}</title></head><body>'
        f"<header><nav>{links(menu)}</nav></header><main><h1>{html.escape(title)}</h1><p>{text}</p>{links(to)}</main>"
        "<footer>Example Ltd, all rights reserved</footer></body></html>"
    )


def page(name: str, to: Iterable[str] = (), *, menu: Iterable[str] = (), text: str = "") -> Reply:
    """A true page called `name`."""
    return Reply(html_page(name, text or prose(name), to, menu=menu), content=name)


def worthless(title: str, text: str = "", to: Iterable[str] = (), *, menu: Iterable[str] = ()) -> Reply:
    """An answer with status 200 that belongs in no sitemap."""
    return Reply(html_page(title, text, to, menu=menu))


MISSING: Final = Reply(html_page("Not found", "There is no such page."), 404)


def tree(
    pages: Mapping[str, Reply], otherwise: Callable[[Request], Reply] = lambda _: MISSING
) -> Callable[[Request], Reply]:
    """A site of fixed pages by target."""
    return lambda asked: pages.get(asked.target) or otherwise(asked)


def linked(reply: Reply, target: str) -> list[str]:
    """The targets on the same site that an answer leads to, for the check of the sites themselves."""
    base = "http://site.test" + target
    hrefs = [html.unescape(part.partition('"')[0]) for part in reply.body.split('<a href="')[1:]]
    hrefs += [reply.headers["Location"]] if "Location" in reply.headers else []
    parts = (urlsplit(urljoin(base, href)) for href in hrefs)
    return [
        (part.path or "/") + (f"?{part.query}" if part.query else "")
        for part in parts
        if part.netloc == "site.test"
    ]
