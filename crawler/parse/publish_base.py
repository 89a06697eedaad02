"""Maps URLs between the crawled copy of a site and the place where it is published (`--publish-base`).

`Normaliser` maps links, canonicals, redirects and seeds to the copy, also in workers, so that judge, scope
and frontier see crawled URLs only; `published` maps them back when a sitemap is written or compared.
"""

from collections.abc import Iterator
from typing import Final

from crawler.parse.url import Url, origin

_HIGHEST: Final = "\x7f"  # above every character of a URL


class PublishBase:
    """`base` is published, `site` is crawled: the `/` of one is the `/` of the other.

    `site`: an origin; it changes when the start URL redirects to another one. If both are equal, nothing is
    mapped.
    """

    def __init__(self, base: str, site: str) -> None:
        """`base`: an origin, or an origin and a folder, without a slash at its end."""
        self.base, self.site = base, site
        self._variants = (base, *_variants(base))

    def move(self, site: str) -> None:
        """Changes the crawled origin: the start URL redirects to this one."""
        self.site = site

    @property
    def maps(self) -> bool:
        """Whether the two differ at all."""
        return self.base != self.site

    def crawled(self, url: Url, *, exactly: bool = False) -> Url:
        """The URL in the copy; a URL that is not below the base is returned unchanged.

        For links and redirects http and https, with and without `www.`, count as one, as the published site
        redirects one to the other. Not if `exactly`: for a canonical the difference is its meaning.
        """
        heads = (self.base,) if exactly else self._variants
        if not url.startswith(heads) or not self.maps:
            return url
        for head in heads:
            rest = url[len(head) :]
            if url.startswith(head) and rest[:1] in {"/", "?", ""}:
                return Url(self.site + (rest if rest[:1] == "/" else f"/{rest}"))
        return url

    def published(self, url: Url) -> Url:
        """The URL on the published site; a URL of another origin is returned unchanged."""
        return Url(self.base + url[len(self.site) :]) if self.maps and origin(url) == self.site else url

    def ranges(self) -> Iterator[tuple[str, str]]:
        """Ranges of crawled URLs, as (from, below), in the sort order of the published URLs."""
        first, behind, there = f"{self.site}/", f"{self.site}0", f"{self.base}/"
        if not self.maps:
            yield "", _HIGHEST
        elif there <= first:
            yield from (("", there), (first, behind), (there, first), (behind, _HIGHEST))
        else:
            yield from (("", first), (behind, there), (first, behind), (there, _HIGHEST))


def _variants(base: str) -> Iterator[str]:
    """The same base with http or https, with or without `www.`. With an explicit port the scheme stays."""
    scheme, _, rest = base.partition("://")
    host, slash, folder = rest.partition("/")
    other = {"http": "https", "https": "http"}[scheme]
    names = [host, host.removeprefix("www.") if host.startswith("www.") else f"www.{host}"]
    schemes = [scheme] if ":" in host else [scheme, other]
    return (f"{s}://{name}{slash}{folder}" for s in schemes for name in names if (s, name) != (scheme, host))
