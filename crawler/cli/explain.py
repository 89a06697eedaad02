"""`explain`: what the state knows about one URL, and why it has its outcome.

Output goes to stdout as plain lines or one JSON object; text from the network is made printable first.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import click

from crawler.app.history import output_of, published_as
from crawler.app.images import images_of_page
from crawler.app.starts import normaliser, product_token, start_url
from crawler.app.state import open_frontier
from crawler.app.versions import cluster_of
from crawler.cli.answers import show_lines, wants_json
from crawler.cli.phrases import pending, stamp
from crawler.cli.states import with_state
from crawler.engine.robots import origin_rules
from crawler.errors import Exit
from crawler.model import external, rendering
from crawler.model.external import ExternalRow
from crawler.model.note import SETTINGS
from crawler.model.outcome import Failed, Kept, Moved, code, says
from crawler.model.protocol import MAX_IMAGES
from crawler.model.rendering import Rendering
from crawler.model.run import Run
from crawler.model.url_record import UrlRecord
from crawler.parse import url as urls
from crawler.parse.url import Url
from crawler.ports import Hosts, Record, Runs
from crawler.report.formatting import counted
from crawler.report.printable import printable
from crawler.rules.images import PERCENT, Shown
from crawler.rules.page_rules import PageRules
from crawler.settings.object_url import is_object_url
from crawler.settings.page_rules import PAGE_RULES, PageRule
from crawler.settings.sections import Settings
from crawler.sitemap.publish.manifest import place_of

IMAGES: Final = 10  # shown with the same fate


async def show_url(settings: Settings, text: str) -> Exit:
    """Prints all that the state knows about one URL. Exit 8 if it does not know the URL."""
    url = start_url(text, normaliser(settings))
    settings = with_state(settings, url, is_start=False)
    frontier = open_frontier(settings, url, read_only=True)
    try:
        base = await published_as(frontier, settings)
        there = base.crawled(url, exactly=True) if base else url
        record = await frontier.record(there) or await frontier.record(url)
        url = record.visit.url if record else there
        path = await _link_path(frontier, record) if record else []
        hops = await _hops(frontier, record) if record else []
        newest = await frontier.run()
        linked = await frontier.count_linking(url)
        answer = await frontier.external(url)
        robots = await _robots_line(settings, frontier, url)
        versions = await cluster_of(frontier, url)
        images = await images_of_page(frontier, url)
        rule = PageRules(await _rules(frontier, settings)).of(url)
        output = await output_of(frontier, settings)
    finally:
        await frontier.close()
    published = base.published(url) if base else url
    place = None if is_object_url(output) else place_of(published, Path(output))
    unknown = pending(record, newest) if newest else ""
    is_gone = bool(record and newest and newest.complete and record.run < newest.number)
    if wants_json(settings):
        facts = (
            _facts(record, path, robots) | {"linked_from": linked} | {"hops": [asdict(hop) for hop in hops]}
        )
        facts |= {"newest_run": newest.number, "newest_complete": newest.complete} if newest else {}
        facts |= {"published": published} if published != url else {}
        facts |= {"rule": asdict(rule)} if rule else {}
        facts |= {"external": answer._asdict() | {"says": external.says(answer.code)}} if answer else {}
        facts |= {"hreflang": [member._asdict() for member in versions.members]} if versions else {}
        facts |= {"images": images._asdict()} if images else {}
        facts |= {"file": place[0] if place else None, "position": place[1] if place else None}
        click.echo(json.dumps({"url": url, "known": record is not None, "gone": is_gone, **facts}))
    else:
        click.echo(printable(url, 2_100))
        show_lines(_about(text, url, record, path, robots, is_gone=is_gone))
        if record:
            so_far = "" if newest and newest.complete else " so far"
            show_lines([("linked", f"from {counted(linked, 'page')}{so_far}; depth {record.visit.depth}")])
        show_lines(("hop", str(hop)) for hop in hops)
        show_lines(_external(answer) if answer else [])
        show_lines([("rule", str(rule))] if rule else [])
        show_lines(
            ("hreflang", f"{member.code} {member.url}: {member.verdict}")
            for member in (versions.members if versions else ())
        )
        show_lines(_images(images) if images else [])
        if published != url:
            show_lines([("published", f"as {published}")])
        show_lines([("file", _file(place, output))])
        if unknown:
            show_lines([("not yet", unknown)])
        elif record and newest:
            show_lines([("changed", _change(record, newest))])
    return Exit.OK if record else Exit.FINDINGS


def _file(place: tuple[str, int] | None, output: str) -> str:
    if place:
        return f"{place[0]}, entry {place[1]:,}"
    return f"not read: the sitemap is in {output}" if is_object_url(output) else "not in any published file"


def _external(answer: ExternalRow) -> list[tuple[str, str]]:
    """What the host of a URL on another site answered (`--check-external`)."""
    status = f", status {answer.status}" if answer.status else ""
    lines = [("external", f"{answer.code}: {external.says(answer.code)}{status}")]
    lines += [("answer", answer.detail)] if answer.detail else []
    before = f"; {answer.was} before" if answer.was and answer.was != answer.code else ""
    return [*lines, ("checked", f"{stamp(answer.checked)}{before}")]


@dataclass(frozen=True, slots=True)
class _Hop:
    """One URL in a chain of redirects."""

    url: str
    status: int | None
    outcome: str
    at: str | None

    def __str__(self) -> str:
        return f"{self.at or 'not yet'}  {self.status or '-'}  {self.url}  {self.outcome}"


async def _hops(pages: Record, record: UrlRecord) -> list[_Hop]:
    """The URL, and each target of its redirects."""
    hops: list[_Hop] = []
    following: UrlRecord | None = record
    while following and following.visit.url not in {hop.url for hop in hops}:
        outcome = following.outcome if following.state == "settled" else None
        at = stamp(following.settled) if outcome and following.settled else None
        status = following.facts.status if outcome and following.facts else None
        hops.append(_Hop(following.visit.url, status, code(outcome) if outcome else following.state, at))
        following = await pages.record(outcome.to) if isinstance(outcome, Moved) else None
    return hops


def _change(record: UrlRecord, newest: Run) -> str:
    """How the URL differs from the previous run."""
    if record.run < newest.number:
        return f"no longer found: run {record.run} was the last to find it, this is run {newest.number}"
    if record.was is None:
        return "found for the first time"
    now = code(record.outcome) if record.outcome else record.state
    dated = record.facts.lastmod.at if record.facts and record.facts.lastmod else None
    before = f"{record.was} before" if record.was != now else ""
    date = (
        f"lastmod was {record.was_lastmod.isoformat() if record.was_lastmod else 'absent'}"
        if dated != record.was_lastmod
        else ""
    )
    return ", ".join(filter(None, [before, date])) or "nothing since the previous run"


async def _link_path(pages: Record, record: UrlRecord) -> list[Url]:
    """The chain of pages from the start to this URL, each the first that linked to the next."""
    path = [record.visit.url]
    while record.visit.via and not record.seed and record.visit.via not in path and len(path) < 100:
        path.append(record.visit.via)
        above = await pages.record(record.visit.via)
        if above is None:
            break
        record = above
    return path[::-1]


async def _robots_line(settings: Settings, hosts: Hosts, url: Url) -> str:
    site = urls.origin(url)
    file = await hosts.robots(site)
    if file is None:
        return ""
    permit = origin_rules(file, product_token(settings.http.user_agent), site).permit(url)
    return f"{'allowed' if permit.allowed else 'forbidden'}{f' by {permit.line}' if permit.line else ''}"


async def _rules(runs: Runs, settings: Settings) -> Sequence[PageRule]:
    """The rules of the settings, else those of the newest run."""
    if settings.rules.rule:
        return settings.rules.rule
    given = await runs.recall(SETTINGS)
    return PAGE_RULES.read(dict(list(given)).get("rule", "[]"))


def _about(
    typed: str, url: Url, record: UrlRecord | None, path: Sequence[Url], robots: str, *, is_gone: bool
) -> list[tuple[str, str]]:
    lines = [("written", f"{typed} was normalised to the URL above")] if typed != url else []
    if record is None:
        lines.append(("outcome", "not known: no page, sitemap or input contains this URL"))
        return lines + ([("robots.txt", robots)] if robots else [])
    outcome = record.outcome if record.state == "settled" else None
    words = f"{code(outcome)}: {says(code(outcome))}" if outcome else record.state
    if is_gone:
        words = f"no longer found ({code(outcome) if outcome else record.state} in run {record.run})"
    lines.append(("outcome", words))
    match outcome:
        case Moved(to):
            lines.append(("to", to))
        case None:
            pass
        case Kept(_, detail):
            lines.append(
                ("because", detail or "it is in the last published sitemap, and the failure may be temporary")
            )
        case _ if detail := getattr(outcome, "detail", ""):
            lines.append(("because", detail))
    if len(path) > 1:
        lines.append(("found by", " → ".join(path[:-1])))
    else:
        lines.append(("found by", str(record.seed) if record.seed else "a start URL, --input or a sitemap"))
    if record.pattern:
        lines.append(("pattern", str(record.pattern)))
    if robots:
        lines.append(("robots.txt", robots))
    if outcome is None:  # the facts are those of an earlier run
        return lines
    if record.settled:
        tries = f" (visit {record.attempts})" if record.attempts > 1 else ""
        lines.append(("settled", f"{stamp(record.settled)} in run {record.run}{tries}"))
    if record.failing is not None:
        lines.append(("failing", f"since {stamp(record.failing)}"))
    return lines + _answer(record)


def _images(found: Shown) -> Iterator[tuple[str, str]]:
    """The first images with the same fate, and how many more there are."""
    for images, words in (
        (found.written, "in the sitemap with --images"),
        (found.site_wide, f"left out, being on {PERCENT}% of the listed pages or more"),
        (found.cut, f"left out, being beyond the first {MAX_IMAGES:,}"),
    ):
        yield from (("image", f"{image}: {words}") for image in images[:IMAGES])
        if len(images) > IMAGES:
            yield "image", f"and {len(images) - IMAGES:,} more {words}"


def _answer(record: UrlRecord) -> list[tuple[str, str]]:
    facts = record.facts
    if facts is None:
        return [("status", "none" if isinstance(record.outcome, Failed | Kept) else "not fetched")]
    lines = [("status", str(facts.status))]
    if facts.lastmod:
        lines.append(("lastmod", f"{facts.lastmod.at.isoformat()} from {facts.lastmod.source.says}"))
    elif facts.status == 200:
        given = f"; Last-Modified said {facts.header.isoformat()}" if facts.header else ""
        lines.append(("lastmod", f"no reliable date{given}"))
    if facts.validators.etag:
        lines.append(("etag", facts.validators.etag))
    return lines + (_rendering(facts.rendering) if facts.rendering else [])


def _rendering(seen: Rendering) -> list[tuple[str, str]]:
    """Whether the scripts of the page were run, and what they changed."""
    if seen.after is None:
        why = seen.skipped.says if seen.skipped else "the browser failed"
        return [("rendered", f"no: {why}; needed because {seen.needs.says}")]
    before, after = seen.before, seen.after
    refused = f", {seen.refused:,} refused" if seen.refused else ""
    requests = f"{counted(seen.requests, 'request')} of scripts ({seen.bytes:,} bytes){refused}"
    lines = [("rendered", f"yes: {seen.needs.says}; {requests}")]
    lines.append(("links", f"{before.links:,} without scripts, {after.links:,} with them"))
    if seen.hash_routes:
        lines.append(
            ("hash routes", f"{counted(seen.hash_routes, 'link')} to #/…, which search engines do not follow")
        )
    for name, was, now in (
        ("robots", before.robots, after.robots),
        ("canonical", before.canonical, after.canonical),
    ):
        if was != now:
            lines.append((name, f"{was or 'none'} without scripts, {now or 'none'} with them"))
    return lines


def _facts(record: UrlRecord | None, path: Sequence[Url], robots: str) -> dict[str, Any]:
    if record is None:
        return {"robots": robots}
    settled = record.outcome if record.state == "settled" else None
    facts = record.facts
    return {
        "state": record.state,
        "outcome": code(settled) if settled else None,
        "detail": settled.to if isinstance(settled, Moved) else getattr(settled, "detail", None),
        "depth": record.visit.depth,
        "pattern": record.pattern._asdict() if record.pattern else None,
        "found_by": list(path[:-1]),
        "seed": {"kind": record.seed.kind.name.lower(), "name": record.seed.name} if record.seed else None,
        "first_linked_by": record.visit.via,
        "robots": robots,
        "run": record.run,
        "settled": record.settled if settled else None,
        "failing": record.failing,
        "was": record.was,
        "was_lastmod": record.was_lastmod.isoformat() if record.was_lastmod else None,
        "status": facts.status if facts else None,
        "lastmod": facts.lastmod.at.isoformat() if facts and facts.lastmod else None,
        "lastmod_source": facts.lastmod.source.value if facts and facts.lastmod else None,
        "rendering": json.loads(rendering.written(facts.rendering)) if facts and facts.rendering else None,
    }
