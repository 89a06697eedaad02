"""Text from the network, made harmless for terminals and logs.

What cannot be seen or moves the cursor becomes a visible escape. This says nothing of markup: rich gets such text
only inside `rich.text.Text`, never as a string that it would interpret.
"""

import re
from itertools import accumulate
from typing import Final

_UNSEEN: Final = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)
"""What shows nothing though `str.isprintable` lets it pass: fillers, joiners, variation selectors, a blank."""


def printable(text: str, limit: int = 200) -> str:
    r"""`text` with an escape (`\x1b`, `\u202e`) for whatever is no visible character or plain space.

    That is controls, ANSI escapes, line breaks, bidi marks, zero-width characters and lone surrogates. The result
    has at most `limit` characters: of a longer one the middle gives way to an ellipsis, and no escape is cut in
    two. The work is bounded by `limit`, too.
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


def _fitting(parts: list[str], room: int) -> list[str]:
    """The first of `parts`, as many as fit into `room` characters."""
    ends = accumulate(map(len, parts))
    return parts[: sum(end <= room for end in ends)]
