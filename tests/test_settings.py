"""Settings: one declaration, four layers, and one clear sentence for each mistake."""

import dataclasses
from collections.abc import Mapping
from pathlib import Path

import pytest

from crawler import layers
from crawler.errors import ConfigError
from crawler.settings import Settings, keys


def resolve(
    tmp_path: Path, toml: str = "", env: Mapping[str, str] | None = None, **flags: object
) -> tuple[Settings, dict[str, str]]:
    file = tmp_path / "c.toml"
    file.write_text(toml, encoding="utf-8")
    settings, origins = layers.resolve(file, env or {}, flags)
    return settings, {origin.key.name: origin.place for origin in origins}


def test_flags_beat_environment_beats_file_beats_defaults(tmp_path: Path) -> None:
    toml = "[pace]\nrate = 1\nconcurrency = 2\nmax-wait = 3\n"
    env = {"SITEMAP_CRAWLER_RATE": "10", "SITEMAP_CRAWLER_CONCURRENCY": "20", "HOME": "/"}
    settings, places = resolve(tmp_path, toml, env, rate="100")
    assert (settings.pace.rate, settings.pace.concurrency, settings.pace.max_wait) == (100, 20, 3)
    assert settings.http == Settings().http
    assert places["rate"] == "--rate"
    assert places["concurrency"] == "SITEMAP_CRAWLER_CONCURRENCY"
    assert places["max-wait"].endswith("[pace] max-wait")
    assert places["timeout"] == "default"


@pytest.mark.parametrize(
    ("toml", "sentence"),
    [
        ("[pase]\nrate = 1", "there is no section ['pase']; did you mean pace?"),
        ("[pace]\nrat = 1", "[pace] has no key 'rat'; did you mean rate?"),
        ("[http]\nrate = 1", "[http] has no key 'rate'; it belongs to [pace]."),
        ("[pace]\nrate = -1", "[pace] rate: -1 needs a number of at least 0."),
        ("[pace]\nrate = true", "[pace] rate: True needs a number of at least 0."),
        ('[http]\nmax-body = "10 apples"', "'10 apples' needs bytes, or a size such as 10MB or 512KiB."),
        (
            '[scope]\nscope = "hots"',
            "'hots' needs one of host, path, subdomains, domain (did you mean host?).",
        ),
        (
            '[scope]\nallow-trap = ["path", "calender"]',
            "'calender' needs one of calendar, depth, path, query, session, soft-404 (did",
        ),
        ('[scope]\ninclude = "re:("', "is not a valid regular expression"),
        ("[scope]\ninclude = 3", "3 needs a list."),
        ('[guard]\nmax-shrink = "200%"', "'200%' needs a share such as 20% or 0.2."),
        ("pace = 3", "[pace] needs keys below it."),
        ("[pace", "is not valid TOML"),
        ('[output]\noutput = ""', "'' needs a text."),
    ],
)
def test_a_mistake_in_the_file_is_one_sentence(tmp_path: Path, toml: str, sentence: str) -> None:
    with pytest.raises(ConfigError) as caught:
        resolve(tmp_path, toml)
    text = str(caught.value)
    assert sentence in text
    assert "c.toml" in text
    assert "\n" not in text.replace("\n", "", 0)


def test_a_mistake_in_the_environment_or_a_flag_names_its_place(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"SITEMAP_CRAWLER_RAET: .*did you mean SITEMAP_CRAWLER_RATE"):
        resolve(tmp_path, env={"SITEMAP_CRAWLER_RAET": "1"})
    with pytest.raises(ConfigError, match="--retries: 'x' needs a whole number of at least 0"):
        resolve(tmp_path, retries="x")


def test_a_file_that_is_not_there_is_one_sentence() -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        layers.resolve(Path("/nowhere/c.toml"))


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("max_body", "10MB", 10_000_000),
        ("max_body", "512 KiB", 524_288),
        ("max_body", "7", 7),
        ("max_shrink", "20%", 0.2),
        ("max_time", "90", 90.0),
        ("max_time", "30m", 1800.0),
        ("max_time", "1.5h", 5400.0),
        ("gzip", "off", False),
        ("gzip", "TRUE", True),
        ("include", "/a* 're:^/b c'", ("/a*", "re:^/b c")),
        ("types", "html,pdf", ("html", "pdf")),
        ("types", ("html,pdf", "text/plain"), ("html", "pdf", "text/plain")),
    ],
)
def test_values_are_read_in_their_units(name: str, text: object, value: object) -> None:
    settings, _ = layers.resolve(flags={name: text})
    section = next(key.section for key in keys() if key.field == name)
    assert getattr(getattr(settings, section), name) == value


def test_every_default_survives_being_written_and_read() -> None:
    for key in keys():
        if key.default not in (None, ()):
            kind = key.option.kind
            assert kind.read(kind.show(key.default)) == key.default, key.name


def test_names_are_unique_over_all_sections() -> None:
    names = [key.field for key in keys()]
    assert len(names) == len(set(names))


def test_settings_are_frozen() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        Settings().pace.rate = 1  # type: ignore[misc]
