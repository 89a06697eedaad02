"""Makes text from the network safe for terminals and logs.

Invisible and control characters become visible escapes. Rich markup is not escaped: such text is passed to
rich only in `rich.text.Text`, which does not interpret it.
"""

from itertools import accumulate
from typing import Final

from crawler.parse.late import late

_UNSEEN: Final = late(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)
"""Invisible characters that `str.isprintable` accepts: fillers, joiners, variation selectors, a blank."""


def printable(text: str, limit: int = 200) -> str:
    r"""`text` with an escape (`\x1b`, `\u202e`) for each character that is neither visible nor a plain space.

    These are control characters, ANSI escapes, line breaks, bidi marks, zero-width characters and lone
    surrogates. The result has at most `limit` characters: the middle of a longer one becomes an ellipsis, and
    no escape is split. The work is bounded by `limit` as well.
    """
    if len(text) <= limit and _is_harmless(text):
        return text
    ends = text if len(text) <= 2 * limit else text[:limit] + text[-limit:]
    parts = [char if _is_harmless(char) else char.encode("unicode_escape").decode() for char in ends]
    if sum(map(len, parts)) <= limit:
        return "".join(parts)
    head = _fitting(parts, limit // 2)
    tail = _fitting(parts[::-1], limit - 1 - limit // 2)
    return "".join((*head, "…", *tail[::-1]))


def _is_harmless(text: str) -> bool:
    return text.isprintable() and (text.isascii() or _UNSEEN.search(text) is None)


def _fitting(parts: list[str], limit: int) -> list[str]:
    """The first of `parts`, as many as fit into `limit` characters."""
    ends = accumulate(map(len, parts))
    return parts[: sum(end <= limit for end in ends)]
