"""`status`: the progress of a crawl and its members, from its state."""

import math
import socket
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

import click

from crawler.app.sites import SiteSettings
from crawler.app.state import progress, state_path
from crawler.cli.output import remark, show_lines
from crawler.cli.rows import show_object
from crawler.cli.saved_state import start_of, with_state
from crawler.cli.several import show_each
from crawler.errors import Exit, NoState
from crawler.model.outcome import says
from crawler.model.run import Member, Progress
from crawler.model.survey import Balance
from crawler.report.formatting import counted, duration, iso, least_words, pace_words, second
from crawler.report.printable import printable
from crawler.settings.object_url import state_object
from crawler.settings.sections import Settings

SHOWN: Final = 20  # members in the text form


def show_status(sites: Sequence[SiteSettings], alive: float | None = None, *, form: str = "text") -> int:
    """Prints the status of each site. Exit 3 if there is no state.

    `alive`: exit 8 if the run should be at work and made no progress for that many seconds: on this machine,
    if it has a member. Between two runs of --every, none should. Of several sites, the one that was worked on
    last decides: the others wait.
    """
    silences = list[tuple[float, bool]]()

    def show(settings: Settings) -> Exit:
        silences.append(_show_one(settings, alive, form))
        return Exit.OK

    code = show_each(sites, show, form=form)
    return code or (Exit.FINDINGS if silences and min(silences)[1] else Exit.OK)


def _show_one(settings: Settings, alive: float | None, form: str) -> tuple[float, bool]:
    """Prints the counts of the newest run, and its members; for how long it was silent, and if for too long.

    With `alive`, the URLs of a shared state are counted for JSON only, as every member asks each minute.
    """
    start = start_of(settings)
    settings = with_state(settings, start)
    read = partial(progress, settings, start, remark, counted=alive is None or form != "text")
    known = _interruptible(read) if state_object(settings.state.state) else read()
    if known is None:
        raise NoState("The state is empty: no crawl has started yet.")
    silent = known.silent if alive is None else known.silent_on(socket.gethostname())
    silent = math.inf if silent is None else silent
    if form == "text":
        _show(known, state_path(settings, start))
    else:
        show_object(_facts(known), form)
    return silent, alive is not None and not (known.run.complete or known.run.ended) and silent > alive


def _interruptible(read: Callable[[], Progress | None]) -> Progress | None:
    """Reads in a thread, as a store may not answer."""
    from crawler.cli.interrupt import run  # noqa: PLC0415 - without an event loop, this command is fast
    from crawler.sitemap.publish.object_store import abandonable  # noqa: PLC0415 - as above

    return run(partial(abandonable, read))


def _facts(known: Progress) -> dict[str, Any]:
    run, balance, members = known.run, known.balance, known.members
    return {
        "run": run.number,
        "started": iso(run.started),
        "complete": run.complete,
        "site": known.outlook.site,
        "running": known.outlook.running,
        "delay": None if run.complete else known.outlook.delay,
        "at_least": None if run.complete else round(known.outlook.left),
        **{key: getattr(balance, key, None) for key in ("discovered", "open", "outcomes", "balanced")},
        "silent": None if known.silent is None else round(known.silent, 1),
        "waits": [
            {"host": wait.origin, "until": iso(wait.until), "pages": wait.pages}
            for wait in (() if run.complete else known.waits)
        ],
        "members": members and [
            {
                "name": member.name, "state": member.state, "leads": member.leads, "alive": member.alive,
                "silent": round(member.silent, 1), "settled": member.settled,
            }
            for member in members
        ],
    }  # fmt: skip


def _show(known: Progress, state: str) -> None:
    run = known.run
    running = "running" if known.outlook.running else "not running: crawl again"
    click.echo(f"Run {run.number}, {'complete' if run.complete else f'unfinished, {running}'}")
    show_lines([("site", known.outlook.site), ("state", state), ("started", second(run.started))])
    if known.silent is not None and not run.complete:
        show_lines([("worked on", f"{duration(known.silent)} ago")])
    if not run.complete:
        show_lines([("pace", pace_words(known.outlook.delay))])
        show_lines([("left", least_words(known.outlook.left))] if known.outlook.left else [])
    for wait in () if run.complete else known.waits[:SHOWN]:
        pages = counted(wait.pages, "page")
        show_lines([("waits for", f"{printable(wait.origin)} until {second(wait.until)}, {pages}")])
    if known.members is not None:
        _show_members(known.members)
    if known.balance:
        _show_balance(known.balance)


def _show_members(members: Sequence[Member]) -> None:
    """Those at work first, then the latest of the others."""
    click.echo()
    others = [member for member in members if member.gone]
    listed = [*(member for member in members if not member.gone), *reversed(others)]
    for member in listed[:SHOWN]:
        seen = "" if member.gone else f"heartbeat {duration(member.silent)} ago"
        click.echo(
            f"  {member.settled:>9,}  {member.state:<9} {printable(member.name, 200)}  {seen}".rstrip()
        )
    if len(listed) > SHOWN:
        click.echo(f"  and {len(listed) - SHOWN:,} more members")


def _show_balance(balance: Balance) -> None:
    click.echo()
    for outcome, count in sorted(balance.outcomes.items(), key=lambda item: (-item[1], item[0])):
        click.echo(f"  {count:>9,}  {outcome:<22}  {says(outcome)}")
    if balance.open:
        click.echo(f"  {balance.open:>9,}  {'open':<22}  not finished yet")
    verdict = "all accounted for" if balance.balanced else "THE TOTALS DO NOT ADD UP: please report this"
    click.echo(f"  {balance.discovered:>9,}  discovered, {verdict}")
