"""The summary of a run as plain values: `summary` prints it for people, `as_json` for programs.

It is filled in by the commands. Nothing is looked up or printed here, and rich is not imported.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Final, NamedTuple

from crawler.model.survey import Balance
from crawler.model.trap import Trap

STDOUT: Final = "-"  # as an output folder
UNPUBLISHED: Final = "Nothing was published; --allow-partial publishes what was found so far."
EXAMPLES: Final = 3  # for each kind of failure


class FileLine(NamedTuple):
    """A file of the sitemap."""

    name: str
    size: int  # bytes
    urls: int
    unchanged: bool = False


class FindingLine(NamedTuple):
    """One kind of finding."""

    code: str
    severity: str
    urls: int
    new: int
    words: str  # `2 URLs (1 new), 18 links on 15 pages`


@dataclass(frozen=True, slots=True)
class RunSummary:
    """The summary of a run."""

    balance: Balance
    files: Sequence[FileLine] = ()
    folder: str | None = None  # of the files, also in a dry run; or `STDOUT`; None: nothing was published
    robots_line: str | None = None  # `Sitemap: https://…`
    robots_named: bool | None = None  # whether robots.txt has that line; None: unknown
    robots_others: Sequence[str] = ()  # other sitemaps that it names, and that were not written
    elapsed: float | None = None  # seconds
    fetched: int = 0  # pages fetched
    examples: Mapping[str, Sequence[str]] = field(default_factory=dict)  # URLs by outcome code
    dated: Mapping[str, int] = field(default_factory=dict)  # listed pages with a lastmod, by its source
    unreliable: Mapping[str, str] = field(
        default_factory=dict
    )  # origins whose Last-Modified is not trusted, and why
    date_notes: Sequence[str] = ()  # other remarks on the dates
    images: int | None = None  # in the files; None: they are not written
    site_wide: int = 0  # images left out, as they are on many pages
    sitemaps: Mapping[str, int] = field(default_factory=dict)  # as counted by `ports.Record.sitemaps`
    orphans: Mapping[str, int] = field(default_factory=dict)  # listed pages that no page links to, by sitemap
    unmatched: Sequence[str] = ()  # patterns that matched no URL, with their flag
    traps: Sequence[Trap] = ()  # crawler traps whose URLs were skipped
    findings: Sequence[FindingLine] = ()  # the worst first
    findings_command: str = ""  # shows all of them
    reports: Sequence[str] = ()  # files that were written
    submission: Sequence[str] = ()  # the result of --submit
    submission_facts: Mapping[str, Any] = field(default_factory=dict)  # the same as numbers
    external: str = ""  # what is known of links to other sites
    external_facts: Mapping[str, Any] | None = None  # the same as numbers; None: they were not checked
    state: str | None = None  # path of the state; None: it was not kept
    unfinished: str | None = None  # why the run is not complete
    unpublished: bool = False  # nothing was published because a limit ended the run
    resume: str | None = None  # how to continue an unfinished run
    stalled: bool = False  # no progress since the previous start of this run
    refused: str | None = None  # why the guard refused to publish
    notes: Sequence[str] = ()  # remarks on the site
    member: str = ""  # HOST:PID of this process
    members: int = 1  # that worked on the run
    published_by: str = ""  # the member that published it; empty: nobody
    dry_run: bool = False
    keeps_many: bool = False  # unusually many failed pages stay listed


def problem(summary: RunSummary) -> str:
    """What went wrong, in one line; empty if nothing did."""
    if summary.refused:
        return f"Not published: {summary.refused}"
    if summary.unfinished:
        words = f"{stalled_words(summary)} " if summary.stalled else ""
        return (
            words
            + f"Not finished: {summary.unfinished}."
            + (f" {UNPUBLISHED}" if summary.unpublished else "")
            + (f" To continue: {summary.resume}." if summary.resume else "")
        )
    return kept_words(summary) if summary.keeps_many else ""


def stalled_words(summary: RunSummary) -> str:
    """The sentence on a run without progress."""
    return (
        f"No progress: like the previous run, this crawl ended unfinished, and no further page was received; "
        f"{summary.balance.open:,} of {summary.balance.discovered:,} URLs are still open, and nothing new was published."
    )


def kept_words(summary: RunSummary) -> str:
    """The sentence on failed pages that stay listed."""
    balance = summary.balance
    return (
        f"{balance.kept:,} of {balance.listed:,} listed pages failed and stay in the sitemap for now, with their old "
        "dates, until --keep-failing has passed."
    )


def as_json(summary: RunSummary) -> dict[str, Any]:
    """The fields of the log event "done". Texts are unescaped."""
    balance = summary.balance
    return {
        "discovered": balance.discovered,
        "open": balance.open,
        "balanced": balance.balanced,
        "outcomes": dict(balance.outcomes),
        "dated": dict(summary.dated),
        "lies": dict(summary.unreliable),
        "date_notes": list(summary.date_notes),
        "images": None
        if summary.images is None
        else {"written": summary.images, "left_out": summary.site_wide},
        "traps": [asdict(trap) | {"flag": trap.flag} for trap in summary.traps],
        "findings": [line._asdict() for line in summary.findings],
        "reports": list(summary.reports),
        "submission": dict(summary.submission_facts) or None,
        "external": summary.external_facts,
        "files": [file._asdict() for file in summary.files],
        "folder": summary.folder,
        "robots_line": summary.robots_line,
        "robots_named": summary.robots_named,
        "robots_others": list(summary.robots_others),
        "elapsed": None if summary.elapsed is None else round(summary.elapsed, 1),
        "fetched": summary.fetched,
        "examples": {code: list(urls[:EXAMPLES]) for code, urls in summary.examples.items()},
        "state": summary.state,
        "unfinished": summary.unfinished,
        "unpublished": summary.unpublished,
        "sitemaps": dict(summary.sitemaps),
        "orphans": dict(summary.orphans),
        "unmatched": list(summary.unmatched),
        "resume": summary.resume,
        "stalled": summary.stalled,
        "refused": summary.refused,
        "notes": list(summary.notes),
        "published": bool(summary.member) and summary.published_by == summary.member,
        "published_by": summary.published_by,
        "member": summary.member,
        "members": summary.members,
        "dry_run": summary.dry_run,
        "kept": balance.kept,
        "keeps_many": summary.keeps_many,
    }
