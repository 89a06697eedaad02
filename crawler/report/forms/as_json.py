"""A report as JSON: the object that docs/use/report.schema.json describes.

Texts are unchanged and escaped by the writer; unknown values are null, never missing. Keys may be added; any
other change of the format increases `SCHEMA`.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from crawler.model.rows import HostRow, RunRow
from crawler.parse.credentials import masked
from crawler.report.actions import Action, actions
from crawler.report.advice import ADVICE
from crawler.report.catalogue import Code, Severity
from crawler.report.changes import UrlChange
from crawler.report.external import external_json
from crawler.report.formatting import iso
from crawler.report.overview import Extremes
from crawler.report.report import Finding, Item, Known, SiteReport

SCHEMA: Final = 2
PAGES: Final = 50  # in `by_page`
UNPUBLISHED: Final = {"bytes": None, "files": None}


def text_of(report: SiteReport) -> str:
    """The text of the file: ASCII, with credentials in URLs masked."""
    return json.dumps(masked_json(report), indent=1) + "\n"


def masked_json(report: SiteReport) -> dict[str, Any]:
    """The report as plain values, with credentials in URLs masked."""
    masked_values: dict[str, Any] = _masked(as_json(report))
    return masked_values


def as_json(report: SiteReport) -> dict[str, Any]:
    """The report as plain values."""
    known = report.known
    return {
        "schema": SCHEMA,
        "program": known.program,
        "site": f"{known.site}/",
        "published_as": f"{known.name}/",
        "run": _run(known.run) | {"partial": known.partial is not None},
        "balance": {**_fields(known.balance, "discovered", "open"), "outcomes": dict(known.balance.outcomes)},
        "published": _published(known),
        "sitemap": _sitemap(report),
        "refused": known.run.refused,
        "counts": _counts(report),
        "actions": [_action(one) for one in actions(report)],
        "mended": [
            {"code": code.value, "count": sample.count, "items": [change.url for change in sample.items]}
            for code in Code
            if (sample := report.changes.mended.get(code))
        ],
        "findings": [_finding(finding) for finding in report.findings],
        "external": external_json(known.check, known.external),
        "left_out": {
            kind: {"count": count, "because": because} for kind, (count, because) in known.left_out.items()
        },
        "changes": _changes(report),
        **_statistics(report),
        "traps": [_fields(trap, "kind", "pattern", "example") for trap in known.traps],
        "robots": _robots(report),
        "runs": [
            _run(run)
            | _fields(run, "listed")
            | {"failed": run.counted("failed"), "discovered": run.discovered}
            for run in known.runs
        ],
        "hosts": [_host(host) for host in known.hosts],
        "settings": dict(known.settings),
    }


def _statistics(report: SiteReport) -> dict[str, Any]:
    return {
        "lastmod": {kind: dict(counts) for kind, counts in report.lastmod.items()},
        "clicks": [{"clicks": clicks, "urls": urls} for clicks, urls in report.clicks.items()],
        "unreachable": report.unreachable,
        "folders": [folder._asdict() for folder in report.folders],
        "statuses": [{"status": status, "urls": urls} for status, urls in report.statuses.items()],
        "slowest": _extremes(report.slowest),
        "largest": _extremes(report.largest),
    }


def _fields(value: object, *names: str) -> dict[str, Any]:
    return {name: getattr(value, name) for name in names}


def _run(run: RunRow) -> dict[str, Any]:
    return {
        "number": run.number,
        "started": iso(run.started),
        "ended": iso(run.ended),
        **_fields(run, "complete", "exit", "seconds", "requests", "bytes"),
    }


def _counts(report: SiteReport) -> dict[str, int]:
    by_severity = {severity: report.counts(severity) for severity in Severity}
    return {
        **{f"{severity.value}s": counts.total for severity, counts in by_severity.items()},
        "new": sum(counts.new for counts in by_severity.values()),
        "mended": sum(counts.mended for counts in by_severity.values()),
    }


def _published(known: Known) -> dict[str, Any] | None:
    """What stands published now; None if nothing ever was."""
    run = known.published
    if run is None or run.publication is None:
        return None
    return {
        "urls": run.publication.urls,
        "at": iso(run.ended or run.started),
        "run": run.number,
        "path": run.publication.folder or None,
    }


def _action(action: Action) -> dict[str, Any]:
    return {
        **_fields(action, "text", "page", "target", "place", "link", "mends", "of"),
        "codes": [code.value for code in action.codes],
    }


def _sitemap(report: SiteReport) -> dict[str, Any]:
    run, changes = report.known.run, report.changes
    published, is_compared = run.publication, changes.since is not None
    differences: dict[str, Any] = {
        "added": changes.added.count if is_compared else None,
        "removed": changes.removed.count if is_compared and run.complete else None,
        "changed": changes.dated.count if is_compared and run.complete else None,
    }
    if published and not is_compared:  # the first: compared with the files that were there
        differences = _fields(published, *differences)
    return {
        "published": published is not None,
        "urls": report.known.balance.listed,
        **(_fields(published, "bytes", "files") if published else UNPUBLISHED),
        **differences,
    }


def _finding(finding: Finding) -> dict[str, Any]:
    return {
        "code": finding.code.value,
        "severity": finding.code.severity.value,
        **_fields(finding, "count", "new", "links", "pages", "says"),
        "advice": ADVICE[finding.code],
        "by_page": [{"page": page, "items": items} for page, items in finding.by_page[:PAGES]],
        "items": [_item(item) for item in finding.items],
        "more": finding.more,
    }


def _item(item: Item) -> dict[str, Any]:
    return {
        **_fields(item, "url", "status", "detail", "links"),
        "from": list(item.sources),
        **_fields(item, "new", "site_wide", "size"),
        "place": item.place or None,
        "text": item.text or None,
        "on": [
            {"page": page, "text": said.text or None, "place": said.place or None}
            for page, said in item.said.items()
        ],
    }


def _changes(report: SiteReport) -> dict[str, Any] | None:
    changes = report.changes
    if changes.since is None:
        return None

    def some(items: Sequence[UrlChange]) -> list[dict[str, str]]:
        return [{"url": change.url, "why": change.why} for change in items]

    return {
        "since": changes.since,
        "added": some(changes.added.items),
        "removed": some(changes.removed.items) if report.known.run.complete else None,
        "dated": some(changes.dated.items) if report.known.run.complete else None,
    }


def _host(host: HostRow) -> dict[str, Any]:
    return {**_fields(host, "origin", "urls"), "gap": host.delay, **_fields(host, "robots", "detail")}


def _extremes(found: Extremes | None) -> dict[str, Any] | None:
    if found is None:
        return None
    return {"median": found.median, "p95": found.p95, "items": [item._asdict() for item in found.items]}


def _robots(report: SiteReport) -> dict[str, Any]:
    known = report.known
    return {
        "line": known.robots_line,
        "names_sitemap": known.robots_names,
        "names_others": list(known.robots_others),
        "rules": [{"rule": rule.line, **_fields(rule, "urls", "links", "example")} for rule in report.rules],
    }


def _masked(value: Any) -> Any:
    match value:
        case str():
            return masked(value)
        case Mapping():
            return {key: _masked(item) for key, item in value.items()}
        case list():
            return [_masked(item) for item in value]
    return value
