"""`submit`: tells search engines which pages changed since the last submission, from the saved state.

A crawl with --submit prints the same words at its end. `--new-key` makes a key and its file.
"""

import json
import secrets
from pathlib import Path
from typing import Final

import click

from crawler.app.history import output_of, published_as
from crawler.app.starts import normaliser, start_url
from crawler.app.state import open_frontier
from crawler.app.submission import Submitted, check, is_published, submit
from crawler.cli.answers import wants_json
from crawler.cli.crawl import configure_log
from crawler.cli.program import suggested
from crawler.cli.states import with_state
from crawler.cli.submission_words import due_words, facts, result_words
from crawler.errors import ConfigError, Exit, FrontierError, OutputError
from crawler.parse import url as urls
from crawler.parse.url import Url
from crawler.report.printable import printable
from crawler.settings.object_url import is_object_url
from crawler.settings.sections import Settings

KEY_BYTES: Final = 16
ANYWHERE: Final = "https://YOUR-HOST"


async def submit_changes(settings: Settings, *, dry: bool, everything: bool) -> Exit:
    """Submits what is due, and says so on stdout. Raises `ConfigError`, `NotSubmitted`, `FrontierError`."""
    configure_log(settings.log)
    start = _start(settings)
    settings = with_state(settings, start)
    if not dry:
        check(settings)
    frontier = open_frontier(settings, start, read_only=dry)
    try:
        base = await published_as(frontier, settings, start)
        why = await is_published(frontier)
        if why or base is None:
            click.echo(f"Nothing is submitted: {why or 'there is no run yet: crawl first'}.", err=True)
            return Exit.GUARD if "guard" in why else Exit.PARTIAL
        speaks = not wants_json(settings)
        submitted = await submit(
            frontier,
            settings,
            base,
            everything=everything,
            dry=dry,
            on_counted=lambda due: click.echo(due_words(due)) if speaks else None,
        )
    finally:
        await frontier.close()
    _print_result(settings, submitted, dry=dry)
    return Exit.OK


def _print_result(settings: Settings, submitted: Submitted, *, dry: bool) -> None:
    if wants_json(settings):
        click.echo(json.dumps(facts(submitted) | {"dry_run": dry}))
        return
    for line in result_words(submitted, settings, dry=dry):
        click.echo(line)


async def make_key(settings: Settings) -> Exit:
    """Makes a key, writes its file into the output folder, and says where it must be reachable."""
    key = secrets.token_hex(KEY_BYTES)
    site, output = await _site_and_output(settings)
    if is_object_url(output):
        raise ConfigError(
            f"--new-key writes a file, and {output} is no folder: name one with --output, and copy the file to your site."
        )
    path = Path(output) / f"{key}.txt"
    _write_key(path, key, int(settings.output.file_mode, 8))
    place = f"{site}/{key}.txt"
    if wants_json(settings):
        click.echo(json.dumps({"key": key, "file": str(path), "location": place}))
        return Exit.OK
    click.echo(f"{key}\n")
    click.echo(f"Written to {printable(str(path))}; it must be reachable at {place},")
    click.echo("as text, on each host that the sitemap lists. The key is public.")
    click.echo(f"Then: {suggested(f'submit --indexnow-key {key}')}")
    return Exit.OK


def _write_key(path: Path, key: str, mode: int) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(key, encoding="ascii")
        path.chmod(mode)
    except OSError as error:
        raise OutputError(f"The key file {path} cannot be written: {error.strerror}.") from error


async def _site_and_output(settings: Settings) -> tuple[str, str]:
    """Where the sitemap is published, as far as the settings or a state tell."""
    start = _start(settings)
    try:
        settings = with_state(settings, start)
        frontier = open_frontier(settings, start, read_only=True)
    except (FrontierError, ConfigError):
        site = settings.output.publish_base or start or ANYWHERE
        return urls.origin(f"{site}/"), settings.output.output
    try:
        base = await published_as(frontier, settings, start)
        output = await output_of(frontier, settings)
    finally:
        await frontier.close()
    return urls.origin(f"{base.base}/") if base else ANYWHERE, output


def _start(settings: Settings) -> Url | None:
    return start_url(settings.scope.start[0], normaliser(settings)) if settings.scope.start else None
