"""The candidates of a srcset attribute, by the HTML Standard's "parse a srcset attribute" (4.8.4.2.1).

Returns the URLs as written; which of them a browser would select does not matter. Pure, linear in the length
of the text.
"""

import math
import re
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from crawler.parse.late import late
from crawler.parse.refresh import ASCII_WHITESPACE

_SKIP: Final = late(r"[\t\n\x0c\r ,]*")
_URL: Final = late(r"[^\t\n\x0c\r ]*")
# At most one descriptor without parentheses, and the comma after it: what nearly every candidate has.
_PLAIN: Final = late(r"[\t\n\x0c\r ]*+([^\t\n\x0c\r ,()]*+)[\t\n\x0c\r ]*+(?:,|\Z)")
_WHOLE: Final = late(r"\d+[wh]", re.ASCII)
_DENSITY: Final = late(r"-?(?:\d+(?:\.\d+)?|\.\d+)(?:[eE][+-]?\d+)?x", re.ASCII)
LONGEST_DESCRIPTOR: Final = 100  # characters of a descriptor that may be valid


class Size(NamedTuple):
    """How large the image of a candidate is. One of the two is 0; without a descriptor the density is 1."""

    width: float = 0.0  # in pixels
    density: float = 0.0  # pixels for each CSS pixel


class Candidate(NamedTuple):
    """A valid candidate."""

    url: str
    size: Size


def largest(text: str, is_wanted: Callable[[str], bool] = bool) -> str | None:
    """The URL of the largest wanted candidate by width, else by density; the first of equals."""
    wanted = [found for found in candidates(text) if is_wanted(found.url)]
    return max(wanted, key=lambda found: found.size).url if wanted else None


def candidates(text: str) -> Iterator[Candidate]:
    """All valid candidates, in their order."""
    at = 0
    while True:
        at = _end(_SKIP, text, at)
        if at >= len(text):
            return
        end = _end(_URL, text, at)
        url = text[at:end]
        if url.endswith(","):
            yield Candidate(url.rstrip(","), Size(density=1.0))
            at = end
            continue
        if plain := _PLAIN.match(text, end):
            descriptors, at = [plain[1]] if plain[1] else [], plain.end()
        else:
            descriptors, at = _descriptors(text, end)
        if (size := _size(descriptors)) is not None:
            yield Candidate(url, size)


def _end(pattern: re.Pattern[str], text: str, at: int) -> int:
    match = pattern.match(text, at)
    return match.end() if match else at


def _descriptors(text: str, at: int) -> tuple[list[str], int]:
    """The words up to the next comma outside parentheses, and the position after it."""
    words, word, depth = [], at, False
    while at < len(text):
        char = text[at]
        if depth:
            depth = char != ")"
        elif char == "(":
            depth = True
        elif char == "," or char in ASCII_WHITESPACE:
            words.append(text[word:at])
            word = at + 1
            if char == ",":
                return [w for w in words if w], at + 1
        at += 1
    words.append(text[word:])
    return [w for w in words if w], at


def _size(descriptors: list[str]) -> Size | None:
    """The size that they describe; None unless there is at most one width or density, height with width."""
    found: dict[str, float] = {}
    for word in descriptors:
        kind = word[-1]
        if (
            kind in found
            or len(word) > LONGEST_DESCRIPTOR
            or not (_WHOLE.fullmatch(word) or _DENSITY.fullmatch(word))
        ):
            return None
        found[kind] = number = float(word[:-1])
        if number < 0 or number == math.inf or (number == 0 and kind != "x"):
            return None
    if ("x" in found and len(found) > 1) or ("h" in found and "w" not in found):
        return None
    return Size(found.get("w", 0.0), found.get("x", 0.0 if "w" in found else 1.0))
