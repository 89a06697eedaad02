"""--publish-command and --stylesheet: when the command is called, with what, and what happens when it misbehaves."""

import gzip
import json
import os
import shlex
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import pytest
from lxml import etree

from crawler.cli.demo.site import Site
from crawler.sitemap.publish import publish_command
from tests import program
from tests.cli.test_cli import QUICK, XSD, little_site
from tests.commands import Run
from tests.server import Origin, http, serving
from tests.waiting import send_signal, until

ROOT = Path(__file__).parents[2]
# Writes down its environment, one line for each call.
NOTE = """
import json, os, sys
names = ("FOLDER", "ENTRY", "CHANGED", "REMOVED", "URLS")
with open("calls", "a") as file:
    file.write(json.dumps({name: os.environ["SITEMAP_" + name] for name in names}) + "\\n")
print("on stdout")
sys.exit(int(open("exit").read()))
"""


@pytest.fixture
def noting(tmp_path: Path) -> str:
    """A command that writes down its calls, and exits with what the file `exit` says."""
    (tmp_path / "note.py").write_text(NOTE)
    (tmp_path / "exit").write_text("0")
    return shlex.join([sys.executable, "note.py"])


def calls(folder: Path) -> list[dict[str, str]]:
    with suppress(FileNotFoundError):
        return [json.loads(line) for line in (folder / "calls").read_text().splitlines()]
    return []


def python(source: str) -> str:
    return shlex.join([sys.executable, "-c", source])


# -- when and with what -------------------------------------------------------------------------------------


def test_the_command_gets_what_changed_in_the_order_of_copying(run: Run, tmp_path: Path, noting: str) -> None:
    site = little_site()
    with site.serve() as origin:
        words = ("crawl", origin + "/", *QUICK, "--max-urls", "1", "--publish-command", noting)
        code, out, err = run(*words)
        assert (code, out) == (0, ""), err
        [first] = calls(tmp_path)
        names = [*(f"sitemap-0000{number}.xml.gz" for number in (1, 2, 3)), "sitemap.xml.gz", "manifest.json"]
        assert first == {
            "FOLDER": str(tmp_path / "sitemaps"), "ENTRY": "sitemap.xml.gz", "CHANGED": "\n".join(names), "REMOVED": "",
            "URLS": "3",
        }  # fmt: skip
        run.ok(*words)
        assert len(calls(tmp_path)) == 1, "nothing changed"
        site.page("/a", noindex=True)
        run.ok(*words, "--force")
        changed, removed = (
            calls(tmp_path)[1]["CHANGED"].split("\n"),
            calls(tmp_path)[1]["REMOVED"].split("\n"),
        )
        assert changed[-2:] == ["sitemap.xml.gz", "manifest.json"]
        assert removed != [""]
        assert not set(changed) & set(removed)
        assert not any((tmp_path / "sitemaps" / name).exists() for name in removed)


def test_the_command_is_not_called_without_a_publication(run: Run, tmp_path: Path, noting: str) -> None:
    site = little_site()
    with site.serve() as origin:
        words = ("crawl", origin + "/", *QUICK, "--publish-command", noting)
        run.ok(*words, "--dry-run")
        assert run(*words, "--min-urls", "99")[0] == 6
        assert run(*words, "--max-pages", "1")[0] == 7
        assert calls(tmp_path) == []
        run.ok(*words)
        assert len(calls(tmp_path)) == 1
        run.ok(*words, "--publish-command", noting + " other")
        assert len(calls(tmp_path)) == 2, "another command is given all files"
        run.ok(*words, "-o", "elsewhere")
        assert calls(tmp_path)[2]["FOLDER"] == str(tmp_path / "elsewhere")


def test_a_failed_delivery_is_repeated_by_the_next_run(run: Run, tmp_path: Path, noting: str) -> None:
    site = little_site()
    (tmp_path / "exit").write_text("7")
    with site.serve() as origin:
        words = ("crawl", origin + "/", *QUICK, "--publish-command", noting)
        err = run.fails(3, *words)
        assert f"--publish-command: {sys.executable} exited with 7. The sitemap is in" in err
        assert "Published" in err, "the summary is printed all the same"
        run.ok("status", origin)
        code, _, err = run(*words)
        assert (code, "Nothing changed" in err) == (3, True)
        (tmp_path / "exit").write_text("0")
        run.ok(*words)
        run.ok(*words)
    made = calls(tmp_path)
    assert len(made) == 3
    assert made[0] == made[1] == made[2]


def test_a_failed_delivery_is_not_hidden_by_a_partial_run(run: Run, tmp_path: Path, noting: str) -> None:
    site = little_site()
    with site.serve() as origin:
        words = ("crawl", origin + "/", *QUICK, "--publish-command", noting, "--allow-partial", "--force")
        run.ok(*words)
        assert run(*words, "--max-pages", "2", "--exclude", "/none")[0] == 7
        assert len(calls(tmp_path)) == 2, "what a partial run published is delivered, too"
        run.ok(*words)
        assert len(calls(tmp_path)) == 3


@pytest.mark.slow
@pytest.mark.parametrize("moment", ["after rename of sitemap.xml.gz", "before commit of conclude", "before commit of mark_delivered"])  # fmt: skip
def test_next_run_delivers_after_run_killed_before_its_delivery(
    run: Run, tmp_path: Path, noting: str, moment: str
) -> None:
    with little_site().serve() as origin:
        words = ("crawl", origin + "/", *QUICK, "--publish-command", noting)
        died = program.run(words, dies=moment)
        assert died.returncode == -signal.SIGKILL, died.stderr
        assert len(calls(tmp_path)) == ("delivered" in moment)
        run.ok(*words)
    assert calls(tmp_path)[-1]["CHANGED"] == "sitemap.xml.gz\nmanifest.json"


# -- commands that misbehave --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("no-such-program --now", "no-such-program cannot be run: there is no such program"),
        ("./plain", "./plain cannot be run: Permission denied"),
        ("/", "/ cannot be run: Permission denied"),
        (python("import os; os.kill(os.getpid(), 9)"), "was ended by signal SIGKILL"),
        (python("raise SystemExit(256 + 3)"), "exited with 3"),
    ],
    ids=["missing", "not executable", "folder", "killed", "fails"],
)
def test_a_command_that_fails_is_exit_3_and_one_sentence(
    run: Run, tmp_path: Path, command: str, said: str
) -> None:
    (tmp_path / "plain").write_text("text")
    with little_site().serve() as origin:
        code, _, err = run("crawl", origin + "/", *QUICK, "-q", "--publish-command", command)
    assert code == 3
    assert said in err
    assert err.count("\n") == 1
    assert (tmp_path / "sitemaps/sitemap.xml.gz").exists()


@pytest.mark.parametrize("command", ["'unclosed secret", "''", '"'])
def test_an_invalid_command_is_exit_2_before_the_crawl(run: Run, command: str) -> None:
    code, _, err = run("crawl", "http://127.0.0.1:9/", "--publish-command", command)
    assert (code, "--publish-command: *** must be a command" in err, "secret" in err) == (2, True, False)


def test_a_flood_of_output_goes_to_stderr(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "flood.py").write_text("for _ in range(100): print('x' * 99_999)")
    flood = shlex.join([sys.executable, "flood.py"])
    with little_site().serve() as origin:
        done = program.run(["crawl", origin + "/", *QUICK, "-q", "--publish-command", flood])
    assert (done.returncode, done.stdout) == (0, "")
    assert len(done.stderr) == 10_000_000


def alive(number: int) -> bool:
    """Whether a process runs; a zombie does not."""
    try:
        return "Z" not in Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False


HANGS = """
trap "" TERM
sleep 600 &
echo "$$ $!" >pids.new
mv pids.new pids
wait
"""


@pytest.fixture
def hanging(tmp_path: Path) -> str:
    """A command that has a child, ignores TERM, and does not end."""
    (tmp_path / "hangs.sh").write_text(HANGS)
    return "sh hangs.sh"


def pids(folder: Path) -> list[int]:
    return [int(word) for word in (folder / "pids").read_text().split()]


@pytest.mark.slow
def test_a_command_that_hangs_is_ended_with_its_children(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hanging: str
) -> None:
    monkeypatch.setattr(publish_command, "GRACE", 0.3)
    with little_site().serve() as origin:
        words = ("--publish-command", hanging, "--publish-timeout", "3")
        code, _, err = run("crawl", origin + "/", *QUICK, *words)
    assert code == 3
    assert "was ended after 3s (--publish-timeout)" in err
    assert not any(map(alive, pids(tmp_path)))


@pytest.mark.slow
@pytest.mark.parametrize("count", [1, 2], ids=["one signal", "two signals"])
def test_a_signal_ends_the_command_and_the_next_run_delivers(
    run: Run, tmp_path: Path, count: int, hanging: str
) -> None:
    with little_site().serve() as origin:
        words = ("crawl", origin + "/", *QUICK, "--publish-command")
        crawl = program.start([*words, hanging])
        until(lambda: (tmp_path / "pids").exists() or crawl.poll() is not None)
        for _ in range(count):
            send_signal(crawl, signal.SIGTERM)
        assert crawl.wait() == 143, crawl.stderr
        until(lambda: not any(map(alive, pids(tmp_path))))
        run.ok(*words, python("open('delivered', 'w')"))
        assert (tmp_path / "delivered").exists()


def test_the_command_is_a_secret(run: Run, tmp_path: Path) -> None:
    command = python("'very-secret'; raise SystemExit(1)")
    (tmp_path / "c.toml").write_text(f"[output]\npublish-command = {json.dumps(command)}\n")
    with little_site().serve() as origin:
        words = ("--config", "c.toml", "--report", "r.html", "--report", "r.json", "--report", "r.md", "-v")
        _, out, err = run("crawl", origin + "/", *QUICK, *words)
    (tmp_path / "c.toml").rename(tmp_path.parent / "c.toml")
    _, more, _ = run("config", "--config", "../c.toml")
    _, again, _ = run("report", "--report", "again.html")
    texts = [
        out,
        err,
        more,
        again,
        *(path.read_bytes().decode("latin-1") for path in tmp_path.rglob("*") if path.is_file()),
    ]
    assert len(texts) > 8
    assert not any("very-secret" in text for text in texts)


# -- the recipes of docs/run/delivery.md ------------------------------------------------------------------------

COMMAND = (ROOT / "docs/run/delivery.md").read_text().partition("\n## A command\n")[2]
SECTIONS = COMMAND.split("\n### ")[1:]
RECIPES = {
    section.partition("\n")[0]: section.partition("```sh\n")[2].partition("```")[0]
    for section in SECTIONS
    if "```sh" in section
}


def tool(name: str) -> None:
    if shutil.which(name) is None:
        pytest.skip(f"{name} is not installed")


def delivered(run: Run, tmp_path: Path, script: str, *words: str) -> Callable[[Site], list[str]]:
    """Publishes a site by a script, each time at the same origin; the names of its files."""
    (tmp_path / "deliver.sh").write_text(script)
    port = 0

    def call(site: Site) -> list[str]:
        nonlocal port
        with site.serve(port=port) as origin:
            port = int(origin.rpartition(":")[2])
            done = run(
                "crawl", origin + "/", *QUICK, "--max-urls", "1", "--force", *words, "--state", "s.db",
                "--publish-command", f"sh {tmp_path / 'deliver.sh'}",
            )  # fmt: skip
        assert done[0] == 0, done[2]
        return sorted(path.name for path in (tmp_path / "sitemaps").iterdir())

    return call


@contextmanager
def noting_server() -> Iterator[Origin]:
    """A server that accepts everything."""
    accepted = http("", ETag='"0123456789abcdef0123456789abcdef"')
    origin = Origin("store", "127.0.0.1", others=lambda _: accepted)
    with serving(origin):
        yield origin
    assert all(asked.body for asked in origin.log if asked.method == "PUT")


# Copies like rsync does with the arguments of the recipe, where that is not installed.
RSYNC = """#!{python}
import pathlib, shutil, sys
*names, folder = [word for word in sys.argv[1:] if word != "-a"]
if names[0] == "--files-from=-":
    assert names[1:] == ["."]
    names = sys.stdin.read().split()
for name in names:
    assert name == "sitemap.xml.gz" or not pathlib.Path(folder, "sitemap.xml.gz").exists(), "the entry point is last"
    shutil.copy2(name, folder)
"""


def test_the_recipe_for_rsync(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "web").mkdir()
    if shutil.which("rsync") is None:
        (tmp_path / "bin").mkdir()
        (tmp_path / "bin/rsync").write_text(RSYNC.format(python=sys.executable))
        (tmp_path / "bin/rsync").chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}/bin{os.pathsep}{os.environ['PATH']}")
    script = RECIPES["rsync"].replace("web.example.com:/var/www/html/", f"{tmp_path}/web/")
    names = delivered(run, tmp_path, script)(little_site())
    assert sorted(path.name for path in (tmp_path / "web").iterdir()) == names


def test_the_recipe_for_a_cdn(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tool("curl")
    monkeypatch.setenv("CDN_TOKEN", "token")
    with noting_server() as store:
        script = RECIPES["Purge of a CDN"].replace("https://www.example.com", store.url()[:-1])
        names = delivered(run, tmp_path, script)(little_site())
    assert sorted(asked.path[1:] for asked in store.log) == names
    assert {(asked.method, asked.headers["fastly-key"]) for asked in store.log} == {("PURGE", "token")}


def test_the_recipe_for_git(run: Run, tmp_path: Path) -> None:
    tool("git")

    def git(*words: str) -> str:
        return subprocess.run(
            ["git", *words], cwd=tmp_path, check=True, capture_output=True, text=True
        ).stdout

    git("init", "--quiet", "--bare", "origin.git")
    git("clone", "--quiet", "origin.git", "clone")
    for name, value in (("user.name", "me"), ("user.email", "me@example.com")):
        git("-C", "clone", "config", name, value)
    (tmp_path / "sitemaps").symlink_to(tmp_path / "clone")
    site, publish = little_site(), delivered(run, tmp_path, RECIPES["A git repository"])
    publish(site)
    site.page("/a", noindex=True)
    publish(site)
    assert git("-C", "origin.git", "log", "--format=%s", "--all").splitlines() == [
        "Sitemap: 1 URLs",
        "Sitemap: 3 URLs",
    ]


def test_each_recipe_has_a_test() -> None:
    assert list(RECIPES) == ["rsync", "Purge of a CDN", "A git repository"]


# -- --stylesheet -------------------------------------------------------------------------------------------

NAMED = '<?xml version="1.0" encoding="UTF-8"?>\n<?xml-stylesheet type="text/css" href="sitemap.css"?>\n'


def test_a_stylesheet_is_named_by_each_file_and_lies_beside_them(
    run: Run, tmp_path: Path, noting: str
) -> None:
    folder = tmp_path / "sitemaps"
    with little_site().serve() as origin:
        words = ("crawl", origin + "/", *QUICK, "--no-gzip", "--stylesheet", "--publish-command", noting)
        run.ok(*words)
        XSD.assertValid(etree.parse(folder / "sitemap.xml"))
        assert (folder / "sitemap.xml").read_text().startswith(NAMED + "<urlset")
        assert calls(tmp_path)[0]["CHANGED"] == "sitemap.css\nsitemap.xml\nmanifest.json"
        assert oct((folder / "sitemap.css").stat().st_mode)[-3:] == "644"
        run.ok("validate", "sitemaps")
        (folder / "sitemap.css").write_text("urlset { color: red }")
        run.ok(*words, "--max-urls", "1")
        assert (folder / "sitemap.css").read_text() == "urlset { color: red }", "it may be changed"
        for name in ("sitemap.xml", "sitemap-00001.xml"):
            assert (folder / name).read_text().startswith(NAMED)
        assert "sitemap.css" in calls(tmp_path)[1]["CHANGED"]
        run.ok("crawl", origin + "/", *QUICK)
        with gzip.open(folder / "sitemap.xml.gz", "rt") as file:
            assert "stylesheet" not in file.read()


@pytest.mark.parametrize(
    "words", [(), ("--no-gzip", "--format", "txt"), ("--no-gzip", "-o", "-"), ("--dry-run",)]
)
def test_a_stylesheet_needs_files_that_browsers_show(run: Run, words: Sequence[str]) -> None:
    site = little_site()
    with site.serve() as origin:
        code, _, err = run("crawl", origin + "/", "--stylesheet", *words)
        assert (code, "--stylesheet needs XML files without compression: add --no-gzip" in err) == (2, True)
        assert site.log == []


def test_the_state_keeps_what_was_delivered_once(run: Run, tmp_path: Path, noting: str) -> None:
    site = little_site()
    with site.serve() as origin:
        for number in range(3):
            site.page(f"/{number}")
            site.page("/", links=[f"/{number}"])
            run.ok("crawl", origin + "/", *QUICK, "--force", "--state", "s.db", "--publish-command", noting)
    with closing(sqlite3.connect(tmp_path / "s.db")) as db:
        kept = [row[0] for row in db.execute("SELECT delivered FROM publication ORDER BY number")]
    assert [text is None for text in kept] == [True, True, False]
