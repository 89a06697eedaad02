"""Finds and escapes bare ampersands in XML before a strict parser, so that the first one does not end
validation.

An & is bare if it starts neither one of the five entities of XML nor a character reference. In CDATA,
comments and processing instructions it is allowed. Other entities count as bare, as document types are not
supported.
"""

import re
from typing import Final

_WIDE: Final = (b"\xff\xfe", b"\xfe\xff", b"<\0", b"\0<")  # UTF-16, which is not handled
_ENDS: Final = {b"<![CDATA[": b"]]>", b"<!--": b"-->", b"<?": b"?>"}
_MARK: Final = re.compile(
    rb"<!\[CDATA\[|<!--|<\?|&(?!(?:amp|lt|gt|quot|apos|#[0-9]{1,7}|#[xX][0-9A-Fa-f]{1,6});)"
)


def whole(data: bytes) -> int:
    """Where to cut a long piece without a line break: before the last < or &, which may start a token."""
    cut = max(data.rfind(b"<"), data.rfind(b"&"))
    return cut if cut > 0 else len(data.rstrip(b"]-?"))


class Ampersands:
    """Called with the pieces of one file in order. Each ends as `whole` says."""

    def __init__(self) -> None:
        self._wide: bool | None = None
        self._end = b""  # delimiter that ends the open section

    def __call__(self, data: bytes) -> tuple[bytes, list[int]]:
        """The piece with all bare ampersands escaped, and the line of each within the piece, from 0."""
        if self._wide is None:
            self._wide = data[:2] in _WIDE
        if self._wide or not (self._end or b"&" in data or b"<!" in data or b"<?" in data):
            return data, []
        out, bare, at = list[bytes](), list[int](), 0
        while at < len(data):
            at = self._section(data, at, out) if self._end else self._text(data, at, out, bare)
        return b"".join(out), bare

    def _section(self, data: bytes, at: int, out: list[bytes]) -> int:
        end = data.find(self._end, at)
        end, self._end = (len(data), self._end) if end < 0 else (end + len(self._end), b"")
        out.append(data[at:end])
        return end

    def _text(self, data: bytes, at: int, out: list[bytes], bare: list[int]) -> int:
        found = _MARK.search(data, at)
        if found is None:
            out.append(data[at:])
            return len(data)
        if found[0] == b"&":
            out += (data[at : found.end()], b"amp;")
            bare.append(data.count(b"\n", 0, found.start()))
        else:
            out.append(data[at : found.end()])
            self._end = _ENDS[found[0]]
        return found.end()
