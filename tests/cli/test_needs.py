"""Flags that have no effect because of another setting: the table in both directions, and what it must have."""

import re
from typing import Any

import pytest

from crawler.cli.commands import cli
from crawler.cli.read_settings import NEEDS, Need, check_needs
from crawler.errors import ConfigError
from crawler.settings.load import resolve
from crawler.settings.sections import keys
from tests.commands import Run

Flags = dict[str, Any]
# By the field that decides: flags without and with which the others have an effect.
CASES: dict[str, tuple[Flags, Flags]] = {
    "drop_query": ({"drop_query": True}, {"drop_query": False}),
    "list_only": ({"list_only": True}, {}),
    "render": ({"render": "off"}, {"render": "auto"}),
    "format": ({"format": "jsonl"}, {"format": "xml"}),
    "output": ({"output": "-"}, {"output": "public"}),
    "publish_command": ({"output": "public"}, {"publish_command": "true"}),
    "submit": ({}, {"submit": True}),
    "check_external": ({"check_external": False}, {"check_external": True}),
    "webhook_env": ({}, {"webhook_env": "HOOK"}),
    "state": ({"state": "a.db"}, {"state": "postgresql://x@y/z"}),
    "quiet": ({"quiet": True}, {}),
}
VALUES = {
    "priority": "0.5", "changefreq": "daily", "hreflang": True, "images": True, "gzip": True, "verbose": True,
    "file_mode": "0640", "indexnow_key": "0f3c9a51d2e84b76", "indexnow_key_location": "https://x.y/k",
    "indexnow_endpoint": "https://x.y/", "webhook_when": "always", "strip_param": ("a",), "keep_param": ("a",),
    "check_files": ("scripts",),
}  # fmt: skip
FLAGS = [(need, field) for need in NEEDS for field in need.fields]


@pytest.mark.parametrize(("need", "field"), FLAGS, ids=[field for _, field in FLAGS])
def test_flag_is_refused_only_where_it_has_no_effect(need: Need, field: str) -> None:
    typed = {field: VALUES.get(field, "9")}
    known = {key.field: None for key in keys() if key.field != need.unless}
    without, effective = (resolve(None, {}, typed | other)[0] for other in CASES[need.by])
    with pytest.raises(ConfigError, match=rf"^--{field.replace('_', '-')} has no effect with"):
        check_needs(typed, known, [without])
    check_needs(typed, known, [effective])
    check_needs(typed, known, [without, effective])  # of two sites, it concerns one
    check_needs({}, known, [without])  # in a file
    check_needs(typed, {}, [without])  # of a command for which it has an effect


@pytest.mark.parametrize("need", NEEDS, ids=[need.by for need in NEEDS])
def test_table_names_settings(need: Need) -> None:
    fields = {key.field for key in keys()}
    assert {*need.fields, need.by} <= fields
    commands = [{param.name for param in command.params} for command in cli.commands.values()]
    assert any(need.by in names and need.unless not in names for names in commands)


# Their help names another flag that they do not need, or without which they are refused where they are used.
NAMING = {
    "max_hosts": "scope", "list_only": "input", "processes": "concurrency", "recipe": "recipe",
    "indexnow_key": "new-key", "client_key": "client-cert", "stylesheet": "no-gzip",
    "check_files": "images",
}  # fmt: skip


def test_help_that_names_another_flag_is_in_the_table() -> None:
    needs = {(field, need.by.replace("_", "-")) for need in NEEDS for field in need.fields}
    named = {(key.field, flag) for key in keys() for flag in re.findall(r"--([a-z][a-z-]+)", key.option.help)}
    assert named - needs == set(NAMING.items())


@pytest.mark.parametrize(("section", "switch"), [("external", "check_external"), ("submit", "submit")])
def test_settings_of_what_is_off_are_in_the_table(section: str, switch: str) -> None:
    fields = {key.field for key in keys() if key.section == section}
    assert {field for need in NEEDS if need.by == switch for field in need.fields} == fields - {switch}


REFUSED = [
    ("crawl --browser x", "--browser has no effect without --render auto or always."),
    ("crawl -q -v", "--verbose has no effect with --quiet."),
    ("crawl --run tonight", "--run has no effect without a --state on PostgreSQL."),
    ("export --hreflang --format txt", "--hreflang has no effect with --format txt or jsonl."),
    ("demo -qv", "--verbose has no effect with --quiet."),
    ("demo --serve 9000 -o x", "--serve writes nothing: leave out --output. (See `sitemap-crawler demo --help`.)"),
    ("submit --new-key --all", "--new-key only writes a file: leave out --dry-run and --all. (See `sitemap-crawler submit --help`.)"),
]  # fmt: skip


@pytest.mark.parametrize(("words", "sentence"), REFUSED)
def test_commands_refuse_flags_without_effect(run: Run, words: str, sentence: str) -> None:
    assert run(*words.split()) == (2, "", f"sitemap-crawler: {sentence}\n")


def test_flags_of_a_file_and_of_the_environment_are_not_refused(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SITEMAP_CRAWLER_BROWSER", "/usr/bin/chromium")
    monkeypatch.setenv("SITEMAP_CRAWLER_VERBOSE", "1")
    for more in ((), ("--images", "--format", "txt"), ("-q",), ("--no-quiet", "-v"), ("--no-submit",)):
        assert "has no effect" not in run("crawl", "https://nowhere.invalid/", "--retries", "0", *more)[2]
