"""Settings: one declaration, four layers, and one clear sentence for each mistake."""

import dataclasses
import re
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler.app.job import open_job
from crawler.app.settings_urls import starts_of
from crawler.errors import ConfigError
from crawler.settings import load
from crawler.settings.sections import Scope, Settings, State, keys


def resolve(
    tmp_path: Path, toml: str = "", env: Mapping[str, str] | None = None, **flags: object
) -> tuple[Settings, dict[str, str]]:
    file = tmp_path / "c.toml"
    file.write_text(toml, encoding="utf-8")
    settings, origins = load.resolve(file, env or {}, flags)
    return settings, {origin.key.name: origin.place for origin in origins}


def test_precedence_of_flags_environment_file_and_defaults(tmp_path: Path) -> None:
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
        ("[pase]\nrate = 1", "there is no section [pase]; did you mean pace?"),
        ("max_pages = 1", "max_pages stands above all sections; it belongs below [scope]."),
        ("[pace]\nrat = 1", "[pace] has no key 'rat'; did you mean rate?"),
        ("[http]\nrate = 1", "[http] has no key 'rate'; it belongs to [pace]."),
        ("[pace]\nrate = -1", "[pace] rate: -1 must be a number from 0 to 100000."),
        ("[pace]\nrate = true", "[pace] rate: True must be a number from 0 to 100000."),
        ("[pace]\nrate = inf", "[pace] rate: inf must be a number from 0 to 100000."),
        ("[pace]\nrate = nan", "[pace] rate: nan must be a number from 0 to 100000."),
        ("[pace]\nconcurrency = 100000", "[pace] concurrency: 100000 must be a whole number from 1 to 1000."),
        (
            "[http]\ntimeout = 0",
            "[http] timeout: 0 must be seconds, or a time such as 90s, 30m or 2h, above 0.",
        ),
        ('[http]\ntotal-timeout = "0s"', "'0s' must be seconds, or a time such as 90s, 30m or 2h, above 0."),
        ('[http]\ntimeout = "0 apples"', "'0 apples' must be seconds, or a time such as 90s, 30m or 2h."),
        ("[http]\ntimeout = inf", "inf must be seconds, or a time such as 90s, 30m or 2h."),
        (f"[http]\nmax-body = 1{'0' * 400}", "must be bytes, or a size such as 10MB or 512KiB."),
        (f"[scope]\nmax-time = 1{'0' * 400}", "must be seconds, or a time such as 90s, 30m or 2h."),
        ("[guard]\nkeep-failing = 7", "keep-failing: 7 must be a time with its unit, such as 7d or 12h."),
        ('[scope]\nmax-age = "30 days"', "'30 days' must be a time with its unit, such as 7d or 12h."),
        ('[scope]\nmax-age = "30"', "max-age: '30' must be a time with its unit, such as 7d or 12h."),
        (
            '[verdicts]\ntypes = ["html", "foo"]',
            "'foo' must be html, pdf or a media type such as text/plain.",
        ),
        (
            '[verdicts]\ntypes = "html, text/"',
            "'text/' must be html, pdf or a media type such as text/plain.",
        ),
        ('[scope]\ninclude = "re:a{99999999999}"', "is not a valid regular expression"),
        ('[http]\nmax-body = "10 apples"', "'10 apples' must be bytes, or a size such as 10MB or 512KiB."),
        (
            '[scope]\nscope = "hots"',
            "'hots' must be one of host, path, subdomains, domain (did you mean host?).",
        ),
        (
            '[scope]\nallow-trap = ["path", "calender"]',
            "'calender' must be one of calendar, depth, path, query, session, soft-404 (did",
        ),
        ('[scope]\ninclude = "re:("', "is not a valid regular expression"),
        ("[scope]\ninclude = 3", "3 must be a list."),
        ('[guard]\nmax-shrink = "200%"', "'200%' must be a share such as 20% or 0.2."),
        ("pace = 3", "[pace] must have keys below it."),
        ("rule = 3", "c.toml [[rule]]: 3 must be tables: [[rule]] with a match;"),
        ('rule = ["/a"]', "c.toml [[rule]] 1: '/a' must be a table with the key match."),
        ("[rule]", "c.toml [[rule]]: {} must be tables: [[rule]] with a match;"),
        ("[[rules]]", "there is no section [rules]; did you mean rule?"),
        ('[[rule]]\nmatch = "/a"\n[[rule]]\nlist = false', "[[rule]] 2 match: '' must not be missing."),
        ('[[rule]]\nmatch = "re:("', "[[rule]] 1 match: 're:(' is not a valid regular expression"),
        (
            '[[rule]]\nmatch = "/a"\npriority = 1.1',
            "[[rule]] 1 priority: 1.1 must be a number from 0 to 1.",
        ),
        ('[[rule]]\nmatch = "/a"\npriority = nan', "[[rule]] 1 priority: nan must be a number from 0 to 1."),
        ('[[rule]]\nmatch = "/a"\nlist = "maybe"', "[[rule]] 1 list: 'maybe' must be true or false."),
        (
            '[[rule]]\nmatch = "/a"\nchangefreq = "dayly"',
            "[[rule]] 1 changefreq: 'dayly' must be one of always, hourly, daily, weekly, monthly, yearly, never (did",
        ),
        (
            '[[rule]]\nmatch = "/a"\nprio = 1',
            "[[rule]] 1: 'prio' is not a key of a rule (match, changefreq, priority, list, follow).",
        ),
        ("[pace", "is not valid TOML"),
        ('[output]\noutput = ""', "'' must not be empty."),
        ('[[section]]\nname = "a"\nmatch = ["/a/*"]', "[[section]] 1 match: ['/a/*'] must be a text."),
    ],
)
def test_an_error_in_the_file_is_one_sentence(tmp_path: Path, toml: str, sentence: str) -> None:
    with pytest.raises(ConfigError) as caught:
        resolve(tmp_path, toml)
    text = str(caught.value)
    assert sentence in text
    assert "c.toml" in text
    assert "\n" not in text.replace("\n", "", 0)


def test_an_error_in_the_environment_or_a_flag_names_its_place(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"SITEMAP_CRAWLER_RAET: .*did you mean SITEMAP_CRAWLER_RATE"):
        resolve(tmp_path, env={"SITEMAP_CRAWLER_RAET": "1"})
    with pytest.raises(ConfigError, match="--retries: 'x' must be a whole number of at least 0"):
        resolve(tmp_path, retries="x")


def test_a_missing_file_is_one_sentence() -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        load.resolve(Path("/nowhere/c.toml"))


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
        ("keep_failing", "0", 0.0),
        ("keep_failing", "7d", 604_800.0),
        ("max_age", "90s", 90.0),
        ("max_age", "86400", 86_400.0),
        ("gzip", "off", False),
        ("gzip", "TRUE", True),
        ("include", "/a* 're:^/b c'", ("/a*", "re:^/b c")),
        ("types", "html,pdf", ("html", "pdf")),
        ("types", ("html,pdf", "text/plain"), ("html", "pdf", "text/plain")),
        ("types", "PDF, Application/ld+JSON", ("pdf", "application/ld+json")),
        ("rate", "1e-05", 1e-05),
        ("timeout", 0.25, 0.25),
    ],
)
def test_values_are_parsed_with_units(name: str, text: object, value: object) -> None:
    settings, _ = load.resolve(flags={name: text})
    section = next(key.section for key in keys() if key.field == name)
    assert getattr(getattr(settings, section), name) == value


def test_every_default_survives_a_round_trip() -> None:
    for key in keys():
        if key.default not in (None, ()):
            kind = key.option.kind
            assert kind.read(kind.show(key.default)) == key.default, key.name


def test_parsing_a_default_returns_it_unchanged() -> None:
    assert load.checked(Settings()) == Settings()


SAMPLES: dict[str, st.SearchStrategy[object]] = {
    "rate": st.floats(0, 100_000),
    "concurrency": st.integers(1, 1_000),
    "retries": st.integers(0),
    "timeout": st.floats(0, 2**53, exclude_min=True),
    "max_wait": st.floats(0, 2**53),
    "max_time": st.none() | st.integers(0, 2**53) | st.floats(0, 2**53),
    "max_age": st.floats(0, 2**53) | st.integers(3_600, 2**53) | st.sampled_from(["1s", "1.5d"]),
    "max_body": st.integers(1, 2**53),
    "max_bytes": st.from_regex(r"[1-4]\d(kb|kib|\.5MB)", fullmatch=True),
    "max_shrink": st.floats(0, 1) | st.integers(0, 100).map("{}%".format),
    "priority": st.none() | st.floats(0, 1),
    "gzip": st.booleans(),
    "user_agent": st.text(st.characters(exclude_categories=["C"]), min_size=1).filter(str.strip),
    "output": st.just(Path("there") / "out"),
    "state": st.none() | st.just(Path("state.db")),
    "input": st.lists(st.just(Path("urls.txt"))),
    "header": st.sampled_from([("A: b c",), ("A: 'b", "B: \\")]),
    "include": st.sampled_from([["/sql*"], (r"re:\.pdf$",), ["/a", " re:^/b c"]]),
    "file_mode": st.sampled_from(["0644", "640", "0o600"]),
    "auth_env": st.none() | st.just("CRAWLER_LOGIN"),
    "cache_control": st.none() | st.sampled_from(["no-cache", "public, max-age=3600"]),
    "every": st.none() | st.floats(60, 1e7) | st.sampled_from(["24h", "2d"]),
    "metrics_port": st.none() | st.integers(1, 65_535) | st.sampled_from(["[::1]:9464", "localhost:80"]),
    "publish_command": st.none() | st.just("rsync -a 'a b/' web:"),
    "header_for": st.sampled_from([["a.example X: b c"], (("A.example:81", "X: b"), "b.example Y: z")]),
    "indexnow_key": st.none() | st.from_regex(r"[A-Za-z0-9-]{8,128}", fullmatch=True),
    "indexnow_endpoint": st.just("https://engine.example/indexnow?a=b"),
    "bots": st.sampled_from([("Googlebot",), ("googlebot, bingbot",), ["none"]]),
    "allow_host": st.just(("blog.example.com",)),
    "scope": st.sampled_from(["host", "domain"]),
    "allow_trap": st.sampled_from([("path",), ["query", "session"]]),
    "allow_address": st.sampled_from([("10.0.0.1",), ("10.1.2.3/8", "::1")]),
    "types": st.sampled_from([("html,pdf",), ("HTML", "a/b, c/d")]),
    "rule": st.sampled_from([[{"match": "/a*"}], [{"match": "re:b", "list": False, "priority": 1}]]),
    "section": st.sampled_from([[{"name": "a", "match": "/a*"}], [{"name": "b-1", "match": "re:b"}]]),
    "publish_base": st.none() | st.just("https://www.example.com"),
}


def setting(name: str, value: object) -> Settings:
    """As a program makes it."""
    section = next(key.section for key in keys() if key.field == name)
    return dataclasses.replace(
        Settings(), **{section: dataclasses.replace(getattr(Settings(), section), **{name: value})}
    )


def test_every_kind_has_a_sample() -> None:
    words = {key.option.kind.metavar for key in keys() if not key.option.kind.choices}
    assert {key.option.kind.metavar for key in keys() if key.field in SAMPLES} >= words


@pytest.mark.parametrize("name", SAMPLES)
@given(data=st.data())
def test_parsing_is_idempotent(name: str, data: st.DataObject) -> None:
    once, _ = load.resolve(flags={name: data.draw(SAMPLES[name])})
    assert load.checked(once) == once


@pytest.mark.parametrize(
    ("name", "value", "read"),
    [
        ("rate", 1e-05, 1e-05),
        ("max_wait", 1e-05, 1e-05),
        ("max_wait", 1e15, 1e15),
        ("max_shrink", 1e-05, 1e-05),
        ("max_time", None, None),
        ("include", ["/sql*"], ("/sql*",)),
        ("include", (r"re:\.pdf$ it's",), (r"re:\.pdf$ it's",)),
        ("input", (Path("/a b"),), ("/a b",)),
        ("state", Path("/a b"), "/a b"),
    ],
)
def test_settings_of_a_program_are_parsed(name: str, value: object, read: object) -> None:
    settings = load.checked(setting(name, value))
    section = next(key.section for key in keys() if key.field == name)
    assert getattr(getattr(settings, section), name) == read


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        (setting("rate", -1), "Settings.pace.rate: -1 must be a number from 0 to 100000."),
        (setting("concurrency", 0), "Settings.pace.concurrency: 0 must be a whole number from 1 to 1000."),
        (setting("scope", "galaxy"), "Settings.scope.scope: 'galaxy' must be one of host, path, subdomains,"),
        (
            setting("format", "xlm"),
            "Settings.output.format: 'xlm' must be one of xml, txt, jsonl, html (did you",
        ),
        (setting("include", ("/a", "re:(")), "Settings.scope.include: 're:(' is not a valid regular"),
        (
            setting("user_agent", "bot\r\nX-Evil: 1"),
            "Settings.http.user_agent: 'bot\\r\\nX-Evil: 1' must not contain control characters.",
        ),
    ],
    ids=str,
)
async def test_invalid_settings_of_program_are_reported_before_opening(
    wrong: Settings, sentence: str
) -> None:
    with pytest.raises(ConfigError, match=re.escape(sentence)):
        async with open_job(wrong):
            raise AssertionError


@pytest.mark.anyio
async def test_path_is_accepted_for_text(tmp_path: Path) -> None:
    settings = Settings(
        scope=Scope(start=("example.com",)),
        state=State(state=tmp_path / "state.db"),  # type: ignore[arg-type]
    )
    async with open_job(settings) as job:
        assert job.starts == ("https://example.com/",)
        assert job.settings.state.state == str(tmp_path / "state.db")


@pytest.mark.parametrize(
    "text",
    [
        "https://me:sesame@example.com/",
        "me:sesame@example.com",
        "https://\\sesame@example.com",
        "x://:sesame@h",
    ],
)
def test_a_password_in_a_start_url_is_refused_and_masked(text: str) -> None:
    with pytest.raises(ConfigError, match="--auth-env") as caught:
        starts_of(setting("start", (text,)))
    assert "sesame" not in str(caught.value)


def test_an_at_sign_elsewhere_is_not_a_password() -> None:
    for text in ("https://example.com/@me", "example.com/a:b@c", "https://example.com?q=a@b"):
        assert starts_of(setting("start", (text,)))


def test_names_are_unique_over_all_sections() -> None:
    names = [key.field for key in keys()]
    assert len(names) == len(set(names))


def test_settings_are_frozen() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        Settings().pace.rate = 1


@pytest.mark.parametrize("mode", ["0755", "4644", "0444", "644x", 420, "", "9644", True])
def test_a_file_mode_is_octal_and_its_owner_may_write(mode: object) -> None:
    with pytest.raises(ConfigError, match="must be an octal mode"):
        load.resolve(flags={"file_mode": mode})
