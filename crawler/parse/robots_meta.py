"""Indexing directives of `X-Robots-Tag` and meta robots (Google's robots meta tag specification)."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from crawler.parse.headers import LONGEST

_AGENT: Final = re.compile(r"\s*([A-Za-z0-9_.*-]+)\s*:(.*)", re.DOTALL)
# Directives that carry a value behind a colon, and so are no agent's name.
_VALUED: Final = frozenset({"unavailable_after", "max-snippet", "max-image-preview", "max-video-preview"})


@dataclass(frozen=True, slots=True)
class Directives:
    """What a page says to robots. `|` adds up: the strictest counts."""

    noindex: bool = False
    nofollow: bool = False

    def __or__(self, other: "Directives") -> "Directives":
        """Both."""
        return Directives(self.noindex or other.noindex, self.nofollow or other.nofollow)


def directives(content: str) -> Directives:
    """The content of a meta robots element, by the search engines' rules; `none` is both, unknown words nothing."""
    words = {word.strip().lower() for word in content[:LONGEST].replace(";", ",").split(",")}
    none = "none" in words
    return Directives(none or "noindex" in words, none or "nofollow" in words)


def robots_tag(values: Iterable[str], agent: str) -> Directives:
    """All X-Robots-Tag fields for `agent`, our product token in lower case.

    `agent: rule, rule` holds for that agent only, up to the next name or the end of the field.
    """
    said = Directives()
    for value in values:
        addressed = True  # until the field names an agent, it speaks to all
        for rule in value[:LONGEST].split(","):
            match = _AGENT.fullmatch(rule)
            if match and match[1].lower() not in _VALUED:
                addressed = match[1].lower() in {agent, "*"}
                rule = match[2]  # noqa: PLW2901 - what stands behind the name
            if addressed:
                said |= directives(rule)
    return said
