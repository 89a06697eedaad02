"""A report as one HTML file: no network, readable without scripts, printable, under 2 MB for any site.

Everything from the network is escaped by Jinja2, control characters and bidi marks are made visible, and only
http(s) URLs become links. A Content-Security-Policy in the file allows only its own style and script, by
hash. Template, style and script are files beside this module; Jinja2 is imported only when a report is
written.
"""

import hashlib
from base64 import b64encode
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Any, Final

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from crawler.parse.credentials import masked
from crawler.report.catalogue import GROUPED, Code
from crawler.report.formatting import counted, duration, minute, outcome_words, short, shortened, size
from crawler.report.forms import svg
from crawler.report.forms.as_text import UNFINISHED, difference, external, measure, no_findings
from crawler.report.overview import ELSEWHERE, Folder
from crawler.report.printable import printable
from crawler.report.report import SiteReport
from crawler.report.url_kind import OFF_SITE

LARGEST: Final = 2_000_000  # bytes of the file
FEWER: Final = (100, 40, 15, 5, 1)  # rows per table, tried in turn until the file is small enough
SHOWN: Final = 120  # characters of a URL or a detail
SENTENCE: Final = 2_000  # characters of what the guard said
TITLE: Final = 400  # characters of a tooltip
LONGEST_LINK: Final = 2_100  # characters; a longer URL is not made a link
DOCS: Final = "https://github.com/sitemap-crawler/sitemap-crawler/blob/main/docs/use/report.md"
RUNS: Final = 30  # most runs to show
KINDS: Final = (
    ("listed", "Listed"),
    ("kept", "Kept"),
    ("unlisted", "Not listed"),
    ("moved", "Moved"),
    ("failed", "Failed"),
)


def rendered(report: SiteReport) -> str:
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
        return printable(short(masked(url), site), SHOWN)

    def href(url: str) -> str:
        """The target of a link; empty if the URL must not be a link."""
        is_web = url.startswith(("http://", "https://")) and url.isascii() and url.isprintable()
        return url if is_web and len(url) <= LONGEST_LINK and masked(url) == url else ""

    env.filters |= {
        "path": path,
        "href": href,
        "full": lambda url: printable(masked(url), TITLE),
        "text": lambda text: printable(shortened(masked(str(text)), site), SHOWN),
        "sentence": lambda text: printable(masked(text), SENTENCE),
        "number": lambda value: "-" if value is None else f"{value:,}",
        "counted": counted,
        "size": size,
        "duration": duration,
        "minute": minute,
        "says": outcome_words,
        "ms": lambda value: f"{value:,} ms",
    }
    return env


def _context(report: SiteReport) -> Mapping[str, Any]:
    known, by_code = report.known, {finding.code.value: finding for finding in report.findings}
    return {
        "report": report,
        "known": known,
        "run": known.run,
        "findings": by_code,
        "measure": measure,
        "grouped": {code.value for code in GROUPED},
        "difference": difference(report) if report.changes.since is not None else None,
        "outcomes": _outcomes(known.balance.outcomes),
        "failed": known.run.counted("failed"),
        "charts": _charts(report),
        "external": external(report),
        "unfinished": UNFINISHED,
        "nothing": no_findings(report),
        "docs": DOCS,
        "policy": Markup(policy()),  # noqa: S704 - our own words, with quotes
        "style": Markup(_file("style.css")),  # noqa: S704 - our own file
        "script": Markup(_file("filter.js")),  # noqa: S704 - our own file
        "runs": list(known.runs)[-RUNS:],
        "sections": _SECTIONS,
        "codes": {code.value: code for code in Code},
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
    ("images", "Images", ("images-cut",)),
    ("robots", "robots.txt", ("robots-line", "robots-linked")),
    ("traps", "Crawler traps", ("trap",)),
    ("scripts", "Pages made by scripts", ("needs-scripts", "hash-routes")),
    ("dates", "Dates", ("lastmod-lies", "no-lastmod")),
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
    runs = list(report.known.runs)[-RUNS:]
    lines: dict[str, list[float | None]] = {
        "listed": [run.listed for run in runs],
        "failed": [run.counted("failed") for run in runs],
        "seconds": [run.seconds for run in runs],
    }
    charts = {
        "balance": svg.stacked(_balance(report), "Every URL of the site by outcome"),
        "folders": svg.treemap(_folders(report.folders), "Folders by the number of known URLs"),
    }
    for name, values in lines.items():
        if sum(value is not None for value in values) > 1:
            charts[name] = svg.line(values, f"{name} over the last {len(runs)} runs")
    return {name: Markup(chart) for name, chart in charts.items()}  # noqa: S704 - escaped where it is made


def _balance(report: SiteReport) -> list[svg.ChartPart]:
    balance = report.known.balance
    counts = {kind: report.known.run.counted(kind) or 0 for kind, _ in KINDS}
    counts["unlisted"] -= balance.outcomes.get(OFF_SITE, 0)
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
