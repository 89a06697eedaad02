"""What an optional feature reads of a page, as the judge sees it. `app.features` has the features."""

from typing import TYPE_CHECKING, Protocol

from msgspec import Struct

from crawler.model.facts import LabelledUrl
from crawler.model.outcome import Listed, Outcome, Unlisted
from crawler.model.reasons import Why
from crawler.model.reply import Response
from crawler.parse.extract import Extract
from crawler.parse.robots_meta import Directives
from crawler.parse.url import Url

if TYPE_CHECKING:  # commands that only read the state do not load the HTML parser
    from crawler.parse.parsed_page import ParsedPage


class SeenPage(Struct, frozen=True):
    """A page, and the verdict on it."""

    url: Url
    reply: Response
    page: "ParsedPage"  # without content, if the document is not HTML
    directives: Directives
    outcome: Outcome

    @property
    def may_be_listed(self) -> bool:
        """Whether it is listed, or will be if the canonical URL that it names fails or leads back."""
        outcome = self.outcome
        return isinstance(outcome, Listed) or (isinstance(outcome, Unlisted) and outcome.why is Why.CANONICAL)


class PageFeature(Protocol):
    """Reads URLs of a page, each with a label."""

    name: str
    extract: frozenset[Extract]
    """What the parser extracts for it."""

    def read(self, seen: SeenPage) -> tuple[LabelledUrl, ...]:
        """The URLs that are stored with the page. Pure."""
