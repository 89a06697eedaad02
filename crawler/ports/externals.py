"""The seventh role of the frontier: what other sites answered for links (`--check-external`)."""

from collections.abc import Sequence
from typing import Protocol

from crawler.model.external import CheckedLink
from crawler.ports.reads import Reads


class Externals(Reads, Protocol):
    """Links to other sites: the URLs of the newest run that are off-site and that a page leads to."""

    async def store_answers(self, answers: Sequence[CheckedLink], round_number: int) -> None:
        """Stores the answers of a round. Those of URLs that are no longer known are ignored."""
        ...
