"""What is stored about a page whose scripts a browser ran, or would have run: why, what changed, and what it cost.

The stored form is one JSON object (`written`, `read`). Pure.
"""

import json
from typing import Any, Final, NamedTuple

from crawler.model.reasons import Reason
from crawler.parse.url import Url

LONGEST_ROBOTS: Final = 200  # characters that are kept of robots directives
LONGEST: Final = 40_000  # characters of the stored form: two canonicals of 8,192 characters, escaped


class Needs(Reason):
    """Why a page is rendered."""

    SHELL = "shell", "without scripts there is no link to follow and hardly any text"
    MOUNT = "mount", "an element that scripts fill (#app, #root, #__next, #svelte) is empty"
    NOSCRIPT = "noscript", "it asks for JavaScript in noscript"
    ALWAYS = "always", "--render always"


class Skipped(Reason):
    """Why such a page was not rendered after all: its HTML is judged first, as search engines do."""

    NOINDEX = "noindex", "its HTML says noindex"
    CANONICAL = "canonical", "its HTML names another page as canonical"
    MOVED = "moved", "its HTML redirects"
    TYPE = "type", "pages of its type are not listed"


class PageSummary(NamedTuple):
    """A page before or after its scripts ran."""

    links: int = 0
    robots: str = ""  # directives of its robots meta elements and X-Robots-Tag
    canonical: Url | None = None  # another URL that it names as canonical


class Rendering(NamedTuple):
    """A page that needs scripts, or is rendered in any case."""

    needs: Needs
    before: PageSummary = PageSummary()
    after: PageSummary | None = None  # None: not rendered
    skipped: Skipped | None = None
    requests: int = 0  # that its scripts made and that were answered, also from the cache
    refused: int = 0  # requests that were refused, or failed
    bytes: int = 0  # of the answers, decoded
    hash_routes: int = 0  # links to #/… or #!…, which no search engine follows

    @property
    def words(self) -> str:
        """Whether it was rendered and why, as one code: `shell`, `not:noindex`, `not:failed`."""
        if self.after is not None:
            return str(self.needs.value)
        return f"not:{self.skipped.value if self.skipped else 'failed'}"

    @property
    def is_due(self) -> bool:
        """Whether the page is still to be rendered."""
        return self.after is None and self.skipped is None


def written(rendering: Rendering) -> str:
    """The stored form."""
    before, after = rendering.before, rendering.after or PageSummary()
    return json.dumps(
        {
            "needs": rendering.needs.value,
            "rendered": rendering.after is not None,
            "skipped": rendering.skipped.value if rendering.skipped else None,
            "links": [before.links, after.links],
            "robots": [before.robots, after.robots],
            "canonical": [before.canonical, after.canonical],
            "requests": rendering.requests,
            "refused": rendering.refused,
            "bytes": rendering.bytes,
            "hash_routes": rendering.hash_routes,
        },
        separators=(",", ":"),
    )


def read(text: str) -> Rendering:
    """The inverse of `written`. Raises `ValueError`, `LookupError` or `TypeError` for other text."""
    said: dict[str, Any] = json.loads(text)
    before, after = (
        PageSummary(_count(links), _text(robots), Url(_text(canonical)) if canonical else None)
        for links, robots, canonical in zip(said["links"], said["robots"], said["canonical"], strict=True)
    )
    return Rendering(
        Needs.of(said["needs"]),
        before,
        after if said["rendered"] else None,
        Skipped.of(said["skipped"]) if said["skipped"] else None,
        *(_count(said[name]) for name in ("requests", "refused", "bytes", "hash_routes")),
    )


def _count(value: object) -> int:
    if type(value) is not int or value < 0:
        raise ValueError("no count")
    return value


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError("no text")
    return value
