"""The candidates of a srcset attribute, by the HTML Standard's "parse a srcset attribute" (4.8.4.2.1).

Returns the URLs as written; which of them a browser would select does not matter. Pure, linear in the length of the text.
"""

import re
from collections.abc import Iterator
from typing import Final

_SKIP: Final = re.compile(r"[\t\n\x0c\r ,]*")
_URL: Final = re.compile(r"[^\t\n\x0c\r ]*")
_WIDTH: Final = re.compile(r"\d+w", re.ASCII)
_HEIGHT: Final = re.compile(r"\d+h", re.ASCII)
_DENSITY: Final = re.compile(r"-?(?:\d+(?:\.\d+)?|\.\d+)(?:[eE][+-]?\d+)?x", re.ASCII)
ASCII_WHITESPACE: Final = "\t\n\x0c\r "


def candidates(text: str) -> list[str]:
    """The URLs of all valid candidates, in their order."""
    return list(_candidates(text))


def _candidates(text: str) -> Iterator[str]:
    at = 0
    while True:
        at = _end(_SKIP, text, at)
        if at >= len(text):
            return
        end = _end(_URL, text, at)
        url = text[at:end]
        if url.endswith(","):
            yield url.rstrip(",")
            at = end
            continue
        descriptors, at = _descriptors(text, end)
        if _are_valid(descriptors):
            yield url


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


def _are_valid(descriptors: list[str]) -> bool:
    """At most one width or density; a height only with a width; nothing else."""
    width = density = height = False
    for word in descriptors:
        if _WIDTH.fullmatch(word):
            if width or density or int(word[:-1][:20]) == 0:
                return False
            width = True
        elif _DENSITY.fullmatch(word):
            if width or density or height or (word.startswith("-") and float(word[:-1]) < 0):
                return False
            density = True
        elif _HEIGHT.fullmatch(word):
            if height or density or int(word[:-1][:20]) == 0:
                return False
            height = True
        else:
            return False
    return width or not height
