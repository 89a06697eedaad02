"""`init`: a settings file that works, for sites of each kind; and the questions on a terminal."""

import os
import pty
import re
import signal
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from crawler.cli.demo.site import Site
from crawler.cli.init import Answers, written
from crawler.settings import load
from crawler.settings.load import FILE
from tests.commands import Run
from tests.sites import star

ENV = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2]), "TERM": "dumb"}


def test_the_file_works_as_it_is(run: Run) -> None:
    with star("/a").serve() as origin:
        code, out, err = run("init", origin)
        assert (code, err) == (0, "")
        assert "    sitemap-crawler crawl\n" in out
        assert run("config", "check", FILE)[1] == f"{FILE}: valid, 4 settings.\n"
        _, err = run.ok("crawl")
        assert err.count(f"settings are read from {FILE}, found in this folder") == 1
        assert run("crawl", "-q") == (0, "", "")
        run.ok("status")
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
    site = star("/a")
    with site.serve() as origin:
        code, _, err = run("init", origin)
    assert (code, site.log, Path(FILE).read_text()) == (2, [], "mine")
    assert "is there already: edit it, or remove it" in err


@pytest.mark.parametrize("words", [(), ("",)])
def test_without_a_terminal_the_url_is_needed(run: Run, words: tuple[str, ...]) -> None:
    assert "Name the URL of the site" in run.fails(2, "init", *words)


def test_what_was_found_is_printed(run: Run) -> None:
    site = star("/a")
    site.robots("Sitemap: {origin}/a.xml\nSitemap: {origin}/b.xml\n")
    site.page("/", head='<link rel="alternate" HREFLANG="de" href="/de">')
    with site.serve() as origin:
        _, out, _ = run("init", origin)
    assert "robots.txt names 2 sitemaps." in out
    assert "names versions in other languages (hreflang)" in out
    assert [asked.target for asked in site.log] == ["/robots.txt", "/"]


def test_a_site_that_redirects_is_crawled_where_it_is(run: Run) -> None:
    www, bare = star("/a"), Site()
    with www.serve() as origin:
        bare.redirect("/docs/", f"{origin}/\x1b[31m")
        bare.redirect("/", f"{origin}/")
        with bare.serve() as other:
            _, out, _ = run("init", other, "--allow-address", "127.0.0.1")
    assert f"{other} redirects to {origin}, so the crawl begins there." in out
    assert load.resolve(Path(FILE))[0].scope.start == (f"{origin}/",)


REMARKS = {
    "loop": "The first page redirects, but never to a page (status 302).",
    "ill": "The first page answers 500.",
    "closed": "The first page answers 403: it needs a login, or the server refuses this program.",
    "cut": "The first page cannot be read: ",
    "forbidden": "robots.txt forbids the first page (line 2: Disallow: /); it was not requested.",
    "robots ill": "robots.txt cannot be read (",
    "down": " does not answer (",
}


@pytest.mark.parametrize("kind", REMARKS)
def test_each_failure_of_a_site_has_a_sentence_of_its_own(run: Run, kind: str) -> None:
    site = Site()
    statuses = {"ill": 500, "closed": 403}
    match kind:
        case "loop":
            site.redirect("/", "/", 302)
        case "ill" | "closed":
            site.respond("/", lambda _: Site.answer(statuses[kind]))
        case "cut":
            site.respond("/", lambda request: request.connection.close())
        case "forbidden":
            site.robots("User-agent: *\nDisallow: /\n")
        case "robots ill":
            site.respond("/robots.txt", lambda _: Site.answer(503))
    with site.serve() as origin:
        served = run("init", origin) if kind != "down" else None
    code, out, _ = served or run("init", origin)
    assert code == 0
    assert REMARKS[kind] in out
    assert sum(remark in out for remark in REMARKS.values()) == 1
    assert load.resolve(Path(FILE))[0].scope.start == (origin + "/",)


@pytest.mark.parametrize(
    ("path", "fault"),
    [("/typo", "answers 404"), ("/json", "is application/json, not HTML: no link can be followed from it")],
)
def test_a_url_that_is_wrong_leaves_no_file(run: Run, path: str, fault: str) -> None:
    site = star("/a")
    site.raw("/json", body=b"{}", headers=[("Content-Type", "application/json")])
    with site.serve() as origin:
        code, out, err = run("init", origin + path)
    assert (code, out) == (4, "")
    assert err == f"sitemap-crawler: {origin}{path}: the first page {fault}; no file was written.\n"
    assert not Path(FILE).exists()


def test_a_folder_that_cannot_be_written(run: Run) -> None:
    Path(FILE).symlink_to("nowhere/x")
    with star("/a").serve() as origin:
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
    with star("/a").serve() as origin:
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
def test_the_end_of_input_at_a_question_is_an_error(terminal: Terminal, tmp_path: Path) -> None:
    terminal.until("URL of the site: ")
    terminal.type("\x04")
    terminal.until("were not answered to the end; no file was written.")
    assert terminal.child.wait(60) == 2
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_an_interrupt_at_a_question_leaves_at_once(terminal: Terminal, tmp_path: Path) -> None:
    terminal.until("URL of the site: ")
    for _ in range(60):  # one that comes just before the read begins is only noticed with the next key
        terminal.child.send_signal(2)
        with suppress(subprocess.TimeoutExpired):
            terminal.child.wait(1)
            break
    # Another one that comes while Python ends kills it: to a shell, that is 130 as well.
    assert terminal.child.wait(60) in {130, -signal.SIGINT}
    assert list(tmp_path.iterdir()) == []
