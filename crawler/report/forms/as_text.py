"""A report as plain text: findings, the most severe first. Text from the network is made printable."""

from collections.abc import Callable, Iterator
from typing import Final

from crawler.parse.credentials import masked
from crawler.report.actions import actions
from crawler.report.actions import words as action_words
from crawler.report.catalogue import FILES, GROUPED, NOUNS, Code, Severity
from crawler.report.external import external_json, external_words, left_words
from crawler.report.formatting import ages, counted, minute, said_words, shortened
from crawler.report.printable import printable
from crawler.report.report import Finding, Item, SiteReport, measure
from crawler.report.url_kind import OFF_SITE

LONGEST: Final = 200  # characters of a URL or a detail
SOURCES: Final = 2  # linking pages shown for an item
ACTIONS: Final = 5
MENDED: Final = 10  # URLs of each code
SENTENCE: Final = 2_000  # characters of what the guard said


def text_of(report: SiteReport) -> str:
    """The whole text."""
    return "\n".join(_lines(report)) + "\n"


def _lines(report: SiteReport) -> Iterator[str]:
    known = report.known
    began = minute(known.run.started)
    yield f"{printable(known.name)}/  run {known.run.number}, {began}, {run_status(report)}"
    if known.is_copy:
        yield f"crawled at {printable(known.site)}/"
    yield " · ".join(balance(report))
    yield (f"NOT PUBLISHED: {words} " if (words := refusal(report)) else "") + standing(report)
    yield from filter(None, (partial(report), external(report)))
    yield ""
    if not report.findings:
        yield no_findings(report)
    if firsts := actions(report)[:ACTIONS]:
        yield "First:"
        yield from (f"  {shown(one.text, known.site, 400)}: {action_words(one)}" for one in firsts)
        yield ""
    for finding in report.findings:
        yield f"{finding.code.severity.value:<8} {finding.code.value:<18} {measure(finding)}"
        yield from (f"  {line}" for line in _items(finding, known.site))
        if finding.more and finding.items:
            yield f"  and {finding.more:,} more"
    yield from (f"mended   {code.value:<18} {words}" for code, words in mended(report))
    if not known.run.complete:
        yield ""
        yield UNFINISHED


def mended(report: SiteReport, quoted: Callable[[str], str] = str) -> Iterator[tuple[Code, str]]:
    """What was mended since the run before: `3 URLs: /a, /b, /c`. `quoted` marks text of the site."""
    for code, some in sorted(report.changes.mended.items(), key=lambda one: list(Code).index(one[0])):
        names = ", ".join(quoted(shown(change.url, report.known.site)) for change in some.items[:MENDED])
        rest = f", and {some.count - MENDED:,} more" if some.count > MENDED else ""
        yield code, f"{counted(some.count, NOUNS.get(code, 'URL'))}: {names}{rest}"


UNFINISHED: Final = (
    "The run is not complete: these are the findings so far. Those that need a complete run (orphans, stale "
    "sitemaps, duplicates, missing dates, what is no longer listed) are left out."
)


def run_status(report: SiteReport) -> str:
    """The status of the run."""
    run = report.known.run
    if run.refused:
        return "complete, not published"
    return "complete" if run.complete else "not complete"


def refusal(report: SiteReport) -> str:
    """Why the guard did not publish the run; empty if it did."""
    return printable(masked(report.known.run.refused or ""), SENTENCE)


def standing(report: SiteReport) -> str:
    """What stands published."""
    published = report.known.published
    if published is None or published.publication is None:
        return "Nothing is published."
    urls = counted(published.publication.urls, "URL")
    if published.number == report.known.run.number:
        return f"Published: {urls}."
    return f"Published is the sitemap of run {published.number}, {minute(published.started)}: {urls}."


def partial(report: SiteReport) -> str:
    """How many pages the run visited, and when others were, if a limit ended it before the last one."""
    known = report.known.partial
    if known is None:
        return ""
    visited = f"{known.visited:,} of {counted(known.pages, 'listed page')}"
    new = f", and {counted(known.waiting, 'new URL')} not visited yet" if known.waiting else ""
    others = f"the others are as earlier runs found them{new}. The {ages(known.mean_days, known.oldest_days)}"
    return f"A limit ended this run after {visited}: {others}."


def no_findings(report: SiteReport) -> str:
    """What is said in place of findings. Of a run that is not published, nothing is said to be well."""
    if report.known.run.refused:
        return "No page has a finding: what is wrong is why the run was not published."
    return "Nothing was found." if report.known.run.complete else "Nothing was found so far."


def balance(report: SiteReport) -> list[str]:
    """Counts of URLs, and what changed in the sitemap."""
    counts, changes = report.known.balance, report.changes
    sums = {"listed": counts.listed}
    sums |= {kind: report.known.run.counted(kind) or 0 for kind in ("unlisted", "moved", "failed")}
    sums["unlisted"] -= report.elsewhere
    offsite = counts.outcomes.get(OFF_SITE, 0)
    sums |= {"on other sites": offsite, "more by nofollow": report.elsewhere - offsite, "open": counts.open}
    words = [f"{count:,} {kind}" for kind, count in sums.items() if count or kind == "listed"]
    if changes.since is not None:
        words.append(f"sitemap {difference(report)}")
    return [*words, *_news(report)]


def _news(report: SiteReport) -> Iterator[str]:
    """`17 errors and 3 infos new`, `1 error mended`."""
    every = {severity.value: report.counts(severity) for severity in Severity}
    if new := [counted(counts.new, severity) for severity, counts in every.items() if counts.new]:
        yield f"{' and '.join(new)} new"
    if gone := [counted(counts.mended, severity) for severity, counts in every.items() if counts.mended]:
        yield f"{' and '.join(gone)} mended"


def external(report: SiteReport) -> str:
    """What is known of the links to other sites, and what was not asked; empty if they were not checked."""
    known = report.known
    words = (external_words(external_json(known.check, known.external)), left_words(known.left_out))
    return "; ".join(filter(None, words))


def difference(report: SiteReport) -> str:
    """`+3 -1 ~20`: what was added to the sitemap, removed, changed; without what is not known so far."""
    changes = report.changes
    if report.known.run.refused or not changes.added.count + changes.removed.count + changes.dated.count:
        return "unchanged"
    parts = [f"+{changes.added.count:,}"]
    if report.known.run.complete:
        parts += [f"-{changes.removed.count:,}", f"~{changes.dated.count:,}"]
    return " ".join(parts)


def _items(finding: Finding, site: str) -> Iterator[str]:
    for item in finding.items:
        url = shown(item.url, site)
        if finding.code is Code.REDIRECT_CHAIN:
            yield f"{url} → {shown(item.detail, site)}"
            continue
        words = [str(item.status) if item.status else "  -", url]
        words += ["new"] if item.new else []
        words += [detail(finding.code, item, site)] if item.detail else []
        words += [linked(item, site, finding.code)] if item.sources or item.links else []
        yield "  ".join(words)


def detail(code: Code, item: Item, site: str) -> str:
    """The detail of an item; a line for robots.txt is to be copied, so its URL stays whole."""
    words = shown(item.detail, "" if code is Code.ROBOTS_LINE else site)
    return f"→ {words}" if code in {Code.REDIRECT_LINKED, Code.REDIRECT_CHAIN} else words


def linked(item: Item, site: str, code: Code, quoted: Callable[[str], str] = str) -> str:
    """Where the URL was found: `linked from 5 pages: /a, /b, and 3 more`. `quoted` marks text of the site."""
    names = quoted(", ".join(_source(item, source, site) for source in item.sources[:SOURCES]))
    if code in GROUPED:
        rest = item.size - 1 - min(SOURCES, len(item.sources))
        return f"the same: {names}" + (f", and {rest:,} more" if rest > 0 else "")
    if item.site_wide:
        words = said_words(item.text, item.place)
        return site_wide(item, code) + (f": {quoted(printable(words))}" if words else "")
    if not item.links:
        return f"named by {names}"
    rest = item.links - min(SOURCES, len(item.sources))
    return f"{_by(code)} {counted(item.links, 'page')}: {names}" + (
        f", and {rest:,} more" if rest > 0 else ""
    )


def _source(item: Item, source: str, site: str) -> str:
    """A page that links to it, with what the link says."""
    words = said_words(*item.said[source]) if source in item.said else ""
    return shown(source, site) + (f" ({printable(words)})" if words else "")


def _by(code: Code) -> str:
    return "on" if code in FILES else "linked from"


def site_wide(item: Item, code: Code) -> str:
    """The note for a link that is on nearly every page."""
    return f"{_by(code)} {counted(item.links, 'page')}, nearly all: the template"


def shown(text: str, site: str, longest: int = LONGEST) -> str:
    """A URL or a detail, short and printable."""
    return printable(shortened(masked(text), site), longest)
