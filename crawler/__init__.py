"""sitemap-crawler: crawl a site and publish a sitemap that search engines can trust.

The public API, documented in `docs/use/library.md`; anything not in `__all__` may change. Names are imported
on first use, so that `sitemap-crawler --help` does not load an HTTP client.
"""

TYPE_CHECKING = False  # `typing` is slow to import, and signals are not handled yet
if TYPE_CHECKING:
    from crawler import settings
    from crawler.app.job import Job, open_job
    from crawler.engine.crawl import Ending
    from crawler.errors import (
        ConfigError,
        CrawlerError,
        FrontierError,
        NotSubmitted,
        OutputBusy,
        OutputError,
        PublishRefused,
        StartForbidden,
        StartUnreachable,
        StateBusy,
    )
    from crawler.model.outcome import Failed, Kept, Later, Listed, Moved, Unlisted, code
    from crawler.model.settlement import Settlement
    from crawler.settings.load import resolve
    from crawler.settings.sections import Settings
    from crawler.sitemap.publish.published import Published

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
    "NotSubmitted",
    "OutputBusy",
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

_MODULES = {
    "app.job": "Job open_job",
    "engine.crawl": "Ending",
    "errors": "ConfigError CrawlerError FrontierError NotSubmitted OutputBusy OutputError PublishRefused "
    "StartForbidden StartUnreachable StateBusy",
    "model.outcome": "Failed Kept Later Listed Moved Unlisted code",
    "model.settlement": "Settlement",
    "settings": "Settings resolve",
    "sitemap.publish.published": "Published",
}


def __getattr__(name: str) -> object:
    from importlib import import_module  # noqa: PLC0415 - as above

    for module, names in _MODULES.items():
        if name in names.split():
            return getattr(import_module(f"crawler.{module}"), name)
    if name == "settings":
        return import_module("crawler.settings")
    raise AttributeError(f"module 'crawler' has no attribute {name!r}")
