"""What the program says about itself: short and long help, completions, and the command that was meant."""

import shlex
import shutil
import subprocess
from pathlib import Path

import click
import pytest

from crawler.cli.commands import cli
from crawler.cli.options import MAIN
from crawler.settings.sections import keys
from tests.commands import Run


@pytest.mark.parametrize("name", cli.commands)
def test_short_help_is_not_longer_than_the_long_one(run: Run, name: str) -> None:
    short, long = (run(name, flag) for flag in ("-h", "--help"))
    assert (short[0], short[2], long[0]) == (0, "", 0)
    assert len(short[1].splitlines()) <= len(long[1].splitlines())
    assert "Examples:" in short[1]


def test_short_help_of_crawl_has_the_main_flags(run: Run) -> None:
    _, out, _ = run("crawl", "-h")
    assert {name for name in MAIN if f"--{name.replace('_', '-')}" in out} == MAIN
    assert {key.field for key in keys()} | {"site"} > MAIN
    assert len(out.splitlines()) < 60
    assert "--help shows" in out
    assert "--max-verdict-change" not in out


def test_each_short_help_has_the_site(run: Run) -> None:
    for name, command in cli.commands.items():
        has_site = any(param.name == "site" for param in command.params)
        assert ("--site NAME" in run(name, "-h")[1]) is has_site, name


def test_every_flag_of_crawl_is_a_key_and_a_variable() -> None:
    """As the README, the man page and the reference say, with their exceptions."""
    settings = {key.name: key.env for key in keys()}
    for param in cli.commands["crawl"].params:
        if isinstance(param, click.Option) and param.name != "h":
            flag = param.opts[-1].removeprefix("--")
            variable = f"SITEMAP_CRAWLER_{flag.upper().replace('-', '_')}"
            assert settings.get(flag, param.envvar) == variable
            assert (flag in settings) is (flag not in {"config", "site"})


def test_short_help_that_leaves_out_little_is_the_long_one(run: Run) -> None:
    assert run("status", "-h") == run("status", "--help")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_is_accepted_by_its_shell(run: Run, shell: str) -> None:
    code, out, err = run("completion", shell)
    assert (code, err) == (0, "")
    assert f"_SITEMAP_CRAWLER_COMPLETE={shell}_complete" in out
    if shutil.which(shell):
        read = subprocess.run([shell, "-n"], input=out, capture_output=True, text=True, check=False)
        assert (read.returncode, read.stderr) == (0, "")


def test_bash_registers_the_completion(run: Run) -> None:
    script = run("completion", "bash")[1] + "complete -p sitemap-crawler\n"
    done = subprocess.run(["bash"], input=script, capture_output=True, text=True, check=True)
    assert done.stdout.strip().endswith("sitemap-crawler")


COMPLETED = [
    ("crawl --recipe w", ["wordpress"]), ("config --recipe dr", ["drupal"]), ("crawl --scope d", ["domain"]),
    ("export --format j", ["jsonl"]), ("crawl --no-rule can", ["canonical"]), ("list pages --format c", ["csv"]),
    ("export --no-hr", ["--no-hreflang"]), ("list f", ["findings"]),
]  # fmt: skip


@pytest.mark.parametrize(("typed", "words"), COMPLETED)
def test_values_are_completed(
    run: Run, monkeypatch: pytest.MonkeyPatch, typed: str, words: list[str]
) -> None:
    monkeypatch.setenv("_SITEMAP_CRAWLER_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", f"sitemap-crawler {typed}")
    monkeypatch.setenv("COMP_CWORD", str(len(typed.split())))
    assert run() == (0, "".join(f"plain,{word}\n" for word in words), "")


def test_every_fixed_set_of_values_is_completed() -> None:
    options = {param.name: param for param in cli.commands["crawl"].params}
    for key in keys():
        if key.option.kind.choices and key.option.flag:
            found = options[key.field].shell_complete(click.Context(cli), "")
            assert [item.value for item in found] == list(key.option.kind.choices)


def test_unknown_shell_is_a_usage_error(run: Run) -> None:
    code, _, err = run("completion", "tcsh")
    assert (code, "'tcsh' is not one of 'bash', 'zsh', 'fish'" in err) == (2, True)


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("https://example.com/a?b", "crawl 'https://example.com/a?b'"),
        ("example.com", "crawl example.com"),
        ("localhost:8000", "crawl localhost:8000"),
        ("example.com/a", "crawl example.com/a"),
        ("http//x.y", "crawl http://x.y"),
        ("www.x.y.", "crawl www.x.y"),
        ("/about", "explain /about"),
        ("urls.txt", "crawl --input urls.txt"),
        ("sitemaps", "validate sitemaps"),
        ("CRAWL", "crawl"),
        ("help", "--help"),
        ("version", "--version"),
    ],
)
def test_url_in_place_of_a_command(run: Run, typed: str, meant: str) -> None:
    Path("urls.txt").write_text("")
    Path("sitemaps").mkdir()
    assert f"{typed!r} is no command: did you mean `sitemap-crawler {meant}`?" in run.fails(2, typed)


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("example.com --rate 2", "crawl example.com --rate 2"),
        ("--rate 2 example.com", "crawl --rate 2 example.com"),
        ("-o 'my folder' crawl example.com", "crawl -o 'my folder' example.com"),
        ("CRAWL example.com", "crawl example.com"),
    ],
)
def test_flags_stay_in_the_command_that_is_meant(run: Run, typed: str, meant: str) -> None:
    assert f"did you mean `sitemap-crawler {meant}`?" in run.fails(2, *shlex.split(typed))


@pytest.mark.parametrize(
    ("typed", "near"), [("crwl", "'crawl'"), ("stat", "'state', 'status'"), ("me@x.y", ""), ("p/3", "")]
)
def test_unknown_word_has_the_similar_commands(run: Run, typed: str, near: str) -> None:
    err = run.fails(2, typed)
    assert f"No such command '{typed}'" in err
    assert near in err
    assert ("id you mean" in err) == bool(near)


def test_list_of_commands_fits_eighty_columns() -> None:
    lines = cli.get_help(click.Context(cli, info_name="sitemap-crawler")).splitlines()[1:]
    assert [line for line in lines if len(line) > 80 or line.endswith("...")] == []
