"""Loads settings from defaults < TOML file < environment < flags, and records where each value comes from.

An unknown key or an invalid value is a `ConfigError` of one sentence that names the place and suggests a
similar name.
"""

import dataclasses
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from os import PathLike
from pathlib import Path
from typing import Any

from msgspec import Struct

from crawler.errors import ConfigError
from crawler.parse.credentials import MASK, masked
from crawler.settings.option import Setting
from crawler.settings.sections import DEFAULTS, Settings, keys

PREFIX = "SITEMAP_CRAWLER_"
FILE = "sitemap-crawler.toml"  # in the working folder: read if no other file is named
SITE = "site"  # the name of the tables of sites
_OF_ALL_SITES = frozenset({"every", "metrics-port", "processes", "log-format", "quiet", "verbose"})
_NOT_SETTINGS = {PREFIX + "CONFIG", PREFIX + "SITE"}  # the path of the file, and which of its sites


class Origin(Struct, frozen=True):
    """An effective value and its origin: `default`, a file, a variable or a flag."""

    key: Setting
    value: Any
    place: str


class RawValue(Struct, frozen=True):
    """A value as given, not yet parsed, and where it was given."""

    key: Setting
    value: object
    place: str


class SiteTable(Struct, frozen=True):
    """One `[[site]]` of a file: settings by name, over those of the file."""

    name: str  # as given; may be empty
    place: str  # for errors
    values: Mapping[str, Any]


def resolve(
    file: str | PathLike[str] | None = None,
    environ: Mapping[str, str] | None = None,
    flags: Mapping[str, object] | None = None,
    site: SiteTable | None = None,
) -> tuple[Settings, list[Origin]]:
    """The effective settings, and the origin of each.

    `flags` maps field names (`max_depth`) to their text. `site`: over the file. Raises `ConfigError`.
    """
    known, path = list(keys()), None if file is None else Path(file)
    effective = {key.field: Origin(key, key.default, "default") for key in known}
    for given in (
        *_from_file(path, known),
        *_from_site(site, known),
        *_from_env(environ or {}, known),
        *_from_flags(flags or {}, known),
    ):
        effective[given.key.field] = _accept(given)
    return _assemble(effective), list(effective.values())


def log_format(file: Path) -> object:
    """The format of the log that a file names, if there is one, even if other settings in it are wrong."""
    with suppress(ConfigError):
        section = _read(file).get("log")
        return section.get("log-format", section.get("log_format")) if isinstance(section, dict) else None
    return None


def found_file() -> Path | None:
    """The settings file in the working folder, if there is one.

    Raises `ConfigError` if another user has put it there: settings can run commands.
    """
    file = Path(FILE)
    if not file.is_file():
        return None
    if os.name == "posix" and file.stat().st_uid not in {0, os.geteuid()}:
        raise ConfigError(
            f"{FILE} in this folder belongs to another user: to use it, name it with --config {FILE}."
        )
    return file


def checked(settings: Settings) -> Settings:
    """Settings constructed by a program, with each value parsed as if from a file. Raises `ConfigError`.

    Values that are already parsed stay as they are.
    """
    if not isinstance(settings, Settings):
        raise ConfigError("Settings: must be a crawler.Settings.")
    given = (RawValue(key, key.of(settings), _in_python(key)) for key in keys())
    return _assemble({one.key.field: _accept(one) for one in given}, settings)


def in_python(sentence: str) -> str:
    """A sentence that names settings as flags (`--max-pages`), with their names in Python instead."""
    known = {key.name: key for key in keys() if key.option.flag}

    def named(flag: re.Match[str]) -> str:
        name, is_off = flag[1], flag[1].startswith("no-") and flag[1] not in known
        key = known.get(name.removeprefix("no-") if is_off else name)
        return flag[0] if key is None else _in_python(key) + (" = False" if is_off else "")

    return re.sub(r"(?<![\w-])--([a-z][a-z0-9-]*)", named, sentence)


def _in_python(key: Setting) -> str:
    return f"Settings.{key.section}.{key.field}"


def changed(settings: Settings) -> Sequence[tuple[str, str]]:
    """Name and value of each setting that is not the default, for a report: without secrets."""
    return [
        (key.name, MASK if key.option.secret else masked(key.option.kind.show(value)))
        for key in keys()
        if (value := key.of(settings)) != key.default
    ]


def completed(settings: Settings, origins: Iterable[Origin], earlier: Mapping[str, str]) -> Settings:
    """The settings with the `earlier` values, in the form of `changed`, of those that were not given."""
    for origin in origins:
        key = origin.key
        if origin.place == "default" and key.name in earlier:
            value = _accept(RawValue(key, earlier[key.name], f"the run's {key.name}")).value
            section = dataclasses.replace(getattr(settings, key.section), **{key.field: value})
            settings = dataclasses.replace(settings, **{key.section: section})
    return settings


def _accept(given: RawValue) -> Origin:
    try:
        value = given.key.option.kind.read(given.value)
    except ValueError as error:
        part = getattr(error, "part", given.value)
        shown = MASK if given.key.option.secret else _shown(part)
        raise ConfigError(f"{given.place}{getattr(error, 'where', '')}: {shown} {error}.") from None
    return Origin(given.key, value, given.place)


def _assemble(effective: Mapping[str, Origin], over: Settings = DEFAULTS) -> Settings:
    sections: dict[str, dict[str, Any]] = {}
    for item in effective.values():
        sections.setdefault(item.key.section, {})[item.key.field] = item.value
    return Settings(
        **{name: dataclasses.replace(getattr(over, name), **values) for name, values in sections.items()}
    )


def _from_flags(flags: Mapping[str, object], known: Iterable[Setting]) -> Iterator[RawValue]:
    for key in known:
        if key.field in flags:
            yield RawValue(key, flags[key.field], f"--{key.name}" if key.option.flag else "URL")


def _from_env(environ: Mapping[str, str], known: Iterable[Setting]) -> Iterator[RawValue]:
    names = {key.env: key for key in known}
    for name in sorted(n for n in environ if n.startswith(PREFIX) and n not in _NOT_SETTINGS):
        if name not in names:
            raise ConfigError(f"{name}: there is no such setting{nearest(name, names)}")
        yield RawValue(names[name], environ[name], name)


def _from_file(file: Path | None, known: Iterable[Setting]) -> Iterator[RawValue]:
    if file is None:
        return
    sections: dict[str, dict[str, Setting]] = {}
    for key in known:
        sections.setdefault(key.table, {})[key.name] = key
    tables = {key.table: key for key in known if key.option.kind.tables}
    for section, values in _read(file).items():
        if section == SITE:
            continue
        if section not in sections:
            raise _no_section(file, section, sections, is_key=not isinstance(values, dict))
        if section in tables:
            yield RawValue(tables[section], values, f"{file} {tables[section].heading}")
            continue
        if not isinstance(values, dict):
            raise ConfigError(f"{file}: [{section}] must have keys below it.")
        for name, value in values.items():
            found = sections[section].get(name.replace("_", "-"))
            if found is None:
                raise ConfigError(
                    f"{file}: [{section}] has no key {_shown(name)}{_elsewhere(name, section, sections)}"
                )
            yield RawValue(found, value, f"{file} [{section}] {found.name}")


def _no_section(
    file: Path, name: str, sections: Mapping[str, Mapping[str, Setting]], *, is_key: bool
) -> ConfigError:
    """The error about a name that is no section. `is_key`: it stands above all sections, with a value."""
    homes = [section for section, keys in sections.items() if name.replace("_", "-") in keys]
    shown = _shown(name).strip("'\"")
    if homes and is_key:
        return ConfigError(f"{file}: {shown} stands above all sections; it belongs below [{homes[0]}].")
    return ConfigError(f"{file}: there is no section [{shown}]{nearest(name, sections)}")


def site_tables(file: Path | None) -> list[SiteTable]:
    """The `[[site]]` tables of a file. Raises `ConfigError`."""
    given = _read(file).get(SITE, []) if file else []
    if not isinstance(given, list) or not all(isinstance(table, dict) for table in given):
        raise ConfigError(f"{file}: [{SITE}] must be tables, each as [[{SITE}]].")
    found = []
    for number, table in enumerate(given, 1):
        place, name = f"{file} [[{SITE}]] {number}", table.get("name", "")
        if not isinstance(name, str) or not re.fullmatch(r"([A-Za-z0-9_][\w.-]{0,99})?", name, re.ASCII):
            raise ConfigError(f"{place} name: {_shown(name)} must be letters, digits, '.', '_' and '-'.")
        values = {key: value for key, value in table.items() if key != "name"}
        found.append(SiteTable(name, f"{place} ({name})" if name else place, values))
    return found


def _from_site(site: SiteTable | None, known: Iterable[Setting]) -> Iterator[RawValue]:
    if site is None:
        return
    names = {key.name: key for key in known if key.name not in _OF_ALL_SITES}
    for name, value in site.values.items():
        found = names.get(name.replace("_", "-"))
        if found is None and name in _OF_ALL_SITES:
            raise ConfigError(f"{site.place}: {name} is one for all sites; set it outside of [[{SITE}]].")
        if found is None:
            raise ConfigError(f"{site.place}: there is no setting {_shown(name)}{nearest(name, names)}")
        yield RawValue(found, value, f"{site.place} {found.name}")


def _read(file: Path) -> dict[str, Any]:
    try:
        data = file.read_bytes()
    except OSError as error:
        raise ConfigError(f"{file}: cannot be read ({error.strerror}).") from error
    import tomllib  # noqa: PLC0415 - takes long, and most runs have no file

    try:
        return tomllib.loads(data.decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{file}: is not valid TOML ({error}).") from error


def _elsewhere(name: str, section: str, sections: Mapping[str, Mapping[str, Setting]]) -> str:
    for other, names in sections.items():
        if name in names:
            return f"; it belongs to [{other}]."
    return nearest(name, sections[section])


def nearest(name: str, names: Iterable[str]) -> str:
    """The end of a sentence: `; did you mean X?` if one of `names` is similar."""
    import difflib  # noqa: PLC0415 - takes long, and only errors need it

    close = difflib.get_close_matches(name, list(names), n=1)
    return f"; did you mean {close[0]}?" if close else "."


def _shown(value: object) -> str:
    text = masked(repr(value) if isinstance(value, str) else str(value))
    return text if len(text) <= 60 else text[:57] + "..."
