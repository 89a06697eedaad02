"""Whether a page may stall the HTML parser, found out from its bytes in a few searches.

Lexbor is linear in text, but quadratic in depth, in the options of a select and in the attributes of a tag,
and cubic in misnested formatting elements. A page below all of these limits, as most are, takes it 140 ms at
worst; any other is parsed in the sandbox. Pure.
"""

from typing import Final

from crawler.parse.late import late

SHORT_BYTES: Final = 65_536  # up to here, reading a page takes but a moment
PLAIN_BYTES: Final = 1_000_000  # of text and attributes, which take the parser less than 50 ms
PLAIN_TAGS: Final = 5_500  # start tags, all inside each other, and as many end tags that match none: 140 ms
PLAIN_TAG: Final = 16_000  # bytes of one tag: as many attributes as fit take 50 ms
_BLOCK: Final = PLAIN_TAG // 2
PLAIN_ATTRIBUTES: Final = 5_000  # of a longer one: each is compared with those before it
FEW_TAGS: Final = 1_000  # up to here misnested elements do no harm
FEW_BYTES: Final = 3 * FEW_TAGS  # too few to exceed any of these limits: a tag takes three
SMALL_BYTES: Final = 20_000  # attributes that are compared need no look: as many as fit take 65 ms
PLAIN_FORMATTED: Final = 800  # formatting elements that differ from each other
PLAIN_COMPARED: Final = 5_000  # attributes that are compared pairwise with those of other elements
FEW_COMPARED: Final = 100  # such elements; the attributes of more
PLAIN_SPREAD: Final = 1_500  # may be so many: each element is also looked at for itself

# Only with attributes: of those without, the standard keeps three (13.2.4.3). The first letters fail fast on
# other tags.
_FORMATTED: Final = late(
    rb"<(?:[bisuBISU]|(?=[bcefnstBCEFNST])(?i:big|code|em|font|nobr|small|strike|strong|tt))[\t\n\x0c\r /]"
)
# Elements whose attributes are compared with those of others: formatting elements (13.2.4.3), html and body
# (13.2.6.4.7). With the rest of the tag if every parser reads it the same way; any other may be longer than
# it looks.
_ATTRIBUTES: Final = (
    rb"(?:[\t\n\x0c\r /]++[A-Za-z_:@*-][\w:.@*-]*+"
    rb"(?:=(?:\"[^\"<>]*+\"|'[^'<>]*+'|[^\t\n\x0c\r \"'<>=`]++))?+)*+[\t\n\x0c\r /]*+"
)
_COMPARED: Final = late(
    rb"<(?:[bisuBISU]|(?=[bcefhnstBCEFHNST])(?i:big|body|code|em|font|html|nobr|small|strike|strong|tt))"
    rb"(?=[\t\n\x0c\r /])(" + _ATTRIBUTES + rb">)?"
)
_PLAIN_OPENING: Final = late(rb"<[A-Za-z][A-Za-z0-9-]*+" + _ATTRIBUTES)  # up to its `>`
_QUOTED: Final = late(rb"\"[^\"]*+\"|'[^']*+'")
_BETWEEN: Final = b"\t\n\x0c\r /\"'"  # where an attribute may begin
# A quoted value in which a tag seems to begin or to end. Without any, each tag ends at the next `>`.
_TAG_IN_VALUE: Final = late(rb"=[\t\n\x0c\r ]*+(?:\"[^\"<>]*+|'[^'<>]*+)[<>]")


def is_risky(body: bytes) -> bool:
    """Whether parsing the page may take so long that it should happen in the sandbox."""
    if len(body) <= FEW_BYTES:
        return False
    if len(body) > PLAIN_BYTES:
        return True
    # The number of `<`, found by removing them: that takes less than half the instructions of `count`.
    tags = len(body) - len(body.replace(b"<", b""))
    if (tags > PLAIN_TAGS and _nests_much(body, tags)) or (len(body) > PLAIN_TAG and _has_large_tag(body)):
        return True
    if len(body) > SMALL_BYTES and _places(body) > PLAIN_COMPARED:
        tags_compared: list[bytes] = _COMPARED.findall(body)  # formatted ones are among them
        formatted = len(tags_compared)
        if _compares_much(tags_compared):
            return True
    else:
        formatted = len(_FORMATTED.findall(body)) if tags > FEW_TAGS else 0
    return tags > FEW_TAGS and formatted > PLAIN_FORMATTED


def _nests_much(body: bytes, tags: int) -> bool:
    """Whether there are so many start tags or end tags: both cost as much as elements are open."""
    ends = body.count(b"</")
    return max(ends, tags - ends) > PLAIN_TAGS


def _has_large_tag(body: bytes) -> bool:
    """Whether a tag may have more than `PLAIN_ATTRIBUTES`."""
    if len(body) > SHORT_BYTES and _TAG_IN_VALUE.search(body):
        return True
    # So long a tag leaves one of these blocks without a `>`: to look takes a thousandth of splitting at each.
    if all(body.find(b">", at, at + _BLOCK) >= 0 for at in range(0, len(body) - _BLOCK + 1, _BLOCK)):
        return False
    pieces = [piece[piece.find(b"<") :] for piece in body.split(b">") if len(piece) > PLAIN_TAG]
    tags = [_QUOTED.sub(b"", one) if _PLAIN_OPENING.fullmatch(one) else one for one in pieces]
    return any(tag.startswith(b"<") and _places(tag) > PLAIN_ATTRIBUTES for tag in tags)


def _compares_much(tags: list[bytes]) -> bool:
    """Whether the attributes that the parser compares pairwise may be many: its work is quadratic in them."""
    most = PLAIN_COMPARED if len(tags) <= FEW_COMPARED else PLAIN_SPREAD
    return b"" in tags or _places(b"".join(tags)) > most


def _places(text: bytes) -> int:
    """The number of places where an attribute may begin: an upper bound of the attributes."""
    return len(text) - len(text.translate(None, _BETWEEN))
