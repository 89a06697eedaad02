"""What commands share to print: lines for people, JSON for programs, the log, and commands to copy."""

import json
import logging
import os
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

import click

from crawler.report import log
from crawler.report.forms import as_csv
from crawler.report.printable import printable
from crawler.settings.sections import Log

PROGRAM: Final = "sitemap-crawler"
COMPLETE: Final = "_SITEMAP_CRAWLER_COMPLETE"  # a variable with which a shell requests completions
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


def show_object(facts: Mapping[str, Any], form: str, items: str = "") -> None:
    """Prints one object; as lines (`jsonl`), first its `items`, and then what else it has."""
    if form == "jsonl" and items:
        click.echo("".join(f"{json.dumps(item)}\n" for item in facts[items]), nl=False)
        facts = {key: value for key, value in facts.items() if key != items}
    click.echo(json.dumps(facts))


class Rows:
    """Prints objects as they come: as one document (`json`), one a line (`jsonl`), or as a table (`csv`).

    The document is an array, or an object with the array under `name`, beside what `end` adds.
    """

    def __init__(self, form: str, fields: Iterable[str], name: str = "") -> None:
        self._form, self._is_document, self._name = form, form == "json", name
        self._opening = f"{{{json.dumps(name)}: [" if name else "["
        if form == "csv":
            sys.stdout.write(as_csv.line([*fields]))

    def add(self, row: Mapping[str, Any]) -> None:
        """Prints one object, which has all fields, in their order."""
        if self._form == "csv":
            sys.stdout.write(as_csv.line([*row.values()]))
        elif self._is_document:
            sys.stdout.write(f"{self._opening}\n{json.dumps(row)}")
            self._opening = ","
        else:
            sys.stdout.write(f"{json.dumps(row)}\n")

    def end(self, **more: Any) -> None:
        """Closes the document; `more` is an object of its own as lines, and not part of a table."""
        if self._is_document:
            opened = "" if self._opening == "," else self._opening
            rest = f", {json.dumps(more)[1:]}" if self._name else ""
            sys.stdout.write(f"{opened}\n]{rest}\n")
        elif more and self._form == "jsonl":
            self.add(more)


def say_found(file: Path) -> None:
    """Says which settings file was found, in one line of the log."""
    words = f"settings are read from {file}, found in this folder"
    logging.getLogger("crawler").info(words, extra={"event": "settings found", "fields": {"file": str(file)}})


def configure_log(chosen: Log) -> None:
    """Configures logging by the settings."""
    level = logging.ERROR if chosen.quiet else logging.DEBUG if chosen.verbose else logging.INFO
    log.configure(chosen.log_format, level, sys.stderr)
