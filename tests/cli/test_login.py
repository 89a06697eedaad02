"""Sites behind a login: what is sent to which host, what is reported when a site requires a login, and that no secret appears anywhere."""

import json
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import trustme
from cryptography.hazmat.primitives import serialization

from crawler.cli.demo.site import Site
from crawler.fetch.address_guard import AddressGuard
from crawler.fetch.exchange import HttpFetcher
from crawler.fetch.request_headers import RequestIdentity
from crawler.settings.load import resolve
from crawler.settings.sections import Http
from tests.cli.test_cli import QUICK, little_site, locs
from tests.commands import Run
from tests.sites import star
from tests.tls import serve_tls

SECRET = "very-secret"
PROSE = "<p>" + "A page that says what it has to say. " * 10 + "</p>"
FORM = "<form><input name=user><input type=password></form>"


def sent(site: Site, name: str) -> dict[str, set[str | None]]:
    """By path, the values of a header."""
    found: dict[str, set[str | None]] = {}
    for asked in site.log:
        found.setdefault(asked.target, set()).add({k.lower(): v for k, v in asked.headers.items()}.get(name))
    return found


# -- --header-for -------------------------------------------------------------------------------------------


def test_a_header_for_a_host_is_sent_to_it_alone(run: Run) -> None:
    home, other, third = Site(), Site(), Site()
    with home.serve() as first:
        port = int(first.rpartition(":")[2])
        with other.serve("127.0.0.2", port) as second, third.serve("127.0.0.3", port) as away:
            home.page("/", links=[f"{second}/a", "/to", f"{away}/c"])
            home.redirect("/to", f"{second}/back")
            other.page("/a")
            other.redirect("/back", f"{away}/end")
            third.page("/end")
            third.page("/c")
            hosts = [name.removeprefix("http://") for name in (second, away)]
            code, _, err = run(
                "crawl", first + "/", *QUICK, "--header-for", hosts[0].upper(), f"X-Token: {SECRET}",
                "--header-for", hosts[0], "X-Other: b: c", "--allow-host", ",".join(hosts), "--allow-address", "127.0.0.0/8",
            )  # fmt: skip
    assert code == 0, err
    assert sent(other, "x-token") == {"/robots.txt": {SECRET}, "/a": {SECRET}, "/back": {SECRET}}
    assert sent(other, "x-other")["/a"] == {"b: c"}
    for site in (home, third):
        assert set().union(*sent(site, "x-token").values()) == {None}
    assert "/end" in sent(third, "x-token")


@pytest.mark.parametrize(
    ("host", "url", "is_sent"),
    [
        ("api.example.com", "https://api.example.com/", True),
        ("api.example.com", "https://api.example.com/a?b", True),
        ("api.example.com:8443", "https://api.example.com:8443/", True),
        ("api.example.com", "https://api.example.com:8443/", False),
        ("api.example.com", "http://api.example.com/", False),  # in the clear
        ("api.example.com", "https://api.example.com.evil.net/", False),
        ("api.example.com", "https://evil-api.example.com/", False),
        ("api.example.com", "https://example.com/", False),
        ("example.com", "https://example.com/", True),
    ],
)
def test_a_host_is_matched_as_a_whole_and_not_without_tls(host: str, url: str, is_sent: bool) -> None:
    identity = RequestIdentity(Http(header_for=(f"{host} X-Token: abc",)), ["https://example.com"])
    assert ("x-token" in identity.headers(url)) is is_sent


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--header-for", "a.example", f"{SECRET}"), "--header-for: *** must be a host and a header"),
        (
            ("--header-for", "https://a.example/", f"X: {SECRET}"),
            "--header-for: *** must be a host and a header",
        ),
        (("--header-for", "a.example", f"X: {SECRET}\r\nY: z"), "--header-for: *** must not contain control"),
        (("--header-for", "a.example", f"Host: {SECRET}"), "--header-for: 'Host' cannot be set"),
        (("--header-for", "a.example", f"X y: {SECRET}"), "--header-for: ***"),
        (("--header-for", "a.example"), "requires 2 arguments"),
        (("--header", f"X: {SECRET}\r\nY: z"), "--header: *** must not contain control characters"),
        (("--header", f"X: {SECRET}\nY: z"), "--header: *** must not contain control characters"),
        (("--header", f"X\0: {SECRET}"), "--header: *** must not contain control characters"),
    ],
)
def test_headers_that_cannot_be_sent_are_one_secretless_sentence(
    run: Run, words: tuple[str, ...], said: str
) -> None:
    code, _, err = run("crawl", "http://127.0.0.1:2/", *words)
    assert (code, said in err, SECRET in err) == (2, True, False), err


def test_a_header_for_a_host_can_stand_in_a_file_or_variable() -> None:
    line = "api.example.com X-Token: a b"
    assert resolve(flags={"header_for": (("API.example.com", "X-Token: a b"),)})[0].http.header_for == (line,)
    environ = {"SITEMAP_CRAWLER_HEADER_FOR": f"'{line}' 'b.example X: y'"}
    assert resolve(environ=environ)[0].http.header_for == (line, "b.example X: y")


# -- --client-cert ------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@contextmanager
def tls(site: Site, authority: trustme.CA, host: str, verify: ssl.VerifyMode) -> Iterator[str]:
    """Serves with TLS, and asks for client certificates."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(host).configure_cert(context)
    authority.configure_trust(context)
    context.verify_mode = verify
    with serve_tls(site, context) as address:
        yield address.replace("127.0.0.1", host)


def shown(site: Site, *paths: str) -> list[bool]:
    """Serves these pages, and notes for each request whether a client certificate came with it."""
    seen: list[bool] = []

    def answer(request: Any) -> Any:
        seen.append(bool(request.connection.getpeercert()))
        return Site.answer(200, f"<title>{request.path}</title>{PROSE}<a href=/b>b</a>".encode())

    for path in paths:
        site.respond(path, answer)
    return seen


@pytest.mark.slow
@pytest.mark.parametrize("more", [(), ("--http2",), ("--processes", "2")], ids="".join)
def test_a_client_certificate_is_shown_to_the_start_host_alone(
    run: Run, tmp_path: Path, authority: trustme.CA, more: tuple[str, ...]
) -> None:
    home, other = Site(), Site()
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    client = authority.issue_cert("crawler@example.com")
    client.private_key_and_cert_chain_pem.write_to_path(tmp_path / "client.pem")
    seen, elsewhere = shown(home, "/b"), shown(other, "/", "/b", "/robots.txt")
    with tls(home, authority, "localhost", ssl.CERT_REQUIRED) as first, tls(other, authority, "127.0.0.1", ssl.CERT_OPTIONAL) as second:  # fmt: skip
        home.page("/", links=["/b", f"{second}/"], text=PROSE)
        words = (
            "crawl", first + "/", *QUICK, "--ca-file", "ca.pem", "--allow-host", second.removeprefix("https://"),
            "--allow-address", "127.0.0.0/8,::1", *more,
        )  # fmt: skip
        assert run(*words)[0] == 4, "without a certificate the server does not answer"
        run.ok(*words, "--client-cert", "client.pem", "--fresh")
    assert seen == [True]
    assert elsewhere
    assert not any(elsewhere)


def test_the_key_may_be_in_a_file_of_its_own(tmp_path: Path, authority: trustme.CA) -> None:
    client = authority.issue_cert("crawler@example.com")
    cert, key = tmp_path / "c.pem", tmp_path / "k.pem"
    client.cert_chain_pems[0].write_to_path(cert)
    client.private_key_pem.write_to_path(key)
    chosen = Http(client_cert=str(cert), client_key=str(key))
    HttpFetcher(chosen, AddressGuard(), RequestIdentity(chosen, ()))


def broken(folder: Path, authority: trustme.CA) -> dict[str, tuple[str, ...]]:
    client, other = authority.issue_cert("a@example.com"), authority.issue_cert("b@example.com")
    client.cert_chain_pems[0].write_to_path(folder / "c.pem")
    other.private_key_pem.write_to_path(folder / "other.pem")
    key = serialization.load_pem_private_key(client.private_key_pem.bytes(), None)
    encrypted = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.BestAvailableEncryption(b"x")
    )  # fmt: skip
    (folder / "encrypted.pem").write_bytes(encrypted)
    (folder / "text.pem").write_text(SECRET)
    return {
        "missing": ("--client-cert", "no.pem"),
        "no key": ("--client-cert", "c.pem"),
        "another key": ("--client-cert", "c.pem", "--client-key", "other.pem"),
        "passphrase": ("--client-cert", "c.pem", "--client-key", "encrypted.pem"),
        "text": ("--client-cert", "text.pem"),
        "missing key": ("--client-cert", "c.pem", "--client-key", "no.pem"),
        "key alone": ("--client-key", "other.pem"),
    }


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("missing", "--client-cert: no.pem cannot be read (No such file or directory)"),
        ("no key", "it and its key must be PEM, without a passphrase"),
        ("another key", "the key does not belong to it"),
        ("passphrase", "it and its key must be PEM, without a passphrase"),
        ("text", "it and its key must be PEM, without a passphrase"),
        ("missing key", "--client-cert: no.pem cannot be read"),
        ("key alone", "--client-key needs --client-cert"),
    ],
)
def test_unusable_certificate_is_exit_2_before_any_request(
    run: Run, tmp_path: Path, authority: trustme.CA, kind: str, said: str
) -> None:
    words = broken(tmp_path, authority)[kind]
    code, _, err = run("crawl", "https://127.0.0.1:2/", *words)
    assert (code, said in err, SECRET in err) == (2, True, False), err


# -- cookies and logout -------------------------------------------------------------------------------------

FIRST = "# Netscape HTTP Cookie File\n"


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"127.0.0.1\tFALSE\t/\tFALSE\t0\tsid\tvery-secret\n", "its first line must be `# Netscape HTTP Cookie File`"),
        (b"", "its first line must be"),
        (b"\xff\xfe\x00\x01", "its first line must be"),
        (FIRST.encode() + b"127.0.0.1 FALSE / FALSE 0 sid very-secret\n", "seven fields with tabs between"),
        (FIRST.encode() + b"127.0.0.1\tFALSE\t/\tFALSE\tvery-secret\tsid\t1\n", "seven fields with tabs between"),
        (FIRST.encode() + b"\xff\tFALSE\t/\tFALSE\t0\tsid\tvery-secret\n", "seven fields with tabs between"),
    ],
    ids=["first line", "empty", "binary", "blanks", "date", "not text"],
)  # fmt: skip
def test_an_invalid_cookie_file_is_exit_2_and_says_why(
    run: Run, tmp_path: Path, body: bytes, said: str
) -> None:
    (tmp_path / "c.txt").write_bytes(body)
    code, _, err = run("crawl", "http://127.0.0.1:2/", "--cookie-file", "c.txt")
    assert (code, said in err, SECRET in err) == (2, True, False), err


@pytest.mark.parametrize(
    ("line", "is_warned"),
    [
        ("127.0.0.1\tFALSE\t/\tFALSE\t0\tsid\t1", False),
        ("127.0.0.1\tFALSE\t/members\tFALSE\t0\tsid\t1", False),
        ("www.example.com\tFALSE\t/\tFALSE\t0\tsid\t1", True),
        ("127.0.0.1\tFALSE\t/\tFALSE\t1000000000\tsid\t1", True),
    ],
)
def test_cookie_file_without_cookie_for_site_is_warning(
    run: Run, tmp_path: Path, line: str, is_warned: bool
) -> None:
    (tmp_path / "c.txt").write_text(FIRST + line + "\n")
    with little_site().serve() as address:
        code, _, err = run("crawl", address + "/", *QUICK, "--cookie-file", "c.txt")
    assert code == 0, err
    assert ("no cookie of cookie-file is for a start host" in err) is is_warned


@pytest.mark.parametrize("rule", [(), ("--no-rule", "logout")])
def test_the_logout_rule_can_be_switched_off(run: Run, tmp_path: Path, rule: tuple[str, ...]) -> None:
    site = star("/logout")
    with site.serve() as address:
        host = address.removeprefix("http://")
        run.ok("crawl", address + "/", *QUICK, "--header-for", host, "Cookie: a=b", *rule)
        found = [loc.removeprefix(address) for loc in locs(tmp_path / "sitemaps/sitemap.xml.gz")]
    assert found == (["/", "/logout"] if rule else ["/"])


# -- a site that hides --------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [401, 403])
def test_error_for_start_page_with_login_says_how_to_give_one(run: Run, status: int) -> None:
    site = Site()
    site.raw("/", status=status)
    with site.serve() as address:
        code, _, err = run("crawl", address + "/", *QUICK)
    assert code == 4
    assert f"login required or access denied (401, 403): {status}. A login is provided by --auth-env" in err


@pytest.mark.parametrize(
    ("kind", "said"), [("form", "looks like a login form. --auth-env"), ("shell", "needs JavaScript")]
)
def test_site_that_is_hidden_in_later_run_is_reported_in_summary(run: Run, kind: str, said: str) -> None:
    site = little_site()
    with site.serve() as address:
        run.ok("crawl", address + "/", *QUICK)
        site.answers.clear()
        body = FORM if kind == "form" else "<div id=app></div><script src=/app.js></script>"
        site.page("/", text=PROSE[:20])
        site.raw("/", body=f"<title>x</title>{body}".encode(), headers=[("Content-Type", "text/html")])
        code, _, err = run("crawl", address + "/", *QUICK)
        assert (code, " ".join(err.split()).count(said)) == (6, 1), err
        code, _, err = run("crawl", address + "/", *QUICK, "-q")
        assert (code, said in err, err.count("\n")) == (6, True, 1), "also unattended"
        code, _, err = run("crawl", address + "/", *QUICK, "--force")
        assert (code, said in " ".join(err.split())) == (0, True), "also when it is published all the same"
        assert "publishes it anyway" not in err


# -- what else a user asks the state ------------------------------------------------------------------------


def test_unknown_url_is_exit_8_and_lost_one_is_reported(run: Run) -> None:
    site = star("/a")
    with site.serve() as address:
        run("crawl", address + "/", *QUICK)
        site.page("/", links=[])
        run("crawl", address + "/", *QUICK, "--force")
        out, _ = run.ok("explain", address + "/a")
        assert "outcome    no longer found (listed in run 1)" in out
        assert json.loads(run("explain", address + "/a", "--format", "json")[1])["gone"] is True
        code, out, _ = run("explain", address + "/never")
        assert (code, "not known" in out) == (8, True)
        assert run("explain", address + "/never", "--format", "json")[0] == 8


def test_a_web_page_in_the_place_of_a_sitemap_is_exit_2(run: Run) -> None:
    site = little_site()
    with site.serve() as address:
        run("crawl", address + "/", *QUICK, "--state", "s.db")
        code, _, err = run("diff", address + "/a", "s.db")
    assert (code, "is not a sitemap" in err) == (2, True)


# -- no secret anywhere -------------------------------------------------------------------------------------

SECRETS = {name: f"{name}-{SECRET}" for name in ("basic", "header", "host", "cookie", "command")}


def everything(folder: Path) -> Iterator[tuple[str, str]]:
    for path in folder.rglob("*"):
        if path.is_file() and path.name not in {"cookies.txt", "settings.toml"} and path.suffix != ".pem":
            yield path.name, path.read_bytes().decode("latin-1")


@pytest.mark.slow
@pytest.mark.parametrize("fails", [False, True], ids=["a good site", "a site that fails"])
def test_no_secret_is_in_state_logs_reports_metrics_or_errors(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails: bool
) -> None:
    work = tmp_path / "work"
    work.mkdir()
    (tmp_path / "cookies.txt").write_text(
        FIRST + f"127.0.0.1\tFALSE\t/\tFALSE\t0\tsid\t{SECRETS['cookie']}\n"
    )
    site = little_site()
    if fails:
        site.raw("/a", status=500)
        site.redirect("/deep", "http://10.0.0.1/")
    with site.serve() as address:
        site.raw("/0123abcd.txt", body=b"nothing")
        host = address.removeprefix("http://")
        (tmp_path / "settings.toml").write_text(
            "[http]\nauth-env = 'SITE_LOGIN'\ncookie-file = '../cookies.txt'\n"
            f"header = ['X-Header: {SECRETS['header']}']\nheader-for = ['{host} X-Host: {SECRETS['host']}']\n"
            f"[output]\npublish-command = 'false {SECRETS['command']}'\n"
            "[submit]\nsubmit = true\nindexnow-key = '0123abcd'\nindexnow-endpoint = 'http://127.0.0.1:9/'\n"
        )
        monkeypatch.setenv("SITE_LOGIN", f"user:{SECRETS['basic']}")
        monkeypatch.chdir(work)
        config = ("--config", "../settings.toml")
        said = []
        for words in (
            ("crawl", address + "/", *config, *QUICK, "-v", "--report", "r.html", "--report", "r.json", "--report", "r.md",
             "--report", "r.csv", "--metrics-file", "m.prom"),
            ("crawl", address + "/", *config, *QUICK, "-v", "--log-format", "json", "--force"),
            ("config", *config),
            ("report",), ("list", "pages"), ("list", "runs"), ("status",),
            ("explain", address + "/a"),
            ("submit", *config, "--all"),
            ("validate", address + "/", *config), ("diff", address + "/", "sitemaps", *config), ("robots", address + "/", *config),
        ):  # fmt: skip
            _, out, err = run(*words)
            said.append((" ".join(words), out + err))
    carried = "".join(str(asked.headers) for asked in site.log)
    for name in ("header", "host", "cookie"):
        assert SECRETS[name] in carried, "it was sent"
    texts = [*said, *everything(work)]
    assert len(texts) > 18
    for place, text in texts:
        assert SECRET not in text, place
        assert "dXNlcjpiYXNpYy" not in text, place  # the beginning of user:basic- in base64


def test_no_credentials_are_sent_to_others_after_a_redirect(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SITE_LOGIN", f"Bearer {SECRET}")
    home, other = Site(), Site()
    with home.serve() as first, other.serve("127.0.0.2", int(first.rpartition(":")[2])) as second:
        home.redirect("/a", f"{second}/a")
        home.page("/", links=["/a"])
        other.page("/a")
        words = ("--auth-env", "SITE_LOGIN", "--header", f"X-Key: {SECRET}", "--allow-address", "127.0.0.0/8")
        code, _, err = run(
            "crawl", first + "/", *QUICK, *words, "--allow-host", second.removeprefix("http://")
        )
    assert code == 0, err
    assert sent(home, "authorization")["/"] == {f"Bearer {SECRET}"}
    assert sent(other, "authorization") == {"/robots.txt": {None}, "/a": {None}}
    assert sent(other, "x-key") == {"/robots.txt": {None}, "/a": {None}}
