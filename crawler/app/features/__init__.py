"""The optional features that read more of a page and add it to its entry: all of them stand in `FEATURES`."""

from typing import Final

from crawler.app.features.feature import Feature
from crawler.app.features.files import Scripts, Styles
from crawler.app.features.hreflang import Hreflang
from crawler.app.features.images import Images
from crawler.settings.sections import Settings

FEATURES: Final[tuple[Feature, ...]] = (Hreflang(), Images(), Scripts(), Styles())
"""In the order of their elements in an entry."""


def writing(settings: Settings) -> list[Feature]:
    """Those that add elements to the sitemap: they are on, and it is XML."""
    is_xml = settings.output.form == "xml"
    return [one for one in FEATURES if one.namespace and one.is_on(settings) and is_xml]


def checked(settings: Settings) -> list[str]:
    """The names of those that read files which are asked for after the crawl."""
    names = settings.external.check_files if settings.external.check_external else ()
    return [feature.name for feature in FEATURES if feature.name in names and feature.is_on(settings)]
