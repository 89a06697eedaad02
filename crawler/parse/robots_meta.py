"""Indexing directives of `X-Robots-Tag` and meta robots (Google's robots meta tag specification)."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from crawler.parse.headers import LONGEST_FIELD_READ

_AGENT: Final = re.compile(r"\s*([A-Za-z0-9_.*-]+)\s*:(.*)", re.DOTALL)
# Directives with a value after a colon, which must not be taken for the name of an agent.
_VALUED: Final = frozenset({"unavailable_after", "max-snippet", "max-image-preview", "max-video-preview"})


@dataclass(frozen=True, slots=True)
class Directives:
    """The directives for robots. `|` combines them: the strictest wins."""

    noindex: bool = False
    nofollow: bool = False
    noimageindex: bool = False

    def __or__(self, other: "Directives") -> "Directives":
        return Directives(
            self.noindex or other.noindex,
            self.nofollow or other.nofollow,
            self.noimageindex or other.noimageindex,
        )


def directives(content: str) -> Directives:
    """The content of a meta robots element; `none` means both, unknown words are ignored."""
    words = {word.strip().lower() for word in content[:LONGEST_FIELD_READ].replace(";", ",").split(",")}
    none = "none" in words
    return Directives(none or "noindex" in words, none or "nofollow" in words, "noimageindex" in words)


def robots_tag(values: Iterable[str], agent: str) -> Directives:
    """The directives of all X-Robots-Tag fields for `agent`, a product token in lower case.

    `agent: rule, rule` applies to that agent only, up to the next name or the end of the field.
    """
    found = Directives()
    for value in values:
        addressed = True  # until the field names an agent, it applies to all
        for rule in value[:LONGEST_FIELD_READ].split(","):
            match = _AGENT.fullmatch(rule)
            if match and match[1].lower() not in _VALUED:
                addressed = match[1].lower() in {agent, "*"}
                rule = match[2]  # noqa: PLW2901 - without the name
            if addressed:
                found |= directives(rule)
    return found
