"""The site and scope of a sitemap, and the settings by which its pages were chosen.

The manifest of a publication says it, so that a crawl of another site or scope does not replace the sitemap.
How pages are requested is no part of it: that may change from night to night. Settings that choose pages may
change as well; a refusal for another reason names those that did. Pure.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Annotated, Final, Self

from msgspec import Meta, Struct, ValidationError, convert, field

MOST_NAMED: Final = 3  # sites in a sentence


class SitemapIdentity(Struct, frozen=True):
    """What a sitemap is of. A site is a host without `www.`, with its port and the path of --publish-base."""

    # Of the start URLs, as published, and of the targets of their redirects.
    sites: Annotated[Sequence[str], Meta(min_length=1)]
    scope: str = "host"  # the value of --scope
    folders: Sequence[str] = ()  # the folders of --scope path: site and path
    settings: Mapping[str, str] = field(default_factory=dict)  # digests of those that choose pages, by flag

    def differs_from(self, now: "SitemapIdentity") -> str:
        """A sentence on why this is the sitemap of another site or scope than `now`; empty if it is not."""
        if set(self.sites).isdisjoint(now.sites):
            return (
                f"The published sitemap is of {_listed(self.sites)}, and this crawl is of "
                f"{_listed(now.sites)}"
            )
        if self.scope != now.scope:
            return f"The published sitemap is of {self._part()}, and this crawl is of {now._part()}"  # noqa: SLF001
        if all(map(now.holds, self.folders)):
            return ""
        return f"The published sitemap is of {self._part()}, and this crawl is only of {_listed(now.folders)}"

    def _part(self) -> str:
        return f"{_listed(self.folders or self.sites)} (--scope {self.scope})"

    def holds(self, folder: str) -> bool:
        """Whether one of the folders is, or contains, that one."""
        return folder.startswith(tuple(self.folders))

    def changed_settings(self, now: "SitemapIdentity") -> list[str]:
        """The flags that choose pages and have another value now."""
        names = [*self.settings, *(name for name in now.settings if name not in self.settings)]
        return [name for name in names if self.settings.get(name) != now.settings.get(name)]

    @classmethod
    def read(cls, known: object) -> Self | None:
        """The identity in a manifest; None if there is none, or it is damaged."""
        with suppress(ValidationError):
            return convert(known, cls)
        return None


def _listed(names: Sequence[str]) -> str:
    more = len(names) - MOST_NAMED
    return ", ".join(names[:MOST_NAMED]) + (f" and {more:,} more" if more > 0 else "")
