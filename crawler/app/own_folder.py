"""Keeps the sitemaps of two sites apart that are crawled from one working folder.

The default folder is that of the site which was published there first; another site gets a folder of its own
below it. A folder that was named stays as it is: the publish guard refuses to replace another site's sitemap.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from crawler.app.state import name_of
from crawler.model.log import log
from crawler.parse import url as urls
from crawler.parse.url import Url
from crawler.settings.sections import DEFAULTS, Settings
from crawler.sitemap.publish.identity import SitemapIdentity
from crawler.sitemap.publish.manifest import MANIFEST, read_manifest


def with_own_folder(settings: Settings, base: str) -> Settings:
    """The settings with the folder for the sitemap of a site that is published at `base`."""
    default = DEFAULTS.output.output
    if settings.output.output != default:
        return settings
    own, site = Path(default) / name_of(Url(base)), base.partition("://")[2].removeprefix("www.")
    known = SitemapIdentity.read((read_manifest(Path(default)) or {}).get("site"))
    others = known.sites if known else ()
    if not (own / MANIFEST).is_file() and (not others or site in others):
        return settings
    other = others[0] if others and site not in others else None
    why = f"{default} has that of {other}" if other else "it was published there before"
    words = f"the sitemap of {site} goes to {own}, as {why}"
    log.warning(
        words,
        event="the default folder has the sitemap of another site",
        site=site,
        other=other,
        folder=str(own),
    )
    return replace(settings, output=replace(settings.output, output=str(own)))


def own_folder_of(settings: Settings, starts: Sequence[Url]) -> Settings:
    """The settings with the folder for a crawl that starts at these URLs."""
    return with_own_folder(settings, settings.output.publish_base or urls.origin(starts[0]))
