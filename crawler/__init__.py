"""sitemap-crawler: crawl a site and publish a sitemap that search engines can trust.

This is the public face; `docs/library.md` shows how it is used. What is not named in `__all__` may change. Names are
imported when they are first asked for, so that `sitemap-crawler --help` need not load an HTTP client.
"""

TYPE_CHECKING = False  # typing takes longer to import than all of this, and a signal may come meanwhile
if TYPE_CHECKING:
    from crawler import settings
    from crawler.app import Job, open_job
    from crawler.crawl import Ending
    from crawler.errors import (
        ConfigError,
        CrawlerError,
        FrontierError,
        OutputError,
        PublishRefused,
        StartForbidden,
        StartUnreachable,
        StateBusy,
    )
    from crawler.layers import resolve
    from crawler.model import Failed, Kept, Later, Listed, Moved, Settlement, Unlisted, code
    from crawler.publish import Published
    from crawler.settings import Settings

__all__ = [
    "ConfigError",
    "CrawlerError",
    "Ending",
    "Failed",
    "FrontierError",
    "Job",
    "Kept",
    "Later",
    "Listed",
    "Moved",
    "OutputError",
    "PublishRefused",
    "Published",
    "Settings",
    "Settlement",
    "StartForbidden",
    "StartUnreachable",
    "StateBusy",
    "Unlisted",
    "code",
    "open_job",
    "resolve",
    "settings",
]

_HOMES = {
    "app": "Job open_job",
    "crawl": "Ending",
    "errors": "ConfigError CrawlerError FrontierError OutputError PublishRefused StartForbidden StartUnreachable StateBusy",
    "layers": "resolve",
    "model": "Failed Kept Later Listed Moved Settlement Unlisted code",
    "publish": "Published",
    "settings": "Settings",
}


def __getattr__(name: str) -> object:
    from importlib import import_module  # noqa: PLC0415 - as above

    for room, names in _HOMES.items():
        if name in names.split():
            return getattr(import_module(f"crawler.{room}"), name)
    if name == "settings":
        return import_module("crawler.settings")
    raise AttributeError(f"module 'crawler' has no attribute {name!r}")
