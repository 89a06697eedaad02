"""The summary of a run: one table of facts, from which the text and the JSON are made.

`run_facts` fills in the values, and `summary_text` lays out the text; rich is only imported there, as with
`--quiet` it is not needed. Nothing is looked up here.
"""

import logging
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Final

from msgspec import Struct

from crawler.app.features import FEATURES
from crawler.app.features.feature import Feature
from crawler.cli.output import suggested
from crawler.model.log import log
from crawler.model.reasons import SeedOutcome, Source
from crawler.model.survey import Balance
from crawler.model.trap import Trap
from crawler.parse.credentials import masked
from crawler.parse.url import Url, netloc
from crawler.report.external import external_words, left_words
from crawler.report.formatting import ages, counted
from crawler.report.printable import printable
from crawler.settings.sections import Log

Facts = Mapping[str, Any]
"""The values of `LINES`, by key."""

STDOUT: Final = "-"  # as an output folder
UNPUBLISHED: Final = "Nothing was published; --allow-partial publishes what was found so far."
EXAMPLES: Final = 3  # for each kind of failure
WORST_FINDINGS: Final = 3  # that are shown
TRAPS_SHOWN: Final = 8
SITEMAPS_SHOWN: Final = 3  # with orphans
CHANGES: Final = {"added": "+", "removed": "-", "changed": "~"}
UNMATCHED_SHOWN: Final = 5  # patterns
ADVICE: Final = {
    "failed:rate-limited": "The site limits the rate of requests: use a lower --rate than now.",
    "failed:timeout": "Some pages took too long: raise --timeout or --total-timeout, or lower --concurrency.",
    "failed:too-large": "Some pages are larger than --max-body: raise it if they are really pages.",
    "failed:forbidden": "Some pages require a login: see --auth-env and --cookie-file.",
    "failed:tls": "Some certificates are not trusted: add your own CA with --ca-file.",
    "failed:address": (
        "Some hosts have private addresses or unusual ports: --allow-address allows your own network."
    ),
    "failed:server-error": "The server failed on some pages: crawl again when it works again.",
    "unlisted:robots-down": "A robots.txt could not be read: crawl again when it is back.",
}


# -- the lines ----------------------------------------------------------------------------------------------


def _lines(*texts: str, longest: int = 300) -> str:
    return "\n".join(printable(text, longest) for text in texts)


def _findings(facts: Facts) -> str:
    """The worst few."""
    findings = facts["findings"]
    shown = [f"{one['code']}: {one['words']}" for one in findings[:WORST_FINDINGS]]
    if len(findings) > WORST_FINDINGS:
        shown.append(f"and {counted(len(findings) - WORST_FINDINGS, 'other kind')}")
    return "\n".join(shown)


def _traps(facts: Facts) -> str:
    traps = facts["traps"]
    shown = [str(Trap(one["kind"], one["pattern"], one["example"])) for one in traps[:TRAPS_SHOWN]]
    if len(traps) > TRAPS_SHOWN:
        shown.append(f"and {len(traps) - TRAPS_SHOWN:,} more: see --log-format json")
    return _lines(*shown)


def _sitemaps(facts: Facts) -> str:
    counts = facts["sitemaps"]
    words = {outcome.value: outcome.says for outcome in SeedOutcome if outcome is not SeedOutcome.ABSENT}
    words |= {"open": "not read yet", "passed": "skipped (too many)"}
    return ", ".join(f"{counts[code]:,} {says}" for code, says in words.items() if counts.get(code))


def _orphans(facts: Facts) -> str:
    """Listed pages that are only in sitemaps, by sitemap."""
    orphans = facts["orphans"]
    if not orphans:
        return ""
    shown = [f"{counted(sum(orphans.values()), 'listed page')} that no page links to"]
    shown += [f"{count:,} from {name}" for name, count in list(orphans.items())[:SITEMAPS_SHOWN]]
    if len(orphans) > SITEMAPS_SHOWN:
        shown.append(f"and {counted(len(orphans) - SITEMAPS_SHOWN, 'sitemap')} more")
    return _lines(*shown)


def _knowledge(facts: Facts) -> str:
    """How old the knowledge is, after a run that did not visit all pages."""
    known = facts["knowledge"]
    if not known:
        return ""
    words = (
        f"{known['visited']:,} of {counted(known['pages'], 'listed page')} in this run; "
        f"the {ages(known['mean_days'], known['oldest_days'])}"
    )
    return f"{words}; {counted(known['waiting'], 'new URL')} not yet" if known["waiting"] else words


def date_words(facts: Facts) -> str:
    """How many listed pages have a lastmod, from which source, and which sources are not trusted."""
    listed, dated = balance_of(facts).listed, facts["dated"]
    if not listed:
        return "no pages are listed"
    count = sum(dated.values())
    shown = [f"{count:,} of {counted(listed, 'listed page')} with a lastmod ({100 * count // listed}%)"]
    if set(dated) - {"header"}:
        shown += [f"{count:,} from {Source.of(source).says}" for source, count in dated.items()]
    shown += [f"Last-Modified of {site} is not trusted: {why}" for site, why in facts["unreliable"].items()]
    return _lines(*shown, *facts["date_notes"])


def _folder(facts: Facts) -> str:
    return "" if facts["folder"] in {None, STDOUT} else printable(facts["folder"])


def _counts(feature: Feature, facts: Facts) -> str:
    return feature.summary(facts[feature.name]) if facts[feature.name] else ""


def _robots_txt(facts: Facts) -> str:
    return "names the sitemap" if facts["robots_line"] and facts["robots_named"] else ""


def _changes(facts: Facts) -> str:
    """`+12 -3 ~40`: URLs added, removed, and with another date."""
    counts = facts["changes"]
    return " ".join(f"{sign}{counts[name]:,}" for name, sign in CHANGES.items()) if counts else ""


class Line(Struct, frozen=True):
    """A fact about a run: its key in the JSON, and its line in the text."""

    key: str
    default: Any = None  # for commands that do not know it
    label: str = ""  # of its line; empty: none
    words: Callable[[Facts], str] = lambda _: ""  # of its line, which is left out if they are empty
    is_json: bool = True


LINES: Final = (
    Line("site", ""),  # its name or origin
    Line("discovered", 0),
    Line("open", 0),
    Line("balanced", default=True),
    Line("outcomes", {}),
    Line("dated", {}, "dates", date_words),  # listed pages with a lastmod, by its source
    Line("unreliable", {}),  # origins whose Last-Modified is not trusted, and why
    Line("date_notes", ()),
    *(
        Line(feature.name, None, feature.name, partial(_counts, feature))
        for feature in FEATURES
        if feature.has_counts
    ),
    Line("traps", (), "traps", _traps),
    Line("findings", (), "findings", _findings),
    Line("state_words", "", is_json=False),  # name the state to another command; empty if it was not kept
    Line("reports", (), "report", lambda facts: _lines(*facts["reports"], longest=200)),
    Line("submission", None),
    Line(
        "submission_words",
        (),
        "submitted",
        lambda f: _lines(*f["submission_words"], longest=200),
        is_json=False,
    ),
    Line("external", None, "external", lambda facts: printable(external_words(facts["external"]))),
    Line("left_out", {}, "left out", lambda facts: left_words(facts["left_out"])),
    Line("files", (), "files"),
    Line("changes", None, "changes", _changes),  # of the published URLs; None: nothing was compared
    Line("folder", None, "folder", _folder),  # also in a dry run; or `STDOUT`; None: nothing was published
    Line("robots_line"),  # `Sitemap: https://…`
    Line("robots_named", None, "robots.txt", _robots_txt),
    Line("robots_others", ()),
    Line("elapsed"),  # seconds
    Line("fetched", 0),
    Line("examples", {}),  # URLs by outcome
    Line("state", None, "state", lambda facts: printable(facts["state"] or "")),
    Line("unfinished"),  # why the run is not complete
    Line("unpublished", default=False),  # because a limit ended the run
    Line("sitemaps", {}, "sitemaps", _sitemaps),
    Line("orphans", {}, "orphans", _orphans),
    Line("knowledge", None, "visited", _knowledge),  # None: the run visited every page
    Line("unmatched", ()),  # patterns that matched no URL, with their flag
    Line("resume"),  # how to continue an unfinished run
    Line("stalled", default=False),  # no progress since the previous start of this run
    Line("refused"),  # why the guard refused to publish
    Line("notes", ()),  # remarks on the site
    Line("published", default=False),  # by this process
    Line("published_by", ""),
    Line("member", ""),  # HOST:PID of this process
    Line("members", 1),  # that worked on the run
    Line("dry_run", default=False),
    Line("kept", 0),  # failed pages that stay listed
    Line("keeps_many", default=False),
)
"""All facts, in the order of the JSON."""

LABELS: Final = (
    "findings", "visited", "traps", "sitemaps", "orphans", "dates", "images", "files", "changes", "folder",
    "report", "submitted", "external", "left out", "state", "robots.txt",
)  # fmt: skip
"""The lines of the text, in their order."""


def with_defaults(facts: Facts) -> Facts:
    """All facts: those that are given, and the defaults of the others. Raises `KeyError` for others."""
    every = {line.key: line.default for line in LINES}
    if unknown := facts.keys() - every.keys():
        raise KeyError(*unknown)
    return every | dict(facts)


def as_json(facts: Facts) -> Facts:
    """The fields of the log event "done". Texts are unescaped."""
    return {line.key: facts[line.key] for line in LINES if line.is_json}


def balance_of(facts: Facts) -> Balance:
    """The balance of the URLs."""
    return Balance(facts["discovered"], facts["outcomes"], facts["open"])


# -- how it ended -------------------------------------------------------------------------------------------


def print_summary(facts: Facts, chosen: Log, heading: str = "") -> None:
    """Prints the summary in the chosen format. With --quiet only a failure is reported."""
    wrong = problem(facts)
    if facts["stalled"] and chosen.log_format == "text" and not chosen.quiet:
        log.error(stalled_words(facts))
    if chosen.log_format == "json":
        log.log(logging.ERROR if wrong else logging.INFO, "done", **as_json(facts))
    elif chosen.quiet and wrong:
        log.error(wrong)
    elif not chosen.quiet:
        from crawler.cli import progress  # noqa: PLC0415 - loads rich
        from crawler.cli.summary_text import show_summary  # noqa: PLC0415 - as above

        with suppress(OSError):  # a closed terminal does not make the run fail
            show_summary(progress.Screen(), facts, heading)


def problem(facts: Facts) -> str:
    """What went wrong, in one line; empty if nothing did."""
    if facts["refused"]:
        return " ".join([f"Not published: {facts['refused']}", *wall_words(facts)])
    if not facts["unfinished"]:
        kept = [kept_words(facts)] if facts["keeps_many"] else []
        return " ".join([*kept, *wall_words(facts)])
    words = [stalled_words(facts)] if facts["stalled"] else []
    words.append(f"Not finished: {facts['unfinished']}.")
    words += [UNPUBLISHED] if facts["unpublished"] else []
    words += [f"To continue: {facts['resume']}."] if facts["resume"] else []
    return " ".join(words)


def stalled_words(facts: Facts) -> str:
    """The sentence on a run without progress."""
    return (
        "No progress: like the previous run, this crawl ended unfinished, and no further page was received; "
        f"{facts['open']:,} of {facts['discovered']:,} URLs are still open, and nothing new was published."
    )


def kept_words(facts: Facts) -> str:
    """The sentence on failed pages that stay listed."""
    balance = balance_of(facts)
    return (
        f"{balance.kept:,} of {balance.listed:,} listed pages failed and stay in the sitemap for now, with "
        "their old dates, until --keep-failing has passed."
    )


def wall_words(facts: Facts) -> Sequence[str]:
    """The sentence on pages that a firewall answered for, with an example, if there are any."""
    codes = [code for code in ("failed:wall", "kept:wall") if facts["outcomes"].get(code)]
    if not codes:
        return []
    urls = (url for code in codes for url in facts["examples"].get(code, ()))
    example = next((f" ({printable(masked(url), 300)})" for url in urls), "")
    count = sum(facts["outcomes"][code] for code in codes)
    return [
        f"A firewall answered in place of {counted(count, 'page')}{example}: let it allow this user agent, "
        "or send a secret header that it lets pass with -H."
    ]


# -- what next ----------------------------------------------------------------------------------------------


class Hint(Struct, frozen=True):
    """A suggestion, with a command to copy."""

    text: str
    command: str = ""


def hints(facts: Facts) -> Iterator[Hint]:
    """What to do next."""
    yield from _about_publication(facts)
    yield from _about_completeness(facts)
    yield from _about_pages(facts)


def _about_publication(facts: Facts) -> Iterator[Hint]:
    if facts["refused"]:
        yield Hint(printable(facts["refused"], 1_000))
    if facts["stalled"]:
        yield Hint(stalled_words(facts))
    if facts["robots_line"] and facts["robots_named"] is False and facts["robots_others"]:
        other = printable(masked(facts["robots_others"][0]), 300)
        yield Hint(f"robots.txt names {other}, which this crawl does not write.")
    for note in facts["notes"]:
        yield Hint(printable(note, 500))


def _about_completeness(facts: Facts) -> Iterator[Hint]:
    if facts["unfinished"]:
        words = f"The crawl is not complete: {printable(facts['unfinished'], 300)}."
        yield Hint(f"{words} {UNPUBLISHED}" if facts["unpublished"] else words)
    known = facts["knowledge"]
    if known and known["oldest_days"] > known["max_age"] > 0:
        yield Hint(
            f"Some pages were not visited for longer than --max-age: to visit each in time takes "
            f"{known['budget']:,} pages a day."
        )
    if deeper := facts["outcomes"].get("unlisted:depth"):
        yield Hint(
            f"--max-depth limited the crawl: {counted(deeper, 'URL')} are deeper and were not fetched."
        )
    if further := facts["outcomes"].get("unlisted:hosts"):
        yield Hint(f"--max-hosts limited the crawl: {counted(further, 'URL')} are on further hosts.")
    for pattern in facts["unmatched"][:UNMATCHED_SHOWN]:
        yield Hint(f"{printable(pattern, 200)} matched no URL in this crawl.")
    if facts["resume"]:
        yield Hint(f"To continue: {printable(facts['resume'], 500)}")
    if facts["dry_run"] and facts["folder"] is not None:
        yield Hint("Run without --dry-run to publish.")


def _about_pages(facts: Facts) -> Iterator[Hint]:
    balance = balance_of(facts)
    if balance.kept:
        yield Hint(kept_words(facts))
    yield from map(Hint, wall_words(facts))
    failed = sum(count for _, count in of_kind(facts, "failed"))
    if failed and facts["state_words"]:
        yield Hint(f"{counted(failed, 'URL')} failed. To see why, for one of them:", _explain(facts))
    if facts["findings"] and facts["state_words"]:
        command = printable(suggested(f"report {facts['state_words']}"), 1_000)
        yield Hint("To see all findings, with the pages that link to them:", command)
    by_count = sorted(balance.outcomes.items(), key=lambda item: -item[1])
    yield from [Hint(ADVICE[code]) for code, _ in by_count if code in ADVICE][:2]
    if balance.listed and not facts["dated"]:
        yield Hint("No page has a reliable date; a correct Last-Modified header would be used.")


def of_kind(facts: Facts, kind: str) -> list[tuple[str, int]]:
    """The outcomes of a kind (`failed`) with their counts, the most frequent first."""
    codes = [item for item in facts["outcomes"].items() if item[0].partition(":")[0] == kind]
    return sorted(codes, key=lambda item: (-item[1], item[0]))


def _explain(facts: Facts) -> str:
    """The `explain` command for a failed URL, quoted for a shell; "URL" if none can be shown unchanged."""
    urls = (url for code, _ in of_kind(facts, "failed") for url in facts["examples"].get(code, ()))
    plain = next((url for url in urls if printable(masked(url)) == url), "")
    words = facts["state_words"]
    if not words.startswith("--"):  # but a start URL, whose host names the state
        is_default = plain and netloc(Url(words)) == netloc(Url(plain))
        words = "" if is_default else shlex.join(["--state", facts["state"]])
    return suggested(
        " ".join(filter(None, ["explain", printable(words, 1_000), shlex.quote(plain or "URL")]))
    )
