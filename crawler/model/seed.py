"""A seed, a source of URLs other than links, and what became of it."""

from collections.abc import Mapping
from datetime import datetime
from types import MappingProxyType
from typing import Final, TypeAlias

from msgspec import Struct

from crawler.model.facts import Validators
from crawler.model.reasons import SeedKind, SeedOutcome
from crawler.parse.url import Url

SeedUrls: TypeAlias = Mapping[Url, datetime | None]
"""URLs of a seed, and the credible dates that it gives them."""
NO_DATES: Final[Mapping[Url, datetime]] = MappingProxyType({})


class Seed(Struct, frozen=True):
    """A source of URLs other than links: the start URLs together, a file of `--input`, or a sitemap."""

    kind: SeedKind
    name: str = ""  # of a sitemap: its URL or path on disk; of a file of --input: as given
    depth: int = 0  # number of indexes above it

    def __str__(self) -> str:
        match self.kind:
            case SeedKind.START:
                return "a start URL"
            case SeedKind.INPUT:
                return f"--input {self.name}"
            case SeedKind.SITEMAP:
                return f"the sitemap {self.name}"


class SeedCopy(Struct, frozen=True):
    """A sitemap as it was answered last, to be used again as long as the server says that it is the same."""

    validators: Validators  # empty if the server once said falsely that it is the same
    body: bytes  # compressed by zlib; empty if it has no validators, or if it is too large to be kept
    is_old: bool = False  # so old that the word of the server is checked


class SeedSettlement(Struct, frozen=True):
    """What became of a seed."""

    seed: Seed
    outcome: SeedOutcome
    detail: str = ""
    entries: int = 0  # URLs in it, in scope or not
    below: tuple[Seed, ...] = ()  # sitemaps listed in it
    gone: bool = False  # it failed permanently
    is_no_sitemap: bool = False  # the answer is no sitemap, and no failure of the server
    copy: SeedCopy | None = None  # what is kept of it from now on; None: what was kept before

    @property
    def may_pass(self) -> bool:
        """Whether it failed, completely or partly, in a way that may be temporary."""
        failed = {SeedOutcome.FAILED, SeedOutcome.PARTLY, SeedOutcome.ROBOTS_DOWN}
        return self.seed.kind is SeedKind.SITEMAP and self.outcome in failed and not self.gone
