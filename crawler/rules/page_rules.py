"""Which `[[rule]]` of the settings applies to a URL: of those that match its path and query, the first. Pure.

What a rule says about listing and links is applied by `candidates` when a page is settled; changefreq and
priority are added to the entries when they are published.
"""

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from crawler.model.facts import Entry, Extras
from crawler.parse import url as urls
from crawler.parse.url import Url
from crawler.settings.page_rules import PageRule
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
