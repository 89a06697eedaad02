"""What commands share to print: lines for people, JSON for programs, the log, and commands to copy."""

import logging
import os
import sys
from collections.abc import Iterable
from typing import Final

import click

from crawler.report import log
from crawler.report.printable import printable
from crawler.settings.sections import Log, Settings

PROGRAM: Final = "sitemap-crawler"
# A variable set by ./dev, which does not install the program on the PATH: the words that call it.
CALLED_AS: Final = "_SITEMAP_CRAWLER_CALLED_AS"
LABEL_WIDTH: Final = 11  # columns
LONGEST_LINE: Final = 2_100  # characters of a text in a line: a URL is never cut


def suggested(command: str) -> str:
    """A command of this program, as it can be typed where the program was called."""
    return f"{os.environ.get(CALLED_AS) or PROGRAM} {command}"


def show_lines(pairs: Iterable[tuple[str, str]]) -> None:
    """Prints labels and their texts, made printable."""
    for label, text in pairs:
        click.echo(f"  {label:<{LABEL_WIDTH}}{printable(text, LONGEST_LINE)}")


def wants_json(settings: Settings) -> bool:
    return settings.log.log_format == "json"


def configure_log(chosen: Log) -> None:
    """Configures logging by the settings."""
    level = logging.ERROR if chosen.quiet else logging.DEBUG if chosen.verbose else logging.INFO
    log.configure(chosen.log_format, level, sys.stderr)
