"""How commands print objects and rows: as JSON, as lines of it, or as a table."""

import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import add
from typing import Any, Final

import click

from crawler.parse.credentials import masked
from crawler.report.forms import as_csv

_SEPARATORS: Final = {"csv": ",", "text": "\t"}
_BETWEEN: Final = {"csv": "\r\n", "json": ",\n"}  # rows


def show_object(
    facts: Mapping[str, Any], form: str, items: str = "", fields: Iterable[str] | None = None
) -> None:
    """Prints one object; as lines (`jsonl`), first its `items`, and then what else it has.

    As a table, the items, which have the given `fields`; without items, the object is the only row.
    """
    if form == "csv":
        rows = Rows(form, facts if fields is None else fields)
        for item in facts[items] if items else [facts]:
            rows.add(item)
        return
    if form == "jsonl" and items:
        click.echo("".join(f"{json.dumps(item)}\n" for item in facts[items]), nl=False)
        facts = {key: value for key, value in facts.items() if key != items}
    click.echo(json.dumps(facts))


def spelling(form: str) -> Callable[[Any], str]:
    """How a cell of rows in that form is written, without what is masked."""
    return as_csv.spelt if form == "csv" else _as_json


def joining(form: str, fields: Iterable[str]) -> Callable[[Sequence[str]], str]:
    """How the cells of a row in that form, as they are spelt, become a line."""
    if form in _SEPARATORS:
        return _SEPARATORS[form].join
    keys = [f"{json.dumps(field)}: " for field in fields]
    return lambda cells: f"{{{', '.join(map(add, keys, cells))}}}"


def between(form: str) -> str:
    """What stands between rows in that form."""
    return _BETWEEN.get(form, "\n")


def _as_json(cell: Any) -> str:
    if isinstance(cell, str):
        return f'"{cell}"' if as_csv.PLAIN.fullmatch(cell) else json.dumps(masked(cell))
    return json.dumps(cell)


class Rows:
    """Prints objects as they come: as one document (`json`), one a line (`jsonl`), or as a table (`csv`).

    The document is an array, or an object with the array under `name`, beside what `end` adds.
    """

    def __init__(self, form: str, fields: Iterable[str], name: str = "") -> None:
        self._form, self._is_document, self._name, self._fields = form, form == "json", name, [*fields]
        self._opening = f"{{{json.dumps(name)}: [" if name else "["
        if form == "csv":
            sys.stdout.write(as_csv.line(self._fields))

    def add(self, row: Mapping[str, Any]) -> None:
        """Prints one object. As a row it has the fields alone."""
        if self._form == "csv":
            sys.stdout.write(as_csv.line([row.get(field) for field in self._fields]))
        else:
            self.add_lines([json.dumps(row)])

    def add_lines(self, lines: Sequence[str]) -> None:
        """Prints rows of all fields, as `joining` makes them; in a text, one or more (`between`)."""
        if self._is_document and lines:
            sys.stdout.write(f"{self._opening}\n" + between(self._form).join(lines))
            self._opening = ","
        elif self._form == "csv":
            sys.stdout.write(as_csv.lines(lines))
        else:
            sys.stdout.write("\n".join([*lines, ""]))

    def end(self, **more: Any) -> None:
        """Closes the document; `more` is an object of its own as lines, and not part of a table."""
        if self._is_document:
            opened = "" if self._opening == "," else self._opening
            rest = f", {json.dumps(more)[1:]}" if self._name else ""
            sys.stdout.write(f"{opened}\n]{rest}\n")
        elif more and self._form == "jsonl":
            self.add(more)
