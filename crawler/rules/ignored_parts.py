"""Parts of addresses that mean nothing: the site shows the same page whatever stands there.

Two pages with the same content whose addresses differ in one part only suggest it. What shows it is the
answer of the site for nonsense in its place, asked with examples of each kind of part. Then such pages are
one page at several URLs. Where each page has something random, such as links to others, no two have the same
content: then two answers for nonsense show what a page has beside that. Pure.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from msgspec import Struct

from crawler.model.survey import RepeatedPage
from crawler.parse import url as urls
from crawler.parse.extract import wording
from crawler.parse.late import late
from crawler.parse.url import Url
from crawler.rules.nonexistent_pages import (
    MANY_NUMBERS,
    impossible_value,
    nonexistent_names,
    parameters,
    with_large_numbers,
)
from crawler.rules.soft_404 import ShownPage, shared

EXAMPLES: Final = 5  # pages of each kind, spread over the site, with which it is asked
MOST_TOKENS: Final = 60  # of an address that is compared
REPEATED: Final = 3  # times
LONGEST_PART: Final = 12  # tokens of a part that is left out to find the page without it
MORE_BLOCKS: Final = 2  # that a page may have than nonsense shows: what is random may be the same twice
_TOKENS: Final = late(r"[/;?&=.,+:|]|[^/;?&=.,+:|]+")
_WORDS: Final = late(r"[-_]|[^-_]+")
_PARAMETER: Final = late(r"([?&]?)[^?&=]+=([^?&=]+)&?$")
_PART: Final = late(r"([/;?&=.,+:|]*)(.*?)([/;?&=.,+:|]*)$")


class PartKind(Struct, frozen=True):
    """Where in the addresses of an origin a part stands, and how it is set off."""

    site: str
    in_query: bool
    is_first: bool
    is_last: bool
    marks: str  # before and after it
    is_replaced: bool  # the other page has something else there, and not nothing


class Pair(NamedTuple):
    """A page, and one whose address differs in a part: what is before that part, it, and what is after."""

    url: Url
    base: Url
    before: str
    part: str
    after: str
    is_replaced: bool

    @property
    def _tokens(self) -> Sequence[str]:
        """The part: the marks that it begins with, its name, and the marks that it ends with."""
        return _PART.match(self.part).groups()  # type: ignore[union-attr]

    @property
    def kind(self) -> PartKind:
        """Parts of one kind are ignored, or none of them is."""
        before, name, after = self._tokens
        site = urls.origin(self.url)
        words = (mark if mark in {"-", "_"} else "" for mark in (self.before[-1:], self.after[:1]))
        marks = f"{before}…{after}".join(words) if name else before[:1]
        in_query = "?" in self.before or before.startswith("?")
        is_first = self.before.rstrip("/") == site
        is_last = not self.after.partition("?")[0].strip("/")
        return PartKind(site, in_query, is_first, is_last, marks, self.is_replaced)

    @property
    def questions(self) -> Iterator[Url]:
        """The address with nonsense in place of the part, or of its numbers; in a path, with the part again
        and again: what is repeated is known to the site, as the code of a language is.
        """
        for addresses in self.nonsense:
            yield addresses[0]
        before, _, after = self._tokens
        if "?" not in self.before + self.part and (before or after) and not self.is_replaced:
            yield Url(f"{self.before}{REPEATED * self.part}{self.after}")

    @property
    def nonsense(self) -> Iterator[Sequence[Url]]:
        """The address with several kinds of nonsense in place of the part; then in place of its numbers."""
        before, name, after = self._tokens
        is_parameter = before[:1] in {"?", "&"} or ("?" in self.before and self.before[-1] in "?&")
        # A value that no text of the page has, as what repeats an address is left out.
        words = [f"{word}={word[:6]}" if is_parameter else word for word in nonexistent_names(self.url)]
        yield [Url(f"{self.before}{before}{word if name else before}{after}{self.after}") for word in words]
        numbered = [with_large_numbers(name, number) for number in MANY_NUMBERS]
        if numbered[0] != name:
            yield [Url(f"{self.before}{before}{number}{after}{self.after}") for number in numbered]

    @property
    def with_nonsense(self) -> Url | None:
        """The address with nonsense as the value of the one parameter that the other page lacks."""
        parameter = _PARAMETER.match(self.part)
        if self.is_replaced or not parameter or not (parameter[1] == "?" or "?" in self.before):
            return None
        start, end = parameter.span(2)
        value = impossible_value(self.url, parameter[2], 0)
        return Url(f"{self.before}{self.part[:start]}{value}{self.part[end:]}{self.after}")


def show_the_same(page: ShownPage, nonsense: Sequence[ShownPage]) -> bool:
    """Whether an address shows what those with nonsense in it do, but for what is random on these.

    It may have something of its own in place of that.
    """
    most = max(len(shown.blocks) for shown in nonsense) + MORE_BLOCKS
    is_random = len({shown.content for shown in nonsense}) > 1
    common = shared([shown.blocks for shown in nonsense])
    return is_random and common <= page.blocks and 0 < len(page.blocks) <= most


def say_the_same(*pages: ShownPage | RepeatedPage) -> bool:
    """Whether pages differ in links only."""
    return len({wording(page.content or "") for page in pages}) == 1


def have_own_addresses(*pages: ShownPage) -> bool:
    """Whether the links of each page have something in common that neither it nor the others have.

    So it is the page that has something of its own: a site that gives each visit an address for all pages.
    """
    own = [_of_most_links(page) for page in pages]
    return bool(own) and all(own[at].difference(*own[:at], *own[at + 1 :]) for at in range(len(own)))


def _of_most_links(page: ShownPage) -> set[str]:
    """What at least half of the links of a page have in their addresses, and its own has not."""
    found = Counter(part for link in page.links for part in {*_TOKENS.findall(urls.target(link))})
    own = _TOKENS.findall(urls.target(page.url))
    return {part for part, count in found.items() if 1 < count >= len(page.links) / 2}.difference(own)


def with_one_part_open(url: Url) -> Iterator[str]:
    """The address with one of its names or values left open; of none that is very long."""
    found = [
        token
        for token in _TOKENS.finditer(url, urls.path_start(url))
        if len(token[0]) > 1 or token[0].isalnum()
    ]
    for token in found if len(found) <= MOST_TOKENS // 2 else ():
        yield f"{url[: token.start()]}…{url[token.end() :]}"


def with_one_folder_open(url: Url) -> Iterator[str]:
    """The address with one of its folders left open."""
    parts = url.split("/")
    for at in range(3, min(url.partition("?")[0].count("/"), MOST_TOKENS)):
        yield "/".join((*parts[:at], "…", *parts[at + 1 :]))


def pairs(url: Url, base: Url) -> Iterator[Pair]:
    """What differs between two addresses of one origin, if that is something in `url`.

    Where a part comes again, as in `/a/a` and `/a`, it may be the first one or the last one. Where names
    differ, it may be one of their words, as in `/17-lamp` and `/17-desk`. Parameters that are not adjacent
    stand together behind the others.
    """
    site = urls.origin(url)
    one, other = (_TOKENS.findall(urls.target(address)) for address in (url, base))
    if urls.origin(base) != site or one == other or max(len(one), len(other)) > MOST_TOKENS:
        return
    found = [*_differing(one, other)]
    if "?" in base and all(instead for _, _, instead, _ in found) and (more := _more_parameters(url, base)):
        yield Pair(url, base, base, f"&{more}", "", is_replaced=False)
        return
    for before, part, instead, after in found:
        if part:
            yield Pair(url, base, site + before, part, after, is_replaced=bool(instead))
        names = _WORDS.findall(part), _WORDS.findall(instead)
        for more, words, others, rest in _differing(*names) if part in one and instead in other else ():
            if words and (more or rest):
                yield Pair(url, base, site + before + more, words, rest + after, is_replaced=bool(others))


def _more_parameters(url: Url, base: Url) -> str:
    """The parameters that an address has in addition to all of another one, wherever they stand."""
    path, _, query = url.partition("?")
    other, _, given = base.partition("?")
    more, left = list[str](), Counter(given.split("&"))
    for part in query.split("&"):
        if left[part]:
            left[part] -= 1
        else:
            more.append(part)
    return "&".join(more) if path == other and left.total() == (not given) else ""


def _differing(one: Sequence[str], other: Sequence[str]) -> Iterator[tuple[str, str, str, str]]:
    """What is before the part in which two differ; that part of each; what is after."""
    most = min(len(one), len(other))
    start = next((at for at in range(most) if one[at] != other[at]), most)
    end = next((at for at in range(most) if one[-1 - at] != other[-1 - at]), most)
    spans = (start, len(one) - min(end, most - start)), (min(start, most - end), len(one) - end)
    for first, stop in dict.fromkeys(spans):
        parts = one[:first], one[first:stop], other[first : len(other) - len(one) + stop], one[stop:]
        before, part, instead, after = map("".join, parts)
        yield before, part, instead, after


def without_a_part(url: Url) -> Iterator[str]:
    """The addresses without one part, those that lack the most first; no start page."""
    ends = [token.end() for token in _TOKENS.finditer(url, urls.path_start(url))]
    if len(ends) > MOST_TOKENS:
        return
    for length in range(min(LONGEST_PART, len(ends) - 1), 0, -1):
        if length < len(ends) - 1 or "?" in url:
            for begin, end in zip(ends, ends[length:], strict=False):
                yield url[:begin] + url[end:]


def by_kind(pairs: Iterable[Pair]) -> Mapping[PartKind, Sequence[Pair]]:
    """The pairs of each kind, sorted by URL."""
    found: dict[PartKind, list[Pair]] = {}
    for one in sorted(pairs):
        found.setdefault(one.kind, []).append(one)
    return found


def narrower(pairs: Collection[Pair]) -> Iterator[Sequence[Pair]]:
    """Smaller groups of pairs of one kind, where the site ignores the part in some only: by the names of
    their parameters, one of which may mean something in lists only, or else by the part without its numbers.
    """
    for key in (_parameter_names, lambda pair: with_large_numbers(pair.part)):
        found: dict[object, list[Pair]] = {}
        for one in pairs:
            found.setdefault(key(one), []).append(one)
        if len(found) > 1:
            many = [some for some in found.values() if len(some) >= EXAMPLES]
            yield from sorted(many, key=len, reverse=True)
            return


def _parameter_names(pair: Pair) -> tuple[Sequence[str], Sequence[str]]:
    one, other = (sorted(name for name, _ in parameters(url)) for url in (pair.url, pair.base))
    return tuple(one), tuple(other)


def examples(pairs: Sequence[Pair]) -> Sequence[Pair]:
    """A few of them, evenly spread."""
    return pairs[:: -(-len(pairs) // EXAMPLES)]


def listed_instead(pairs: Iterable[Pair], starts: Collection[Url]) -> Mapping[Url, Url]:
    """For each page that is the same as another one, the one of them that is listed."""
    ahead = dict[Url, Url]()

    def of(url: Url) -> Url:
        while url in ahead:
            url = ahead[url]
        return url

    for one in pairs:
        first, *rest = sorted({of(one.url), of(one.base)}, key=lambda url: (url not in starts, len(url), url))
        ahead |= dict.fromkeys(rest, first)
    return {url: of(url) for url in ahead}
