"""`--check-files`: the scripts and style sheets that listed pages load, to ask for them after the crawl
(`app.file_check`).

Nothing of them goes into the sitemap. `parse.files` finds them in the markup.
"""

from typing import ClassVar

from crawler.app.features.feature import Feature
from crawler.app.features.images import stored
from crawler.model.facts import LabelledUrl
from crawler.parse.extract import Extract
from crawler.parse.files import SCRIPTS, STYLES
from crawler.parse.normalise import Normaliser
from crawler.parse.publish_base import PublishBase
from crawler.parse.url import LONGEST_URL
from crawler.ports.features import PageFeature, SeenPage
from crawler.settings.sections import Settings


class _FileReader(PageFeature):
    extract = frozenset({Extract.FILES})

    def __init__(self, name: str, normalise: Normaliser) -> None:
        self.name, self._normalise = name, normalise

    def read(self, seen: SeenPage) -> tuple[LabelledUrl, ...]:
        if not seen.may_be_listed:
            return ()
        base = seen.page.base if len(seen.page.base) <= LONGEST_URL else seen.url
        found = (url for kind, url in seen.page.files if kind == self.name)
        return stored((self._normalise.canonical(url, base) for url in found), seen.url)


class _Files(Feature):
    def is_on(self, settings: Settings) -> bool:
        return settings.external.check_external and self.name in settings.external.check_files

    def reader(self, settings: Settings, normalise: Normaliser, base: PublishBase | None) -> PageFeature:  # noqa: ARG002
        """See `Feature.reader`. Parameters of files choose their version, as those of images do."""
        return _FileReader(self.name, Normaliser(strip=(), sessions=None, base=base))


class Scripts(_Files):
    """See `Feature`."""

    name: ClassVar[str] = SCRIPTS


class Styles(_Files):
    """See `Feature`."""

    name: ClassVar[str] = STYLES
