"""Which pages get a fingerprint of their text, beside the digest of the bytes that every page has.

A fingerprint shows which pages have the same text, and whether the text of a page changed when its bytes did.
A page with a trusted header needs neither; as long as its bytes stay the same, its text does, too. The choice
depends on the page and on what the last run stored about it, never on the order of the crawl. Pure.
"""

import re
from collections import Counter
from collections.abc import Iterable
from hashlib import blake2b, sha1
from typing import Final
from urllib.parse import unquote

from crawler.model.facts import Facts
from crawler.parse import url as urls
from crawler.parse.fingerprint import DIGITS
from crawler.parse.late import late
from crawler.rules.duplicates import names_folder, stem
from crawler.rules.spellings import sessions, without_extension
from crawler.rules.traps import calendar_of

# One of so many pages is always fingerprinted: they expose headers that change while the text does not.
FINGERPRINTED_SHARE: Final = 8
_JOINING: Final = re.compile(r"[?;+,]")
SHORT_WORD: Final = 3  # characters
_SOME_DIGIT: Final = re.compile(r"[0-9]")  # as each id of a session has
_SEPARATORS: Final = late(r"[\W_]")
_ALNUM: Final = bytes(code if chr(code).isalnum() else 32 for code in range(256))
_BUT_DOTS: Final = late(r"[^\w.]|_")


def of_bytes(body: bytes) -> str:
    """Sixteen hex digits. SHA-1, for which processors have instructions, takes half of the time of BLAKE2."""
    return sha1(body, usedforsecurity=False).hexdigest()[:DIGITS]


def suffices(url: str, body: bytes, prior: Facts | None, *, is_dated: bool) -> bool:
    """Whether the digest of the bytes is enough. `prior`: of the last run; `is_dated`: by its header."""
    if prior is not None and prior.digest is not None:
        return prior.content is None and prior.digest == of_bytes(body)
    if not is_dated or names_folder(url) or is_sampled(url):
        return False
    return calendar_of(url) is None and not is_suspicious(url)


def is_suspicious(url: str) -> bool:
    """Whether the URL may be one of endlessly many whose pages repeat what is asked for.

    It has a query or parameters after ";", adds up words with "+" or ",", a segment or a word of its path
    comes again, or a segment looks like the id of a session. Numbers come again in many true paths, parts of
    dotted names in those of documentation (`/java.base/java/`), short words in one title.
    """
    if _JOINING.search(url):
        return True
    path = urls.target(url).lower()
    path = unquote(path).lower() if "%" in path else path
    parts = [part for part in path.split("/") if part]
    words = _words(_SEPARATORS, path)
    is_again = len(set(parts)) < len(parts) or (len(set(words)) < len(words) and _has_word_again(parts))
    return is_again or (_SOME_DIGIT.search(path) is not None and any(sessions(url)))


def _words(separators: re.Pattern[str], text: str) -> list[str]:
    if separators is _SEPARATORS and text.isascii():  # as most
        return [word for word in text.encode().translate(_ALNUM).decode().split() if not word.isdigit()]
    return [word for word in separators.split(text) if word and not word.isdigit()]


def _has_word_again(parts: Iterable[str]) -> bool:
    """Whether a word comes again: a short one in another segment, or more than once in its own."""
    before = set[str]()
    for part in parts:
        name = without_extension(part) if "." in part else part
        words = inside = _words(_SEPARATORS, name)
        if len(set(inside)) < len(inside) and any(
            times > (1 if len(word) > SHORT_WORD else 2) for word, times in Counter(inside).items()
        ):
            return True
        if "." in part:
            words = [*_words(_BUT_DOTS, name), *([part[len(name) :]] if len(name) < len(part) else ())]
        if not before.isdisjoint(words):
            return True
        before.update(words)
    return False


def is_sampled(url: str) -> bool:
    """One of FINGERPRINTED_SHARE pages, the same in each run; all names of one page, or none."""
    text = urls.target(stem(url)).encode("utf-8", "surrogatepass")
    return blake2b(text, digest_size=1).digest()[0] % FINGERPRINTED_SHARE == 0
