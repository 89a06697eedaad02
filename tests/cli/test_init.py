"""`init`: a settings file that works, for sites of each kind; and the questions on a terminal."""

import os
import pty
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from crawler.cli.demo.site import Site
from crawler.cli.init import FILE, Answers, written
from crawler.settings import load
from tests.cli.conftest import Run

ENV = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2]), "TERM": "dumb"}


def shop() -> Site:
    site = Site()
    site.page("/", links=["/a"])
    site.page("/a")
    return site


def test_the_file_works_as_it_is(run: Run) -> None:
    with shop().serve() as origin:
        code, out, err = run("init", origin)
        assert (code, err) == (0, "")
        assert f"sitemap-crawler crawl --config {FILE}" in out
        assert run("config", "check", FILE)[1] == f"{FILE}: valid, 4 settings.\n"
        assert run("crawl", "--config", FILE, "-q")[0] == 0
    assert tomllib.loads(Path(FILE).read_text())["scope"]["start"] == [origin + "/"]
    assert Path("sitemaps/sitemap.xml.gz").exists()


def test_all_ten_settings_are_valid_and_explained(tmp_path: Path) -> None:
    text = written(Answers("https://example.com/"))
    names = re.findall(r"^(?:# )?([a-z-]+) = ", text, re.MULTILINE)
    assert len(names) == len(set(names)) == 10
    for line, following in zip(text.splitlines(), text.splitlines()[1:], strict=False):
        if re.match(r"(?:# )?[a-z-]+ = ", following):
            assert line.startswith("# ")
    path = tmp_path / FILE
    path.write_text(re.sub(r"^# ([a-z-]+ = )", r"\1", text, flags=re.MULTILINE))
    settings, _ = load.resolve(path)
    assert settings.scope.exclude == ("/search*",)


def test_a_file_is_never_overwritten(run: Run) -> None:
    Path(FILE).write_text("mine")
    site = shop()
    with site.serve() as origin:
        code, _, err = run("init", origin)
    assert (code, site.log, Path(FILE).read_text()) == (2, [], "mine")
    assert "is not overwritten" in err


def test_without_a_terminal_the_url_is_needed(run: Run) -> None:
    code, _, err = run("init")
    assert code == 2
    assert "Name the URL of the site" in err


def test_what_was_found_is_printed(run: Run) -> None:
    site = shop()
    site.robots("Sitemap: {origin}/a.xml\nSitemap: {origin}/b.xml\n")
    site.page("/", head='<link rel="alternate" HREFLANG="de" href="/de">')
    with site.serve() as origin:
        _, out, _ = run("init", origin)
    assert "robots.txt names 2 sitemaps." in out
    assert "names versions in other languages (hreflang)" in out
    assert [asked.target for asked in site.log] == ["/robots.txt", "/"]


def test_a_site_that_redirects_is_crawled_where_it_is(run: Run) -> None:
    www, bare = shop(), Site()
    with www.serve() as origin:
        bare.redirect("/docs/", f"{origin}/\x1b[31m")
        bare.redirect("/", f"{origin}/")
        with bare.serve() as other:
            _, out, _ = run("init", other, "--allow-address", "127.0.0.1")
    assert f"{other} redirects to {origin}, so the crawl begins there." in out
    assert load.resolve(Path(FILE))[0].scope.start == (f"{origin}/",)


@pytest.mark.parametrize("kind", ["loop", "down", "forbidden", "gone"])
def test_a_site_that_does_not_answer_well_is_a_remark(run: Run, kind: str) -> None:
    site = Site()
    says = {
        "loop": "answers 302",
        "down": "answers 500",
        "forbidden": "robots.txt forbids",
        "gone": "answers 404",
    }
    if kind == "loop":
        site.redirect("/", "/", 302)
    elif kind == "down":
        site.respond("/", lambda _: Site.answer(500))
    elif kind == "forbidden":
        site.robots("User-agent: *\nDisallow: /\n")
    with site.serve() as origin:
        code, out, _ = run("init", origin)
    assert code == 0
    assert says[kind] in out
    assert load.resolve(Path(FILE))[0].scope.start == (origin + "/",)


def test_a_folder_that_cannot_be_written(run: Run) -> None:
    Path(FILE).symlink_to("nowhere/x")
    with shop().serve() as origin:
        code, _, err = run("init", origin)
    assert code in {2, 3}
    assert "Traceback" not in err


class Terminal:
    """The program on a terminal of its own."""

    def __init__(self, folder: Path, *words: str) -> None:
        self._ours, theirs = pty.openpty()
        command = [sys.executable, "-m", "crawler", *words]
        self.child = subprocess.Popen(
            command, cwd=folder, env=ENV, stdin=theirs, stdout=theirs, stderr=theirs
        )
        os.close(theirs)
        self.said = ""

    def until(self, text: str) -> None:
        """Waits for a text."""
        while text not in self.said:
            self.said += os.read(self._ours, 4_096).decode()

    def type(self, text: str) -> None:
        os.write(self._ours, text.encode())

    def close(self) -> None:
        self.child.kill()
        self.child.wait()
        os.close(self._ours)


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    opened = Terminal(tmp_path, "init", "--allow-address", "127.0.0.1")
    yield opened
    opened.close()


@pytest.mark.slow
def test_five_questions_on_a_terminal(terminal: Terminal, tmp_path: Path) -> None:
    with shop().serve() as origin:
        for question, answer in (
            ("URL of the site: ", origin),
            ("Folder of the sitemap [./sitemaps]: ", "public"),
            ("What belongs to the site (host, path, subdomains, domain) [host]: ", "path"),
            ("Requests per second [5.0]: ", "fast"),
            ("Requests per second [5.0]: ", "2"),
            ("/search* (none): ", '/cart*"]#'),
        ):
            terminal.until(question)
            terminal.said = terminal.said.partition(question)[2]
            terminal.type(answer + "\n")
        assert terminal.child.wait(60) == 0
    settings, _ = load.resolve(tmp_path / FILE)
    assert (settings.output.output, settings.scope.scope, settings.pace.rate) == ("public", "path", 2.0)
    assert settings.scope.exclude == ('/cart*"]#',)


@pytest.mark.slow
def test_an_interrupt_at_a_question_leaves_at_once(terminal: Terminal, tmp_path: Path) -> None:
    terminal.until("URL of the site: ")
    for _ in range(60):  # one that comes just before the read begins is only noticed with the next key
        terminal.child.send_signal(2)
        with suppress(subprocess.TimeoutExpired):
            terminal.child.wait(1)
            break
    assert terminal.child.wait(1) == 130
    assert list(tmp_path.iterdir()) == []
