"""The ISO-2022-JP encoder of the Encoding Standard (12.2.2), from which Python's `iso2022_jp` differs.

Python's passes escape characters through, lacks half-width katakana and uses an older table. Pure and total:
a character that cannot be encoded yields its code point as an error.
"""

from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache
from typing import Final
from unicodedata import normalize

ASCII, ROMAN, JIS0208 = b"\x1b(B", b"\x1b(J", b"\x1b$B"
"""The states, each as the escape sequence that begins it."""

REFUSED: Final = frozenset("\x0e\x0f\x1b")  # they would switch the state of a decoder (step 3)
_ROMAN: Final = {"\xa5": b"\\", "\u203e": b"~"}
_VOICED: Final = {"\uff9e": "\u309b", "\uff9f": "\u309c"}  # where compatibility normalisation combines


def encode(text: str) -> Iterator[bytes | int]:
    """Bytes, and the code point of each error."""
    state = ASCII
    for char in text:
        wanted, coded = _step(char, state)
        if wanted != state:
            yield wanted
            state = wanted
        yield coded
    if state != ASCII:
        yield ASCII


def _step(char: str, state: bytes) -> tuple[bytes, bytes | int]:
    """The state in which a character is encoded, and its bytes."""
    if char in REFUSED:
        return (ROMAN if state == ROMAN else ASCII), 0xFFFD
    if state == ROMAN and char.isascii() and char not in "\\~":
        return ROMAN, char.encode()
    if char.isascii():
        return ASCII, char.encode()
    if char in _ROMAN:
        return ROMAN, _ROMAN[char]
    if coded := _jis0208().get(_full_width(char)):
        return JIS0208, coded
    return (ASCII if state == JIS0208 else state), ord(char)


def _full_width(char: str) -> str:
    if char == "\u2212":
        return "\uff0d"
    if "\uff61" <= char <= "\uff9f":
        return _VOICED.get(char) or normalize("NFKC", char)
    return char


@lru_cache(maxsize=1)
def _jis0208() -> dict[str, bytes]:
    """The part of the standard's index jis0208 that ISO-2022-JP can encode, built from windows-31j."""
    index: dict[str, bytes] = {}
    for pointer in range(94 * 94):
        lead, trail = divmod(pointer, 188)
        shift_jis = bytes([lead + (0x81 if lead < 0x1F else 0xC1), trail + (0x40 if trail < 0x3F else 0x41)])
        with suppress(UnicodeDecodeError):
            row, cell = divmod(pointer, 94)
            index.setdefault(shift_jis.decode("cp932"), bytes([row + 0x21, cell + 0x21]))
    return index
