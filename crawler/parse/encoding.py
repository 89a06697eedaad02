"""The encoding of a page, sniffed as in the HTML Standard: BOM, then HTTP, then a meta element, then
windows-1252.

Source: HTML Standard 13.2.3 "The input byte stream" and Encoding Standard (labels, by `webencodings`). UTF-7
is not part of the Encoding Standard and never used. Pure and total.
"""

import re
from codecs import IncrementalEncoder
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import lru_cache
from typing import Final
from unicodedata import normalize

import webencodings
from msgspec import Struct

from crawler.parse.late import late

PRESCAN: Final = 1024  # first bytes of a page, in which a whole meta element has to be
DEFAULT_ENCODING: Final = "windows-1252"

_IN_UTF8: Final = frozenset({"utf-8", "utf-16le", "utf-16be"})  # pages whose links have queries in UTF-8
# Where the standard's encoders differ from Python's; None: not encodable.
_OWN_CODES: Final[dict[str, dict[str, bytes | None]]] = {
    "gb18030": {"\ue5e5": None},
    "gbk": {"\u20ac": b"\x80"},
    "shift_jis": {"\x80": b"\x80", "\xa5": b"\\", "\u203e": b"~"},
}

_BOMS: Final = ((b"\xef\xbb\xbf", "utf-8"), (b"\xfe\xff", "utf-16be"), (b"\xff\xfe", "utf-16le"))
WHITESPACE_BYTES: Final = b"\t\n\x0c\r "
_XML: Final = late(rb"""<\?xml[\t\n\x0c\r ][^>]*?encoding[\t\n\r ]*=[\t\n\r ]*["']([A-Za-z0-9._:-]+)["']""")
_CHARSET: Final = late(rb"charset", re.IGNORECASE)

ASCII, ROMAN, JIS0208 = b"\x1b(B", b"\x1b(J", b"\x1b$B"
"""The states, each as the escape sequence that begins it."""

REFUSED: Final = frozenset("\x0e\x0f\x1b")  # they would switch the state of a decoder (step 3)
_ROMAN: Final = {"\xa5": b"\\", "\u203e": b"~"}
_VOICED: Final = {"\uff9e": "\u309b", "\uff9f": "\u309c"}  # where compatibility normalisation combines


class Sniffed(Struct, frozen=True):
    """An encoding in lower case. If not `certain`, a meta element found later overrides it."""

    name: str
    certain: bool = True


def sniff(body: bytes, http_charset: str | None = None) -> Sniffed:
    """The encoding of a page, from its first bytes. `http_charset`: the charset of Content-Type."""
    for mark, marked in _BOMS:
        if body.startswith(mark):
            return Sniffed(marked)
    from_http = webencodings.lookup(http_charset) if http_charset else None
    if from_http:
        return Sniffed(str(from_http.name))
    name = _prescan(body[:PRESCAN])
    return Sniffed(name or DEFAULT_ENCODING, certain=name is not None)


def decode(body: bytes, name: str) -> str:
    """The text without its BOM. Undecodable bytes become U+FFFD."""
    return webencodings.decode(body, webencodings.lookup(name) or webencodings.UTF8, errors="replace")[0]


def spell_queries(hrefs: Iterable[str], name: str) -> tuple[str, ...]:
    """`spell_query` for several links."""
    return tuple(hrefs) if name in _IN_UTF8 else tuple(spell_query(href, name) for href in hrefs)


def spell_query(href: str, name: str) -> str:
    """A link with its query encoded for a page in encoding `name` (URL Standard, "percent-encode after
    encoding").

    Characters that cannot be encoded become escaped character references. The rest of the link is unchanged.
    """
    if name == "iso-2022-jp":
        return _spell_iso_2022_jp(href)
    if name in _IN_UTF8 or href.isascii():
        return href
    path, mark, query = href.partition("?")
    codec = webencodings.lookup(name)
    if not mark or query.isascii() or codec is None:
        return href
    return path + mark + "".join(_escaped(query, name, codec.codec_info.incrementalencoder()))


def _spell_iso_2022_jp(href: str) -> str:
    """The only encoding in which some ASCII characters are errors, so an ASCII query is encoded as well."""
    path, mark, query = href.partition("?")
    if query.isascii() and REFUSED.isdisjoint(query):
        return href
    coded = encode_iso_2022_jp(query)
    return (
        path
        + mark
        + "".join(_reference(piece) if isinstance(piece, int) else _bytes(piece) for piece in coded)
    )


def _reference(code: int) -> str:
    return f"%26%23{code}%3B"


def _escaped(query: str, name: str, encoder: IncrementalEncoder) -> Iterator[str]:
    own = _OWN_CODES.get(name, {})
    for char in query:
        try:
            coded = own[char] if char in own else encoder.encode(char)
        except UnicodeEncodeError:
            coded = None
        if coded is None or (name == "big5" and b"\x80" < coded[:1] < b"\xa1"):  # for decoders only
            yield _bytes(encoder.encode("", final=True)) + _reference(ord(char))
        else:
            yield _bytes(coded)
    yield _bytes(encoder.encode("", final=True))


def _bytes(coded: bytes) -> str:
    return "".join(chr(byte) if _is_plain(byte) else f"%{byte:02X}" for byte in coded)


def _is_plain(byte: int) -> bool:
    return 0x21 <= byte <= 0x7E and chr(byte) not in "\"#<>'"


def declared(charset: str | None, content: str | None) -> str | None:
    """The encoding that a meta element declares: by its charset, or in the content of Content-Type."""
    if charset is not None:
        return _usable(charset.encode("ascii", "replace"))
    return _from_content(content.encode("ascii", "replace")) if content else None


# A complete tag in ordinary spelling, skipped in one step instead of attribute by attribute.
_PLAIN_TAG: Final = late(
    rb"</?[A-Za-z][A-Za-z0-9]*+(?:[\t\n\x0c\r ]++[A-Za-z][\w:-]*+"
    rb"(?:=(?:\"[^\"]*+\"|'[^']*+'|[\w.:-]++))?+)*+[\t\n\x0c\r ]*+/?>"
)
_META: Final = late(rb"<meta[\t\n\x0c\r /]", re.IGNORECASE)


def _prescan(head: bytes) -> str | None:
    """HTML Standard, "prescan a byte stream": by a meta element, or the XML declaration."""
    if match := _XML.match(head):
        return _usable(match[1])
    at = 0
    while at < len(head):
        if head.startswith(b"<!--", at):
            at = _after(head, b"-->", at + 2)
        elif _META.match(head, at):
            at, found = _meta(head, at + len(b"<meta "))
            if found:
                return found
        elif plain := _PLAIN_TAG.match(head, at):
            at = plain.end()
        elif re.match(rb"</?[A-Za-z]", head[at : at + 3]):
            at = _skip_tag(head, at)
        elif head[at : at + 2] in (b"<!", b"</", b"<?"):
            at = _after(head, b">", at)
        else:
            at = _after(head, b"<", at + 1) - 1
    return None


def _after(head: bytes, mark: bytes, at: int) -> int:
    """The position after the next mark, beyond the end if there is none."""
    found = head.find(mark, at)
    return len(head) + 1 if found < 0 else found + len(mark)


def _skip_tag(head: bytes, at: int) -> int:
    while at < len(head) and head[at] not in WHITESPACE_BYTES + b">":
        at += 1
    while attribute := _attribute(head, at):
        at = attribute[2]
    return at + 1


def _meta(head: bytes, at: int) -> tuple[int, str | None]:
    """The position after a meta element, and the encoding that it declares."""
    seen: set[bytes] = set()
    pragma, needed, charset = False, None, None
    while attribute := _attribute(head, at):
        name, value, at = attribute
        if name in seen:
            continue
        seen.add(name)
        if name == b"http-equiv":
            pragma = pragma or value == b"content-type"
        elif name == b"content" and charset is None and (found := _from_content(value)):
            charset, needed = found, True
        elif name == b"charset":
            charset, needed = _usable(value), False
    if at >= len(head):
        return at, None  # the element does not end within the prescanned bytes
    if needed is None or (needed and not pragma):
        return at, None
    return at, charset


def _from_content(value: bytes) -> str | None:
    """HTML Standard, "extracting a character encoding from a meta element"."""
    at = 0
    while match := _CHARSET.search(value, at):
        rest = value[match.end() :].lstrip(WHITESPACE_BYTES)
        if not rest.startswith(b"="):
            at = match.end()
            continue
        rest = rest[1:].lstrip(WHITESPACE_BYTES)
        if rest[:1] in (b'"', b"'"):
            label, quote, _ = rest[1:].partition(rest[:1])
            return _usable(label) if quote else None
        return _usable(re.split(rb"[\t\n\x0c\r ;]", rest, maxsplit=1)[0])
    return None


def _usable(label: bytes) -> str | None:
    found = webencodings.lookup(label.decode("ascii", "replace"))
    if found is None:
        return None
    # A page that was readable as ASCII so far is not UTF-16, and x-user-defined is for scripts.
    return {"utf-16le": "utf-8", "utf-16be": "utf-8", "x-user-defined": DEFAULT_ENCODING}.get(
        found.name, found.name
    )


def _attribute(head: bytes, at: int) -> tuple[bytes, bytes, int] | None:
    """HTML Standard, "get an attribute": lower-case name and value, and its end; None after the last."""
    while at < len(head) and head[at] in WHITESPACE_BYTES + b"/":
        at += 1
    if at >= len(head) or head[at : at + 1] == b">":
        return None
    start = at
    while (
        at < len(head) and not (head[at] == 0x3D and at > start) and head[at] not in WHITESPACE_BYTES + b"/>"
    ):
        at += 1
    name = head[start:at].lower()
    while at < len(head) and head[at] in WHITESPACE_BYTES:
        at += 1
    if head[at : at + 1] != b"=":
        return name, b"", at
    at += 1
    while at < len(head) and head[at] in WHITESPACE_BYTES:
        at += 1
    return _attribute_value(head, at, name)


def _attribute_value(head: bytes, at: int, name: bytes) -> tuple[bytes, bytes, int] | None:
    quote = head[at : at + 1]
    if quote in (b'"', b"'"):
        end = head.find(quote, at + 1)
        return (name, head[at + 1 : end].lower(), end + 1) if end >= 0 else (name, b"", len(head))
    start = at
    while at < len(head) and head[at] not in WHITESPACE_BYTES + b">":
        at += 1
    return name, head[start:at].lower(), at


def encode_iso_2022_jp(text: str) -> Iterator[bytes | int]:
    """The bytes by the Encoding Standard (12.2.2), and the code point of each error.

    Python's `iso2022_jp` passes escape characters through, lacks half-width katakana and uses an older table.
    """
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
