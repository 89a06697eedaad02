"""Lays out the summary of a run with rich: the outcomes and their reasons, the lines, and what to do next.

Everything comes from the facts. Text from the network is made printable and only used in `rich.text.Text`,
never in markup.
"""

import io
from collections.abc import Mapping, Sequence
from typing import Any, Final

from rich.console import Console, RenderableType
from rich.measure import Measurement
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from crawler.cli.summary import EXAMPLES, LABELS, LINES, STDOUT, Facts, Hint, balance_of, hints, of_kind
from crawler.parse.credentials import masked
from crawler.report.formatting import counted, duration, outcome_words, size
from crawler.report.printable import printable

WIDEST: Final = 80  # columns, so that numbers stay close to their labels
LABEL: Final = 11  # columns
GAP: Final = 2  # columns after a label
FILES_SHOWN: Final = 6  # by name
_MEASURING: Final = Console(width=10_000, file=io.StringIO(), emoji=False)  # for a table's natural width

KINDS: Final = (
    ("listed", "listed", "green"),
    ("kept", "kept", "yellow"),
    ("unlisted", "not listed", "yellow"),
    ("moved", "moved", "cyan"),
    ("failed", "failed", "red"),
)


def show_summary(console: Console, facts: Facts, heading: str = "") -> None:
    """Prints the summary; to a pipe without trailing blanks."""
    if console.is_terminal:
        _print(console, facts, heading)
        return
    with console.capture() as captured:
        _print(console, facts, heading)
    console.file.write("".join(line.rstrip() + "\n" for line in captured.get().splitlines()))
    console.file.flush()


def _print(console: Console, facts: Facts, heading: str) -> None:
    width = min(console.width, WIDEST)
    console.print()
    if heading:
        console.print(Text(heading, "bold"))
    console.print(_headline(facts))
    console.print()
    console.print(_outcomes(facts, width))
    if console.is_terminal:
        console.print(Rule(characters="-" if console.options.ascii_only else "─", style="dim"), width=width)
    console.print(_total(facts), width=width)
    console.print()
    console.print(_lines(facts, width))
    if facts["robots_line"] and not facts["robots_named"]:
        console.print(Text("\nAdd this line to robots.txt; it never has to change:\n"))
        console.print(Text(f"  {printable(facts['robots_line'], 4_000)}", "bold cyan"), soft_wrap=True)
    _print_hints(console, list(hints(facts)), width)
    console.print()


def _headline(facts: Facts) -> Text:
    words, style = _ending(facts)
    line = Text(words, f"bold {style}")
    if facts["elapsed"] is not None and facts["fetched"]:
        fetched = f"  {counted(facts['fetched'], 'page')} fetched in {duration(facts['elapsed'])}"
        line.append(fetched, "not bold default")
    return line


def _ending(facts: Facts) -> tuple[str, str]:
    """How the run ended, and a colour: the first case that holds."""
    files, unfinished, is_stdout = facts["files"], facts["unfinished"], facts["folder"] == STDOUT
    is_of_other = facts["published_by"] not in {"", facts["member"]}
    cases = (
        (facts["refused"], "Not published", "red"),
        (unfinished and facts["folder"] is None, "Not finished", "yellow"),
        (facts["dry_run"], _dry_words(facts), "yellow"),
        (is_stdout and unfinished, "Partly written to stdout", "yellow"),
        (is_stdout, "Written to stdout", "green"),
        (files and unfinished, "Partly published", "yellow"),
        (files and all(file["unchanged"] for file in files), "Nothing changed", "green"),
        (files, "Published", "green"),
        (is_of_other, f"Finished, published by {printable(facts['published_by'], 200)}", "green"),
    )
    return next(((words, style) for holds, words, style in cases if holds), ("Nothing published", "yellow"))


def _dry_words(facts: Facts) -> str:
    """What a dry run wrote: never the sitemap."""
    written = [word for word, key in (("state", "state"), ("report", "reports")) if facts[key]]
    return f"Dry run: {' and '.join(written)} written, sitemap not" if written else "Dry run: nothing written"


def _outcomes(facts: Facts, width: int) -> Table:
    """Outcomes by kind, the most frequent reason first, and examples of each failure."""
    table = _rows(width)
    table.add_column(justify="right", no_wrap=True, style="bold")
    free = width - LABEL - 6 - len(f"{facts['discovered']:,}")  # 6: gaps and indent
    for kind, label, style in KINDS:
        for place, (code, count) in enumerate(of_kind(facts, kind)):
            table.add_row(Text("" if place else label, style), Text(outcome_words(code)), f"{count:,}")
            for url in facts["examples"].get(code, ())[:EXAMPLES] if kind in {"failed", "kept"} else ():
                table.add_row("", Text("  " + printable(masked(url), free), "dim"))
    if facts["open"]:
        table.add_row(Text("open", "magenta"), "not visited yet", f"{facts['open']:,}")
    return table


def _rows(width: int) -> Table:
    table = Table.grid(padding=(0, 2, 0, 0))
    table.width = width
    table.add_column(min_width=LABEL, no_wrap=True)
    table.add_column(ratio=1, overflow="fold")
    return table


def _total(facts: Facts) -> Text:
    balance = balance_of(facts)
    if balance.balanced:
        number, _, noun = counted(balance.discovered, "URL").partition(" ")
        return Text.assemble((number, "bold"), f" {noun} discovered, all accounted for")
    found = balance.open + sum(balance.outcomes.values())
    return Text(
        f"The totals do not add up: {counted(balance.discovered, 'URL')} discovered, {found:,} accounted "
        "for. This is a bug; please report it.",
        "bold red",
    )


def _lines(facts: Facts, width: int) -> Table:
    words: dict[str, RenderableType] = {line.label: Text(line.words(facts)) for line in LINES if line.label}
    if facts["files"]:
        words["files"] = _files(facts["files"], width - LABEL - GAP)
    table = _rows(width)
    for label in LABELS:
        if words[label]:
            table.add_row(Text(label, "dim"), words[label])
    return table


def _files(files: Sequence[Any], width: int) -> RenderableType:
    """The first few by name, the rest in one line. If these do not fit, each name has its own line."""
    table = _file_table(files)
    if Measurement.get(_MEASURING, _MEASURING.options, table).maximum <= width:
        return table
    lines = [
        f"{printable(file['name'])}\n  {f'{urls}, ' if (urls := _urls(file)) else ''}{size(file['size'])}, "
        f"{'unchanged' if file['unchanged'] else 'written'}"
        for file in files[:FILES_SHOWN]
    ]
    if len(files) > FILES_SHOWN:
        lines.append(f"and {len(files) - FILES_SHOWN:,} more")
    return Text("\n".join(lines), overflow="fold")


def _urls(file: Mapping[str, Any]) -> str:
    """How many URLs of pages the file has; empty for an index, and for a page for people."""
    return counted(file["urls"], "URL") if file["urls"] else ""


def _file_table(files: Sequence[Any]) -> Table:
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(overflow="fold")
    for _ in range(2):
        table.add_column(justify="right", no_wrap=True)
    table.add_column(no_wrap=True)
    shown = files if len(files) <= FILES_SHOWN else files[: FILES_SHOWN - 1]
    for file in shown:
        change = Text("unchanged", "dim") if file["unchanged"] else Text("written", "green")
        table.add_row(Text(printable(file["name"])), _urls(file), size(file["size"]), change)
    if rest := files[len(shown) :]:
        same = sum(file["unchanged"] for file in rest)
        change = Text(f"{same:,} unchanged" if same else "written", "dim" if same else "green")
        urls, bytes_ = sum(file["urls"] for file in rest), sum(file["size"] for file in rest)
        table.add_row(f"and {len(rest):,} more", counted(urls, "URL"), size(bytes_), change)
    return table


def _print_hints(console: Console, found: Sequence[Hint], width: int) -> None:
    """Prints hints wrapped, and commands on one line, to be copied."""
    if found:
        console.print(Text("\nWhat next", "bold"))
    for hint in found:
        row = Table.grid(padding=(0, 1, 0, 0))
        row.add_row("-" if console.options.ascii_only else "•", Text(hint.text))
        console.print(row, width=width)
        if hint.command:
            console.print(Text(f"    {hint.command}", "cyan"), soft_wrap=True)
