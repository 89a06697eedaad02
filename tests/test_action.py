"""action.yml: its form, and its commands, run by bash as a runner runs them."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from crawler.cli.demo.site import Site

ROOT = Path(__file__).parent.parent
ACTION = yaml.safe_load((ROOT / "action.yml").read_text())
STEPS = ACTION["runs"]["steps"]
INPUTS = ACTION["inputs"]


def test_the_form_of_the_action() -> None:
    assert set(ACTION) == {"name", "description", "branding", "inputs", "outputs", "runs"}
    assert len(ACTION["description"]) <= 125, "the marketplace takes no more"
    assert ACTION["runs"]["using"] == "composite"
    for given in INPUTS.values():
        assert set(given) in ({"description", "required"}, {"description", "default"})
        assert isinstance(given.get("default", ""), str), "an input is a text"
    for step in STEPS:
        assert set(step) <= {"id", "name", "if", "uses", "with", "shell", "env", "run"}
        assert ("uses" in step) != ("run" in step)
        if "run" in step:
            assert step["shell"] == "bash", "a composite action names the shell of each command"
        else:
            assert re.fullmatch(r"actions/[\w/-]+@[0-9a-f]{40}", step["uses"])


def test_no_input_is_written_into_a_script() -> None:
    assert not [step["name"] for step in STEPS if "${{" in step.get("run", "")]


def test_expressions_name_what_exists() -> None:
    text = (ROOT / "action.yml").read_text()
    ids = {step["id"]: step.get("run", "") for step in STEPS if "id" in step}
    expressions = re.findall(r"\$\{\{ (.+?) \}\}", text) + [step["if"] for step in STEPS if "if" in step]
    for expression in expressions:
        for name in re.findall(r"inputs\.([\w-]+)", expression):
            assert name in INPUTS, expression
        for step, name in re.findall(r"steps\.(\w+)\.outputs\.([\w-]+)", expression):
            assert f"{name}=" in ids[step], expression
        for name in re.findall(r"github\.(\w+)", expression):
            assert name in {"action_path", "run_id", "run_attempt"}


class Runner:
    """Runs the commands of the action in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.summary, self.outputs = folder, folder / "summary", folder / "outputs"
        (folder / "bin").mkdir()
        program = folder / "bin/sitemap-crawler"
        program.write_text(f'#!/bin/sh\nPYTHONPATH={ROOT} exec {sys.executable} -m crawler "$@"\n')
        program.chmod(0o755)
        (folder / "bin/python").symlink_to(sys.executable)

    def run(self, step: str, **inputs: str) -> subprocess.CompletedProcess[str]:
        [found] = [one for one in STEPS if one.get("id") == step]
        given = {name: one.get("default", "") for name, one in INPUTS.items()} | {
            name.replace("_", "-"): value for name, value in inputs.items()
        }
        environ = {
            name: re.sub(r"\$\{\{ inputs\.([\w-]+) \}\}", lambda match: given[match[1]], value)
            for name, value in found["env"].items()
        }
        runner = {
            "PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}",
            "RUNNER_TEMP": str(self.folder / "temp"),
            "GITHUB_OUTPUT": str(self.outputs),
            "GITHUB_STEP_SUMMARY": str(self.summary),
        }
        # As a runner does it: https://docs.github.com/actions, "jobs.<job_id>.steps[*].shell".
        words = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", found["run"]]
        work = self.folder / "work"
        work.mkdir(exist_ok=True)
        return subprocess.run(
            words, cwd=work, env=runner | environ, capture_output=True, text=True, check=False
        )

    def told(self) -> dict[str, str]:
        return dict(line.split("=", 1) for line in self.outputs.read_text().splitlines())


@pytest.fixture
def runner(tmp_path: Path) -> Runner:
    return Runner(tmp_path)


def shop(*links: str) -> Site:
    site = Site()
    site.page("/", links=["/a", "/b b", *links])
    site.page("/a")
    site.page("/b%20b")
    return site


def files(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


@pytest.mark.slow
def test_a_crawl_writes_summary_report_and_state(runner: Runner) -> None:
    with shop("/gone").serve() as origin:
        inputs = {
            "url": origin + "/",
            "output": "my sitemaps",
            "args": "--rate 0 --no-list '/b b' --retries 0",
        }
        done = runner.run("crawl", **inputs, fail_on="new:broken-link, redirect-loop")
        assert done.returncode == 0, done.stderr
        assert "broken-link" in runner.summary.read_text()
        told = runner.told()
        assert told["exit-code"] == "0"
        assert files(Path(told["report"])) == {"report.html", "report.json", "summary.md"}
        assert files(runner.folder / "work") == {".sitemap-crawler", "my sitemaps"}
        assert (runner.folder / "work/.sitemap-crawler/action.db").exists()
        done = runner.run("crawl", **inputs, fail_on="broken-link")
    assert done.returncode == 8, "the second time"
    assert runner.told()["exit-code"] == "8"


@pytest.mark.slow
def test_a_site_that_is_down_fails_the_job_with_its_code(runner: Runner) -> None:
    done = runner.run("crawl", url="http://127.0.0.1:9/", args="--retries 0")
    assert done.returncode == 4 or "reserved for another protocol" in done.stderr
    assert runner.told()["exit-code"] == str(done.returncode)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["url", "fail_on", "args", "output"])
def test_no_input_can_become_a_command(runner: Runner, name: str) -> None:
    evil = "\"; touch pwned; $(touch pwned) `touch pwned` ' | touch pwned #"
    given: dict[str, Any] = {"url": "http://127.0.0.1:9/", "args": "--retries 0"}
    assert runner.run("crawl", **(given | {name: evil})).returncode != 0
    assert not list(runner.folder.rglob("pwned"))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["url", "fail_on", "output"])
def test_no_input_but_args_can_become_a_flag(runner: Runner, name: str) -> None:
    (runner.folder / "work").mkdir()
    (runner.folder / "work/evil.toml").write_text('[output]\npublish-command = "touch pwned"\n')
    with shop().serve() as origin:
        given = {"url": origin + "/", "args": f"{origin}/ --rate 0 --retries 0"}
        done = runner.run("crawl", **(given | {name: "--config=evil.toml"}))
    assert done.returncode == (0 if name == "output" else 2), done.stderr
    assert not list(runner.folder.rglob("pwned"))


@pytest.mark.parametrize("url", ["", "-v", "--config=evil.toml", "www.example.com", " https://example.com/"])
def test_a_url_begins_with_http(runner: Runner, url: str) -> None:
    done = runner.run("crawl", url=url)
    assert done.returncode == 2
    assert done.stdout == "::error::The input url does not begin with http:// or https://.\n"
    assert not runner.outputs.exists()


def test_arguments_that_cannot_be_split_end_the_step(runner: Runner) -> None:
    done = runner.run("crawl", url="http://127.0.0.1:9/", args="--dry-run --exclude '/a")
    assert done.returncode == 2
    assert "::error::The input args cannot be split into words: No closing quotation." in done.stderr
    assert files(runner.folder / "work") == {".sitemap-crawler"}


def words_of(runner: Runner, **inputs: str) -> list[str]:
    """What the crawl is called with."""
    program = runner.folder / "bin/sitemap-crawler"
    program.write_text("#!/bin/sh\nprintf '%s\\0' \"$@\"\n")
    done = runner.run("crawl", **inputs)
    assert done.returncode == 0, done.stderr
    return done.stdout.split("\0")[:-1]


def test_the_words_of_args_arrive_as_they_are(runner: Runner) -> None:
    words = words_of(
        runner,
        url="http://a/?b c",
        fail_on="error, new:broken-link\nwarning",
        args="--exclude '' --strip-param 'a\nb' --user-agent \"é *\"",
    )
    assert words[:4] == ["crawl", "--state", ".sitemap-crawler/action.db", "--output=sitemaps"]
    assert words[10:] == [
        "--fail-on=error", "--fail-on=new:broken-link", "--fail-on=warning", "--exclude", "",
        "--strip-param", "a\nb", "--user-agent", "é *", "--", "http://a/?b c",
    ]  # fmt: skip


def test_no_module_of_the_workspace_is_imported(runner: Runner) -> None:
    (runner.folder / "work").mkdir()
    (runner.folder / "work/shlex.py").write_text("raise SystemExit('imported')")
    assert words_of(runner, url="http://a/")[-2:] == ["--", "http://a/"]
    installs = [step["run"] for step in STEPS if "pip install" in step.get("run", "")]
    assert all(step.startswith("python -I -m pip") for step in installs)


def test_the_key_of_the_state_is_that_of_the_url(runner: Runner) -> None:
    keys = set()
    for url in ("https://example.com/", "https://example.com/a,b", "https://example.com/"):
        runner.run("key", url=url)
        keys.add(runner.told()["key"])
        runner.outputs.unlink()
    assert len(keys) == 2
    assert all(re.fullmatch(r"sitemap-crawler-[0-9a-f]{16}", key) for key in keys)
