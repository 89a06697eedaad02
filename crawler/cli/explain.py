"""`explain`: what the state knows about one URL, and why it has its outcome.

Everything is looked up first, in a `UrlStory`, of which the lines of text and the JSON object are made.
"""

import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import click
from msgspec import Struct, structs
from msgspec.structs import replace

from crawler.app.features import FEATURES
from crawler.app.publication import output_of, published_as
from crawler.app.settings_urls import normaliser, product_token, start_url
from crawler.cli.output import LONGEST_LINE, show_lines
from crawler.cli.rows import show_object
from crawler.cli.saved_state import opened_state, start_of, why_unknown, with_state
from crawler.cli.typed_url import is_path, url_in_state
from crawler.engine.robots import origin_rules
from crawler.errors import Exit
from crawler.model import external
from crawler.model.external import ExternalRow
from crawler.model.facts import Facts
from crawler.model.note import SETTINGS
from crawler.model.outcome import Failed, Kept, Listed, Moved, Outcome, code, says
from crawler.model.rendering import PageSummary, Rendering
from crawler.model.rows import UrlRecord
from crawler.model.run import Run
from crawler.model.survey import LinkingPages
from crawler.parse import url as urls
from crawler.parse.url import Url
from crawler.ports import Frontier, Reads, Record, reads
from crawler.report.formatting import counted, iso, said_words, second
from crawler.report.printable import printable
from crawler.rules.page_rules import PageRules
from crawler.settings.object_url import is_object_url
from crawler.settings.recipe import NAMES, recipe_of
from crawler.settings.sections import Settings
from crawler.settings.tables import PAGE_RULES, PageRule
from crawler.sitemap.publish.manifest import place_of

LINKING_SHOWN: Final = 20  # pages
KEPT_BECAUSE: Final = "it is in the last published sitemap, and the failure may be temporary"


class UrlStory(Struct, frozen=True):
    """What the state knows about one URL."""

    typed: str  # on the command line
    url: Url
    published: Url  # its URL in the sitemap: another one, if a copy of the site was crawled
    record: UrlRecord | None
    path: Sequence[Url]  # from the start to it, by the first links
    hops: "Sequence[RedirectHop]"
    newest: Run | None
    linking: LinkingPages  # pages that link to it
    external: ExternalRow | None  # as a URL of another site
    robots: str  # `allowed by Allow: /`; empty: robots.txt is not known
    features: Mapping[str, tuple[object, Sequence[tuple[str, str]]]]  # what each optional feature says of it
    rule: PageRule | None
    recipe: str  # the pattern of the recipe that matches; may be empty
    output: str
    place: tuple[str, int] | None  # in the sitemap: the file, and the entry, from 1

    @property
    def outcome(self) -> Outcome | None:
        """Of the newest run that settled it; None if a later one found it again."""
        return self.record.outcome if self.record and self.record.state == "settled" else None

    @property
    def is_gone(self) -> bool:
        """Whether the newest run is complete and did not find it."""
        known, newest = self.record, self.newest
        return bool(known and newest and newest.complete and known.run < newest.number)


async def show_url(settings: Settings, text: str, *, form: str, every_link: bool) -> Exit:
    """Prints all that the state knows about one URL. Exit 8 if it does not know the URL.

    `every_link`: with all pages that link to it.
    """
    url = start_of(settings) if is_path(text) else start_url(text, normaliser(settings))
    settings = with_state(settings, url, is_start=False)
    async with opened_state(settings, url) as frontier:
        story = await _story(frontier, settings, text, sys.maxsize if every_link else LINKING_SHOWN)
    if form != "text":
        show_object(_as_json(story), form)
    else:
        click.echo(printable(story.url, LONGEST_LINE))
        show_lines(_lines(story))
    return Exit.OK if story.record else Exit.FINDINGS


async def _story(frontier: Frontier, settings: Settings, text: str, most: int) -> UrlStory:
    url = await url_in_state(frontier, settings, text)
    base = await published_as(frontier, settings)
    record, given = await _record(frontier, url), await frontier.recall(SETTINGS)
    of_run = dict(list(given))
    published = base.published(url) if base else url
    output = await output_of(frontier, settings)
    return UrlStory(
        typed=text,
        url=url,
        published=published,
        record=record,
        path=await _link_path(frontier, record) if record else [],
        hops=await _hops(frontier, record) if record else [],
        newest=await frontier.read(reads.NewestRun()),
        linking=await frontier.read(reads.Linking(url, most)),
        external=await frontier.read(reads.ExternalAnswer(url)),
        robots=await _robots_line(settings, frontier, url),
        features={feature.name: said for feature in FEATURES if (said := await feature.about(frontier, url))},
        recipe=await _recipe(frontier, settings.scope.recipe or of_run.get("recipe", "").split(","), url),
        rule=PageRules(settings.rules.rule or PAGE_RULES.read(of_run.get("rule", "[]"))).of(url),
        output=output,
        place=None if is_object_url(output) else place_of(published, Path(output)),
    )


# -- what is looked up --------------------------------------------------------------------------------------


class RedirectHop(Struct, frozen=True):
    """One URL in a chain of redirects."""

    url: str
    status: int | None
    outcome: str
    at: float | None  # seconds since the epoch

    def __str__(self) -> str:
        at = second(self.at) if self.at else "not yet"
        return f"{at}  {self.status or '-'}  {self.url}  {self.outcome}"


async def _hops(pages: Record, record: UrlRecord) -> list[RedirectHop]:
    """The URL, and each target of its redirects."""
    hops: list[RedirectHop] = []
    following: UrlRecord | None = record
    while following and following.visit.url not in {hop.url for hop in hops}:
        outcome = following.outcome if following.state == "settled" else None
        at = following.settled if outcome else None
        status = following.facts.status if outcome and following.facts else None
        said = code(outcome) if outcome else following.state
        hops.append(RedirectHop(following.visit.url, status, said, at))
        following = await _record(pages, outcome.to) if isinstance(outcome, Moved) else None
    return hops


async def _record(pages: Reads, url: Url) -> UrlRecord | None:
    """What is known of a URL, without the facts of an earlier visit that are not those of its outcome."""
    record = await pages.read(reads.RecordOf(url))
    if record is None or record.facts is None or isinstance(record.outcome, Kept):
        return record
    if isinstance(record.outcome, Failed):
        return replace(record, facts=Facts(record.facts.status))
    return record if record.attempts or isinstance(record.outcome, Listed) else replace(record, facts=None)


async def _link_path(pages: Record, record: UrlRecord) -> list[Url]:
    """The chain of pages from the start to this URL, each the first that linked to the next."""
    path = [record.visit.url]
    while record.visit.via and not record.seed and record.visit.via not in path and len(path) < 100:
        path.append(record.visit.via)
        above = await pages.read(reads.RecordOf(record.visit.via))
        if above is None:
            break
        record = above
    return path[::-1]


async def _robots_line(settings: Settings, rows: Reads, url: Url) -> str:
    site = urls.origin(url)
    file = await rows.read(reads.RobotsOf(site))
    if file is None:
        return ""
    permit = origin_rules(file, product_token(settings.http.user_agent), site).permit(url)
    return f"{'allowed' if permit.allowed else 'forbidden'}{f' by {permit.line}' if permit.line else ''}"


async def _recipe(rows: Reads, recipes: Sequence[str], url: Url) -> str:
    """The first of the recipes that has a pattern for a URL, and this pattern."""
    start = await rows.read(reads.FirstStart()) or url
    for name in filter(NAMES.__contains__, recipes):
        if pattern := recipe_of(name).at([urls.target(start)]).pattern_of(urls.target(url)):
            return f"{name}, {pattern}"
    return ""


# -- the text -----------------------------------------------------------------------------------------------

Lines = Iterator[tuple[str, str]]


def _linking_words(page: Url, linking: LinkingPages) -> str:
    """A page, and what its link says."""
    words = said_words(*linking.said.get(page, ("", "")))
    return f"{page} ({words})" if words else page


def _lines(story: UrlStory) -> Lines:
    if story.typed != story.url and not is_path(story.typed):
        yield "written", f"{story.typed} was normalised to the URL above"
    yield from _about_outcome(story)
    if story.record:
        so_far = "" if story.newest and story.newest.complete else " so far"
        count = counted(story.linking.count, "page")
        yield "linked", f"from {count}{so_far}; found at depth {story.record.visit.depth}"
        yield from (("", _linking_words(page, story.linking)) for page in story.linking.first)
        if more := story.linking.count - len(story.linking.first):
            yield "", f"and {more:,} more: --all shows them"
    yield from (("hop", str(hop)) for hop in story.hops)
    yield from _about_external(story.external) if story.external else ()
    if story.rule:
        yield "rule", str(story.rule)
    if story.recipe:
        yield "recipe", story.recipe
    for _, lines in story.features.values():
        yield from lines
    if story.published != story.url:
        yield "published", f"as {story.published}"
    yield "file", _file(story.place, story.output)
    if story.newest and (unknown := why_unknown(story.record, story.newest)):
        yield "not yet", unknown
    elif story.record and story.newest:
        yield "changed", _change(story.record, story.newest)


def _about_outcome(story: UrlStory) -> Lines:
    record, outcome = story.record, story.outcome
    if record is None:
        yield "outcome", "not known: no page, sitemap or input contains this URL"
        yield from [("robots.txt", story.robots)] if story.robots else []
        return
    if story.is_gone:
        last = code(outcome) if outcome else record.state
        yield "outcome", f"no longer found ({last} in run {record.run})"
    else:
        yield "outcome", f"{code(outcome)}: {says(code(outcome))}" if outcome else record.state
    if isinstance(outcome, Moved):
        yield "to", outcome.to
    elif because := getattr(outcome, "detail", "") or (KEPT_BECAUSE if isinstance(outcome, Kept) else ""):
        yield "because", because
    yield from _about_discovery(story, record)
    if outcome:  # otherwise, the facts are those of an earlier run
        yield from _about_visit(record)


def _about_discovery(story: UrlStory, record: UrlRecord) -> Lines:
    if len(story.path) > 1:
        yield "found by", " → ".join(story.path[:-1])
    else:
        yield "found by", str(record.seed) if record.seed else "a start URL, --input or a sitemap"
    if record.pattern:
        yield "pattern", str(record.pattern)
    if story.robots:
        yield "robots.txt", story.robots


def _about_visit(record: UrlRecord) -> Lines:
    """When the URL was settled, and what its response said."""
    if record.settled:
        tries = f" (visit {record.attempts})" if record.attempts > 1 else ""
        yield "settled", f"{second(record.settled)} in run {record.run}{tries}"
    if record.failing is not None:
        yield "failing", f"since {second(record.failing)}"
    facts = record.facts
    if facts is None:
        yield "status", "none" if isinstance(record.outcome, Failed | Kept) else "not fetched"
        return
    yield "status", str(facts.status)
    if facts.lastmod:
        yield "lastmod", f"{facts.lastmod.at.isoformat()} from {facts.lastmod.source.says}"
    elif facts.status == 200:
        given = f"; Last-Modified said {facts.header.isoformat()}" if facts.header else ""
        yield "lastmod", f"no reliable date{given}"
    if isinstance(record.outcome, Listed) and facts.canonical:
        yield "canonical", f"{facts.canonical}, which is ignored: it fails or leads back"
    if facts.barred:
        yield "noindex", f"for {facts.barred} only: the page is listed for --bots"
    if facts.validators.etag:
        yield "etag", facts.validators.etag
    yield from _about_rendering(facts.rendering) if facts.rendering else ()


def _about_rendering(seen: Rendering) -> Lines:
    """Whether the scripts of the page were run, and what they changed."""
    if seen.after is None:
        failed = f"the browser failed ({seen.failed.value})" if seen.failed else "the browser failed"
        why = seen.skipped.says if seen.skipped else failed
        yield "rendered", f"no: {why}; needed because {seen.needs.says}"
        return
    before, after = seen.before, seen.after
    refused = f", {seen.refused:,} refused" if seen.refused else ""
    requests = f"{counted(seen.requests, 'request')} of scripts ({seen.bytes:,} bytes){refused}"
    yield "rendered", f"yes: {seen.needs.says}; {requests}"
    yield "links", f"{before.links:,} without scripts, {after.links:,} with them"
    if seen.hash_routes:
        routes = counted(seen.hash_routes, "link")
        yield "hash routes", f"{routes} to #/…, which search engines do not follow"
    for name in ("robots", "canonical"):
        was, now = getattr(before, name), getattr(after, name)
        if was != now:
            yield name, f"{was or 'none'} without scripts, {now or 'none'} with them"


def _about_external(answer: ExternalRow) -> Lines:
    """What the host of a URL on another site answered (`--check-external`)."""
    status = f", status {answer.status}" if answer.status else ""
    yield "external", f"{answer.code}: {external.says(answer.code)}{status}"
    if answer.detail:
        yield "answer", answer.detail
    before = f"; {answer.was} before" if answer.was and answer.was != answer.code else ""
    yield "checked", f"{second(answer.checked)}{before}"


def _file(place: tuple[str, int] | None, output: str) -> str:
    if place:
        return f"{place[0]}, entry {place[1]:,}"
    return f"not read: the sitemap is in {output}" if is_object_url(output) else "not in any published file"


def _change(record: UrlRecord, newest: Run) -> str:
    if record.run < newest.number:
        return f"no longer found: run {record.run} was the last to find it, this is run {newest.number}"
    if record.was is None:
        return "found for the first time" if newest.number == 1 else "not found by the run before"
    now = code(record.outcome) if record.outcome else record.state
    dated = record.facts.lastmod.at if record.facts and record.facts.lastmod else None
    before = f"{record.was} before" if record.was != now else ""
    earlier = record.was_lastmod.isoformat() if record.was_lastmod else "absent"
    date = f"lastmod was {earlier}" if dated != record.was_lastmod else ""
    return ", ".join(filter(None, [before, date])) or "nothing since the previous run"


# -- the JSON -----------------------------------------------------------------------------------------------


def _as_json(story: UrlStory) -> dict[str, Any]:
    """The object for programs. Keys about what does not exist are left out."""
    facts: dict[str, Any] = {"url": story.url, "known": story.record is not None, "gone": story.is_gone}
    facts |= _record_json(story, story.record) if story.record else {"robots": story.robots}
    facts |= {"linked_from": story.linking.count, "linked_by": story.linking.first}
    facts["linked_as"] = [
        {"page": page, "text": text, "place": place} for page, (text, place) in story.linking.said.items()
    ]
    facts["hops"] = [structs.asdict(hop) | {"at": iso(hop.at)} for hop in story.hops]
    if story.newest:
        facts |= {"newest_run": story.newest.number, "newest_complete": story.newest.complete}
    if story.published != story.url:
        facts["published"] = story.published
    if story.rule:
        facts["rule"] = structs.asdict(story.rule)
    if story.recipe:
        facts["recipe"] = story.recipe
    if story.external:
        more = {"checked": iso(story.external.checked), "says": external.says(story.external.code)}
        facts["external"] = story.external._asdict() | more
    facts |= {name: value for name, (value, _) in story.features.items()}
    file, position = story.place or (None, None)
    return facts | {"file": file, "position": position}


def _rendering_json(seen: Rendering) -> dict[str, Any]:
    both = seen.before, seen.after or PageSummary()
    return {
        "needs": seen.needs.value,
        "rendered": seen.after is not None,
        "skipped": seen.skipped.value if seen.skipped else None,
        **{name: [getattr(one, name) for one in both] for name in ("links", "robots", "canonical")},
        **{name: getattr(seen, name) for name in ("requests", "refused", "bytes", "hash_routes")},
    }


def _record_json(story: UrlStory, record: UrlRecord) -> dict[str, Any]:
    settled = story.outcome
    facts = record.facts
    return {
        "state": record.state,
        "outcome": code(settled) if settled else None,
        "detail": settled.to if isinstance(settled, Moved) else getattr(settled, "detail", None),
        "found_at": record.visit.depth,
        "pattern": record.pattern._asdict() if record.pattern else None,
        "found_by": list(story.path[:-1]),
        "seed": {"kind": record.seed.kind.name.lower(), "name": record.seed.name} if record.seed else None,
        "first_linked_by": record.visit.via,
        "robots": story.robots,
        "run": record.run,
        "settled": iso(record.settled) if settled else None,
        "failing": iso(record.failing),
        "was": record.was,
        "was_lastmod": iso(record.was_lastmod),
        "status": facts.status if facts else None,
        "lastmod": iso(facts.lastmod.at) if facts and facts.lastmod else None,
        "lastmod_source": facts.lastmod.source.value if facts and facts.lastmod else None,
        "rendering": _rendering_json(facts.rendering) if facts and facts.rendering else None,
    }
