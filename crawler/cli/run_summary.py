"""What there is to say when a run is over, as plain values: `summary` says it to people, `as_json` to machines.

Whoever ran fills it in. Nothing is looked up or drawn here, and rich is not needed for it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Final, NamedTuple

from crawler.model.survey import Balance
from crawler.model.trap import Trap

STDOUT: Final = "-"  # as a folder
UNPUBLISHED: Final = "Nothing was published; --allow-partial publishes what was found so far."
EXAMPLES: Final = 3  # for each way to fail


class FileLine(NamedTuple):
    """A file of the sitemap."""

    name: str
    size: int  # bytes
    urls: int
    unchanged: bool = False


@dataclass(frozen=True, slots=True)
class Closing:
    """What there is to say when a run is over."""

    balance: Balance
    files: Sequence[FileLine] = ()
    folder: str | None = None  # where the files are, or would be; or `STDOUT`; None: nothing was published
    robots_line: str | None = None  # `Sitemap: https://…`
    elapsed: float | None = None  # seconds
    asked: int = 0  # pages asked for
    examples: Mapping[str, Sequence[str]] = field(default_factory=dict)  # URLs by outcome code
    dated: Mapping[str, int] = field(default_factory=dict)  # listed pages with a lastmod, by its source
    lies: Mapping[str, str] = field(
        default_factory=dict
    )  # origins whose Last-Modified is not believed, and why
    date_notes: Sequence[str] = ()  # what else there is to know of the dates
    sitemaps: Mapping[str, int] = field(default_factory=dict)  # as `ports.Record.sitemaps` counts them
    orphans: Mapping[str, int] = field(default_factory=dict)  # listed pages that no page links to, by sitemap
    unmatched: Sequence[str] = ()  # patterns that matched no URL, with their flag
    traps: Sequence[Trap] = ()  # crawler traps whose URLs were skipped
    state: str | None = None  # where the state is; None: it was not kept
    unfinished: str | None = None  # why the run is not complete
    unpublished: bool = False  # a limit ended it, and so nothing was published
    resume: str | None = None  # how to go on then
    stalled: bool = False  # it came no further than the time before
    refused: str | None = None  # why the guard kept the published sitemap
    notes: Sequence[str] = ()  # worth knowing of the site
    dry_run: bool = False
    keeps_many: bool = False  # more pages than usual are listed although they failed


def complaint(told: Closing) -> str:
    """What went wrong, in one line for those who want no more; nothing when all is well."""
    if told.refused:
        return f"Not published: {told.refused}"
    if told.unfinished:
        words = f"{stalled_words(told)} " if told.stalled else ""
        return (
            words
            + f"Not finished: {told.unfinished}."
            + (f" {UNPUBLISHED}" if told.unpublished else "")
            + (f" To continue: {told.resume}." if told.resume else "")
        )
    return kept_words(told) if told.keeps_many else ""


def stalled_words(told: Closing) -> str:
    """What to say of a run that comes no further."""
    return (
        f"No progress: like the previous run, this crawl ended unfinished, and no further page was received; "
        f"{told.balance.open:,} of {told.balance.discovered:,} URLs are still open, and nothing new was published."
    )


def kept_words(told: Closing) -> str:
    """How many pages are listed although they failed."""
    balance = told.balance
    return (
        f"{balance.kept:,} of {balance.listed:,} listed pages failed and stay in the sitemap for now, with their old "
        "dates, until --keep-failing has passed."
    )


def as_json(told: Closing) -> dict[str, Any]:
    """The same as plain values, for the event "done". Texts are exact; whoever writes them out escapes them."""
    balance = told.balance
    return {
        "discovered": balance.discovered,
        "open": balance.open,
        "balanced": balance.balanced,
        "outcomes": dict(balance.outcomes),
        "dated": dict(told.dated),
        "lies": dict(told.lies),
        "date_notes": list(told.date_notes),
        "traps": [asdict(trap) | {"flag": trap.flag} for trap in told.traps],
        "files": [file._asdict() for file in told.files],
        "folder": told.folder,
        "robots_line": told.robots_line,
        "elapsed": None if told.elapsed is None else round(told.elapsed, 1),
        "asked": told.asked,
        "examples": {code: list(urls[:EXAMPLES]) for code, urls in told.examples.items()},
        "state": told.state,
        "unfinished": told.unfinished,
        "unpublished": told.unpublished,
        "sitemaps": dict(told.sitemaps),
        "orphans": dict(told.orphans),
        "unmatched": list(told.unmatched),
        "resume": told.resume,
        "stalled": told.stalled,
        "refused": told.refused,
        "notes": list(told.notes),
        "dry_run": told.dry_run,
        "kept": balance.kept,
        "keeps_many": told.keeps_many,
    }
