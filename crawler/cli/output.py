"""What commands share to print: lines for people, the log, and commands to copy. For JSON and tables, see
`rows`.
"""

import logging
import os
import sys
from collections.abc import Iterable
from typing import Final

import click

from crawler.model.log import log
from crawler.report import log as lines
from crawler.report.printable import printable
from crawler.settings.sections import Log

PROGRAM: Final = "sitemap-crawler"
COMPLETION_VARIABLE: Final = "_SITEMAP_CRAWLER_COMPLETE"  # a variable with which a shell requests completions
# A variable set by ./dev, which does not install the program on the PATH: the words that call it.
CALLED_AS: Final = "_SITEMAP_CRAWLER_CALLED_AS"

LABEL_WIDTH: Final = 11  # columns
INDENT: Final = 4  # columns of what follows of a wrapped line
LONGEST_LINE: Final = 2_100  # characters of a text in a line: a URL is never cut


def suggested(command: str) -> str:
    """A command of this program, as it can be typed where the program was called."""
    return f"{os.environ.get(CALLED_AS) or PROGRAM} {command}"


def show_lines(pairs: Iterable[tuple[str, str]]) -> None:
    """Prints labels and their texts, made printable."""
    for label, text in pairs:
        click.echo(f"  {label:<{LABEL_WIDTH}}{printable(text, LONGEST_LINE)}")


def show_text(text: str) -> None:
    """Prints a text. On a terminal, its long lines are broken between words, and what follows is indented."""
    if sys.stdout.isatty():
        from shutil import get_terminal_size  # noqa: PLC0415 - as the next

        text = wrapped(text, get_terminal_size().columns)
    click.echo(text, nl=False)


def wrapped(text: str, width: int) -> str:
    """A text in lines of at most `width` characters, but for words that are longer."""
    from textwrap import wrap  # noqa: PLC0415 - only for a terminal

    return "".join(
        "\n".join(
            wrap(
                line,
                width,
                subsequent_indent=" " * (len(line) - len(line.lstrip()) + INDENT),
                break_long_words=False,
                break_on_hyphens=False,
            )
        )
        + "\n"
        for line in text.splitlines()
    )


def remark(words: str) -> None:
    """Says something beside what a command prints, on stderr: as a line, or an object of the JSON log."""
    if lines.is_json():
        log.info(words, event="remark", says=words)
    else:
        click.echo(words, err=True)


def configure_log(chosen: Log) -> None:
    """Configures logging by the settings."""
    level = logging.ERROR if chosen.quiet else logging.DEBUG if chosen.verbose else logging.INFO
    lines.configure(chosen.log_format, level, sys.stderr)
