"""The documents and the program say the same thing, and the examples run."""

import html
import importlib.util
import itertools
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path
from types import ModuleType

import click
import pytest

import crawler
from crawler.cli.commands import check, cli
from crawler.cli.options import SettingCommand
from crawler.errors import Exit
from crawler.model.facts import Obstacle
from crawler.model.reasons import Cause, SeedOutcome, Source, Why
from crawler.rules.record import patience_by_code
from crawler.settings import load, tables
from crawler.settings.sections import keys
from tests.sites import star

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()
LIBRARY = (ROOT / "docs/use/library.md").read_text()
DOCUMENTS = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")] + sorted(
    (ROOT / "docs").rglob("*.md")
)
SCRIPTS = {
    "--npm",
    "--serve",
    "--quick",
    "--scrapy",
    "--spider-rs",
    "--colly",
    "--stock",
    "--many",
    "--json",
    "--plot",
    "--port",
    "--plain",
    "--runs",
    "--against",
    "--chain",
    "--database",
    "--delay",
    "--kill",
    "--rounds",
    "--known",
    "--real",
    "--pages",
    "--failures",
    "--topic",
    "--nights",
    "--share",
    "--sitemap",
}  # flags of what is not the program
GENERATED = {
    "config/example.toml": "reference.example",
    "docs/use/settings.md": "reference.reference",
    "docs/use/sitemap-crawler.1": "manual.manual",
}


def commands() -> dict[str, click.Command]:
    return dict(cli.commands)


def flags() -> set[str]:
    found = {"--help", "--version", "--config"}
    for command in commands().values():
        found |= {option for param in command.params for option in (*param.opts, *param.secondary_opts)}
    return found


def script(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / f"scripts/{name}.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("path", GENERATED)
def test_generated_files_are_up_to_date(path: str) -> None:
    name, _, made = GENERATED[path].partition(".")
    assert (ROOT / path).read_text() == getattr(script(name), made)(), f"run scripts/{name}.py"


def shown(svg: str) -> str:
    """The text of a picture, without ports and times."""
    text = html.unescape("".join(re.findall(r">([^<>]+)</text>", svg))).replace("\xa0", " ")
    return re.sub(r" +", " ", re.sub(r"127\.0\.0\.1:\d+|in \d+ s", "", text))


@pytest.mark.slow
def test_the_picture_matches_the_demo() -> None:
    picture = script("picture")
    now = picture.picture(picture.demo_summary(rate=0))
    assert shown(picture.PICTURE.read_text()) == shown(now), "run scripts/picture.py"
    assert "all accounted for" in shown(now)


def test_the_example_has_every_key_and_each_can_be_enabled(tmp_path: Path) -> None:
    text = (ROOT / "config/example.toml").read_text()
    assert load.resolve(ROOT / "config/example.toml")[0] == crawler.Settings()
    on = re.sub(r"^# ((\[\[)?[a-z0-9-]+(\]\]| = ))", r"\1", text, flags=re.MULTILINE)
    read = tomllib.loads(on)
    for name, names in (("rule", tables.RULE_KEYS), ("section", tables.SECTION_KEYS)):
        assert [list(table) for table in read.pop(name)] == [list(names)]
    given = {(section, name) for section, values in read.items() for name in values}
    assert given == {(key.section, key.name) for key in keys() if not key.option.kind.tables}
    (tmp_path / "all.toml").write_text(on)
    load.resolve(tmp_path / "all.toml")


def test_the_readme_lists_all_commands() -> None:
    table = README.partition("## Commands")[2].partition("\n## ")[0]
    assert re.findall(r"^\| `([a-z]+)", table, re.MULTILINE) == cli.list_commands(click.Context(cli))


@pytest.mark.parametrize("name", [*cli.commands, "check"])
def test_the_help_of_every_command_ends_with_valid_examples(name: str) -> None:
    command = commands().get(name) or check
    shown = command.get_help(click.Context(command)).partition("Examples:\n")[2].splitlines()
    assert 2 <= len(shown) <= 3
    for line in shown:
        program, _, rest = line.strip().partition(" ")
        assert program == "sitemap-crawler"
        taken(rest)


def test_the_readme_lists_all_exit_codes() -> None:
    table = README.partition("| exit |")[2].partition("\n\n")[0]
    listed = {
        int(code) for row in re.findall(r"^\| ([\d, ]+) \|", table, re.MULTILINE) for code in row.split(",")
    }
    assert listed == set(Exit)


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_every_flag_in_a_document_exists(path: Path) -> None:
    text = re.sub(
        r"```.*?```|`(?:sudo|pip|docker|\.venv|python)[^`]*`", "", path.read_text(), flags=re.DOTALL
    )
    text = re.sub(r"^    (?:sudo|docker|gcloud|\.venv|python|apt-get) .*$", "", text, flags=re.MULTILINE)
    named = set(re.findall(r"(?<![\w-])(--[a-z][a-z0-9-]+)", text))
    assert named <= flags() | SCRIPTS, named - flags()


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_every_link_in_a_document_is_valid(path: Path) -> None:
    for target, fragment in re.findall(r"\]\(([^)#:\s]*)(?:#([^)]*))?\)", path.read_text()):
        file = path.parent / target if target else path
        assert file.exists(), target
        assert not fragment or fragment in anchors(file.read_text()), f"{target}#{fragment}"


def anchors(document: str) -> set[str]:
    """The fragments of its headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", document, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_every_document_is_in_the_index() -> None:
    index = (ROOT / "docs/README.md").read_text()
    pages = [path.relative_to(ROOT / "docs") for path in (ROOT / "docs").glob("*/*.md")]
    assert [str(page) for page in pages if f"({page})" not in index] == []


def test_documents_named_by_the_program_exist() -> None:
    files = [path for folder in ("crawler", "config", "scripts") for path in (ROOT / folder).rglob("*.*")]
    files += [ROOT / name for name in ("Dockerfile", "action.yml", "pyproject.toml")]
    named = {
        name
        for path in files
        if path.suffix != ".pyc"
        for name in re.findall(r"\bdocs/[a-z/.-]+\.[a-z]+\b", path.read_text())
    }
    assert named
    assert [name for name in sorted(named) if not (ROOT / name).exists()] == []


def test_modules_named_by_documents_exist() -> None:
    package = ROOT / "crawler"
    folders = "|".join(path.name for path in package.iterdir() if path.is_dir() and path.name[0] != "_")
    for document in DOCUMENTS:
        for name in re.findall(rf"`((?:{folders})/[\w/]+)(?:\.[\w.]+)?/?`", document.read_text()):
            assert (package / name).is_dir() or (package / f"{name}.py").exists(), f"{document.name}: {name}"


def words(*paths: Path) -> int:
    return sum(len(path.read_text().split()) for path in paths)


def test_documents_keep_within_their_length() -> None:
    """In words. For more, say something else shorter."""
    assert words(ROOT / "README.md") <= 900
    assert words(ROOT / "CHANGELOG.md") <= 300
    readers = [path for path in (ROOT / "docs").rglob("*.md") if path.parent.name != "dev"]
    assert words(*readers) <= 25_000


def test_decisions_are_short_dated_and_indexed() -> None:
    text = (ROOT / "docs/dev/decisions.md").read_text()
    records = re.findall(r"^## (\d+)\. (.+?)$(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    assert len(records) > 50
    numbers = [int(number) for number, _, _ in records]
    assert numbers == sorted(set(numbers))
    assert {f"{number}. {title}" for number, title, body in records if len(body.split()) > 150} == set()
    assert [number for number, _, body in records if not re.match(r"\n\n\*\d{4}-\d\d-\d\d", body)] == []
    indexed = re.findall(r"\d+", "".join(re.findall(r"^\|[^|]+\|([\d, ]+)\|$", text, re.MULTILINE)))
    assert sorted(map(int, indexed)) == numbers


SHOWN = re.compile(r"^(?:    |\$ )(?:.*&& \S*/)?(?:sitemap-crawler|\./dev run) (.+)", re.MULTILINE)
TOLD = (
    "README.md",
    "docs/use/tutorial.md",
    "docs/use/how-to.md",
    "docs/use/questions.md",
    "docs/use/recipes.md",
    "docs/use/report.md",
    "docs/run/submission.md",
    "docs/run/machines.md",
    "docs/run/delivery.md",
    "docs/run/scheduled.md",
)


def taken(line: str) -> None:
    """Raises `click.UsageError` for a command that the program does not know."""
    name, *words = shlex.split(re.split(r"\s[#|>]\s", line)[0])
    commands()[name].make_context(name, words)


@pytest.mark.parametrize("name", TOLD)
def test_commands_shown_in_documents_are_valid(name: str) -> None:
    shown = SHOWN.findall((ROOT / name).read_text())
    assert shown
    for line in shown:
        taken(line)


def masked(document: str) -> str:
    """Without what is another each time: times, durations, sizes of compressed files."""
    return re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC|in \d+ s\b|\d+ B\b", "…", document)


@pytest.mark.slow
@pytest.mark.parametrize("name", script("samples").DOCUMENTS)
def test_sample_outputs_match_the_program(name: str) -> None:
    document = (ROOT / name).read_text()
    assert masked(document) == masked(script("samples").filled(document, port=0, rate=0)), (
        "run scripts/samples.py"
    )


def test_troubleshooting_covers_every_exit_code_and_every_reason() -> None:
    text = (ROOT / "docs/run/troubleshooting.md").read_text()
    cells = re.findall(r"^\| ([^|]+) \|", text, re.MULTILINE)
    exits = {int(code) for cell in cells if re.fullmatch(r"[\d, ]+", cell) for code in cell.split(", ")}
    assert exits == set(Exit)
    codes = {code for cell in cells for code in re.findall(r"`([^`]+)`", cell)}
    kept = {one.kept for one in patience_by_code(keep=1.0).values()}
    failed = {f"failed:{cause.value}" for cause in Cause if cause is not Cause.ROBOTS_DOWN}
    plain = {reason.value for kind in (SeedOutcome, Obstacle, Source) for reason in kind}
    wanted = {f"unlisted:{why.value}" for why in Why} | failed | kept | plain
    assert wanted <= codes, wanted - codes
    assert {code for code in codes if ":" in code} <= wanted


def test_every_command_has_help_every_crawl_setting_is_a_flag() -> None:
    for name, command in commands().items():
        assert command.help, name
        for param in command.params:
            assert not isinstance(param, click.Option) or param.help, (name, param)
    crawl = commands()["crawl"]
    assert isinstance(crawl, SettingCommand)
    offered = {option for param in crawl.params for option in param.opts}
    assert {f"--{key.name}" for key in keys() if key.option.flag} <= offered


def prose(document: str) -> list[str]:
    """The lines that hold sentences: no code, tables, headings; empty ones where a paragraph ends."""
    text = re.sub(r"^```.*?^```$|^(?: {4,}|[|#!]).*$", "", document, flags=re.MULTILINE | re.DOTALL)
    return [re.sub(r"`[^`]*`|\([^()]*\)", "code", line).strip() for line in text.splitlines()]


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_documents_have_one_sentence_per_line(path: Path) -> None:
    lines = prose(path.read_text())
    two = [line for line in lines if re.search(r"(?<!^\d)[.!?][\"*]* [A-Z]", line) and "? [" not in line]
    assert two == [], "more than one sentence"
    begun = re.compile(r"$|[-*] |\d+\. ")
    broken = [
        line
        for line, following in itertools.pairwise(lines)
        if line and not begun.match(following) and not re.search(r"[.!?:][\"*)]*$", line)
    ]
    assert broken == [], "a sentence on several lines"


def test_public_names_are_in_the_library_document() -> None:
    missing = [name for name in crawler.__all__ if not re.search(rf"\b{name}\b", LIBRARY)]
    assert missing == []


@pytest.mark.parametrize("source", [README, LIBRARY], ids=["README", "library"])
@pytest.mark.slow
def test_the_example_runs_unchanged(source: str, tmp_path: Path) -> None:
    code, *_ = re.findall(r"```python\n(.*?)```", source, re.DOTALL)
    site = star("/a")
    with site.serve() as origin:
        code = code.replace("https://example.com/", origin + "/")
        if "anyio.run" not in code:
            code += f'\nprint(anyio.run(sitemap_of, "{origin}/", "./sitemaps").robots_line)\n'
        (tmp_path / "example.py").write_text(code)
        words = [sys.executable, "example.py"]
        done = subprocess.run(
            words, cwd=tmp_path, env={"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False
        )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == f"Sitemap: {origin}/sitemap.xml.gz"
    assert done.stdout.count("listed") == 2
    assert (tmp_path / "sitemaps/sitemap.xml.gz").exists()


@pytest.mark.slow
def test_the_example_of_a_transport_runs_unchanged(tmp_path: Path) -> None:
    code = re.findall(r"```python\n(.*?)```", LIBRARY, re.DOTALL)[1]
    site = star("/about")
    with site.serve() as origin:
        (tmp_path / "example.py").write_text(code.replace("https://example.com/", origin + "/"))
        done = subprocess.run(
            [sys.executable, "example.py"],
            cwd=tmp_path,
            env={"PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        *lines, last = done.stdout.splitlines()
        assert last == "2 pages"
        assert any(f" s 200 {origin}/about" in line for line in lines)


@pytest.mark.slow
def test_the_example_of_a_test_passes_unchanged(tmp_path: Path) -> None:
    (tmp_path / "test_example.py").write_text(re.findall(r"```python\n(.*?)```", LIBRARY, re.DOTALL)[2])
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_example.py"]
    done = subprocess.run(
        words, cwd=tmp_path, env={"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False
    )
    assert "1 passed" in done.stdout, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("command", "missing"), [("export", {"--allow-partial", "--fresh"}), ("demo", {"--state", "--rate"})]
)
def test_a_command_has_no_flag_without_effect(command: str, missing: set[str]) -> None:
    offered = {option for param in commands()[command].params for option in param.opts}
    assert "--output" in offered
    assert not offered & missing


def test_the_list_of_commands_cuts_no_sentence() -> None:
    lines = cli.get_help(click.Context(cli)).partition("Commands:\n")[2].splitlines()
    assert len(lines) == len(cli.commands)
    assert all(line.endswith(".") and not line.endswith("...") for line in lines), lines


def test_the_help_of_the_demo_names_one_folder() -> None:
    context = click.Context(commands()["demo"])
    assert "./sitemaps" not in commands()["demo"].get_help(context)


def test_headings_cited_by_the_program_are_in_the_readme() -> None:
    sources = "".join(path.read_text() for path in (ROOT / "crawler").rglob("*.py"))
    cited = re.findall(r'README, "([^"]+)"', sources)
    assert cited
    assert [heading for heading in cited if f"\n## {heading}\n" not in README] == []


def test_the_version_is_defined_once() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert f"## {project['version']}" in (ROOT / "CHANGELOG.md").read_text()
