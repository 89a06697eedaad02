"""The optional features that read more of a page and add it to its entry: all of them stand in `FEATURES`."""

from typing import Final

from crawler.app.features.feature import Feature
from crawler.app.features.hreflang import Hreflang
from crawler.app.features.images import Images
from crawler.settings.sections import Settings

FEATURES: Final[tuple[Feature, ...]] = (Hreflang(), Images())
"""In the order of their elements in an entry."""


def writing(settings: Settings) -> list[Feature]:
    """Those that add elements to the sitemap: they are on, and it is XML."""
    return [feature for feature in FEATURES if feature.is_on(settings) and settings.output.form == "xml"]
