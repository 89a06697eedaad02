"""The settings: their sections, how their values are parsed, and where each value comes from."""

from crawler.settings.load import checked, resolve
from crawler.settings.page_rules import PageRule
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
    State,
    Urls,
    Verdicts,
)

__all__ = [
    "Dates", "Guard", "Http", "Log", "Output", "Pace", "PageRule", "Render", "Rules", "Scope", "Settings",
    "State", "Urls", "Verdicts", "checked", "resolve",
]  # fmt: skip
