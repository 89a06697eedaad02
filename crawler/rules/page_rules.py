"""Which `[[rule]]` and which `[[section]]` of the settings a URL belongs to: the first that matches. Pure.

What a rule says about listing and links is applied by `candidates` when a page is settled; changefreq and
priority are added to the entries when they are published.
"""

from collections.abc import Iterable, Mapping, Sequence

from msgspec.structs import replace

from crawler.model.facts import Entry, Extras
from crawler.parse import url as urls
from crawler.parse.url import Url
from crawler.settings.tables import PageRule, SitemapSection
from crawler.settings.values import compile_pattern


class PageRules:
    """The rules in their order."""

    def __init__(self, rules: Sequence[PageRule] = ()) -> None:
        self._rules = [(compile_pattern(rule.match), rule) for rule in rules]

    def __bool__(self) -> bool:
        """Whether there are any rules."""
        return bool(self._rules)

    def of(self, url: Url) -> PageRule | None:
        target = urls.target(url)
        return next((rule for pattern, rule in self._rules if pattern.search(target)), None)

    def lists(self, url: Url) -> bool:
        rule = self.of(url)
        return rule is None or rule.list

    def follows(self, url: Url) -> bool:
        rule = self.of(url)
        return rule is None or rule.follow

    def apply(self, entries: Iterable[Entry]) -> list[Entry]:
        """The entries that may be listed, with changefreq and priority."""
        return [self._extended(entry) for entry in entries if self.lists(entry.url)]

    def _extended(self, entry: Entry) -> Entry:
        rule = self.of(entry.url)
        if rule is None or (rule.changefreq is None and rule.priority is None):
            return entry
        return replace(entry, extras=Extras(rule.changefreq, rule.priority))


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
