"""Loads settings from defaults < TOML file < environment < flags, and records where each value comes from.

An unknown key or an invalid value is a `ConfigError` of one sentence that names the place and suggests a
similar name.
"""

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

from crawler.errors import ConfigError
from crawler.parse.credentials import MASK, masked
from crawler.settings.option import Setting
from crawler.settings.sections import DEFAULTS, Settings, keys

PREFIX = "SITEMAP_CRAWLER_"
_NOT_SETTINGS = {PREFIX + "CONFIG"}  # the path of the file


@dataclass(frozen=True, slots=True)
class Origin:
    """An effective value and its origin: `default`, a file, a variable or a flag."""

    key: Setting
    value: Any
    place: str


@dataclass(frozen=True, slots=True)
class RawValue:
    """A value as given, not yet parsed, and where it was given."""

    key: Setting
    value: object
    place: str


def resolve(
    file: Path | None = None,
    environ: Mapping[str, str] | None = None,
    flags: Mapping[str, object] | None = None,
) -> tuple[Settings, list[Origin]]:
    """The effective settings, and the origin of each.

    `flags` maps field names (`max_depth`) to their text. Raises `ConfigError`.
    """
    known = list(keys())
    effective = {key.field: Origin(key, key.default, "default") for key in known}
    for given in (
        *_from_file(file, known),
        *_from_env(environ or {}, known),
        *_from_flags(flags or {}, known),
    ):
        effective[given.key.field] = _accept(given)
    return _assemble(effective), list(effective.values())


def checked(settings: Settings) -> Settings:
    """Settings constructed by a program, with each value parsed as if from a file. Raises `ConfigError`.

    Values that are already parsed stay as they are. A single text for a list becomes its only element.
    """
    if not isinstance(settings, Settings):
        raise ConfigError("Settings: must be a crawler.Settings.")
    return _assemble({given.key.field: _accept(given) for given in _from_settings(settings)})


def changed(settings: Settings) -> Sequence[tuple[str, str]]:
    """Name and value of each setting that is not the default, for a report: without secrets."""
    return [
        (key.name, MASK if key.option.secret else masked(key.option.kind.show(value)))
        for key in keys()
        if (value := getattr(getattr(settings, key.section), key.field)) != key.default
    ]


def _accept(given: RawValue) -> Origin:
    try:
        value = given.key.option.kind.read(given.value)
    except ValueError as error:
        part = getattr(error, "part", given.value)
        shown = MASK if given.key.option.secret else _shown(part)
        raise ConfigError(f"{given.place}{getattr(error, 'where', '')}: {shown} {error}.") from None
    return Origin(given.key, value, given.place)


def _assemble(effective: Mapping[str, Origin]) -> Settings:
    sections: dict[str, dict[str, Any]] = {}
    for item in effective.values():
        sections.setdefault(item.key.section, {})[item.key.field] = item.value
    return Settings(
        **{name: dataclasses.replace(getattr(DEFAULTS, name), **values) for name, values in sections.items()}
    )


def _from_settings(settings: Settings) -> Iterator[RawValue]:
    for key in keys():
        section, wanted = getattr(settings, key.section), type(getattr(DEFAULTS, key.section))
        if not isinstance(section, wanted):
            raise ConfigError(f"Settings.{key.section}: must be a {wanted.__name__} (crawler.settings).")
        value = getattr(section, key.field)
        if isinstance(key.default, tuple) and isinstance(value, str | PathLike):
            value = (value,)
        yield RawValue(key, value, f"Settings.{key.section}.{key.field}")


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
        if section not in sections:
            name = _shown(section).strip("'\"")
            raise ConfigError(f"{file}: there is no section [{name}]{nearest(section, sections)}")
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


def _read(file: Path) -> dict[str, Any]:
    import tomllib  # noqa: PLC0415 - takes long, and most runs have no file

    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"{file}: cannot be read ({error.strerror}).") from error
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
