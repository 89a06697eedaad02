"""What is stored about a page whose scripts a browser ran, or would have run: why, what changed, and what it
cost.

The types of the fields bound what a worker process may send. Pure.
"""

from typing import Annotated, Final, NamedTuple

import msgspec
from msgspec import Meta

from crawler.model.reasons import Cause, Reason
from crawler.parse.url import ReceivedUrl

MOST_INPUTS: Final = 100  # answers that are kept of one page
LONGEST_INPUTS: Final = 10_000  # characters of them, as they are stored
LONGEST_RENDERED: Final = 20_000  # bytes of a page outside the queue that is kept
MANY: Final = 10  # links that a list has which scripts make, beside a menu of any size
LITTLE: Final = 100  # characters of text that scripts may add to any page: a notice, a date
MOST_MADE: Final = 10  # links that are kept of those that scripts made
LONGEST_ROBOTS: Final = 200  # characters that are kept of robots directives
Count = Annotated[int, Meta(ge=0, lt=1 << 53)]
_Field = Annotated[str, Meta(max_length=4_000, pattern=r"\A[\t -~\x80-\xff]*\Z")]  # of a header
_Name = Annotated[str, Meta(max_length=100, pattern=r"\A[a-z0-9!#$%&'*+.^_`|~-]+\Z")]
Digest = Annotated[str, Meta(max_length=40, pattern=r"\A[a-z0-9:-]*\Z")]


class Needs(Reason):
    """Why a page is rendered."""

    SHELL = "shell", "without scripts there is no link to follow and hardly any text"
    SAMPLE = "sample", "it is a sample of the pages like it"
    PATTERN = "pattern", "the scripts of a page like it showed more"
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
    text: Count = 0  # characters that are visible


class UsedAnswer(NamedTuple):
    """What is kept of an answer, to ask whether it is still the same."""

    url: ReceivedUrl
    digest: Digest  # of what a page can see of it
    etag: _Field | None = None
    modified: _Field | None = None
    asked: Count = 0  # which of `Inputs.headers` were sent


class Inputs(NamedTuple):
    """What a rendered page was made from."""

    day: Count  # that its clock showed, in days since the epoch
    browser: Digest
    shell: UsedAnswer
    # Of the requests of its scripts, each combination once.
    headers: Annotated[tuple[tuple[tuple[_Name, _Field], ...], ...], Meta(max_length=MOST_INPUTS)] = ()
    answers: Annotated[tuple[UsedAnswer, ...], Meta(max_length=MOST_INPUTS)] = ()


class RenderedPage(NamedTuple):
    """A page outside the queue as its scripts made it, for as long as its inputs are unchanged."""

    inputs: Inputs
    headers: tuple[tuple[str, str], ...]
    body: Annotated[bytes, Meta(max_length=LONGEST_RENDERED)]  # compressed by zlib


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
    kinds: Annotated[str, Meta(max_length=40)] = ""  # of the page before that: `rules.rendering.kinds`
    inputs: Inputs | None = None  # if all of them could be kept
    # The first links to its own host that only scripts made.
    made: Annotated[tuple[ReceivedUrl, ...], Meta(max_length=MOST_MADE)] = ()
    failed: Cause | None = None  # why it could not be rendered, if its HTML is judged instead

    @property
    def words(self) -> str:
        """Whether it was rendered and why, as one code: `shell`, `not:noindex`, `not:failed`."""
        if self.after is not None:
            return str(self.needs.value)
        return f"not:{self.skipped.value if self.skipped else 'failed'}"

    @property
    def shows_more(self) -> bool:
        """Whether scripts made most of the page, or changed how search engines treat it."""
        before, after = self.before, self.after
        if after is None:
            return False
        leads_on = after.links > before.links + min(before.links, MANY - 1)
        is_grown = leads_on or after.text > 2 * before.text + LITTLE
        return is_grown or (before.robots, before.canonical) != (after.robots, after.canonical)

    @property
    def needs_scripts(self) -> bool:
        """Whether scripts show more there, as far as is known."""
        return self.shows_more or (self.needs is Needs.PATTERN and bool(self.made))

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
