"""What is stored about a page whose scripts a browser ran, or would have run: why, what changed, and what it
cost.

The types of the fields bound what a worker process may send. Pure.
"""

from typing import Annotated, Final, NamedTuple

import msgspec
from msgspec import Meta

from crawler.model.reasons import Reason
from crawler.parse.url import ReceivedUrl

LONGEST_ROBOTS: Final = 200  # characters that are kept of robots directives
Count = Annotated[int, Meta(ge=0, lt=1 << 53)]


class Needs(Reason):
    """Why a page is rendered."""

    SHELL = "shell", "without scripts there is no link to follow and hardly any text"
    MOUNT = "mount", "an element that scripts fill (#app, #root, #__next, #svelte) is empty"
    NOSCRIPT = "noscript", "it asks for JavaScript in noscript"
    ALWAYS = "always", "render = always"


class Skipped(Reason):
    """Why such a page was not rendered after all: its HTML is judged first, as search engines do."""

    NOINDEX = "noindex", "its HTML says noindex"
    CANONICAL = "canonical", "its HTML names another page as canonical"
    MOVED = "moved", "its HTML redirects"
    TYPE = "type", "pages of its type are not listed"


class PageSummary(NamedTuple):
    """A page before or after its scripts ran."""

    links: Count = 0
    # Directives of its robots meta elements and X-Robots-Tag.
    robots: Annotated[str, Meta(max_length=LONGEST_ROBOTS)] = ""
    canonical: ReceivedUrl | None = None  # another URL that it names as canonical


class Rendering(NamedTuple):
    """A page that needs scripts, or is rendered in any case."""

    needs: Needs
    before: PageSummary = PageSummary()
    after: PageSummary | None = None  # None: not rendered
    skipped: Skipped | None = None
    requests: Count = 0  # that its scripts made and that were answered, also from the cache
    refused: Count = 0  # requests that were refused, or failed
    bytes: Count = 0  # of the answers, decoded
    hash_routes: Count = 0  # links to #/… or #!…, which no search engine follows

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
    """The stored form: a JSON list of the fields."""
    return msgspec.json.encode(rendering).decode()


def read(text: str) -> Rendering:
    """The inverse of `written`. Raises `ValueError` for other text."""
    return msgspec.json.decode(text, type=Rendering)
