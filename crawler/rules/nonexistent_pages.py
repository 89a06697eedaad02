"""Addresses of pages that do not exist, with which a site is asked what it shows for these.

They are the same in every run. Which places of a site are asked is decided here; `engine.missing_pages` and
`engine.finish.soft_404s` ask. Pure.
"""

import re
from collections import Counter, defaultdict, deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from itertools import islice
from typing import Final

from msgspec import Struct

from crawler.parse import url as urls
from crawler.parse.late import late
from crawler.parse.url import Url
from crawler.rules.traps import date_in, without_date

NAME: Final = "{name}"  # in place of what tells pages apart; no URL has braces in its path
MOST_FORMS: Final = 2  # of the values of a query, of which what is like them is asked
MOST_ASKED: Final = 8  # nonexistent pages of an origin, folder or path
NUMBERS: Final = ("9876543210", "8765432109")  # in place of a number
MANY_NUMBERS: Final = tuple("98765432109876543210"[at : at + 10] for at in range(MOST_ASKED))  # one for each
CENTURIES: Final = 400  # years after which the calendar is the same
YEARS: Final = ("2961", "2983")  # in place of a year: nothing is planned for so long
_YEAR: Final = late(r"(?<!\d)(?:1[5-9]|2\d)\d\d(?=\D|(?:0[1-9]|1[0-2])(?:[0-3]\d)?(?!\d)|$)")
_NONSENSE: Final = late(r"(?<![^\W_])(?:[0-9a-f]{6}-no-such-page|9\d{9})(?!\d)")
_LATE_DAY: Final = late(r"(?:(?<=\D)|(?<=\d{6}))(?:29|30|31)(?!\d)")  # not every year or month has it
_NUMBER: Final = late(r"-?\d+")
_SEPARATOR: Final = late(r"[/\-_.;=,:~+!]")
_TO_SEPARATOR: Final = late(rf".*{_SEPARATOR.pattern}", re.DOTALL)
LONGEST_EXTENSION: Final = 5  # characters
MOST_PLACES: Final = 40  # of pages with the same content, at which nonexistent pages are asked for


class Place(Struct, frozen=True):
    """A place where a page may be an answer to nothing, and two nonexistent pages of it."""

    prefix: str  # of URLs
    asked: tuple[Url, Url]
    is_dated: bool = False  # the date of a page is asked for
    bare: Url | None = None  # the page without a query, or without its date there


def at_origin(site: str) -> tuple[Url, ...]:
    """Nonexistent pages of an origin."""
    return tuple(Url(f"{site}/{name}") for name in nonexistent_names(site))


def nonexistent_names(url: str) -> Sequence[str]:
    """Names that nothing on the site of a URL has."""
    given = (f"{urls.origin(url)}{number}".encode() for number in range(MOST_ASKED))
    # The hash comes first, as a site may show only the beginning.
    return [f"{blake2b(text, digest_size=3).hexdigest()}-no-such-page" for text in given]


def nonsense_in(url: str) -> str:
    """The name or number in an address that nothing has, if it is one of those that are asked."""
    found = _NONSENSE.search(url)
    return found[0] if found else ""


def at_place(place: str, pages: Sequence[Url]) -> Iterator[Sequence[Url]]:
    """Nonexistent pages of a folder or shape: names, or numbers where half of its pages have these; then
    numbers where some have, and what is like its pages.

    Some sites read only names like theirs: with numbers, or with the year of a calendar of any spelling.
    Of a path with a query: names as values, where pages have names there, and what is like these; numbers
    alone may be pages.
    """
    first = min(pages, key=lambda url: (len(url), url))
    names = nonexistent_names(first)
    numbers = [f"9{int(name.partition('-')[0], 16):09}" for name in names]
    if place.endswith("?"):
        named = {name for name, seen in differing(pages).items() if not all(map(_NUMBER.fullmatch, seen))}
        if not named.isdisjoint(name for name, _ in parameters(first)):
            yield [with_values(first, dict.fromkeys(named, name)) for name in names]
        for page in _most_alike(pages, named):
            own = {name: value for name, value in parameters(page) if name in named}
            values = "&".join(own.values())
            for form in _like(values, values, numbers):
                yield [with_values(page, dict(zip(own, text.split("&"), strict=True))) for text in form]
        return
    start, _, rest = place.partition(NAME)
    there = list(filter(None, (page.removeprefix(start).removesuffix(rest) for page in pages))) or [""]
    digits = [name for name in there if name.removesuffix(_ending(name)).isdigit()]
    are_numbers = 2 * len(digits) >= len(there)
    like = sorted(digits if are_numbers else there, key=lambda name: (len(name), name))
    one, other = like[0], like[-1]
    yield [Url(f"{start}{name}{_ending(one)}{rest}") for name in (numbers if are_numbers else names)]
    if are_numbers:
        return
    if digits:
        yield [Url(f"{start}{number}{_ending(digits[0])}{rest}") for number in numbers]
    for form in _like(one, other, numbers):
        yield [Url(f"{start}{name}{rest}") for name in form]


def _most_alike(pages: Iterable[Url], named: Collection[str]) -> Iterator[Url]:
    """A page of each of the most frequent forms, but for numbers, of values that are no number."""
    forms = defaultdict[Sequence[tuple[str, str]], list[Url]](list)
    for page in pages:
        values = [(name, value) for name, value in parameters(page) if name in named]
        if any(map(_NUMBER.search, (value for _, value in values))):
            forms[tuple((name, _NUMBER.sub("0", value)) for name, value in values)].append(page)
    for same in sorted(forms.values(), key=lambda same: (-len(same), min(same)))[:MOST_FORMS]:
        yield min(same, key=lambda page: (len(page), page))


def _like(one: str, other: str, numbers: Sequence[str]) -> Iterator[Sequence[str]]:
    """Names like two that exist: with other numbers, and with years to come."""
    both = [(one, other)[at % 2] for at in range(MOST_ASKED)]
    forms = [
        [with_large_numbers(name, number) for name, number in zip(both, numbers, strict=True)],
        [_YEAR.sub(str(2_400 + 61 * at), name) for at, name in enumerate(both)],
    ]
    return (form for form in forms if one not in form and other not in form)


def like_linked(site: str, linked: Collection[Url]) -> Iterator[Sequence[Url]]:
    """Nonexistent pages of an origin with the ending, and with the query, that most linked pages have."""
    ends = Counter(_ending(urls.in_folder(url)[1]) for url in linked if "?" not in url)
    if end := max(filter(None, ends), key=lambda end: (ends[end], end), default=""):
        yield [Url(f"{url}{end}") for url in at_origin(site)]
    paths = Counter(url.partition("?")[0] for url in linked if "?" in url)
    if path := max(paths, key=lambda path: (paths[path], path), default=""):
        yield from islice(at_place(f"{path}?", [url for url in linked if url.startswith(f"{path}?")]), 1)


def impossible_value(page: Url, value: str, which: int) -> str:
    """In place of a value in the query of a page: the first or the second one."""
    return NUMBERS[which] if _NUMBER.fullmatch(value) else nonexistent_names(page)[which]


def with_large_numbers(name: str, number: str = NUMBERS[0]) -> str:
    """A name with numbers that it cannot have."""
    return re.sub(r"\d+", number, name)


def parameters(url: Url) -> list[tuple[str, str]]:
    """Names and values of the query; a parameter without a name is a value."""
    parts = [part.partition("=") for part in url.partition("?")[2].split("&")]
    return [(name, value) if mark else ("", name) for name, mark, value in parts]


def with_values(url: Url, new: Mapping[str, str]) -> Url:
    """The URL with other values of these parameters."""
    given = [(name, new.get(name, value)) for name, value in parameters(url)]
    query = "&".join(f"{name}={value}" if name else value for name, value in given)
    return Url(f"{url.partition('?')[0]}?{query}")


def differing(pages: Iterable[Url]) -> dict[str, set[str]]:
    """The values of each parameter that has several."""
    seen = dict[str, set[str]]()
    for page in pages:
        for name, value in parameters(page):
            seen.setdefault(name, set()).add(value)
    return {name: values for name, values in seen.items() if len(values) > 1}


def around(url: str) -> str:
    """The folder of a page, or its path if it has a query, as in the prefix of a `Place`."""
    path, mark, _ = url.partition("?")
    return f"{path}?" if mark else urls.in_folder(url)[0]


def shapes_of(url: str, other: str) -> Iterator[str]:
    """The shapes of two pages: what their addresses have in common, with `NAME` in place of what tells them
    apart; and the folder below which both are. Not the folder of the first one, nor the origin.
    """
    if "?" in url or "?" in other:
        return
    # Each start is a length: of the folders in which both are, of the origin, and of the folder of the first.
    same, root, folder = _shared(url, other), urls.path_start(url) + 1, urls.folder_end(url)
    start = url.rfind("/", 0, same) + 1
    if start < root:
        return
    if start not in (folder, root):
        yield f"{url[:start]}{NAME}"
    if found := _TO_SEPARATOR.match(url, start, same):
        start = found.end()
    found = _SEPARATOR.search(url, len(url) - _shared_end(url[start:], other[start:]))
    end = url[found.start() :] if found else ""
    if start not in (folder, root) or (end and end != _ending(url[folder:])):
        yield f"{url[:start]}{NAME}{end}"


def in_gap(url: str, shape: str) -> str:
    """What an address has in place of `NAME`; nothing if the shape is a folder or path."""
    start, mark, end = shape.partition(NAME)
    return url.removeprefix(start).removesuffix(end) if mark else ""


def _shared(one: str, other: str) -> int:
    """The length of what two texts begin with."""
    most = min(len(one), len(other))
    differ = int.from_bytes(one[:most].encode()) ^ int.from_bytes(other[:most].encode())
    return most - (differ.bit_length() + 7) // 8


def _shared_end(one: str, other: str) -> int:
    """The length of what two texts end with."""
    most = min(len(one), len(other))
    differ = int.from_bytes(one[len(one) - most :].encode()) ^ int.from_bytes(
        other[len(other) - most :].encode()
    )
    return ((differ & -differ).bit_length() - 1) // 8 if differ else most


def has_shape(url: str, shape: str) -> bool:
    """Whether an address is one of those that a shape stands for."""
    start, _, end = shape.partition(NAME)
    return len(url) > len(start) + len(end) and url.startswith(start) and url.endswith(end) and "?" not in url


def above(prefix: str) -> str | None:
    """The folder in which a folder is, or a path; None for the folder of an origin."""
    up = prefix[:-1].rpartition("/")[0] + "/"
    return up if len(up) > urls.path_start(prefix) else None


def places(example: Url) -> Iterator[Place]:
    """The places around a page: its path with other values of its query, the origin, its folder.

    Their nonexistent pages are the same in every run. Two that are answered alike show that the answer does
    not depend on what is asked: some sites have a page for any number.
    """
    site = urls.origin(example)
    names = nonexistent_names(site)[:2]
    path, mark, query = example.partition("?")

    def place(prefix: str, *ends: str, is_dated: bool = False) -> Place:
        one, other = (Url(f"{prefix}{end}") for end in ends)
        bare = without_date(example) if is_dated and mark else Url(path)
        return Place(prefix, (one, other), is_dated, bare if prefix.endswith("?") else None)

    dated = date_in(example)
    if dated:
        start, _ = dated
        prefix = example[:start] if start < len(path) else f"{path}?"
        ends = [in_year(example, dated, year)[len(prefix) :] for year in YEARS]
        yield place(prefix, *ends, is_dated=True)
    elif mark:
        parts = [part.partition("=") for part in query.split("&")]
        ends = [
            "&".join(f"{given}={impossible_value(example, value, which)}" for given, _, value in parts)
            for which in (0, 1)
        ]
        yield place(f"{path}?", *ends)
    folder, last = urls.in_folder(example)
    ending = _ending(last)
    yield place(f"{site}/", *(f"{name}{ending}" for name in names))
    if folder != f"{site}/":
        yield place(folder, *(f"{name}{ending}" for name in names))
    if ending == "/":
        yield place(path, *names)
    if last.removesuffix(ending).isdigit():
        yield place(folder, *(f"{number}{ending}" for number in NUMBERS))


def in_year(url: Url, dated: tuple[int, int], year: str) -> Url:
    """The page of a calendar in another year. `dated`: where its date is."""
    start, end = dated
    return Url(f"{url[:start]}{_LATE_DAY.sub('28', _YEAR.sub(year, url[start:end]))}{url[end:]}")


def places_of(pages: Iterable[Url]) -> Iterator[tuple[Url, Place]]:
    """The places around pages with the same content, each once, with the first page there: of numbers, that
    with the least.

    Where most pages have no date, that of a page is a number by chance, which may mean nothing.
    """
    known = set[Url]()
    ordered = sorted(pages, key=lambda page: (len(page), page))
    for page in ordered:
        for place in places(page):
            if place.asked[0] not in known and len(known) < MOST_PLACES:
                known.add(place.asked[0])
                if not place.is_dated or _are_mostly_dated(ordered, place.prefix):
                    yield page, place


def _are_mostly_dated(pages: Iterable[Url], prefix: str) -> bool:
    dated = [date_in(page) is not None for page in pages if page.startswith(prefix)]
    return 2 * sum(dated) > len(dated)


def _ending(name: str) -> str:
    """The extension of a page, or its slash: some sites answer like this for addresses that end so only."""
    start, dot, end = name.removesuffix("/").rpartition(".")
    slash = "/" if name.endswith("/") else ""
    return f"{dot}{end}{slash}" if start and end.isalpha() and len(end) <= LONGEST_EXTENSION else slash


def centuries_later(url: Url) -> Url | None:
    """The page of a calendar 400 years later: nothing is planned, and all weekdays are as now."""
    if (dated := date_in(url)) is None:
        return None
    start, end = dated
    later = _YEAR.sub(lambda year: f"{int(year[0][:4]) + CENTURIES:04}", url[start:end], count=1)
    return Url(f"{url[:start]}{later}{url[end:]}") if later != url[start:end] else None


def from_both_ends(days: Iterable[Url]) -> Iterator[Url]:
    """The days of a calendar, those first of which it is least likely that something is planned."""
    left = deque(sorted(days, key=lambda url: (len(url), url)))
    while left:
        yield left.popleft()
        if left:
            yield left.pop()
