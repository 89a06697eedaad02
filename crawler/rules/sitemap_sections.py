"""Which `[[section]]` of the settings a page is in: the first that matches its path and query. Pure."""

from collections.abc import Mapping, Sequence

from crawler.model.facts import Entry
from crawler.parse import url as urls
from crawler.parse.url import Url
from crawler.settings.sitemap_sections import SitemapSection
from crawler.settings.values import compile_pattern


class SitemapSections:
    """The sections in their order."""

    def __init__(self, sections: Sequence[SitemapSection] = ()) -> None:
        self._sections = [(compile_pattern(section.match), section.name) for section in sections]

    def of(self, url: Url) -> str:
        """The name of the section that a URL is in; "" for none."""
        target = urls.target(url)
        return next((name for pattern, name in self._sections if pattern.search(target)), "")

    def grouped(self, entries: Sequence[Entry]) -> Mapping[str, Sequence[Entry]]:
        """The entries by their section, in their order."""
        if not self._sections:
            return {"": entries}
        groups: dict[str, list[Entry]] = {}
        for entry in entries:
            groups.setdefault(self.of(entry.url), []).append(entry)
        return groups
