"""What a small page loads, runs and says: a flat list of its elements, without a tree.

For pages that are not judged but recognised, in the process that received them, so it is linear in the bytes
whatever these are. It is no HTML parser: what a page links to and contains is for `parse.html`.
"""

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from crawler.parse.late import late

# Their content is text up to the end tag (HTML 13.2.5.2 to 13.2.5.4), or not part of the page.
_OPAQUE: Final = frozenset({
    b"script", b"style", b"title", b"textarea", b"xmp", b"iframe", b"noembed", b"noframes", b"template",
})  # fmt: skip
_LOADING: Final = {b"script": b"src", b"iframe": b"src", b"img": b"src", b"link": b"href", b"form": b"action"}
_CODE: Final = frozenset({
    b"", b"module", b"text/javascript", b"application/javascript", b"application/x-javascript",
})  # fmt: skip
_TAG: Final = late(rb"<(/?)([A-Za-z][A-Za-z0-9-]*+)((?:[^\"'>]++|\"[^\"]*+\"|'[^']*+')*+)>")
_BEGUN: Final = late(rb"<(?:/?[A-Za-z]|[!?])")
_ATTRIBUTE: Final = late(rb"[\s/\"']([A-Za-z-]++)\s*+=\s*+(?:\"([^\"]*+)\"|'([^']*+)'|([^\s\"'>]++))")


class Elements(Struct, frozen=True):
    """What a page consists of, each in the order of the page. Bytes as they are written."""

    resources: tuple[bytes, ...]  # addresses of scripts, frames, images, styles, forms, and refreshs
    frames: tuple[bytes, ...]  # addresses of the frames among them
    scripts: tuple[bytes, ...]  # the code that stands in the page
    ids: frozenset[bytes]
    links: int  # `a` elements with an address
    text: bytes  # what is neither markup nor code, white space folded, references unresolved
    has_title: bool


def elements(body: bytes) -> Elements:
    """The elements of a page in an encoding that contains ASCII. Markup that does not end is left out."""
    found = _ElementsBuilder()
    lower, at, end = body.lower(), 0, len(body)
    while at < end:
        start = body.find(b"<", at)
        if start < 0:
            found.text.append(body[at:])
            break
        found.text.append(body[at:start])
        at = _markup(found, body, lower, start)
    return found.elements()


def _markup(found: "_ElementsBuilder", body: bytes, lower: bytes, start: int) -> int:
    """Takes the markup at `start`. Returns where to go on."""
    if body.startswith(b"<!--", start):
        close = body.find(b"-->", start + 4)
        return len(body) if close < 0 else close + 3
    tag = _TAG.match(body, start)
    if tag is None:
        if not _BEGUN.match(body, start):
            return start + 1  # text
        # A declaration ends with the next `>`; a tag without an end takes the rest of the page.
        close = body.find(b">", start) if body[start + 1 : start + 2] in b"!?" else -1
        return len(body) if close < 0 else close + 1
    name = tag[2].lower()
    if tag[1]:
        return tag.end()
    inside = tag.end()
    given = found.element(name, tag[3])
    if name in _OPAQUE:
        close = lower.find(b"</" + name, inside)
        close = len(body) if close < 0 else close
        found.opaque(name, given, body[inside:close])
        inside = close
    return inside


class _ElementsBuilder:
    """Collects the elements."""

    def __init__(self) -> None:
        self.text: list[bytes] = []
        self._resources: list[bytes] = []
        self._frames: list[bytes] = []
        self._scripts: list[bytes] = []
        self._ids: set[bytes] = set()
        self._links = 0
        self._has_title = False

    def opaque(self, name: bytes, given: Mapping[bytes, bytes], content: bytes) -> None:
        """Takes the content of an element that is no markup. Data in a script element is no code."""
        if name == b"script" and given.get(b"type", b"").strip().lower() in _CODE:
            self._scripts.append(content)
        elif name == b"title":
            self._has_title = self._has_title or bool(content.strip())

    def element(self, name: bytes, written: bytes) -> Mapping[bytes, bytes]:
        """Takes an element with its attributes as they are written. Returns these by name."""
        given: dict[bytes, bytes] = {}
        for match in _ATTRIBUTE.finditer(b" " + written):
            given.setdefault(match[1].lower(), match[2] or match[3] or match[4] or b"")
        if identity := given.get(b"id"):
            self._ids.add(identity)
        self._links += name == b"a" and b"href" in given
        loads = given.get(_LOADING.get(name, b""))
        if name == b"meta" and given.get(b"http-equiv", b"").lower() == b"refresh":
            loads = given.get(b"content")
        if loads:
            self._resources.append(loads)
            if name == b"iframe":
                self._frames.append(loads)
        return given

    def elements(self) -> Elements:
        return Elements(
            tuple(self._resources),
            tuple(self._frames),
            tuple(self._scripts),
            frozenset(self._ids),
            self._links,
            b" ".join(b" ".join(self.text).split()),
            self._has_title,
        )
