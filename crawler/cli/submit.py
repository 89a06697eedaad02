"""`submit`: tells search engines which pages changed since the last submission, from the saved state.

A crawl with --submit says the same at its end. `--new-key` makes a key and its file.
"""

import secrets
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import click

from crawler.app.publication import output_of, published_as
from crawler.app.state import opened_copy
from crawler.app.submission import Submitted, check, is_published, submit
from crawler.cli.output import remark, suggested
from crawler.cli.rows import show_object
from crawler.cli.saved_state import opened_state, start_of, with_state
from crawler.errors import ConfigError, Exit, FrontierError, OutputError
from crawler.parse import url as urls
from crawler.parse.url import Url
from crawler.report.formatting import counted
from crawler.report.printable import printable
from crawler.rules.submission import Change
from crawler.settings.object_url import is_object_url
from crawler.settings.sections import Settings

KEY_BYTES: Final = 16
ANYWHERE: Final = "https://YOUR-HOST"
DUE: Final = ("change", "url")  # of each URL of a dry run
HOSTS_SHOWN: Final = 5  # by name
NOT_GOOGLE: Final = (
    "IndexNow tells Bing, Yandex, Naver, Seznam and others; Google does not take part, and no longer accepts "
    "pings: for Google the sitemap itself is what counts."
)


async def submit_changes(settings: Settings, *, form: str, dry: bool, everything: bool) -> Exit:
    """Submits what is due, and says so on stdout. Raises `ConfigError`, `NotSubmitted`, `FrontierError`."""
    start = start_of(settings)
    settings = with_state(settings, start)
    if not dry:
        check(settings)
    async with opened_state(settings, start, read_only=dry) as frontier:
        base = await published_as(frontier, settings, start)
        why = await is_published(frontier)
        if why or base is None:
            why = why or "there is no run yet: crawl first"
            if form == "text":
                remark(f"Nothing is submitted: {why}.")
            else:
                show_object({"submitted": 0, "because": why}, form)
            return Exit.GUARD if "guard" in why else Exit.PARTIAL
        by_change: dict[str, list[Url]] = {}
        submitted = await submit(
            frontier,
            settings,
            base,
            everything=everything,
            dry=(lambda why, url: by_change.setdefault(why.value, []).append(url)) if dry else None,
            on_counted=lambda due: _show_due(by_change, due) if form == "text" else None,
        )
    if form != "text":
        facts = submission_facts(submitted) | {"dry_run": dry}
        urls = [{"change": change, "url": url} for change, found in by_change.items() for url in found]
        show_object(facts | ({"urls": urls} if dry else {}), form, *(("urls", DUE) if dry else ()))
    else:
        for line in result_words(submitted, settings, dry=dry):
            click.echo(line)
    return Exit.OK


def _show_due(by_change: Mapping[str, Sequence[Url]], due: Submitted) -> None:
    """Shows the counts; below the URLs of a dry run, by change."""
    for change in Change:
        for url in by_change.get(change.value, ()):
            click.echo(f"  {change.value:<8} {printable(url)}")
    click.echo(due_words(due))


def due_words(due: Submitted) -> str:
    """What is due, by change and by host."""
    if not due.due:
        return "Nothing changed since the last submission."
    if Change.AGAIN in due.changes:
        words = f"{counted(due.due, 'URL')} to submit, all that are listed"
        if gone := due.changes[Change.GONE]:
            words += f" and {gone:,} that are gone"
    else:
        kinds = ", ".join(f"{due.changes[kind]:,} {kind.value}" for kind in Change if due.changes[kind])
        words = f"{counted(due.due, 'URL')} changed since the last submission ({kinds})"
    hosts = [f"{printable(name)} {count:,}" for name, count in list(due.hosts.items())[:HOSTS_SHOWN]]
    more = f", and {len(due.hosts) - HOSTS_SHOWN:,} more hosts" if len(due.hosts) > HOSTS_SHOWN else ""
    return f"{words}: {', '.join(hosts)}{more}"


def result_words(submitted: Submitted, settings: Settings, *, dry: bool = False) -> Iterator[str]:
    """What was done."""
    if submitted.noted is not None:
        would = "would be" if dry else "are"
        yield (
            f"First submission: {counted(submitted.noted, 'listed URL')} {would} recorded as known, and "
            "nothing is sent; from now on, changes are. --all sends all of them."
        )
        yield NOT_GOOGLE
    elif submitted.due and dry:
        yield "nothing was sent (--dry-run)"
    elif submitted.due:
        engine = urls.netloc(settings.submit.indexnow_endpoint)
        checked = "; the key is still to be checked there" if submitted.pending else ""
        of = f"{submitted.sent:,} of " if submitted.sent < submitted.due else ""
        yield f"{of}{counted(submitted.due, 'URL')} submitted to {engine}{checked}"
    if submitted.unsure:
        yield (
            f"{counted(submitted.unsure, 'other page')} came with different bytes but no later date: whether "
            "the text changed is not known yet, so they count as unchanged"
        )


def submission_facts(submitted: Submitted) -> dict[str, Any]:
    """The numbers of a submission, for JSON."""
    return {
        "due": {change.value: count for change, count in submitted.changes.items()},
        "hosts": dict(submitted.hosts),
        "submitted": submitted.sent,
        "pending": submitted.pending,
        "noted": submitted.noted,
        "unsure": submitted.unsure,
    }


async def make_key(settings: Settings, *, form: str) -> Exit:
    """Makes a key, writes its file into the output folder, and says where it must be reachable."""
    key = secrets.token_hex(KEY_BYTES)
    site, output = await _site_and_output(settings)
    if is_object_url(output):
        raise ConfigError(
            f"--new-key writes a file, and {output} is no folder: name one with --output, and copy the "
            "file to your site."
        )
    path = Path(output) / f"{key}.txt"
    _write_key(path, key, int(settings.output.file_mode, 8))
    place = f"{site}/{key}.txt"
    if form != "text":
        show_object({"key": key, "file": str(path), "location": place}, form)
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
    start = start_of(settings)
    try:
        settings = with_state(settings, start)
        frontier = await opened_copy(settings, start, remark)
    except (FrontierError, ConfigError):
        site = settings.output.publish_base or start or ANYWHERE
        return urls.origin(f"{site}/"), settings.output.output
    try:
        base = await published_as(frontier, settings, start)
        output = await output_of(frontier, settings)
    finally:
        await frontier.close()
    return urls.origin(f"{base.base}/") if base else ANYWHERE, output
