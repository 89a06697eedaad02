"""`status`: the progress of a crawl, from its state."""

import json

import click

from crawler.app.starts import normaliser, start_url
from crawler.app.state import overview, silent_for, state_path
from crawler.cli.answers import show_lines, wants_json
from crawler.cli.phrases import stamp
from crawler.cli.states import with_state
from crawler.errors import Exit, FrontierError
from crawler.model.outcome import says
from crawler.report.log import duration
from crawler.settings.sections import Settings


def show_status(settings: Settings, alive: float | None = None) -> Exit:
    """Prints the counts of the newest run. Exit 3 if there is no state.

    `alive`: exit 8 if the run is unfinished and has made no progress for that many seconds.
    """
    start = start_url(settings.scope.start[0], normaliser(settings)) if settings.scope.start else None
    settings = with_state(settings, start)
    known = overview(settings, start)
    if known is None:
        raise FrontierError("The state is empty: no crawl has started yet.")
    run, balance = known
    silent = silent_for(settings, start)
    dead = alive is not None and not run.complete and (silent is None or silent > alive)
    if wants_json(settings):
        facts = {
            "run": run.number, "started": run.started, "complete": run.complete,
            "discovered": balance.discovered, "open": balance.open, "outcomes": balance.outcomes,
            "balanced": balance.balanced, "silent": silent,
        }  # fmt: skip
        click.echo(json.dumps(facts))
        return Exit.FINDINGS if dead else Exit.OK
    click.echo(f"Run {run.number}, {'complete' if run.complete else 'unfinished'}")
    show_lines([("state", state_path(settings, start)), ("started", stamp(run.started))])
    if silent is not None and not run.complete:
        show_lines([("worked on", f"{duration(silent)} ago")])
    click.echo()
    for outcome, count in sorted(balance.outcomes.items(), key=lambda item: (-item[1], item[0])):
        click.echo(f"  {count:>9,}  {outcome:<22}  {says(outcome)}")
    if balance.open:
        click.echo(f"  {balance.open:>9,}  {'open':<22}  not finished yet")
    verdict = "all accounted for" if balance.balanced else "THE TOTALS DO NOT ADD UP: please report this"
    click.echo(f"  {balance.discovered:>9,}  discovered, {verdict}")
    return Exit.FINDINGS if dead else Exit.OK
