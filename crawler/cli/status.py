"""`status`: the progress of a crawl and its members, from its state."""

import json
import socket
from collections.abc import Sequence
from typing import Any, Final

import click

from crawler.app.state import progress, state_path
from crawler.cli.output import show_lines, wants_json
from crawler.cli.saved_state import start_of, with_state
from crawler.errors import Exit, FrontierError
from crawler.model.outcome import says
from crawler.model.progress import Member, Progress
from crawler.model.survey import Balance
from crawler.report.formatting import duration, second
from crawler.report.printable import printable
from crawler.settings.sections import Settings

SHOWN: Final = 20  # members in the text form


def show_status(settings: Settings, alive: float | None = None) -> Exit:
    """Prints the counts of the newest run, and its members. Exit 3 if there is no state.

    `alive`: exit 8 if the run is unfinished and has made no progress for that many seconds: on this machine,
    if it has a member. The URLs of a shared state are then counted for JSON only, as every member asks each
    minute.
    """
    start = start_of(settings)
    settings = with_state(settings, start)
    known = progress(settings, start, counted=alive is None or wants_json(settings))
    if known is None:
        raise FrontierError("The state is empty: no crawl has started yet.")
    silent = known.silent if alive is None else known.silent_on(socket.gethostname())
    dead = alive is not None and not known.run.complete and (silent is None or silent > alive)
    if wants_json(settings):
        click.echo(json.dumps(_facts(known)))
    else:
        _show(known, state_path(settings, start))
    return Exit.FINDINGS if dead else Exit.OK


def _facts(known: Progress) -> dict[str, Any]:
    run, balance = known.run, known.balance
    facts: dict[str, Any] = {"run": run.number, "started": run.started, "complete": run.complete}
    if balance:
        facts |= {
            "discovered": balance.discovered, "open": balance.open, "outcomes": balance.outcomes,
            "balanced": balance.balanced,
        }  # fmt: skip
    facts["silent"] = known.silent
    if known.members is not None:
        facts["members"] = [
            {
                "name": member.name, "state": member.state, "leads": member.leads, "alive": member.alive,
                "silent": round(member.silent, 1), "settled": member.settled,
            }
            for member in known.members
        ]  # fmt: skip
    return facts


def _show(known: Progress, state: str) -> None:
    run = known.run
    click.echo(f"Run {run.number}, {'complete' if run.complete else 'unfinished'}")
    show_lines([("state", state), ("started", second(run.started))])
    if known.silent is not None and not run.complete:
        show_lines([("worked on", f"{duration(known.silent)} ago")])
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
