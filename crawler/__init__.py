"""sitemap-crawler: crawl a site and publish a sitemap that search engines can trust.

The public API, documented in `docs/use/library.md`; anything not in `__all__` may change. Names are imported
on first use, so that `sitemap-crawler --help` does not load an HTTP client.
"""

TYPE_CHECKING = False  # `typing` is slow to import, and signals are not handled yet
if TYPE_CHECKING:
    from crawler import settings
    from crawler.app.job import Job, open_job
    from crawler.app.pages import Page
    from crawler.engine.crawl import Ending
    from crawler.errors import (
        ConfigError,
        CrawlerError,
        Exit,
        FrontierError,
        Interrupted,
        LeadershipLost,
        NoState,
        NotSubmitted,
        OutputBusy,
        OutputError,
        PublishRefused,
        StartForbidden,
        StartSilent,
        StartUnreachable,
        StateAway,
        StateBusy,
    )
    from crawler.model.facts import Entry, Facts, Lastmod
    from crawler.model.outcome import Failed, Kept, Later, Listed, Moved, Outcome, Unlisted, code, says
    from crawler.model.reasons import Cause, Source, Why
    from crawler.model.run import StopReason
    from crawler.model.settlement import Settlement, Verdict
    from crawler.model.visit import Lease, Visit
    from crawler.settings.load import resolve
    from crawler.settings.sections import Settings
    from crawler.sitemap.publish.published import File, Published

    __version__: str

__all__ = [
    "Cause", "ConfigError", "CrawlerError", "Ending", "Entry", "Exit", "Facts", "Failed", "File",
    "FrontierError", "Interrupted", "Job", "Kept", "Lastmod", "Later", "LeadershipLost", "Lease", "Listed",
    "Moved", "NoState", "NotSubmitted", "Outcome", "OutputBusy", "OutputError", "Page", "PublishRefused",
    "Published", "Settings", "Settlement", "Source", "StartForbidden", "StartSilent", "StartUnreachable",
    "StateAway", "StateBusy", "StopReason", "Unlisted", "Verdict", "Visit", "Why", "__version__", "code",
    "open_job", "resolve", "says", "settings",
]  # fmt: skip

_MODULES = {
    "app.job": "Job open_job",
    "app.pages": "Page",
    "engine.crawl": "Ending",
    "errors": "ConfigError CrawlerError Exit FrontierError Interrupted LeadershipLost NoState NotSubmitted "
    "OutputBusy OutputError PublishRefused StartForbidden StartSilent StartUnreachable StateAway StateBusy",
    "model.facts": "Entry Facts Lastmod",
    "model.outcome": "Failed Kept Later Listed Moved Outcome Unlisted code says",
    "model.reasons": "Cause Source Why",
    "model.run": "StopReason",
    "model.settlement": "Settlement Verdict",
    "model.visit": "Lease Visit",
    "settings": "Settings resolve",
    "sitemap.publish.published": "File Published",
}


def __getattr__(name: str) -> object:
    from importlib import import_module  # noqa: PLC0415 - as above

    for module, names in _MODULES.items():
        if name in names.split():
            return getattr(import_module(f"crawler.{module}"), name)
    if name == "settings":
        return import_module("crawler.settings")
    if name == "__version__":
        return import_module("importlib.metadata").version("sitemap-crawler")
    raise AttributeError(f"module 'crawler' has no attribute {name!r}")
