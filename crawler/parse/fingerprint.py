"""A fingerprint of the visible content of a page: what changed since the last run, and what is new.

Included: the title and the visible text, of `main` if there is one, else of the body without navigation,
footer and asides; where there is little text, also pictures and other media. Excluded, because it changes
without meaning: other attributes (nonces, CSRF tokens, session ids in links), scripts, styles, comments,
hidden fields, templates; what `volatile_text` removes from the text; and what repeats the address of the page
(`echo`).

The first digits are those of the wording, the content without the text of links: it tells a page that changed
from one on which only a menu or a list of other pages did. Pure.
"""

from collections.abc import Sequence
from string import punctuation
from typing import TYPE_CHECKING, Annotated, Final, NamedTuple
from zlib import crc32

from msgspec import Meta, Struct
from msgspec.structs import replace

try:
    # The same as hashlib's, but without loading OpenSSL: saves 4 MB in each parsing process.
    from _blake2 import blake2b
except ImportError:
    from hashlib import blake2b

if TYPE_CHECKING:  # the rules of duplicates import this, and what only reads a state needs no parser
    from selectolax.lexbor import LexborHTMLParser, LexborNode

from crawler.parse import volatile_text
from crawler.parse.echo import Echo
from crawler.parse.extract import BYTES as BYTES  # noqa: PLC0414 - part of the names here, too
from crawler.parse.extract import LABEL, WORDING_DIGITS
from crawler.parse.late import late
from crawler.parse.volatile_text import MARK

SILENT: Final = frozenset(
    {"script", "style", "noscript", "template", "svg", "iframe", "object", "canvas", "datalist"}
)
AROUND: Final = frozenset({"nav", "footer", "aside"})
TEXT_PER_MEDIUM: Final = 500  # characters; with less, the pictures are what the page shows
MEDIA: Final = "img,video,audio,source,embed,input[type=image]"
DIGITS: Final = 16  # hex digits of a fingerprint
MOST_BLOCKS: Final = 2_000
MOST_PIECES: Final = 1_000
_NUMBERS: Final = late(rb"[0-9%b]+" % MARK)  # a year may be that of the URL, or not
_DIGIT: Final = late(rb"[0-9]")
_WORDS: Final = late(rb"[A-Za-z\x80-\xff]{3}")
_PUNCTUATION: Final = f"{punctuation} ".encode()
_MARKS: Final = late(rb"%b+" % MARK)
_ONLY_ECHO: Final = late(rb"\x00 *%b[ %b]*+(?=\x00|\Z)" % (MARK, MARK))  # a piece
LABEL_BYTES: Final = 24  # of a label, at most
LABEL_WORDS: Final = 3
MOST_MEDIA: Final = 1_000
_FRAMES: Final = frozenset({"iframe", "object"})
ROLE_MAIN: Final = "[role=main]"
EXACTLY_COUNTED: Final = 5_000  # characters of a text whose length is counted exactly
MAIN: Final = f"main,{ROLE_MAIN}"
# Each name is compared with each element, so the most frequent elements are ruled out first.
_PLAIN: Final = "a,div,span,code,p,td,li,tr,dd,dt"
_EXCLUDED: Final = f":not({_PLAIN}):is({','.join(sorted(SILENT | AROUND))})"
_EXCLUDED_OR_MAIN: Final = f":is(:not({_PLAIN}):is(main,{','.join(sorted(SILENT | AROUND))}),{ROLE_MAIN})"

_SEPARATOR: Final = volatile_text.NODE.decode()
_BLANKS: Final = (b"\t", b"\x0b", b"\x0c", b"\r", b"\x1c", b"\x1d", b"\x1e", b"\x1f")
# They mark the column by which a list is sorted.
_ARROWS: Final = late("[\u2190-\u21ff\u25a0-\u25ff\u2b00-\u2bff]")
_DOUBLE: Final = late(rb"  +")
_WIDE_BLANKS: Final = tuple(
    (lead, late(lead + rest))
    for lead, rest in (
        (b"\xc2", rb"[\x85\xa0]"),
        (b"\xe1", rb"\x9a\x80"),
        (b"\xe2", rb"(?:\x80[\x80-\x8a\xa8\xa9\xaf]|\x81\x9f)"),
        (b"\xe3", rb"\x80\x80"),
    )
)


Fingerprint = Annotated[str, Meta(max_length=200)]


class VisibleText(Struct, frozen=True):
    """The visible text of a page."""

    title: str
    text: str  # of `main` or the body: pieces separated by NODE
    length: int = 0  # characters of all text, with navigation and footers, if `measured`
    media: tuple[str, ...] = ()  # pictures and others, with what they say, if there is little text
    linked: str = ""  # that part of `text` that is in links: pieces separated by NODE


def visible_text(
    tree: "LexborHTMLParser", *, may_have_main: bool = True, measured: bool = False, media: int = MOST_MEDIA
) -> VisibleText:
    """The visible text. Removes the excluded elements from `tree`, so it has to be the last reader of the
    tree.

    `may_have_main`: False if the word "main" is not on the page. `measured`: also compute `length`. `media`:
    pictures and others on the page, at most.
    """
    length, frames = 0, list[str]()
    nodes = tree.css(_EXCLUDED_OR_MAIN if may_have_main else _EXCLUDED)
    tags = [node.tag for node in nodes]
    has_main = any(tag not in SILENT and tag not in AROUND for tag in tags)
    for node, tag in zip(reversed(nodes), reversed(tags), strict=True):
        # In reverse order, so that nested elements are removed before those around them.
        if tag in SILENT or (tag in AROUND and not has_main):
            length += _length(node.text(separator=" ")) if measured and tag in AROUND else 0
            frames += _shown(node) if tag in _FRAMES else ()
            node.decompose()
    title = tree.css_first("title")
    main = (tree.css_first(MAIN) if has_main else None) or tree.body
    text = _pieces(main) if main else ""
    linked = _linked(main, len(text)) if main else ""
    if measured:
        whole = tree.body if has_main and len(text) < EXACTLY_COUNTED else None
        length += _length(whole.text(separator=" ") if whole else text.replace(_SEPARATOR, " "))
    shown = _media(main, frames, len(text), media) if main else ()
    return VisibleText(title.text() if title else "", text, length, shown, linked)


def _pieces(node: "LexborNode") -> str:
    return node.text(separator=_SEPARATOR, strip=True, skip_empty=True)


def _linked(main: "LexborNode", length: int) -> str:
    """The text of links within a text of that length: by itself it is no longer, but links may be nested."""
    found = list[str]()
    for node in main.css("a"):
        if length < 0:
            break
        found.append(_pieces(node))
        length -= len(found[-1])
    return _SEPARATOR.join(found)


def remove(nodes: "Sequence[LexborNode]") -> None:
    """Removes elements of one tree, given in the order of the tree."""
    for node in reversed(nodes):  # nested ones before those around them
        node.decompose()


def _media(main: "LexborNode", frames: Sequence[str], length: int, most: int) -> tuple[str, ...]:
    """What pictures, frames and other media of a page with that many characters of text show.

    `most`: how many there are at most.
    """
    nodes = main.css(MEDIA) if length < TEXT_PER_MEDIUM * most else []
    if length >= TEXT_PER_MEDIUM * (len(nodes) + len(frames)):
        return ()
    return (*(shown for node in nodes[:MOST_MEDIA] for shown in _shown(node)), *frames[:MOST_MEDIA])


def _shown(node: "LexborNode") -> list[str]:
    """The address of a medium, and the text in its place."""
    given = node.attributes
    return [given[name] or "" for name in ("src", "data-src", "srcset", "data", "alt") if given.get(name)]


def _length(text: str) -> int:
    return len(text) if len(text) > EXACTLY_COUNTED else len(" ".join(text.split()))


class PageText(NamedTuple):
    """What a page says: digests of its pieces of text without numbers, and the fingerprint of all content."""

    blocks: Annotated[tuple[int, ...], Meta(max_length=MOST_BLOCKS)]
    content: Fingerprint


class Folded(Struct, frozen=True):
    """The same as bytes, with one blank for each run of whitespace."""

    title: bytes
    text: bytes
    linked: bytes
    media: bytes


def fold(visible: VisibleText) -> Folded:
    """What versions of the content are made from."""
    title = " ".join(visible.title.split()).encode("utf-8", "replace")
    media = "\n".join(visible.media).encode("utf-8", "replace")
    return Folded(title, _plain(visible.text), _plain(visible.linked), media)


class Lasting(Struct, frozen=True):
    """The content of a page without what changes from one request to the next: pieces separated by NODE."""

    whole: bytes  # title, text and media
    linked: bytes  # the text of links


def lasting(folded: Folded) -> Lasting:
    """With what repeats the address."""
    text = _steady(folded, None)
    return Lasting(volatile_text.NODE.join([text, folded.media]) if folded.media else text, folded.linked)


def echoless(folded: Folded, echo: Echo, plain: Lasting) -> Lasting:
    """Without what repeats the address; `plain` is the same with it."""
    title, text = echo.without(folded.title), echo.without(folded.text)
    if text is folded.text:
        return replace(plain, whole=title + plain.whole[len(folded.title) :])
    own = _own_pieces(text)
    if not plain.whole.startswith(folded.text, len(folded.title) + 1):
        own = volatile_text.without_volatile(own)  # what is left of a text without any has none, either
    parts = [title, own, folded.media] if folded.media else [title, own]
    return Lasting(volatile_text.NODE.join(parts), _own_pieces(echo.without(folded.linked)))


def without_echo(folded: Folded, echo: Echo) -> Lasting:
    """Without the pieces of text that repeat the address, as a greeting of who is named in it does."""
    text, linked = (
        volatile_text.NODE.join(
            piece for piece in part.split(volatile_text.NODE) if MARK not in echo.without(piece)
        )
        for part in (folded.text, folded.linked)
    )
    return lasting(replace(folded, text=text, linked=linked))


def _own_pieces(text: bytes) -> bytes:
    """The pieces of a text that say more than the address."""
    return _ONLY_ECHO.sub(b"", volatile_text.NODE + text)[1:]


def fingerprint(content: Lasting) -> str:
    """`DIGITS` hex digits."""
    title, *pieces = content.whole.split(volatile_text.NODE)
    links = frozenset(content.linked.split(volatile_text.NODE))
    # A page of links alone has no other content.
    words = [title, *([piece for piece in pieces if piece not in links] or pieces)]
    shown = digest(volatile_text.NODE.join(words))[:WORDING_DIGITS]
    return shown + digest(content.whole)[: DIGITS - WORDING_DIGITS]


def said(folded: Folded, echo: Echo | None) -> PageText:
    """What a page says, without what repeats the URL if asked: in how many words, with or without quotation
    marks, does not matter.
    """
    content = lasting(folded)
    if echo:
        content = echoless(folded, echo, content)
        whole = MARK.join([part.strip(_PUNCTUATION) for part in content.whole.split(MARK)])
        content = replace(content, whole=_MARKS.sub(MARK, whole))
    return PageText(_blocks(folded, echo), fingerprint(content))


def _blocks(folded: Folded, echo: Echo | None) -> tuple[int, ...]:
    """Digests of the title and of each piece of text."""
    title, *pieces = _NUMBERS.sub(b"0", _steady(folded, echo)).split(volatile_text.NODE)
    found = {piece.strip() for piece in pieces if _WORDS.search(piece)}
    if _WORDS.search(title):
        found.add(b"title " + title.strip())
    return tuple(sorted(map(crc32, found))[:MOST_BLOCKS])


def pieces(content: Lasting) -> tuple[int, ...]:
    """Digests of title, pieces of text and media, in order; none if there are more than `MOST_PIECES`.

    Those of labels, a word or a few, have a bit of their own.
    """
    found = content.whole.split(volatile_text.NODE)
    return tuple(map(piece, found)) if len(found) <= MOST_PIECES else ()


def piece(text: bytes) -> int:
    """The digest of a piece of text."""
    is_label = len(text) <= LABEL_BYTES and text.count(b" ") < LABEL_WORDS and not _DIGIT.search(text)
    return crc32(text) % LABEL + LABEL * is_label


def unordered(visible: VisibleText) -> str:
    """`DIGITS` hex digits, independent of the order of the text and of arrows: for sort orders of a list."""
    pieces = sorted(piece.strip() for piece in _ARROWS.sub("", visible.text).split(_SEPARATOR))
    ordered = replace(visible, text=_SEPARATOR.join(filter(None, pieces)), linked="")
    return digest(lasting(fold(ordered)).whole)


def is_in_order(unordered: str, ordered: str) -> bool:
    """Whether the text of a page with these fingerprints is sorted already."""
    return unordered.startswith(ordered[WORDING_DIGITS:])


def _steady(folded: Folded, echo: Echo | None) -> bytes:
    """The title and the text."""
    title, text = folded.title, folded.text
    if echo:
        # First, since parts of an address may look like tokens.
        title, text = echo.without(title), echo.without(text)
    return volatile_text.NODE.join([title, volatile_text.without_volatile(text)])


def digest(data: bytes) -> str:
    """Sixteen hex digits."""
    return blake2b(data, digest_size=8).hexdigest()


def _plain(visible: str) -> bytes:
    """Each run of whitespace as one blank."""
    text = visible.encode("utf-8", "replace")
    if len(text) > len(visible):
        for lead, wide in _WIDE_BLANKS:
            if text.find(lead) >= 0:  # cheaper than the pattern
                text = wide.sub(b" ", text)
    for blank in _BLANKS:
        text = text.replace(blank, b"\n")
    text = b" ".join([line.strip() for line in text.split(b"\n")])
    return _DOUBLE.sub(b" ", text).strip() if text.find(b"  ") >= 0 else text
