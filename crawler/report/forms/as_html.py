"""A report as one HTML file: no network, readable without scripts, printable, under 2 MB for any site.

Everything from the network is escaped by Jinja2, control characters and bidi marks are made visible, and only
http(s) URLs become links. A Content-Security-Policy in the file allows only its own style and script, by
hash. Template, style and script are files beside this module; Jinja2 is imported only when a report is
written.
"""

import hashlib
import re
from base64 import b64encode
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Any, Final

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup, escape

from crawler.model.rows import RunRow
from crawler.parse.credentials import masked
from crawler.parse.late import late
from crawler.report.actions import actions
from crawler.report.actions import words as action_words
from crawler.report.advice import ADVICE
from crawler.report.catalogue import FILES, GROUPED, NOUNS, Code, Severity
from crawler.report.formatting import (
    counted,
    duration,
    minute,
    outcome_words,
    readable,
    said_words,
    short,
    shortened,
    size,
)
from crawler.report.forms import svg
from crawler.report.forms.as_text import UNFINISHED, difference, external, no_findings, partial
from crawler.report.overview import ELSEWHERE, Folder
from crawler.report.printable import printable
from crawler.report.report import SiteReport, measure

LARGEST: Final = 2_000_000  # bytes of the file
FEWER: Final = (100, 40, 15, 5, 1)  # rows per table, tried in turn until the file is small enough
SHOWN: Final = 120  # characters of a URL or a detail
SENTENCE: Final = 2_000  # characters of what the guard said
TITLE: Final = 400  # characters of a tooltip
_WEB: Final = re.compile(r"https?://(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?(?=[/?]|$)")
# What RFC 3986 does not allow after the host, and browsers accept.
_UNSPELLED: Final = re.compile(r"%(?![0-9A-Fa-f]{2})|[^!#$%&'()*+,./0-9:;=?@A-Z_a-z~-]")
_OPTION: Final = late(r"(?<![^\s(])--[a-z][a-z-]{1,30}")
LONGEST_LINK: Final = 2_100  # characters; a longer URL is not made a link
RUNS: Final = 30  # most runs to show
TREND: Final = 5  # runs in the head
KINDS: Final = (
    ("listed", "Listed"),
    ("kept", "Kept"),
    ("unlisted", "Not listed"),
    ("moved", "Moved"),
    ("failed", "Failed"),
)


def text_of(report: SiteReport) -> str:
    """The whole file, with fewer rows if it would be too large."""
    page = _environment(report.known.site).from_string(_file("page.html.j2"))
    text = ""
    for most in FEWER:
        text = page.render(_context(report), most=most)
        if len(text.encode()) <= LARGEST:
            break
    return text


def policy() -> str:
    """The Content-Security-Policy of the file."""
    style, script = _hash(_file("style.css")), _hash(_file("filter.js"))
    return (
        f"default-src 'none'; style-src '{style}'; script-src '{script}'; img-src data:; base-uri 'none'; "
        "form-action 'none'"
    )


def _file(name: str) -> str:
    return files("crawler.report.forms").joinpath("html", name).read_text("utf-8")


def _hash(text: str) -> str:
    return f"sha256-{b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _environment(site: str) -> Environment:
    env = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)

    def path(url: str) -> str:
        return printable(readable(short(masked(url), site)), SHOWN)

    def href(url: str) -> str:
        """The target of a link; empty if the URL must not be a link."""
        web = _WEB.match(url) if url.isascii() and url.isprintable() else None
        if web is None or len(url) > LONGEST_LINK or masked(url) != url:
            return ""
        home = web[0]
        return home + _UNSPELLED.sub(lambda found: f"%{ord(found[0]):02X}", url[len(home) :])

    env.filters |= {
        "path": path,
        "href": href,
        "full": lambda url: printable(masked(url), TITLE),
        "readable": lambda text: printable(readable(masked(text)), TITLE),
        "text": lambda text: printable(readable(shortened(masked(str(text)), site)), SHOWN),
        "words": lambda text: printable(readable(shortened(masked(text), site)), TITLE),
        "sentence": lambda text: printable(masked(text), SENTENCE),
        "options": _unbroken,
        "said": lambda said: said_words(*said),
        "number": lambda value: "-" if value is None else f"{value:,}",
        "counted": counted,
        "size": size,
        "duration": duration,
        "minute": minute,
        "says": outcome_words,
        "ms": lambda value: f"{value:,} ms",
    }
    return env


def _unbroken(text: str) -> Markup:
    """The text, with options that lines do not break."""
    marked = _OPTION.sub(r'<span class="option">\g<0></span>', str(escape(text)))
    return Markup(marked)  # noqa: S704 - escaped before


def _context(report: SiteReport) -> Mapping[str, Any]:
    known, by_code = report.known, {finding.code.value: finding for finding in report.findings}
    mended = [(code, report.changes.mended[code]) for code in Code if code in report.changes.mended]
    return {
        "report": report,
        "known": known,
        "run": known.run,
        "findings": by_code,
        "actions": actions(report),
        "action_words": action_words,
        "advice": ADVICE,
        "tallies": [
            ("Errors", "bad", report.counts(Severity.ERROR)),
            ("Warnings", "warn", report.counts(Severity.WARNING)),
        ],
        "mended": mended,
        "published": known.published,
        "state": _state(known.run),
        "balance": _balance(report),
        "trend": _trend(known.runs),
        "ranges": _ranges(known.runs),
        "measure": measure,
        "grouped": {code.value for code in GROUPED},
        "files": {code.value for code in FILES},
        "nouns": NOUNS,
        "difference": difference(report) if report.changes.since is not None else None,
        "outcomes": _outcomes(known.balance.outcomes),
        "failed": known.run.counted("failed"),
        "charts": _charts(report),
        "external": external(report),
        "unfinished": UNFINISHED,
        "partial": partial(report),
        "nothing": no_findings(report),
        "policy": Markup(policy()),  # noqa: S704 - our own words, with quotes
        "style": Markup(_file("style.css")),  # noqa: S704 - our own file
        "script": Markup(_file("filter.js")),  # noqa: S704 - our own file
        "runs": list(known.runs)[-RUNS:],
        "sections": _SECTIONS,
    }


_SECTIONS: Final = (
    ("broken", "Broken links", (
        "broken-link", "server-error", "unreachable", "redirect-loop", "client-error", "restricted",
    )),
    ("external", "Links to other sites", ("broken-external",)),
    ("redirects", "Redirects", ("redirect-chain", "redirect-linked")),
    ("canonical", "Canonical and noindex", (
        "canonical-broken", "canonical-chain", "canonical-conflict", "noindex-canonical", "noindex-for-bot",
        "noindex-linked",
    )),
    ("stale", "Old sitemaps", ("sitemap-stale",)),
    ("orphans", "Orphans", ("orphan", "vanished")),
    ("duplicates", "Duplicate content and titles", ("duplicate-content", "duplicate-title")),
    ("languages", "Language versions", (
        "hreflang-no-return", "hreflang-code", "hreflang-target", "hreflang-conflict", "hreflang-no-self",
    )),
    ("images", "Images, scripts and style sheets", (
        "broken-image", "images-cut", "broken-script", "broken-style", "blocked-file",
    )),
    ("robots", "robots.txt", ("robots-line", "robots-linked")),
    ("traps", "Crawler traps", ("trap",)),
    ("scripts", "Pages made by scripts", ("not-rendered", "needs-scripts", "hash-routes")),
    ("dates", "Dates", ("lastmod-lies", "no-lastmod", "lastmod-uniform")),
)  # fmt: skip


def _outcomes(outcomes: Mapping[str, int]) -> Sequence[tuple[str, Sequence[tuple[str, int]]]]:
    """Outcomes by kind, the most frequent first."""
    every = sorted(outcomes.items(), key=lambda item: (-item[1], item[0]))
    return [
        (words, rows)
        for kind, words in KINDS
        if (rows := [(code, count) for code, count in every if code.partition(":")[0] == kind])
    ]


def _charts(report: SiteReport) -> Mapping[str, Markup]:
    """The charts for which there is data. Their labels are escaped in `svg`."""
    folders = _folders(report.folders)
    charts = {
        "balance": svg.stacked(_balance(report), "Every URL of the site by outcome"),
        "folders": svg.treemap(folders, "Folders by the number of known URLs", css="wide-only"),
        "folders_phone": svg.treemap(
            folders[:12],
            "The largest folders by the number of known URLs",
            svg.Box(0, 0, 360, 300),
            "phone-only",
        ),
    }
    for name, values in _lines(report.known.runs).items():
        known = [value for value in values if value is not None]
        if len(known) > 1 and min(known) < max(known):  # words say it better otherwise
            charts[name] = svg.line(values, f"{name} over the last {len(values)} runs")
    return {name: Markup(chart) for name, chart in charts.items()}  # noqa: S704 - escaped where it is made


def _lines(runs: Sequence[RunRow]) -> Mapping[str, Sequence[float | None]]:
    """What is shown over the last runs."""
    last = list(runs)[-RUNS:]
    return {
        "listed": [run.listed for run in last],
        "failed": [run.counted("failed") for run in last],
        "seconds": [None if run.seconds is None else round(run.seconds) for run in last],
    }


def _ranges(runs: Sequence[RunRow]) -> Mapping[str, str]:
    """The same in words, for small screens and readers of text."""
    words: dict[str, str] = {}
    for name, values in _lines(runs).items():
        known = [value for value in values if value is not None]
        if len(known) > 1:
            least, most = min(known), max(known)
            span = (
                f"{least:,} in each of" if least == most else f"{known[-1]:,} now, {least:,} to {most:,} in"
            )
            words[name] = f"{span} the last {len(known)} runs"
    return words


def _trend(runs: Sequence[RunRow]) -> str:
    """How many URLs the last runs listed and how many failed, the newest last."""
    last = [run for run in runs if run.outcomes is not None and run.complete][-TREND:]
    if len(last) < 2:
        return ""
    listed = " → ".join(f"{run.counted('listed') or 0:,}" for run in last)
    failed = " → ".join(f"{run.counted('failed') or 0:,}" for run in last)
    return f"The last {len(last)} runs: listed {listed}; failed {failed}."


def _state(run: RunRow) -> str:
    """Whether the run is what stands published."""
    if run.publication:
        return "published"
    return "not published" if run.complete else "not complete"


def _balance(report: SiteReport) -> list[svg.ChartPart]:
    balance = report.known.balance
    counts = {kind: report.known.run.counted(kind) or 0 for kind, _ in KINDS}
    counts["unlisted"] -= report.elsewhere
    parts = [svg.ChartPart(words, counts[kind], f"k-{kind}") for kind, words in KINDS]
    return [part for part in (*parts, svg.ChartPart("Open", balance.open, "k-open")) if part.value]


def _folders(folders: Sequence[Folder]) -> list[svg.ChartPart]:
    return [_folder(folder) for folder in folders if folder.name != ELSEWHERE]


def _folder(folder: Folder) -> svg.ChartPart:
    name = masked(folder.name)
    note = f"{printable(name, SHOWN)}: {counted(folder.urls, 'URL')}, {folder.failed:,} failed"
    return svg.ChartPart(printable(name, 40), folder.urls, f"t{_shade(folder)}", note)


def _shade(folder: Folder) -> int:
    """The shade of a folder by its share of failures. 0: none; 1: up to 5 %; 2: up to 25 %; 3: more."""
    share = folder.failed / folder.urls
    return 0 if not share else 1 if share <= 0.05 else 2 if share <= 0.25 else 3
