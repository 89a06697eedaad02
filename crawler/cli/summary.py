"""Prints the summary of a run: outcomes and reasons, files written, and what to do next.

Everything comes from a `RunSummary`. Text from the network is made printable and only used in `rich.text.Text`, never in
markup.
"""

import io
import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from rich.console import Console, RenderableType
from rich.measure import Measurement
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from crawler.cli.program import suggested
from crawler.cli.run_summary import (
    EXAMPLES,
    STDOUT,
    UNPUBLISHED,
    FileLine,
    FindingLine,
    RunSummary,
    kept_words,
    stalled_words,
)
from crawler.model.outcome import says
from crawler.model.reasons import SeedOutcome, Source
from crawler.model.survey import Balance
from crawler.model.trap import Trap
from crawler.parse.credentials import masked
from crawler.report.formatting import counted, duration, size
from crawler.report.printable import printable
from crawler.rules.images import PERCENT

WIDEST: Final = 80  # columns, so that numbers stay close to their labels
LABEL: Final = 11  # columns
GAP: Final = 2  # columns after a label
FILES: Final = 6  # shown by name
WORST: Final = 3  # findings
TRAPS_SHOWN: Final = 8
SOURCES: Final = 3  # sitemaps with orphans that are shown
UNMATCHED: Final = 5  # patterns that are shown
_MEASURING: Final = Console(width=10_000, file=io.StringIO())  # to measure the natural width of a table

KINDS: Final = (
    ("listed", "listed", "green"),
    ("kept", "kept", "yellow"),
    ("unlisted", "not listed", "yellow"),
    ("moved", "moved", "cyan"),
    ("failed", "failed", "red"),
)
ADVICE: Final = {
    "failed:rate-limited": "The site limits the rate of requests: use a lower --rate than now.",
    "failed:timeout": "Some responses were too slow: raise --timeout, or lower --concurrency.",
    "failed:too-large": "Some pages are larger than --max-body: raise it if they are really pages.",
    "failed:forbidden": "Some pages require a login: see --auth-env and --cookie-file.",
    "failed:tls": "Some certificates are not trusted: add your own CA with --ca-file.",
    "failed:address": "Some hosts have private addresses or unusual ports: --allow-address allows your own network.",
    "failed:server-error": "The server failed on some pages: crawl again when it works again.",
    "unlisted:robots-down": "A robots.txt could not be read: crawl again when it is back.",
}


def show_summary(console: Console, summary: RunSummary) -> None:
    """Prints the summary; to a pipe without trailing blanks."""
    if console.is_terminal:
        _print(console, summary)
        return
    with console.capture() as captured:
        _print(console, summary)
    console.file.write("".join(line.rstrip() + "\n" for line in captured.get().splitlines()))
    console.file.flush()


def _print(console: Console, summary: RunSummary) -> None:
    width = min(console.width, WIDEST)
    console.print()
    console.print(_headline(summary))
    console.print()
    console.print(_outcomes(summary, width))
    if console.is_terminal:
        console.print(Rule(characters="-" if console.options.ascii_only else "─", style="dim"), width=width)
    console.print(_total(summary.balance), width=width)
    console.print()
    console.print(_facts(summary, width))
    if summary.robots_line and not summary.robots_named:
        console.print(Text("\nAdd this line to robots.txt; it never has to change:\n"))
        console.print(Text(f"  {printable(summary.robots_line, 4_000)}", "bold cyan"), soft_wrap=True)
    _print_hints(console, list(_hints(summary)), width)
    console.print()


# -- the headline -------------------------------------------------------------------------------------------


def _headline(summary: RunSummary) -> Text:
    words, style = _ending(summary)
    line = Text(words, f"bold {style}")
    if summary.elapsed is not None and summary.fetched:
        line.append(
            f"  {counted(summary.fetched, 'page')} fetched in {duration(summary.elapsed)}", "not bold default"
        )
    return line


def _ending(summary: RunSummary) -> tuple[str, str]:
    if summary.refused:
        return "Not published", "red"
    if summary.unfinished and summary.folder is None:
        return "Not finished", "yellow"
    if summary.dry_run:
        return "Dry run, nothing written", "yellow"
    if summary.folder == STDOUT:
        return (
            ("Partly written to stdout", "yellow") if summary.unfinished else ("Written to stdout", "green")
        )
    if summary.files and summary.unfinished:
        return "Partly published", "yellow"
    if summary.files and all(file.unchanged for file in summary.files):
        return "Nothing changed", "green"
    return ("Published", "green") if summary.files else ("Nothing published", "yellow")


# -- the balance --------------------------------------------------------------------------------------------


def _outcomes(summary: RunSummary, width: int) -> Table:
    """Outcomes by kind, the most frequent reason first, and examples of each failure."""
    table = _rows(width)
    table.add_column(justify="right", no_wrap=True, style="bold")
    free = width - LABEL - 6 - len(f"{summary.balance.discovered:,}")  # 6: gaps and indent
    for kind, label, style in KINDS:
        for place, (code, count) in enumerate(_of_kind(summary.balance, kind)):
            table.add_row(Text("" if place else label, style), Text(_words(code)), f"{count:,}")
            for url in summary.examples.get(code, ())[:EXAMPLES] if kind in {"failed", "kept"} else ():
                table.add_row("", Text("  " + printable(masked(url), free), "dim"))
    if summary.balance.open:
        table.add_row(Text("open", "magenta"), "not visited yet", f"{summary.balance.open:,}")
    return table


def _rows(width: int) -> Table:
    """A table of labels and values."""
    table = Table.grid(padding=(0, 2, 0, 0))
    table.width = width
    table.add_column(min_width=LABEL, no_wrap=True)
    table.add_column(ratio=1, overflow="fold")
    return table


def _of_kind(balance: Balance, kind: str) -> list[tuple[str, int]]:
    codes = [item for item in balance.outcomes.items() if item[0].partition(":")[0] == kind]
    return sorted(codes, key=lambda item: (-item[1], item[0]))


def _words(code: str) -> str:
    """The sentence for a code; the code itself if it comes from a newer version."""
    try:
        return says(code)
    except ValueError:
        return printable(code)


def _total(balance: Balance) -> Text:
    if balance.balanced:
        number, _, noun = counted(balance.discovered, "URL").partition(" ")
        return Text.assemble((number, "bold"), f" {noun} discovered, all accounted for")
    found = balance.open + sum(balance.outcomes.values())
    return Text(
        f"The totals do not add up: {counted(balance.discovered, 'URL')} discovered, {found:,} accounted for. "
        "This is a bug; please report it.",
        "bold red",
    )


# -- dates and files ----------------------------------------------------------------------------------------


def _facts(summary: RunSummary, width: int) -> Table:
    facts: dict[str, RenderableType | None] = {
        "findings": _findings(summary.findings),
        "traps": _traps(summary.traps),
        "sitemaps": _sitemaps(summary.sitemaps),
        "orphans": _orphans(summary.orphans),
        "dates": _dates(summary),
        "images": None if summary.images is None else Text(_images(summary.images, summary.site_wide)),
        "files": _files(summary.files, width - LABEL - GAP) if summary.files else None,
        "folder": Text(printable(summary.folder)) if summary.folder and summary.folder != STDOUT else None,
        "report": Text("\n".join(map(printable, summary.reports))) if summary.reports else None,
        "submitted": Text("\n".join(map(printable, summary.submission))) if summary.submission else None,
        "external": Text(printable(summary.external)) if summary.external else None,
        "state": Text(printable(summary.state)) if summary.state else None,
        "robots.txt": Text("names the sitemap") if summary.robots_line and summary.robots_named else None,
    }
    table = _rows(width)
    for label, words in facts.items():
        if words is not None:
            table.add_row(Text(label, "dim"), words)
    return table


def _findings(lines: Sequence[FindingLine]) -> Text | None:
    """The worst few."""
    shown = [f"{line.code}: {line.words}" for line in lines[:WORST]]
    if len(lines) > WORST:
        shown.append(f"and {counted(len(lines) - WORST, 'other kind')}")
    return Text("\n".join(shown)) if shown else None


def _dates(summary: RunSummary) -> Text:
    listed = summary.balance.listed
    if not listed:
        return Text("no pages are listed")
    dated = sum(summary.dated.values())
    words = f"{dated:,} of {counted(listed, 'listed page')} with a lastmod ({100 * dated // listed}%)"
    sources = [f"{count:,} from {Source.of(source).says}" for source, count in summary.dated.items()]
    lines = [words, *(sources if set(summary.dated) - {"header"} else [])]
    lines += [f"Last-Modified of {site} is not trusted: {why}" for site, why in summary.unreliable.items()]
    lines += summary.date_notes
    return Text("\n".join(printable(line, 300) for line in lines))


def _images(written: int, site_wide: int) -> str:
    """How many images the sitemap has, and how many it leaves out."""
    words = f"{counted(written, 'image')} in the sitemap"
    if not site_wide:
        return words
    verb = "is" if site_wide == 1 else "are"
    return f"{words}; {site_wide:,} left out that {verb} on {PERCENT}% of the pages or more"


def _sitemaps(counts: Mapping[str, int]) -> Text | None:
    """The outcomes of the sitemaps used as seeds."""
    words = {outcome.value: outcome.says for outcome in SeedOutcome}
    words |= {"open": "not read yet", "passed": "skipped (too many)"}
    parts = [f"{counts[code]:,} {says}" for code, says in words.items() if counts.get(code)]
    return Text(", ".join(parts)) if parts else None


def _orphans(orphans: Mapping[str, int]) -> Text | None:
    """Listed pages that are only in sitemaps, by sitemap."""
    if not orphans:
        return None
    lines = [f"{counted(sum(orphans.values()), 'listed page')} that no page links to"]
    lines += [f"{count:,} from {name}" for name, count in list(orphans.items())[:SOURCES]]
    if len(orphans) > SOURCES:
        lines.append(f"and {counted(len(orphans) - SOURCES, 'sitemap')} more")
    return Text("\n".join(printable(line, 300) for line in lines))


def _traps(traps: Sequence[Trap]) -> Text | None:
    lines = [printable(str(trap), 300) for trap in traps[:TRAPS_SHOWN]]
    if len(traps) > TRAPS_SHOWN:
        lines.append(f"and {len(traps) - TRAPS_SHOWN:,} more: see --log-format json")
    return Text("\n".join(lines)) if lines else None


def _files(files: Sequence[FileLine], width: int) -> RenderableType:
    """The first few by name, the rest in one line. If the lines do not fit, each name is on a line of its own."""
    table = _file_table(files)
    if Measurement.get(_MEASURING, _MEASURING.options, table).maximum <= width:
        return table
    lines = [
        f"{printable(file.name)}\n  {counted(file.urls, 'URL')}, {size(file.size)}, "
        f"{'unchanged' if file.unchanged else 'written'}"
        for file in files[:FILES]
    ]
    if len(files) > FILES:
        lines.append(f"and {len(files) - FILES:,} more")
    return Text("\n".join(lines), overflow="fold")


def _file_table(files: Sequence[FileLine]) -> Table:
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(overflow="fold")
    for _ in range(2):
        table.add_column(justify="right", no_wrap=True)
    table.add_column(no_wrap=True)
    shown = files if len(files) <= FILES else files[: FILES - 1]
    for file in shown:
        change = Text("unchanged", "dim") if file.unchanged else Text("written", "green")
        table.add_row(Text(printable(file.name)), counted(file.urls, "URL"), size(file.size), change)
    rest = files[len(shown) :]
    if rest:
        unchanged = f"{sum(file.unchanged for file in rest):,} unchanged"
        sums = counted(sum(file.urls for file in rest), "URL"), size(sum(file.size for file in rest))
        table.add_row(f"and {len(rest):,} more", *sums, Text(unchanged, "dim"))
    return table


# -- what next ----------------------------------------------------------------------------------------------


class Hint(NamedTuple):
    """A suggestion, with a command to copy."""

    text: str
    command: str = ""


def _hints(summary: RunSummary) -> Iterator[Hint]:
    if summary.refused:
        yield Hint(printable(summary.refused, 1_000))
    if summary.published_by not in ("", summary.member):
        yield Hint(f"The sitemap was published by {printable(summary.published_by, 200)}.")
    if summary.stalled:
        yield Hint(stalled_words(summary))
    if summary.robots_line and summary.robots_named is False and summary.robots_others:
        other = printable(masked(summary.robots_others[0]), 300)
        yield Hint(f"robots.txt names {other}, which this crawl does not write.")
    for note in summary.notes:
        yield Hint(printable(note, 500))
    if summary.unfinished:
        words = f"The crawl is not complete: {printable(summary.unfinished, 300)}."
        yield Hint(f"{words} {UNPUBLISHED}" if summary.unpublished else words)
    if deeper := summary.balance.outcomes.get("unlisted:depth"):
        yield Hint(
            f"--max-depth limited the crawl: {counted(deeper, 'URL')} are deeper and were not fetched."
        )
    for pattern in summary.unmatched[:UNMATCHED]:
        yield Hint(f"{printable(pattern, 200)} matched no URL in this crawl.")
    if summary.resume:
        yield Hint(f"To continue: {printable(summary.resume, 500)}")
    if summary.dry_run and summary.folder is not None:
        yield Hint("Run without --dry-run to publish.")
    if summary.balance.kept:
        yield Hint(kept_words(summary))
    failed = sum(count for _, count in _of_kind(summary.balance, "failed"))
    if failed and summary.state:
        yield Hint(
            f"{counted(failed, 'URL')} failed. To see why, for one of them:", _explain(summary, summary.state)
        )
    if summary.findings and summary.findings_command:
        yield Hint(
            "To see all findings, with the pages that link to them:",
            printable(summary.findings_command, 1_000),
        )
    by_count = sorted(summary.balance.outcomes.items(), key=lambda item: -item[1])
    yield from [Hint(ADVICE[code]) for code, _ in by_count if code in ADVICE][:2]
    if summary.balance.listed and not summary.dated:
        yield Hint("No page has a reliable date; a correct Last-Modified header would be used.")


def _explain(summary: RunSummary, state: str) -> str:
    """The `explain` command for a failed URL, quoted for a shell; "URL" if none can be shown unchanged."""
    failures = _of_kind(summary.balance, "failed")
    urls = (url for code, _ in failures for url in summary.examples.get(code, ()))
    plain = next((url for url in urls if printable(masked(url)) == url), "URL")
    host = plain.partition("//")[2].partition("/")[0]
    own = host.replace(":", "_").strip("[]")
    where = [] if state == f".sitemap-crawler/{own}.db" else ["--state", printable(state, 1_000)]
    return suggested(shlex.join(["explain", *where, plain]))


def _print_hints(console: Console, hints: Sequence[Hint], width: int) -> None:
    """Prints hints wrapped, and commands on one line, to be copied."""
    if hints:
        console.print(Text("\nWhat next", "bold"))
    for hint in hints:
        row = Table.grid(padding=(0, 1, 0, 0))
        row.add_row("-" if console.options.ascii_only else "•", Text(hint.text))
        console.print(row, width=width)
        if hint.command:
            console.print(Text(f"    {hint.command}", "cyan"), soft_wrap=True)
