"""The output of commands: aligned lines for people, JSON for programs."""

from collections.abc import Iterable
from typing import Final

import click

from crawler.report.printable import printable
from crawler.settings.sections import Settings

WIDTH: Final = 11


def show_lines(pairs: Iterable[tuple[str, str]]) -> None:
    for name, text in pairs:
        click.echo(f"  {name:<{WIDTH}}{printable(text, 2_100)}")


def wants_json(settings: Settings) -> bool:
    return settings.log.log_format == "json"
