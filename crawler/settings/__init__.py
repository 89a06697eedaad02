"""The settings: their sections, how their values are parsed, and where each value comes from."""

from crawler.settings.after_run import External, Report, Submit
from crawler.settings.load import checked, resolve
from crawler.settings.sections import (
    Dates,
    Guard,
    Http,
    Log,
    Output,
    Pace,
    Render,
    Rules,
    Scope,
    Settings,
    Split,
    State,
    Urls,
    Verdicts,
)
from crawler.settings.tables import PageRule, SitemapSection

__all__ = [
    "Dates", "External", "Guard", "Http", "Log", "Output", "Pace", "PageRule", "Render", "Report", "Rules",
    "Scope", "Settings", "SitemapSection", "Split", "State", "Submit", "Urls", "Verdicts", "checked",
    "resolve",
]  # fmt: skip
