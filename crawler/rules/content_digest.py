"""Which pages have the text fingerprinted. For the others a digest of their bytes stands for their content.

A fingerprint shows which pages have the same text, and whether the text of a page changed when its bytes did.
A page with a trusted header needs neither; as long as its bytes stay the same, its text does, too. The choice
depends on the page and on what the last run stored about it, never on the order of the crawl. Pure.
"""

from collections.abc import Sequence
from hashlib import blake2b
from typing import Final

from crawler.model.facts import Facts
from crawler.model.reasons import Source
from crawler.parse import fingerprint
from crawler.parse import url as urls
from crawler.rules.duplicates import names_folder, stem
from crawler.rules.traps import calendar_of

# One of so many pages is always fingerprinted: they expose headers that change while the text does not.
FINGERPRINTED_SHARE: Final = 8


def suffices(url: str, body: bytes, facts: Facts, prior: Facts | None, sources: Sequence[Source]) -> bool:
    """Whether a digest of the bytes is enough. `facts`: from the header fields; `prior`: of the last run."""
    before = prior.content if prior else None
    if before is not None:
        return before == fingerprint.of_bytes(body)
    is_believed = facts.header is not None and not facts.fresh and Source.HEADER in sources
    if not is_believed or "?" in url or names_folder(url):
        return False
    return not is_sampled(url) and calendar_of(url) is None


def is_sampled(url: str) -> bool:
    """One of FINGERPRINTED_SHARE pages, the same in each run; all names of one page, or none."""
    text = urls.target(stem(url)).encode("utf-8", "surrogatepass")
    return blake2b(text, digest_size=1).digest()[0] % FINGERPRINTED_SHARE == 0
