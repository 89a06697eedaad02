"""The sites of one settings file: each `[[site]]` table has settings of its own over those of the file.

Each site has its own state, output folder and report files, named by the site, unless its table names them.
Opens nothing but the settings file.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final, NamedTuple

from crawler.app.settings_urls import normaliser, start_url
from crawler.app.state import DATABASES, FOLDER, MEMORY, is_database, name_of
from crawler.errors import ConfigError
from crawler.parse import url as urls
from crawler.parse.url import Url
from crawler.rules.scope import SiteScope
from crawler.settings import load
from crawler.settings.load import Origin, SiteTable
from crawler.settings.object_url import state_object
from crawler.settings.sections import Settings

SHOWN: Final = 20  # names in an error


class SiteSettings(NamedTuple):
    """The settings of one site. `name`: empty if the file has no `[[site]]` tables, or none is meant."""

    name: str
    settings: Settings
    origins: Sequence[Origin]


def sites_of(
    file: Path | None,
    environ: Mapping[str, str],
    flags: Mapping[str, object],
    wanted: Sequence[str] = (),
    starts: Sequence[str] = (),
) -> list[SiteSettings]:
    """The sites that a command is for: those that `wanted` names, the one of the URL `starts`, else all.

    A state of one crawl names one as well. If it or `starts` name none of them, the result is the settings
    without any table. Raises `ConfigError`.
    """
    tables = load.site_tables(file)
    given = dict(flags) | ({"start": tuple(starts)} if starts else {})
    if not tables:
        if wanted:
            raise ConfigError(f"--site {wanted[0]}: {file or 'the command line'} has no [[site]] tables.")
        return [SiteSettings("", *load.resolve(file, environ, given))]
    sites = [_site(file, environ, {}, table) for table in tables]
    _check_names(file, sites)
    found, state = sites, str(flags.get("state", ""))
    if wanted:
        found = [_named(file, sites, name) for name in wanted]
        if starts and (others := [site for site in found if _length_on(site, starts[0]) < 0]):
            start, name = _start(others[0].settings), others[0].name
            raise ConfigError(f"--site {name}: {starts[0]} is not on that site, which starts at {start}.")
    elif starts:
        nearest = max(sites, key=lambda site: _length_on(site, starts[0]))
        found = [nearest] if _length_on(nearest, starts[0]) >= 0 else []
    elif state not in ("", MEMORY) and ("#" in state or not state.startswith(DATABASES)):
        found = [site for site in sites if site.settings.state.state == state]
    chosen = [table for table, site in zip(tables, sites, strict=True) if site in found]
    is_alone = found is not sites and len(chosen) == 1
    return [_site(file, environ, flags, table, is_alone=is_alone) for table in chosen] or [
        SiteSettings("", *load.resolve(file, environ, given))
    ]


def _site(
    file: Path | None,
    environ: Mapping[str, str],
    flags: Mapping[str, object],
    table: SiteTable,
    *,
    is_alone: bool = False,
) -> SiteSettings:
    settings, origins = load.resolve(file, environ, flags, table)
    if not settings.scope.start:
        raise ConfigError(f"{table.place}: has no start.")
    name = table.name or name_of(_start(settings))
    own = {
        item.key.field
        for item in origins
        if item.place.startswith(table.place) or (is_alone and item.key.field in flags)
    }
    settings = _kept_apart(settings, name, own)
    if "state" not in flags:
        words = () if file == Path(load.FILE) else ("--config", str(file))
        settings = replace(settings, state=replace(settings.state, site=(*words, "--site", name)))
    return SiteSettings(name, settings, [_effective(item, settings, name) for item in origins])


def _effective(item: Origin, settings: Settings, name: str) -> Origin:
    value = item.key.of(settings)
    return item if value == item.value else Origin(item.key, value, f"{item.place}, for the site {name}")


def _start(settings: Settings) -> Url:
    return start_url(settings.scope.start[0], normaliser(settings))


def _kept_apart(settings: Settings, name: str, own: set[str]) -> Settings:
    """The settings with places of this site alone, where it has no `own`."""
    state, output, report = settings.state, settings.output, settings.report
    if "state" not in own and state.state != MEMORY:
        state = replace(state, state=_state(settings, name))
    if "output" not in own:
        if output.is_stdout:
            raise ConfigError("--output -: several sites cannot be written to stdout; name one with --site.")
        output = replace(output, output=f"{output.output.rstrip('/')}/{name}")
    if "report" not in own:
        report = replace(report, report=tuple(_beside(path, name) for path in report.report))
    if "metrics_file" not in own and report.metrics_file:
        report = replace(report, metrics_file=_beside(report.metrics_file, name))
    return replace(settings, state=state, output=output, report=report)


def _state(settings: Settings, name: str) -> str:
    given = settings.state.state
    if not given:
        return str(FOLDER / f"{name}.db")
    if not is_database(settings):
        folder, _, file = given.rpartition("/")
        return f"{folder}/{_beside(file, name)}" if state_object(given) else _beside(given, name)
    return given if "#" in given else f"{given}#{name}"


def _beside(path: str, name: str) -> str:
    """`report.html` of the site `shop` is `report-shop.html`."""
    file = Path(path)
    return str(file.with_name(f"{file.stem}-{name}{file.suffix}"))


def _check_names(file: Path | None, sites: Sequence[SiteSettings]) -> None:
    places: tuple[tuple[str, Callable[[SiteSettings], str | None]], ...] = (
        ("name", lambda site: site.name),
        ("output", lambda site: site.settings.output.output),
        ("state", lambda site: site.settings.state.state),
    )
    for key, of in places:
        known = dict[str | None, int]()
        for number, site in enumerate(sites, 1):
            value = of(site)
            if value in known and value != MEMORY:
                raise ConfigError(
                    f"{file} [[site]]: {known[value]} and {number} have the same {key}, {value}: "
                    f"give one of them another {key}."
                )
            known[value] = number


def _named(file: Path | None, sites: Sequence[SiteSettings], wanted: str) -> SiteSettings:
    for site in sites:
        if site.name == wanted:
            return site
    names = ", ".join(site.name for site in sites[:SHOWN])
    raise ConfigError(f"--site {wanted}: {file} has no such site; choose one of {names}.")


def _length_on(site: SiteSettings, text: str) -> int:
    """How much of a URL is the folder of a site's start URL; -1 on another host."""
    url = start_url(text, normaliser(site.settings))
    starts = [start_url(start, normaliser(site.settings)) for start in site.settings.scope.start]
    scope = SiteScope.of(starts, site.settings.scope)
    folders = map(str.__add__, map(urls.origin, starts), scope.folders)
    return max(map(len, filter(url.startswith, folders)), default=0 if scope.on_site(url) else -1)
