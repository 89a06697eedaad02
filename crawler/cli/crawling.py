"""`crawl`, `export`, and what stands around them: signals, the display, the decision to publish, the last words."""

import json
import logging
import os
import signal
import sys
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

import anyio

from crawler import traps, urls
from crawler.app import MEMORY, Job, home_of, open_frontier, open_job, state_path
from crawler.cli.closing import Closing, FileLine, as_json
from crawler.crawl import Ending
from crawler.errors import Exit, FrontierError, PublishRefused, first_of
from crawler.frontier import SqliteFrontier
from crawler.model import Balance
from crawler.publish import Published, check_folder, publish
from crawler.report import lines
from crawler.settings import Log, Settings
from crawler.visiting import normaliser, start_url

log = logging.getLogger("crawler")

SIGNALS = {signal.SIGINT: ("interrupted", Exit.INTERRUPTED), signal.SIGTERM: ("terminated", Exit.TERMINATED)}


def configure_log(chosen: Log) -> None:
    """Logging as the settings want it."""
    level = logging.ERROR if chosen.quiet else logging.DEBUG if chosen.verbose else logging.INFO
    lines.configure(chosen.log_format, level, sys.stderr)


async def crawl_site(settings: Settings) -> Exit:
    """The whole of `crawl`: arrive, crawl, publish, tell. Raises from the tree of `errors`."""
    configure_log(settings.log)
    began = time.monotonic()
    if settings.pace.ignore_robots:
        log.warning("robots.txt is ignored: this is for sites of your own")
    if settings.http.insecure:
        log.warning("certificates are not checked: anybody on the way can change what is read")
    if not settings.guard.dry_run:
        check_folder(settings.output)
    async with open_job(settings, sinks=[lines.LineSink(settings.log.log_format)]) as job:
        if job.run.resumed:
            log.info("resuming an unfinished crawl", extra={"fields": {"run": job.run.number}})
        left = _Left()
        async with _watched(job, left):
            ending = await job.crawl()
        published, refused = await _publish(job, ending)
        await _tell(job, began, published, refused)
    if refused:
        return refused.exit
    if ending is Ending.STOPPED:
        return left.exit
    return Exit.OK if ending is Ending.COMPLETE else Exit.PARTIAL


@dataclass
class _Left:
    """The exit code of whoever told us to stop."""

    exit: Exit = Exit.INTERRUPTED


@asynccontextmanager
async def _watched(job: Job, left: _Left) -> AsyncIterator[None]:
    """Signals are heard and the display is drawn while the block runs."""
    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_listen, job, left)
            if not job.settings.log.quiet:
                from crawler.cli import progress  # noqa: PLC0415 - rich takes long to import, for those who are quiet

                console = progress.Screen()
                drawn = console.is_terminal and job.settings.log.log_format == "text"
                tasks.start_soon(progress.show if drawn else progress.tell, job.tally, console)
            yield
            tasks.cancel_scope.cancel()
    except BaseExceptionGroup as group:
        raise first_of(group) from group


async def _listen(job: Job, left: _Left) -> None:
    """The first signal drains; the second leaves at once, and the state is whole all the same."""
    with anyio.open_signal_receiver(*SIGNALS) as received:
        async for number in received:
            word, code = SIGNALS[signal.Signals(number)]
            if job.tally.stopping:
                if not job.settings.log.quiet:
                    from crawler.cli import progress  # noqa: PLC0415 - as above

                    progress.Screen().show_cursor()
                os._exit(code)
            left.exit = code
            job.stop(word)


async def _publish(job: Job, ending: Ending) -> tuple[Published | None, PublishRefused | None]:
    """Publish what is complete, or allowed to be partial; a refusal is told, not raised."""
    if ending is not Ending.COMPLETE and not job.settings.guard.allow_partial:
        return None, None
    try:
        return await job.publish(), None
    except PublishRefused as refusal:
        return None, refusal


async def _tell(
    job: Job,
    began: float,
    published: Published | None,
    refused: PublishRefused | None,
) -> None:
    settings = job.settings
    state = state_path(settings, job.starts[0])
    kept = None if state == MEMORY else state
    resume = None
    if job.ending is not Ending.COMPLETE:
        resume = "run the same command again" if kept else None
    closing = await _closing(job.frontier, published)
    closing = replace(
        closing,
        elapsed=time.monotonic() - began,
        asked=job.tally.exchanges,
        state=kept,
        resume=resume,
        refused=str(refused) if refused else None,
        dry_run=settings.guard.dry_run,
    )
    say(closing, settings.log)


async def _closing(frontier: SqliteFrontier, published: Published | None) -> Closing:
    balance = await frontier.balance()
    return Closing(
        balance=balance,
        files=tuple(FileLine(f.name, f.size, f.urls, unchanged=f.unchanged) for f in published.files)
        if published
        else (),
        folder=str(published.folder) if published else None,
        robots_line=published.robots_line if published else None,
        examples=await _examples(frontier, balance),
        dated=await frontier.dated(),
        lies=json.loads(await frontier.recall("lies") or "{}"),
        traps=traps.read(json.loads(await frontier.recall("traps") or "{}")),
    )


async def _examples(frontier: SqliteFrontier, balance: Balance) -> Mapping[str, Sequence[str]]:
    failed = [code for code in balance.outcomes if code.startswith("failed:")]
    return {code: await frontier.examples(code) for code in failed}


def say(closing: Closing, chosen: Log) -> None:
    """The last words, in the form that was asked for."""
    if chosen.log_format == "json":
        log.info("done", extra={"fields": as_json(closing)})
    elif not chosen.quiet:
        from crawler.cli import progress, summary  # noqa: PLC0415 - as above

        summary.closing(progress.Screen(), closing)


async def export_sitemap(settings: Settings) -> Exit:
    """The whole of `export`."""
    configure_log(settings.log)
    start = start_url(settings.scope.start[0], normaliser(settings)) if settings.scope.start else None
    frontier = open_frontier(settings, start, read_only=True)
    try:
        began = time.monotonic()
        balance = await frontier.balance()
        run = await frontier.run()
        start = start or await frontier.first()
        if run is None or start is None:
            raise FrontierError("The state knows no URL yet: crawl first.")
        published = await publish(
            frontier.entries(),
            settings.output,
            settings.dates,
            replace(settings.guard, allow_partial=True),
            urls.origin(await home_of(frontier, start)),
            complete=run.complete,
            counts=balance.outcomes,
            run_id=str(run.number),
        )
        closing = await _closing(frontier, published)
        say(replace(closing, elapsed=time.monotonic() - began), settings.log)
    finally:
        await frontier.close()
    return Exit.OK
