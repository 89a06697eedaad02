"""A source of URLs beside links: a start, a line of input, a sitemap; and what became of it."""

from typing import NamedTuple

from crawler.model.reasons import SeedKind, SeedOutcome


class Seed(NamedTuple):
    """Names URLs, so that no page has to: the start URLs together, a file of `--input`, a sitemap."""

    kind: SeedKind
    name: str = ""  # a sitemap: its URL, or its path on disk; a file of --input: as it was given
    depth: int = 0  # indexes above it

    def __str__(self) -> str:
        """For people."""
        match self.kind:
            case SeedKind.START:
                return "a start URL"
            case SeedKind.INPUT:
                return f"--input {self.name}"
            case SeedKind.SITEMAP:
                return f"the sitemap {self.name}"


class SeedSettlement(NamedTuple):
    """What became of a seed that was to be read."""

    seed: Seed
    outcome: SeedOutcome
    detail: str = ""
    entries: int = 0  # URLs that it names, taken or not
    below: tuple[Seed, ...] = ()  # sitemaps that it names
    gone: bool = False  # it failed in a way that will not pass

    @property
    def may_pass(self) -> bool:
        """Whether it failed, wholly or in part, and may be well the next time: it named more than was read."""
        failed = {SeedOutcome.FAILED, SeedOutcome.PARTLY, SeedOutcome.ROBOTS_DOWN}
        return self.seed.kind is SeedKind.SITEMAP and self.outcome in failed and not self.gone
