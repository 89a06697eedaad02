"""What is known at the end of a run: facts for its summary, from the state and the job, and its findings.

Nothing is printed here.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import asdict

from crawler.app import report as reports
from crawler.app.features import writing
from crawler.app.job import Job
from crawler.app.robots_line import compared
from crawler.app.settings_digests import most_pages
from crawler.app.state import MEMORY, state_path
from crawler.cli.signals import received
from crawler.cli.summary import CHANGES, EXAMPLES, STDOUT
from crawler.engine.crawl import Ending
from crawler.engine.together import together
from crawler.errors import PublishRefused
from crawler.model.note import DATE_NOTES, EXTERNAL, LEFT_OUT, PUBLISHED_BY, UNRELIABLE
from crawler.model.run import StopReason
from crawler.model.survey import Balance
from crawler.model.trap import Trap
from crawler.parse.url import Url, target
from crawler.ports import Frontier, Record, reads
from crawler.report.external import external_json
from crawler.report.formatting import counted, duration
from crawler.report.report import Finding, SiteReport, measure
from crawler.rules.incomplete_site import SiteDoubts, without_flag
from crawler.settings.recipe import NAMES, UNLISTED, recipe_of
from crawler.settings.sections import Settings
from crawler.settings.values import compile_pattern
from crawler.sitemap.publish.guard import fetched
from crawler.sitemap.publish.published import Published

RECIPE_SAMPLE: Final = 5_000  # listed pages by which a recipe is advised
FEWEST_LEFT_OUT: Final = 20  # of them; for fewer, none is advised
LEAST_LEFT_OUT: Final = 0.1  # of them

MANY_SHARING = 10  # listed pages without a content of their own, from which on the summary says so


async def state_facts(frontier: Frontier, published: Published | None, settings: Settings) -> dict[str, Any]:
    """What the state and the publication, if there was one, tell."""
    (balance, sitemaps, known, traps), (check, unreliable, date_notes, left_out) = await together(
        together(
            frontier.read(reads.RunBalance()),
            frontier.read(reads.Sitemaps()),
            frontier.read(reads.WhatIsKnown()),
            frontier.read(reads.TrapsOfRun()),
        ),
        together(
            frontier.recall(EXTERNAL),
            frontier.recall(UNRELIABLE),
            frontier.recall(DATE_NOTES),
            frontier.recall(LEFT_OUT),
        ),
    )
    return {
        "discovered": balance.discovered,
        "open": balance.open,
        "balanced": balance.balanced,
        "outcomes": dict(balance.outcomes),
        "dated": dict(balance.dated),
        "unreliable": unreliable,
        "date_notes": date_notes,
        "traps": trap_facts(traps),
        "external": external_json(check, await frontier.read(reads.CountAnswers()) if check else None),
        "left_out": left_out,
        "examples": await _examples(frontier, balance),
        "sitemaps": dict(sitemaps.outcomes),
        "orphans": {} if balance.open else dict(sitemaps.orphans),  # what is open may link to them
        "knowledge": asdict(known) | {"budget": known.budget} if known else None,
        "dry_run": settings.guard.dry_run,
        "kept": balance.kept,
        "keeps_many": balance.kept > settings.guard.max_failed * fetched(balance.outcomes),
        **(await _publication(frontier, published, settings) if published else {}),
    }


async def _publication(frontier: Frontier, published: Published, settings: Settings) -> dict[str, Any]:
    is_stdout = settings.output.is_stdout
    line = "" if is_stdout else published.robots_line
    named = await compared(frontier, settings, line)
    counts = {
        feature.name: await feature.counts(frontier, published.optional)
        for feature in writing(settings)
        if feature.has_counts
    }
    return {
        **counts,
        "files": [
            {"name": file.name, "size": file.size, "urls": file.urls, "unchanged": file.unchanged}
            for file in published.files
        ],
        "changes": None if is_stdout else {name: getattr(published, name) for name in CHANGES},
        "folder": STDOUT if is_stdout else published.folder,
        "robots_line": line or None,
        "robots_named": named.is_named,
        "robots_others": named.others,
    }


async def _examples(pages: Record, balance: Balance) -> Mapping[str, Sequence[str]]:
    failed = [code for code in balance.outcomes if code.startswith(("failed:", "kept:"))]
    return {code: (await pages.read(reads.Examples(code)))[:EXAMPLES] for code in failed}


async def job_facts(job: Job, refused: PublishRefused | None, *, is_published: bool) -> dict[str, Any]:
    """How the run ended. `is_published`: by this process."""
    state = state_path(job.settings, job.starts[0])
    unfinished = _unfinished(job)
    published_by, members = await together(
        job.frontier.recall(PUBLISHED_BY), job.frontier.read(reads.MembersOfRun())
    )
    return {
        "site": job.stats.site,
        "fetched": job.stats.exchanges,
        "state": None if state == MEMORY else state,
        "unfinished": unfinished,
        "unpublished": job.ending is Ending.LIMIT and not is_published and not refused,
        "unmatched": await _unmatched(job.frontier, job.settings),
        "resume": "run the same command again" if unfinished and state != MEMORY else None,
        "stalled": job.stalled,
        "refused": str(refused) if refused else None,
        "notes": [*_notes(job.doubts, refused), *await _advice(job)],
        "published": bool(job.frontier.name) and published_by == job.frontier.name,
        "published_by": published_by,
        "member": job.frontier.name,
        "members": len({member.name for member in members}),
        "state_words": reports.state_words(job.settings, job.starts[0]),
    }


def trap_facts(traps: Sequence[Trap]) -> list[dict[str, Any]]:
    """The crawler traps, each with the flag that crawls it."""
    return [asdict(trap) | {"flag": trap.flag} for trap in traps]


def finding_facts(findings: Sequence[Finding]) -> list[dict[str, Any]]:
    """The findings, the most severe first; `words`: `2 URLs (1 new), 18 links on 15 pages`."""
    return [
        {
            "code": one.code.value,
            "severity": one.code.severity.value,
            "urls": one.count,
            "new": one.new,
            "words": measure(one),
        }
        for one in findings
    ]


def _notes(doubts: SiteDoubts, refused: PublishRefused | None) -> Sequence[str]:
    """The notes on the site, and what may hide it, unless the refusal says so."""
    doubt = without_flag(doubts.doubt)
    is_said = refused is not None and doubt in without_flag(str(refused))
    return doubts.notes if not doubt or is_said else (*doubts.notes, doubt)


async def _advice(job: Job) -> Sequence[str]:
    """What all listed pages show; nothing where no summary does, as that reads each of them."""
    chosen = job.settings.log
    if chosen.quiet and chosen.log_format == "text":
        return ()
    recipe = _advised_recipe(job.frontier, job.settings, job.starts)
    shared, advised = await together(_shared_contents(job.frontier), recipe)
    return [*shared, *advised]


async def _advised_recipe(pages: Record, settings: Settings, starts: Sequence[Url]) -> Sequence[str]:
    """Names the recipe that would leave out many of the listed pages, judged by some of them."""
    if settings.scope.recipe:
        return ()
    balance, sample = await together(
        pages.read(reads.RunBalance()), pages.read(reads.AnsweringPages(RECIPE_SAMPLE))
    )
    listed, targets = balance.listed, [target(url) for url in sample]
    least = max(FEWEST_LEFT_OUT, LEAST_LEFT_OUT * len(targets))
    maybe = [one for one in targets if UNLISTED.search(one)]
    if len(maybe) < least:
        return ()
    found = [
        (one, one.count_unlisted(maybe))
        for one in [recipe_of(name).at(map(target, starts)) for name in NAMES]
    ]
    best, count = max(found, key=lambda item: item[1])
    if count < least:
        return ()
    about = "" if listed == len(targets) else "about "
    return (
        f"{about}{round(count * listed / len(targets)):,} of {listed:,} listed pages are archives and lists "
        f"as {best.system} makes them: to leave them out, --recipe {best.name}.",
    )


async def _shared_contents(pages: Record) -> Sequence[str]:
    """How many contents listed pages share, if they are many more than these."""
    tallies = await pages.read(reads.ListedTallies())
    if tallies.content_pages < tallies.content_groups + MANY_SHARING:
        return ()
    return [f"{tallies.content_pages:,} listed pages have {counted(tallies.content_groups, 'content')}"]


def _unfinished(job: Job) -> str | None:
    """Why the run is unfinished; None if it is complete."""
    if job.ending in {Ending.COMPLETE, Ending.OVER}:
        return None
    scope, most = job.settings.scope, most_pages(job.settings.scope) or 0
    limits = {
        StopReason.MAX_PAGES: f"{'max-pages' if most == scope.max_pages else 'budget'} {most:,}",
        StopReason.MAX_TIME: f"max-time {duration(scope.max_time or 0)}",
    }
    limit = limits.get(job.stop_reason) if job.stop_reason else None
    return f"stopped at --{limit}" if limit else job.stats.stopping or "stopped"


async def _unmatched(pages: Record, settings: Settings) -> list[str]:
    """The patterns that matched no known URL of the site: most are typing errors."""
    patterns = {
        f"--{name.replace('_', '-')} {text}": compile_pattern(text)
        for name in ("include", "exclude", "no_fetch", "no_list")
        for text in getattr(settings.scope, name)
    }
    patterns |= {f"[[rule]] {rule.match}": compile_pattern(rule.match) for rule in settings.rules.rule}
    if not patterns:
        return []
    async for chunk in pages.stream(reads.AllUrls()):
        if not patterns:
            break
        targets = [target(url) for url in chunk]
        matched = [words for words, pattern in patterns.items() if any(map(pattern.search, targets))]
        for words in matched:
            del patterns[words]
    return list(patterns)


# -- the findings -------------------------------------------------------------------------------------------


class RunFindings(Struct, frozen=True):
    """What was found in a run."""

    findings: Sequence[Finding] = ()  # the most severe first
    report: SiteReport | None = None  # None: no file was asked for
    is_known: bool = True


async def findings_of(job: Job) -> RunFindings:
    """The findings of the run that `job` has just ended, as far as they are needed."""
    settings = job.settings
    chosen = settings.report
    is_reported = bool(chosen.metrics_file or chosen.metrics_port or chosen.webhook_env)
    is_wanted = chosen.report or chosen.fail_on
    # After an interruption, the program should exit quickly.
    if not is_wanted and (received.first or (settings.log.quiet and not is_reported)):
        return RunFindings(is_known=False)
    known = await reports.read_known(job.frontier, settings)
    if not chosen.report:
        return RunFindings(await reports.count_findings(job.frontier, known))
    report = await reports.build_report(job.frontier, known)
    return RunFindings(report.findings, report)
