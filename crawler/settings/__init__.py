"""What a person can choose: the sections, how a text becomes a value, and where each value came from."""

from crawler.settings.load import checked, resolve
from crawler.settings.sections import (
    Dates,
    Guard,
    Http,
    Log,
    Output,
    Pace,
    Scope,
    Settings,
    State,
    Urls,
    Verdicts,
)

__all__ = [
    "Dates",
    "Guard",
    "Http",
    "Log",
    "Output",
    "Pace",
    "Scope",
    "Settings",
    "State",
    "Urls",
    "Verdicts",
    "checked",
    "resolve",
]
