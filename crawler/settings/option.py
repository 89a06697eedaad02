"""What is declared of one setting: its help, its parser, and the names that follow from its field.

`sections` declares the settings themselves.
"""

import dataclasses
from dataclasses import dataclass
from typing import Any

from crawler.settings.values import Kind, T


@dataclass(frozen=True, slots=True)
class Option:
    """The help and parser of one field."""

    help: str
    kind: Kind[Any]
    short: str | None = None
    flag: bool = True  # False: no flag of its own (the start URLs are arguments)
    secret: bool = False  # never shown


def option(
    default: T,
    text: str,
    kind: Kind[T],
    short: str | None = None,
    *,
    flag: bool = True,
    secret: bool = False,
) -> T:
    """A field of a section. mypy checks that kind, default and annotation agree."""
    return dataclasses.field(default=default, metadata={"option": Option(text, kind, short, flag, secret)})


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting: section, Python name, option and default."""

    section: str
    field: str
    option: Option
    default: object

    @property
    def name(self) -> str:
        """Its name as a flag and in TOML: `max-depth`."""
        return self.field.replace("_", "-")

    @property
    def table(self) -> str:
        """The name of its table in TOML."""
        return self.name if self.option.kind.tables else self.section

    @property
    def heading(self) -> str:
        """The line above it in TOML: `[scope]`, `[[rule]]`."""
        return f"[[{self.table}]]" if self.option.kind.tables else f"[{self.table}]"

    @property
    def env(self) -> str:
        """Its environment variable: `SITEMAP_CRAWLER_MAX_DEPTH`."""
        return "SITEMAP_CRAWLER_" + self.field.upper()
