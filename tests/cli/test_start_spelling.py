"""What people type as a start URL, and what they are told where it does not answer with a page."""

from pathlib import Path

import pytest

from crawler.app.settings_urls import line_url, start_url
from crawler.cli.demo.site import Site
from crawler.errors import ConfigError
from crawler.parse.normalise import Normaliser
from tests.cli.test_cli import QUICK, little_site, locs, sentence
from tests.commands import Run
from tests.server import free_port

NORMALISE = Normaliser()
SPELLINGS = [
    ("127.0.0.1:8000", "http://127.0.0.1:8000/"),
    ("127.0.0.1/a", "http://127.0.0.1/a"),
    ("localhost", "http://localhost/"),
    ("LocalHost:8000/a?b", "http://localhost:8000/a?b"),
    ("shop.localhost:3000", "http://shop.localhost:3000/"),
    ("[::1]:8000", "http://[::1]:8000/"),
    ("example.com", "https://example.com/"),
    ("example.com:80", "http://example.com/"),
    ("example.com:8080/a", "https://example.com:8080/a"),
    ("https://localhost/", "https://localhost/"),
    ("localhost.example.com", "https://localhost.example.com/"),
]


@pytest.mark.parametrize(("typed", "url"), SPELLINGS)
def test_start_url_without_scheme(typed: str, url: str) -> None:
    assert start_url(typed, NORMALISE) == url


@pytest.mark.parametrize(("typed", "url"), SPELLINGS)
def test_line_of_a_file_is_spelled_as_an_argument(typed: str, url: str) -> None:
    assert line_url(typed, NORMALISE) == url


MEANT = {
    "http//x.y": "http://x.y", "htp://x.y": "http://x.y", "htttps://x.y/a": "https://x.y/a",
    "http:/x.y": "http://x.y", "https:x.y": "https://x.y", "https;//x.y": "https://x.y",
    "https//:x.y": "https://x.y", "https:\\\\x.y": "https://x.y", "https:///x.y": "https://x.y",
    "https://https://x.y": "https://x.y", "http://http//x.y:80": "http://x.y:80", "<https://x.y>": "https://x.y",
    '"x.y"': "x.y", "www.x.y.": "www.x.y", "www.x.y./a.": "www.x.y/a.",
}  # fmt: skip


@pytest.mark.parametrize(("typed", "meant"), MEANT.items())
def test_mistyped_url_is_refused_with_the_one_that_is_meant(typed: str, meant: str) -> None:
    with pytest.raises(ConfigError) as refused:
        start_url(typed, NORMALISE)
    assert str(refused.value) == f"{typed!r} is not an http or https URL; did you mean {meant}?"
    assert start_url(meant, NORMALISE)


@pytest.mark.parametrize(
    "typed",
    ["ftp://x.y", "www,x.y", "https://x.y,https://y.z", "https://x .y", "https://", "javascript:x", "http//"],
)
def test_what_cannot_be_meant_has_no_suggestion(typed: str) -> None:
    with pytest.raises(ConfigError, match=r"is not an http or https URL\.$"):
        start_url(typed, NORMALISE)


@pytest.mark.parametrize(
    "typed",
    [
        "https://http.x.y",
        "http.x.y",
        "http:8080",
        "httpd:8080/a",
        "HTTPS://x.y",
        "//x.y",
        "https://x.y/http//z",
    ],
)
def test_what_looks_mistyped_and_is_not_is_accepted(typed: str) -> None:
    assert start_url(typed, NORMALISE)


@pytest.mark.parametrize("typed", ["http//user:secret@x.y", "htps://user:secret@x.y", "user:secret@x.y"])
def test_login_in_a_mistyped_url_is_not_shown(typed: str) -> None:
    with pytest.raises(ConfigError, match="--auth-env") as refused:
        start_url(typed, NORMALISE)
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize("typed", ["me@x.y", "mailto:me@x.y"])
def test_mail_address_is_called_that(typed: str) -> None:
    with pytest.raises(ConfigError, match=r"An e-mail address is no URL: .* https://x\.y/"):
        start_url(typed, NORMALISE)


@pytest.mark.parametrize("command", ["crawl", "status", "init", "robots", "explain"])
def test_path_is_called_that_where_there_is_no_site(run: Run, command: str) -> None:
    code, _, err = run(command, "/private")
    assert code in {2, 3}
    assert "'/private' is a path: give a whole URL" in err or "There is no state" in err


def test_path_is_one_of_the_only_state(run: Run) -> None:
    site = little_site()
    site.robots("User-agent: *\nDisallow: /private\n")
    other = f"http://localhost:{free_port()}"
    with site.serve() as origin:
        run.ok("crawl", origin, *QUICK)
        assert run("robots", "/private")[1].startswith(f"forbidden  {origin}/private\n")
        for typed in ("/deep", "deep"):
            assert run("explain", typed)[1].startswith(f"{origin}/deep\n")
        assert run("explain", "nope/x")[1].startswith(f"{origin}/nope/x\n")
        bare = origin.replace("http://127.0.0.1", "127.1")  # not recognised as an address, so taken for https
        assert run("explain", f"{bare}/deep")[1].startswith(f"{origin}/deep\n")
        Path(".sitemap-crawler/b.db").write_bytes(
            Path(next(Path(".sitemap-crawler").glob("*.db"))).read_bytes()
        )
        assert "give a URL of a crawled site, or one of these: --state" in run("explain", "p/3")[2]
        Path(".sitemap-crawler/b.db").unlink()
        Path("sitemap-crawler.toml").write_text(f"[scope]\nstart = '{other}'\n")
        assert f"unreachable  {other}/private\n" in run("robots", "/private")[1]


@pytest.mark.parametrize("text", ["a sentence. And more", "/a", "mailto:a@example.com", "word", ""])
def test_line_that_names_no_host_is_no_url(text: str) -> None:
    assert line_url(text, NORMALISE) is None


def test_crawl_takes_bare_names_as_argument_and_in_a_file(run: Run, tmp_path: Path) -> None:
    with little_site().serve() as origin:
        bare = origin.removeprefix("http://")
        (tmp_path / "urls.txt").write_text(f"{bare}/a\n{bare}/deep\n")
        run.ok("crawl", bare, *QUICK, "--state", "one.db")
        code, _, err = run("crawl", "-i", "urls.txt", "--list-only", *QUICK, "--state", "two.db", "-o", "two")
    assert code == 0, err
    assert len(locs(tmp_path / "two/sitemap.xml.gz")) == 2


@pytest.mark.parametrize("command", [("crawl", *QUICK), ("init",), ("robots",)])
def test_bare_name_without_https_names_the_command(
    run: Run, tmp_path: Path, command: tuple[str, ...]
) -> None:
    name = f"127.1:{free_port()}"  # not recognised as an address, so taken for https
    assert f"sitemap-crawler {command[0]} http://{name}" in run.fails(4, *command, name)
    assert list(tmp_path.iterdir()) == [], "a URL that never answered leaves no state"
    assert "http://" not in run(*command, f"https://{name}")[2]


@pytest.mark.parametrize("command", [("crawl", *QUICK, "-o", "new/b"), ("init",)])
def test_name_that_does_not_resolve_has_one_sentence(
    run: Run, tmp_path: Path, command: tuple[str, ...]
) -> None:
    code, out, err = run(*command, "www.nowhere.invalid")
    assert (code, out) == (4, "")
    assert "https://www.nowhere.invalid/: host name could not be resolved" in sentence(err)
    assert "http:" not in err
    assert list(tmp_path.iterdir()) == []


def test_name_of_a_file_names_the_flag_for_it(run: Run) -> None:
    Path("urls.invalid").write_text("https://example.com/")
    assert "urls.invalid is also a file: --input reads the URLs in it." in run.fails(
        4, "crawl", "urls.invalid", *QUICK
    )


def test_mistyped_path_leaves_no_state(run: Run, tmp_path: Path) -> None:
    with little_site().serve() as origin:
        assert run("crawl", f"{origin}/nope", *QUICK)[0] == 4
        assert not (tmp_path / ".sitemap-crawler").exists()
        run.ok("crawl", origin, *QUICK)
        assert run("crawl", f"{origin}/nope", *QUICK)[0] == 4
        assert run("explain", f"{origin}/a")[0] == 0, "a state with pages is kept"


def test_state_of_a_crawled_site_is_kept_while_it_is_down(run: Run, tmp_path: Path) -> None:
    with little_site().serve() as origin:
        run.ok("crawl", origin, *QUICK)
    [state] = tmp_path.rglob("*.db")
    (tmp_path / "empty").mkdir()
    assert run("crawl", origin, *QUICK, "-o", "empty")[0] == 4
    assert (tmp_path / "empty").exists(), "it was there before"
    assert run("crawl", origin, *QUICK)[0] == 4
    assert state.exists()


def test_start_page_that_is_json_is_called_that(run: Run) -> None:
    site = Site()
    site.raw("/", body=b"{}", headers=[("Content-Type", "application/json")])
    with site.serve() as origin:
        code, _, err = run("crawl", origin, *QUICK)
    assert code == 4
    assert "is application/json, not an HTML page" in err


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("/sitemap.xml", "is application/xml, not an HTML page: give the URL of a page, or name a sitemap with --seed-sitemaps."),
        ("/a", "/a: redirect loop."),
    ],
)  # fmt: skip
def test_start_that_is_no_page_says_what_it_is(run: Run, path: str, said: str) -> None:
    site = Site()
    site.sitemap("/sitemap.xml", ["/"])
    site.redirect("/a", "/b")
    site.redirect("/b", "/a")
    with site.serve() as origin:
        code, _, err = run("crawl", f"{origin}{path}", *QUICK)
    assert (code, said in err) == (4, True), err


def test_init_says_that_a_server_is_down(run: Run) -> None:
    _, out, _ = run("init", f"127.0.0.1:{free_port()}")
    assert "does not answer (" in out
    assert "forbids" not in out


def test_init_says_that_robots_txt_cannot_be_read(run: Run) -> None:
    site = little_site()
    site.raw("/robots.txt", status=503)
    with site.serve() as origin:
        _, out, _ = run("init", origin)
    assert "robots.txt cannot be read (HTTP 503)" in out
