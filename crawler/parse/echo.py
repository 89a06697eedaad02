"""The address of a page in the page's own text: error pages, search results and calendars repeat it.

`Echo` puts one mark in place of what repeats the path, the query or the host, so that answers that
differ only in that are one content. Whole segments and values count, not single words of them, since any
text has "the" in it. On a page of a calendar, the date of its URL and its neighbours count, too. Pure.
"""

import re
from collections.abc import Collection, Iterable, Iterator
from itertools import islice
from typing import Final
from urllib.parse import unquote, urljoin

from crawler.parse import url as urls
from crawler.parse.late import late
from crawler.parse.near_dates import date_of, dates_near, without_days, without_near
from crawler.parse.volatile_text import MARK

MOST_PHRASES: Final = 80
MOST_PLACES: Final = 20  # of one phrase that are looked at: an echo is not as frequent as a subject
LONGEST_EXTENSION: Final = 5  # characters
LONGEST_NAME: Final = 200  # characters of the text of a link

# Each separator as a blank, in lower case: "/a-b_c" reads " a b c". The length stays the same.
_SEPARATORS: Final = b" \t/?&=.:;_+%#-,|>\"'()[]\x00"
_PLAIN: Final = bytes(0x20 if code in _SEPARATORS else code for code in range(256)).lower()
_BEFORE: Final = b"/?&=:;_+%#-.\"'([<"
_AFTER: Final = b"/?&=_+%#-\"')]>"
_WORD_CODES: Final = frozenset(b"0123456789abcdefghijklmnopqrstuvwxyz")
_SCHEMES: Final = (b"https", b"http")

_NAME: Final = late(r"[^\W_]+")
_LAST_NUMBER: Final = late(r"(\d{1,9})([^\d/]*/?)$")  # in the last segment
_DIGITS: Final = late(rb"\d+")
_LETTERS: Final = late(r"[^\W\d_]+")
_EXTENSION: Final = late(r"(?<=[^/])\.[A-Za-z]{1,5}$")
_DIGIT: Final = late(r"\d")
_ESCAPED: Final = late(rb"%([0-9A-Fa-f]{2})")


class Echo:
    """What repeats one address, to be found in the texts of its page."""

    def __init__(
        self, url: str, *, calendar: bool = False, values: bool = False, name: bool = False, part: str = ""
    ) -> None:
        """`calendar`: the date of the URL and its neighbours repeat it, too. `values`: only those of its
        query are looked for; `name`: only the whole address and what stands after its folder. `part`: of a
        segment, that is known to tell its pages apart.
        """
        self._dated = date_of(url) if calendar else None
        self._calendar = calendar
        own = f"{urls.origin(url)}/{url[len(urls.in_folder(url)[0]) :]}" if name else url
        self._phrases = _values(url) if values else _phrases(own, calendar=calendar)
        self._phrases += filter(None, _spelt(part.encode("utf-8", "surrogatepass")))
        self._lists = list(_lists(url))
        target = b"/" + url.partition("://")[2].partition("/")[2].encode("utf-8", "surrogatepass")
        self._targets = {target, target.partition(b"?")[0]} - {b"/"}

    def without(self, text: bytes) -> bytes:
        """The text, with MARK in place of each repetition of the address."""
        if self._calendar:
            text = without_near(text, self._dated) if self._dated else text
            text = without_days(text, dated=self._dated is not None)
        plain = text.translate(_PLAIN)
        found = [span for phrase in self._phrases for span in _places(plain, phrase)]
        found += [hit.span() for form in self._lists for hit in islice(form.finditer(plain), MOST_PLACES)]
        found += [span for whole in self._targets for span in _places(text, whole)]
        if not found:
            return text
        parts: list[bytes] = []
        done = 0
        for low, high in _joined(plain, sorted(found)):
            start, end = _widened(text, max(low, done), high, done)
            parts += text[done:start], MARK
            done = end
        return b"".join([*parts, text[done:]])


def variations(
    url: str, hrefs: Iterable[str], beside: Collection[str] = ()
) -> dict[str, frozenset[str] | None]:
    """The links that lead to a variation of the address of their page, and the words that spell it.

    Such are the same path with a query, or a longer path with that of the page in it: pages that differ only
    in them are one content. Of links to `beside` (`only_beside`) the text may say anything, which is None.
    """
    own, _, query = url.partition("?")
    if not (beside or query):
        hrefs = _maybe_within(own, hrefs)
    found: dict[str, frozenset[str] | None] = {}
    for href in hrefs:
        try:
            absolute = urls.origin(url) + href if href[:1] == "/" != href[1:2] else urljoin(url, href)
        except ValueError:
            continue
        path, _, asked = absolute.partition("#")[0].partition("?")
        if path in beside and not asked:
            found[href] = None
        elif path == own if query or asked else _contains(path, own):
            found[href] = frozenset(_NAME.findall(unquote(f"{path} {asked}").lower()))
    return found


def only_spells(text: str, words: frozenset[str] | None) -> bool:
    """Whether the text of a link says no more than the `words` of its address; None: it may say anything."""
    return len(text) <= LONGEST_NAME and (words is None or words.issuperset(_NAME.findall(text.lower())))


def _maybe_within(own: str, hrefs: Iterable[str]) -> list[str]:
    """The links that can contain the path of their page, as seen without joining the two, which is slow."""
    name, size = _without_ending(own.rpartition("/")[2]), len(_without_ending(urls.target(own)))
    return [
        href
        for href in hrefs
        if "?" in href or ((name in href or not href.isprintable()) and (href[:1] != "/" or len(href) > size))
    ]


def beside_by_number(url: str) -> tuple[str, ...]:
    """The address with the next number and with the one before, if its path ends with a number."""
    found = _LAST_NUMBER.search(url, len(urls.origin(url)))
    if found is None or "?" in url:
        return ()
    digits, wide = found[1], len(found[1]) if found[1][0] == "0" else 0
    return tuple(
        f"{url[: found.start()]}{number:0{wide}}{found[2]}" for number in (int(digits) + 1, int(digits) - 1)
    )


def only_beside(url: str, body: bytes) -> tuple[str, ...]:
    """The pages beside one by number, if it may link to the next one, as each page of an endless list does.

    Not if it links to others of the kind: a menu of numbers is the same on all pages.
    """
    beside = beside_by_number(url)
    if not beside or _last_segment(beside[0]) not in body:
        return ()
    kind = _DIGITS.sub(rb"\\d+", re.escape(_last_segment(url)))
    named = set(re.findall(rb"[/=\"'](%b)(?=[/?#\"'> ])" % kind, body))
    is_only = named <= {_last_segment(one) for one in (*beside, url)}
    return beside if is_only and _last_segment(beside[0]) in named else ()


def _last_segment(address: str) -> bytes:
    return address.rstrip("/").rpartition("/")[2].encode("utf-8", "surrogatepass")


def _contains(path: str, own: str) -> bool:
    """Whether a longer address begins with another one, but for its ending, or ends with its path."""
    target = own.rstrip("/").partition("://")[2].partition("/")[2]
    is_longer = bool(target) and len(path) > len(own.rstrip("/")) + 1
    return is_longer and (path.startswith(_without_ending(own)) or path.rstrip("/").endswith(f"/{target}"))


def _without_ending(address: str) -> str:
    return address.rstrip("/") if address.endswith("/") else _EXTENSION.sub("", address)


def _phrases(url: str, *, calendar: bool) -> list[bytes]:
    """What repeats the address, in lower case, with a blank for each separator."""
    address, _, query = url.partition("?")
    _, _, host, *segments = (address.encode("utf-8", "surrogatepass") + b"///").split(b"/")
    parts = [host, *(part for segment in segments[-MOST_PHRASES:] for part in segment.split(b";"))]
    phrases = dict.fromkeys(_in_words(unquote(address.partition("://")[2].partition("/")[2])))
    phrases |= {spelt: None for part in parts for spelt in _spelt(part) if len(spelt) > 1 or spelt.isdigit()}
    for part in query.split("&")[:MOST_PHRASES] if query else ():
        name, _, value = part.encode("utf-8", "surrogatepass").partition(b"=")
        phrases |= dict.fromkeys((name.translate(_PLAIN),) if len(name) > 1 else ())
        phrases |= dict.fromkeys(filter(None, _spelt(value)))
        if b"/" in value:  # a path, as in `index.php?page=search/tea`
            phrases |= dict.fromkeys(_in_words(unquote(part.partition("=")[2])))
            phrases |= dict.fromkeys(filter(None, _spelt(value.rstrip(b"/").rpartition(b"/")[2])))
    if calendar:
        phrases |= dict.fromkeys(dates_near(url))
    return list(phrases)[:MOST_PHRASES]


def _values(url: str) -> list[bytes]:
    parts = url.partition("?")[2].encode("utf-8", "surrogatepass").split(b"&")[:MOST_PHRASES]
    return [spelt for part in parts for spelt in _spelt(part.rpartition(b"=")[2]) if spelt]


def _in_words(path: str) -> Iterator[bytes]:
    """A path as it is read aloud, also without its extension, and without its numbers.

    Two words at least, as any text has single ones.
    """
    stem, dot, extension = path.rpartition(".")
    for read in (path, stem) if dot and len(extension) <= LONGEST_EXTENSION else (path,):
        words = _LETTERS.findall(read) if _DIGIT.search(read) else ()
        if len(words) > 1:
            yield " ".join(words).encode("utf-8", "surrogatepass").lower()


def _lists(url: str) -> Iterator[re.Pattern[bytes]]:
    """The words that a part of the address joins, as a text lists them. Atomic steps need linear work."""
    joined = (part for part in re.split("[/?&=]", urls.target(url)) if "+" in part or "," in part)
    for part in islice(joined, MOST_PHRASES):
        stem = _without_ending(part).encode("utf-8", "surrogatepass")
        first, *more = stem.translate(_PLAIN).split()[:MOST_PHRASES] or [b""]
        if steps := [rb"(?>(?: +\w{1,4})?? +%s\b)" % re.escape(word) for word in more]:
            yield re.compile(b"".join([rb"\b", re.escape(first), rb"\b", *steps]))


def _spelt(raw: bytes) -> Iterator[bytes]:
    """A part of the address as it is written, without its extension, and as it is read."""
    stem, dot, extension = raw.rpartition(b".")
    yield raw.translate(_PLAIN).strip()
    if dot and len(extension) <= LONGEST_EXTENSION:
        yield stem.translate(_PLAIN).strip()
    if b"%" in raw or b"+" in raw:
        read = _ESCAPED.sub(lambda found: bytes([int(found[1], 16)]), raw.replace(b"+", b" "))
        yield read.translate(_PLAIN).strip()
        if not read.isascii():
            yield read.decode("utf-8", "replace").capitalize().encode().translate(_PLAIN).strip()


def _places(plain: bytes, phrase: bytes) -> Iterator[tuple[int, int]]:
    """Where a phrase stands as whole words."""
    size, at = len(phrase), plain.find(phrase)
    is_open = phrase[0] not in _WORD_CODES
    for _ in range(MOST_PLACES):
        if at < 0:
            return
        end = at + size
        if (is_open or not at or plain[at - 1] not in _WORD_CODES) and not (
            end < len(plain) and plain[end] in _WORD_CODES
        ):
            yield at, end
        at = plain.find(phrase, end)


def _joined(plain: bytes, spans: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """The spans; those between which only separators stand are one."""
    start = end = -1
    for low, high in spans:
        if end >= 0 and (low <= end or plain[end:low].isspace()):
            end = max(end, high)
            continue
        if end >= 0:
            yield start, end
        start, end = low, high
    if end >= 0:
        yield start, end


def _widened(text: bytes, start: int, end: int, least: int) -> tuple[int, int]:
    """A span with the marks that belong to an address: scheme, slashes, quotes."""
    while start > least and text[start - 1] in _BEFORE:
        start -= 1
    for scheme in _SCHEMES:
        if text[max(least, start - len(scheme)) : start].lower() == scheme:
            start -= len(scheme)
            break
    while end < len(text) and text[end] in _AFTER:
        end += 1
    return start, end
