"""Reads the settings of a command: of a file that is named or found, of the environment, and of its flags.

`settings.load` says which one counts; here, which file it is, and which of its sites a command is for.
"""

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from crawler.cli.options import typed
from crawler.cli.output import configure_log
from crawler.errors import ConfigError
from crawler.model.log import log
from crawler.report.printable import printable
from crawler.settings import load
from crawler.settings.object_url import is_object_url, state_object
from crawler.settings.sections import Settings

if TYPE_CHECKING:
    from crawler.app.sites import SiteSettings


def read_settings(params: Mapping[str, Any], *urls: str | None) -> Settings:
    """The settings of one site, which --site, a URL or --state names if there are several.

    Of a command without --site, those that all sites have in common. Raises `ConfigError`.
    """
    return read_layers(params, *urls)[0]


def read_layers(params: Mapping[str, Any], *urls: str | None) -> tuple[Settings, Sequence[load.Origin]]:
    """The same, with the origin of each."""
    file, found = _file(params)
    if "site" in params and _has_sites(params):
        sites = read_sites(params, *urls)
        if len(sites) > 1:
            raise ConfigError(f"There are {len(sites)} sites in {file}: choose one of {_choice(sites)}.")
        return sites[0].settings, sites[0].origins
    start = tuple(url for url in urls if url)
    settings, origins = load.resolve(file, os.environ, typed(params) | ({"start": start} if start else {}))
    _tell(params, [settings], found)
    return settings, origins


def read_origins(params: Mapping[str, Any]) -> "list[tuple[str, Sequence[load.Origin]]]":
    """Where settings come from: those of all sites, and with the name of each those that differ."""
    if not _has_sites(params):
        return [("", read_layers(params)[1])]
    sites = read_sites(params)
    if len(sites) == 1:
        return [(sites[0].name, sites[0].origins)]
    common = load.resolve(_file(params)[0], os.environ, typed(params))[1]
    differing = [(site.name, [item for item in site.origins if item not in common]) for site in sites]
    return [("", common), *differing]


def read_sites(params: Mapping[str, Any], *urls: str | None) -> "list[SiteSettings]":
    """The settings of each site that a command is for."""
    from crawler.app.sites import sites_of  # noqa: PLC0415 - only crawls and several sites need it

    file, found = _file(params)
    wanted, starts = params.get("site", ()), [url for url in urls if url]
    sites = sites_of(file, os.environ, typed(params), wanted, starts)
    _tell(params, [site.settings for site in sites], found)
    if starts and not sites[0].name and load.site_tables(file):
        words = f"{printable(starts[0])} is on none of {_choice(sites_of(file, os.environ, {}))} in {file}"
        log.info(words, event="on no site", url=starts[0], file=str(file))
    return sites


def read_crawled(params: Mapping[str, Any], *urls: str) -> "list[SiteSettings]":
    """The settings of each site to crawl: a state alone says of none where it starts."""
    from crawler.app.sites import sites_of  # noqa: PLC0415 - as above

    sites, file = read_sites(params, *urls), _file(params)[0]
    if not sites[0].settings.scope.start and load.site_tables(file):
        choice = _choice(sites_of(file, os.environ, {}))
        raise ConfigError(
            f"--state {params['state']} is of no site in {file}: add one of {choice}, or a URL."
        )
    return sites


def _choice(sites: "Sequence[SiteSettings]") -> str:
    return ", ".join(f"--site {site.name}" for site in sites)


def _has_sites(params: Mapping[str, Any]) -> bool:
    return bool(params.get("site") or load.site_tables(_file(params)[0]))


def _file(params: Mapping[str, Any]) -> tuple[Path | None, Path | None]:
    """The settings file; and the same if it was found, and not named."""
    found = None if params.get("config") else load.found_file()
    return found or (Path(params["config"]) if params.get("config") else None), found


def _tell(params: Mapping[str, Any], sites: Sequence[Settings], found: Path | None = None) -> None:
    """Configures the log, names the file that was found, and refuses flags that have no effect."""
    configure_log(sites[0].log)
    check_needs(typed(params), params, sites)
    if found:
        words = f"settings are read from {found}, found in this folder"
        log.info(words, event="settings found", file=str(found))


def read_given(params: Mapping[str, Any]) -> Settings:
    """The settings of commands that do not concern the site of a file in the working folder."""
    file = Path(params["config"]) if params.get("config") else None
    settings = load.resolve(file, os.environ, typed(params))[0]
    _tell(params, [settings])
    return settings


# -- flags without effect ------------------------------------------------------------------------------------


# Only what is given on the command line counts: a file may have settings for several commands. Values that
# contradict each other wherever they are from are refused where they are used.


class Need(Struct, frozen=True):
    """What flags need. `by`: the field that decides; a command without it does not need it."""

    fields: tuple[str, ...]
    by: str
    is_met: Callable[[Settings], bool]
    words: str  # the end of the sentence
    unless: str = ""  # a command with this field has another use for the flags


NEEDS: Final = (
    Need(("strip_param", "keep_param"), "drop_query", lambda s: not s.urls.drop_query, "with --drop-query"),
    Need(("max_depth",), "list_only", lambda s: not s.scope.list_only, "with --list-only"),
    Need(("browser",), "render", lambda s: s.render.render != "off", "without --render auto or always"),
    Need(("changefreq", "priority"), "format", lambda s: s.output.form == "xml",
         "with --format txt or jsonl"),
    Need(("hreflang", "images"), "format", lambda s: s.output.form == "xml",
         "with --format txt or jsonl", unless="render"),  # a crawl reports on them
    Need(("gzip", "file_mode", "publish_command"), "output", lambda s: not s.output.is_stdout,
         "with --output -"),
    Need(("publish_timeout",), "publish_command",
         lambda s: bool(s.output.publish_command or is_object_url(s.output.output)
                        or state_object(s.state.state)),
         "without --publish-command or an object store"),
    Need(("indexnow_key", "indexnow_key_location", "indexnow_endpoint"), "submit", lambda s: s.submit.submit,
         "without --submit"),
    Need(("check_files", "max_external", "max_external_hosts", "max_external_time"), "check_external",
         lambda s: s.external.check_external, "without --check-external"),
    Need(("webhook_when",), "webhook_env", lambda s: s.report.webhook_env is not None,
         "without --webhook-env"),
    Need(("run",), "state", lambda s: (s.state.state or "").startswith("postgres"),
         "without a --state on PostgreSQL"),
    Need(("verbose",), "quiet", lambda s: not s.log.quiet, "with --quiet"),
)  # fmt: skip


def check_needs(typed: Mapping[str, Any], known: Collection[str], sites: Sequence[Settings]) -> None:
    """Raises `ConfigError` for a flag that has no effect on any of the sites.

    `typed`: the flags that were given; `known`: those that the command has.
    """
    for need in NEEDS:
        given = [field for field in need.fields if typed.get(field) not in (None, False)]
        if given and need.by in known and need.unless not in known and not any(map(need.is_met, sites)):
            raise ConfigError(f"--{given[0].replace('_', '-')} has no effect {need.words}.")
