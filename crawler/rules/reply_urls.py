"""The URLs that a reply names: its links, its canonicals, its variant, and where it redirects to.

Pure. Whether they belong to the site is decided by `scope`, and what they mean for the page by `judge`.
"""

from collections.abc import Iterable, Iterator

from msgspec import Struct

from crawler.model.reply import Response
from crawler.model.visit import Links
from crawler.parse import feeds, page_links
from crawler.parse import headers as fields
from crawler.parse import url as urls
from crawler.parse.feeds import FEED_TYPES
from crawler.parse.normalise import Normaliser
from crawler.parse.parsed_page import ParsedPage
from crawler.parse.robots_meta import Directives
from crawler.parse.url import Url
from crawler.rules import canonicals, duplicates


class ReplyUrls(Struct, frozen=True):
    """Reads the URLs of replies."""

    normalise: Normaliser
    off: frozenset[str]  # rules switched off by --no-rule

    def target(self, location: str, base: str, url: Url) -> Url | None:
        """The target of a redirect of `url`. To the same page of the published site is no loop."""
        to = self.normalise(location, base) if location else None
        return self.normalise.literal(location, base) if to == url else to

    def listed_by_feed(self, url: Url, reply: Response, essence: str) -> Iterable[Url]:
        """The pages that a feed links to; none if the document is none."""
        if essence not in FEED_TYPES or not feeds.is_feed(reply.body):
            return ()
        found = (to for item in feeds.items(reply.body) if (to := self.normalise(item.href, url)))
        return page_links.within([found], page_links.MAX_LINK_BYTES, known=[url])[0]

    def header_canonicals(self, url: Url, reply: Response) -> list[Url | None]:
        """Canonicals in Link fields, relative to the page's own URL, not to its `<base>` (RFC 8288 3.2)."""
        found = fields.links(reply.headers.all("link"))
        return [self.normalise.canonical(link.target, url) for link in found if "canonical" in link.rels]

    def canonical(self, named: Iterable[Url | None]) -> tuple[Url | None, str]:
        """The canonical of a page; or that several different ones are all ignored, as by Google."""
        return canonicals.agreed(() if "canonical" in self.off else filter(None, map(usable, named)))

    def variant(self, url: Url, reply: Response) -> Url | None:
        announced = reply.headers.get("content-location")
        named = self.normalise(fields.text_of(announced), url) if announced else None
        return usable(duplicates.variant(url, named)) if named else None

    def links(
        self, url: Url, reply: Response, page: ParsedPage, directives: Directives, more: Iterable[Url | None]
    ) -> tuple[Links, tuple[Url, ...], bool]:
        """The links with `more` (canonical, refresh); those nobody can click; whether any was dropped."""
        others = dict.fromkeys(filter(None, more))
        left = page_links.MAX_LINK_BYTES - sum(map(len, others))
        followed, avoided, left, in_head = page_links.resolve(page, self.normalise, left)
        from_header, left = page_links.within([self._linked(url, reply)], left, known=followed)
        in_head |= from_header  # a link with nofollow to one of these is a link of its own
        if "nofollow" in self.off:
            in_head = {to: None for to in in_head if to not in avoided}
            followed, avoided = followed | avoided, {}
        elif directives.nofollow:
            in_head = {to: None for to in in_head if to not in avoided or to in from_header}
            followed, avoided = {}, followed | avoided
        links = followed | from_header | others if from_header or others else followed.copy()
        links.pop(url, None)
        named = dict.fromkeys(to for to in (*others, *in_head) if to in in_head or to not in followed)
        named.pop(url, None)
        rest = tuple(to for to in avoided if to != url and (to not in links or to in named))
        return Links(tuple(links), rest), tuple(named), page.truncated or left < 0

    def _linked(self, url: Url, reply: Response) -> Iterator[Url]:
        """The links in Link fields."""
        for link in fields.links(reply.headers.all("link")):
            if not link.rels.isdisjoint(("next", "prev", "alternate")) and (
                to := self.normalise(link.target, url)
            ):
                yield to


def usable(url: Url | None) -> Url | None:
    """A canonical or refresh URL, unless it is too long to be fetched."""
    return url if url and len(url) <= urls.LONGEST_URL else None
