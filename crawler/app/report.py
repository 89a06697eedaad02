"""Builds the report of the newest run from the state, and writes it in the requested formats.

It streams rows to the passes in `report.builder`. Formats are imported when needed, so that only an HTML
report loads Jinja2.
"""

import importlib
import os
import shlex
from collections.abc import AsyncIterable, AsyncIterator, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final, TextIO, TypeVar

from msgspec.structs import replace

from crawler.app import atomic
from crawler.app.broken_files import MOST_NOTED, broken_files, file_code
from crawler.app.features import FEATURES
from crawler.app.features.feature import PageFault
from crawler.app.publication import final_site, published_as
from crawler.app.robots_line import compared
from crawler.app.state import FOLDER, MEMORY, name_of, state_path
from crawler.errors import ConfigError, NoState, OutputError
from crawler.model.note import (
    BROKEN_FILES,
    EXTERNAL,
    FOUND_BEFORE,
    LEFT_OUT,
    ROBOTS_LINE,
    SETTINGS,
    UNRELIABLE,
    VANISHED,
)
from crawler.model.rows import PUBLISHED, AnchorRow, FeatureRow, PageRow
from crawler.parse.credentials import masked
from crawler.parse.url import Url
from crawler.ports import Frontier, Reads, reads
from crawler.report.builder import ITEMS, Anchors, FindingCounts, ReportBuilder
from crawler.report.catalogue import FILES, Code, Severity
from crawler.report.clicks import Clicks
from crawler.report.findings import Findings, PageFinding
from crawler.report.history import files_sought, packed, packed_files, packed_groups, sought
from crawler.report.report import Finding, Known, SiteReport
from crawler.report.url_kind import UrlKind
from crawler.rules.incomplete_site import MANY_SHELLS
from crawler.settings.load import nearest
from crawler.settings.sections import Settings

T = TypeVar("T")

CSV: Final = ".csv"
FORMS: Final = {".html": "as_html", ".json": "as_json", ".md": "as_markdown"}
SUFFIXES: Final = (*FORMS, CSV)
IGNORE_ROBOTS: Final = "ignore-robots"  # the setting
NEW: Final = "new:"
RESOLVED: Final = 2_000  # ids at a time
MOST_KEPT: Final = 5_000  # rows between two passes, a kilobyte each; to find them reads all URLs


def check(settings: Settings) -> None:
    """Checks `--report` and `--fail-on` before the first request.

    Raises `ConfigError` for a file that cannot be a report, or for a finding that does not exist;
    `OutputError` for a folder that is not writable.
    """
    for name in settings.report.report:
        path = Path(name)
        if path.suffix not in SUFFIXES:
            raise ConfigError(f"--report: {name} must end in {', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]}.")
        if not path.parent.is_dir():
            raise ConfigError(f"--report: there is no folder {path.parent}.")
        if path.is_dir():
            raise ConfigError(f"--report: {name} is a folder.")
        if not os.access(path.parent, os.W_OK | os.X_OK):
            raise OutputError(_unwritable(name, f"the folder {path.parent} is not writable"))
    known = [*(code.value for code in Code), *(severity.value for severity in Severity)]
    for text in settings.report.fail_on:
        if text.removeprefix(NEW) not in known:
            raise ConfigError(
                f"--fail-on: there is no finding {text}{nearest(text.removeprefix(NEW), known)}"
            )


async def read_known(frontier: Frontier, settings: Settings) -> Known:
    """What a report needs besides the page rows. Raises `NoState` for one without a run."""
    runs, start = list(await frontier.read(reads.AllRuns())), await frontier.read(reads.FirstStart())
    if not runs or start is None:
        raise NoState("The state contains no URLs yet: crawl first.")
    balance, seen = await frontier.read(reads.RunBalance()), await frontier.read(reads.WhatIsKnown())
    newest = replace(runs[-1], outcomes=balance.outcomes)
    site, published = await final_site(frontier, start), await published_as(frontier, settings)
    from importlib.metadata import version  # noqa: PLC0415 - slow to import, and few crawls make a report

    line, of_the_run = await frontier.recall(ROBOTS_LINE), await frontier.recall(SETTINGS)
    named = await compared(frontier, settings, line)
    check, noted = await frontier.recall(EXTERNAL), await frontier.recall(BROKEN_FILES)
    return Known(
        site=site,
        base=published.base if published else site,
        run=newest,
        balance=balance,
        runs=[*runs[:-1], newest],
        hosts=await frontier.read(reads.BusiestHosts()),
        traps=await frontier.read(reads.TrapsOfRun()),
        unreliable=await frontier.recall(UNRELIABLE),
        robots_line=line or None,
        robots_names=named.is_named,
        robots_others=named.others,
        check=check,
        left_out=await frontier.recall(LEFT_OUT),
        shell=await frontier.read(reads.SameShell(MANY_SHELLS)),
        vanished=await frontier.recall(VANISHED),
        before=await frontier.recall(FOUND_BEFORE),
        files={
            kind: noted[kind]
            for kind in files_sought(of_the_run, checked=check is not None)
            if kind in noted and len(noted[kind]) < MOST_NOTED
        },
        external=await frontier.read(reads.CountAnswers()) if check else None,
        settings=of_the_run,
        state_words=state_words(settings, start),
        program=f"sitemap-crawler {version('sitemap-crawler')}",
        robots_ignored=any(name == IGNORE_ROBOTS for name, _ in of_the_run),
        partial=seen if seen and (seen.waiting or seen.visited < seen.pages) else None,
    )


async def note_left_out(frontier: Frontier, what: str, count: int, because: str) -> None:
    """Notes for the report how many `images` or `pages` were not asked after the crawl, if any."""

    def noted(known: Mapping[str, tuple[int, str]]) -> Mapping[str, tuple[int, str]]:
        others = {kind: left for kind, left in known.items() if kind != what}
        return others | ({what: (count, because)} if count else {})

    if count or what in await frontier.recall(LEFT_OUT):
        await frontier.amend(LEFT_OUT, noted)


def state_words(settings: Settings, start: str) -> str:
    """The words that name the state to another command; empty for a state that is not kept."""
    state = settings.state.state
    if state == MEMORY:
        return ""
    if settings.state.site:
        return shlex.join(settings.state.site)
    is_default = not state or state == str(FOLDER / f"{name_of(Url(start))}.db")
    return masked(shlex.join([start] if is_default else ["--state", state_path(settings, Url(start))]))


async def build_report(rows: Reads, known: Known, *, most: int = ITEMS) -> SiteReport:
    """The report. `most`: maximum items of each finding; 0 for all."""
    findings = await findings_of(rows, known)
    builder = ReportBuilder(known, findings, most=most)
    async for page in each(rows.stream(reads.Pages())):
        builder.add_page(page)
    clicks = builder.clicks()
    await walk(rows, clicks)
    builder.add_clicks(clicks)
    async for page in pages_of(rows, findings):
        builder.pick(page)
    names = await names_of(rows, sorted(builder.wanted()))
    return builder.report(names, await anchors_of(rows, sorted(builder.linking())))


async def walk(rows: Reads, clicks: Clicks) -> None:
    """Walks over the links of the run."""
    while due := clicks.take():
        clicks.add(await rows.read(reads.LinksOf(due)))


async def findings_of(rows: Reads, known: Known) -> Findings:
    """The findings of a run, ready to be queried for each page."""
    findings = Findings.of(known)
    findings.files = await broken_files(rows, findings.run)
    async for reading, faults in _faults(rows, known.settings):
        findings.faults.setdefault(reading.id, []).extend(faults)
    had = findings.before.pages if findings.before else ()
    findings.pages = await rows.read(reads.PagesWithFindings([*findings.faults, *had]))
    async for page in pages_of(rows, findings):
        findings.add_page(page)
    await _read_links(rows, findings)
    return findings


async def pages_of(rows: Reads, findings: Findings) -> AsyncIterator[PageRow]:
    """The pages that may have one of these findings, or had one before, by URL."""
    for place in range(0, len(findings.pages), RESOLVED):
        some = list(findings.pages[place : place + RESOLVED])
        found = await rows.read(reads.PagesOf(some))
        for number in some:
            if number in found:
                yield found[number]


async def _read_links(rows: Reads, findings: Findings, kinds: Collection[UrlKind] = ()) -> None:
    """End the first pass, and make the second if links matter: of some `kinds`, only for these."""
    ends = findings.targets()
    for place in range(0, len(ends), RESOLVED):
        for page in (await rows.read(reads.PagesOf(ends[place : place + RESOLVED]))).values():
            findings.add_page(page)
    findings.close()
    if findings.has(kinds) if kinds else findings.needs_links:
        async for edges in each(rows.stream(reads.Edges())):
            findings.link(edges)


async def _faults(
    rows: Reads, settings: Iterable[tuple[str, str]]
) -> AsyncIterator[tuple[FeatureRow, Sequence[PageFault]]]:
    """The findings of the features that are among the `settings`."""
    chosen = {name for name, _ in settings}
    for feature in FEATURES:
        if feature.name in chosen:
            async for reading, faults in feature.faults(rows):
                yield reading, faults


async def count_findings(rows: Reads, known: Known) -> Sequence[Finding]:
    """The findings without their items: as in the report, but from few rows, at a fraction of its cost."""
    findings = Findings.of(known)
    return await _counted(rows, known, findings, await read_few(rows, findings))


async def _counted(
    rows: Reads, known: Known, findings: Findings, suspects: AsyncIterator[PageRow]
) -> Sequence[Finding]:
    findings.files = await broken_files(rows, findings.run)
    counts = FindingCounts(known, findings)
    async for found in _found(rows, findings, suspects, known.settings):
        counts.add(found)
    return counts.findings(await rows.read(reads.ListedTallies()))


async def _found(
    rows: Reads, findings: Findings, suspects: AsyncIterator[PageRow], settings: Iterable[tuple[str, str]]
) -> AsyncIterator[PageFinding]:
    """The findings of suspects, and of the features that are among the `settings`."""
    async for page in suspects:
        for found in findings.found(page):
            yield found
    async for reading, faults in _faults(rows, settings):
        page = PageRow(reading.id, reading.url, findings.run, reading.outcome, was=reading.was)
        for found in findings.stated(page, faults):
            yield found


async def found_before(frontier: Frontier) -> Mapping[str, str] | None:
    """The findings with which those of the next run are compared, as in the note; None before the first.

    They are those of the newest run if it was published, or if none ever was, and it is complete; otherwise
    those with which that was compared.
    """
    runs = await frontier.read(reads.AllRuns())
    if not runs:
        return None
    is_published = [run.status == PUBLISHED for run in runs]
    if not (is_published[-1] or (runs[-1].complete and not any(is_published))):
        return await frontier.recall(FOUND_BEFORE)
    settings, check = await frontier.recall(SETTINGS), await frontier.recall(EXTERNAL)
    ids = {code: set[int]() for code in sought(settings, checked=check is not None)}
    findings = Findings(runs[-1].number, complete=True, check=check)
    suspects = await read_few(frontier, findings)
    async for found in _found(frontier, findings, suspects, settings):
        if found.code in ids:
            ids[found.code].add(found.page.id)
    groups, files = await frontier.read(reads.GroupedPages()), await frontier.read(reads.BrokenFiles())
    return {
        **{code.value: packed(some) for code, some in ids.items()},
        Code.DUPLICATE_CONTENT.value: packed_groups(groups["content"]),
        Code.DUPLICATE_TITLE.value: packed_groups(groups["title"]),
        **{
            f"{kind} {code.value}": packed_files(urls)
            for kind in files_sought(settings, checked=check is not None)
            for code in FILES
            if (urls := [url for url, one in files.get(kind, {}).items() if file_code(kind, one) is code])
        },
    }


async def read_few(
    rows: Reads, findings: Findings, kinds: Collection[UrlKind] = ()
) -> AsyncIterator[PageRow]:
    """The first two passes, over few rows, which are returned: without the findings of listed pages.

    Links are read if they matter; of some `kinds`, only for these.
    """
    kept = list[PageRow]()
    async for page in each(rows.stream(reads.Suspects())):
        findings.add_page(page)
        if len(kept) <= MOST_KEPT:
            kept.append(page)
    await _read_links(rows, findings, kinds)
    return each(rows.stream(reads.Suspects()) if len(kept) > MOST_KEPT else _at_once(kept))


async def _at_once(rows: Iterable[T]) -> AsyncIterator[Iterable[T]]:
    yield rows


async def each(chunks: AsyncIterable[Iterable[T]]) -> AsyncIterator[T]:
    """The rows of all chunks, one by one."""
    async for chunk in chunks:
        for row in chunk:
            yield row


async def names_of(rows: Reads, ids: Sequence[int]) -> Mapping[int, str]:
    """URLs by page id."""
    names: dict[int, str] = {}
    for place in range(0, len(ids), RESOLVED):
        found = await rows.read(reads.TargetsOf(ids[place : place + RESOLVED]))
        names |= {number: target.url for number, target in found.items()}
    return names


async def anchors_of(rows: Reads, ids: Sequence[int]) -> Anchors:
    """What is known of the links of pages, by the ids of page and target."""
    anchors: dict[tuple[int, int], AnchorRow] = {}
    for place in range(0, len(ids), RESOLVED):
        anchors |= await rows.read(reads.AnchorsOf(ids[place : place + RESOLVED]))
    return anchors


def failing(findings: Sequence[Finding], fail_on: Sequence[str]) -> list[str]:
    """The codes of the findings that match `--fail-on`."""
    return [
        finding.code.value
        for finding in findings
        if any(
            text.removeprefix(NEW) in {finding.code.value, finding.code.severity.value}
            and (finding.new or not text.startswith(NEW))
            for text in fail_on
        )
    ]


def text_of(report: SiteReport, suffix: str) -> str:
    """The report as text, in the format for that file suffix."""
    # Only the module that is needed: as_html loads Jinja2.
    form = importlib.import_module(f"crawler.report.forms.{FORMS[suffix]}")
    text: str = form.text_of(report)
    return text


async def write(rows: Reads, report: SiteReport, names: Sequence[str]) -> None:
    """Writes every file atomically, by rename. Raises `OutputError` for the first that failed.

    `rows`: those of the report, from which a table has all findings.
    """
    failed: OutputError | None = None
    for name in names:
        try:
            with atomic.writing(Path(name), private=True) as file:
                if Path(name).suffix == CSV:
                    await write_table(rows, report.known, file)
                else:
                    file.write(text_of(report, Path(name).suffix))
        except OSError as error:
            failed = failed or OutputError(_unwritable(name, error.strerror or str(error)))
    if failed:
        raise failed


async def write_table(rows: Reads, known: Known, file: TextIO) -> None:
    """Writes all findings as CSV."""
    from crawler.app.finding_rows import csv_lines  # noqa: PLC0415 - it imports this module

    async for line in csv_lines(rows, known):
        file.write(line)


def _unwritable(name: str, why: str) -> str:
    return f"The report {name} cannot be written: {why}."
