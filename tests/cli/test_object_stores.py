"""`-o s3://…` as operators use it: real crawls into a server that speaks S3, its failures, deaths, and secrets."""

import gzip
import json
import signal
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from lxml import etree

from crawler import scratch
from crawler.sitemap.publish import object_store
from tests import program
from tests.cli.test_cli import QUICK, XSD, little_site
from tests.commands import Run
from tests.s3 import KEY, S3, SECRET, Request, package
from tests.waiting import send_signal, until

package("obstore")
pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[2]
NAMES = [
    "p/q/manifest.json",
    *(f"p/q/sitemap-0000{number}.xml.gz" for number in (1, 2, 3)),
    "p/q/sitemap.xml.gz",
]


def words(origin: str, s3: S3, *more: str) -> tuple[str, ...]:
    return ("crawl", origin + "/", *QUICK, "--max-urls", "1", "-o", f"s3://{s3.bucket}/p/q/", *more)


def locs(s3: S3) -> list[str]:
    """What a reader finds by the entry point; each part that the index names must be there."""

    def read(name: str) -> list[str]:
        text = gzip.decompress(s3.ask("GET", f"p/q/{name}")[0]).decode()
        found = [piece.partition("</loc>")[0] for piece in text.split("<loc>")[1:]]
        if "<sitemapindex" not in text:
            return found
        return [url for part in found for url in read(part.rpartition("/")[2])]

    return read("sitemap.xml.gz")


def test_a_crawl_publishes_into_a_bucket(run: Run, tmp_path: Path, s3: S3) -> None:
    site = little_site()
    with site.serve() as origin:
        call = words(origin, s3, "--cache-control", "public, max-age=3600")
        code, out, err = run(*call)
        assert (code, out) == (0, ""), err
        assert f"s3://{s3.bucket}/p/q" in err
        assert f"Sitemap: {origin}/sitemap.xml.gz" in err, "the line for robots.txt"
        assert s3.objects() == NAMES
        assert locs(s3) == [f"{origin}/", f"{origin}/a", f"{origin}/deep"]
        assert [path.name for path in tmp_path.iterdir()] == [".sitemap-crawler"], (
            "the state, and no other file"
        )
        for name in NAMES[1:]:
            body, headers = s3.ask("GET", name)
            assert headers["Content-Type"] == "application/gzip"
            assert headers["Cache-Control"] == "public, max-age=3600"
            assert "Content-Encoding" not in headers
            etree.fromstring(gzip.decompress(body))
        XSD.assertValid(etree.fromstring(gzip.decompress(s3.ask("GET", NAMES[1])[0])))
        sent = {name.lower() for request in s3.log for name in request.headers}
        assert not {name for name in sent if "acl" in name or "grant" in name or name == "content-encoding"}
        s3.log.clear()
        code, _, err = run(*call)
        assert (code, "Nothing changed" in err) == (0, True), err
        puts = [request for request in s3.log if request.method == "PUT"]
        assert {request.key for request in puts} == {"p/q/manifest.json"}
        assert all("If-Match" in request.headers for request in puts)
        site.page("/a", noindex=True)
        run.ok(*call, "--force")
    assert locs(s3) == [f"{origin}/"]
    manifest = json.loads(s3.ask("GET", "p/q/manifest.json")[0])
    assert {f"p/q/{file['name']}" for file in manifest["files"]} | {"p/q/manifest.json"} == {*s3.objects()}


def test_types_without_compression(run: Run, s3: S3) -> None:
    with little_site().serve() as origin:
        code, _, err = run(*words(origin, s3, "--no-gzip", "--stylesheet"))
    assert code == 0, err
    types = {name.rpartition("/")[2]: s3.ask("GET", name)[1]["Content-Type"] for name in s3.objects()}
    assert types.pop("sitemap.css").startswith("text/css")
    assert types.pop("manifest.json") == "application/json"
    assert {*types.values()} == {"application/xml"}


def test_the_first_put_asks_for_nobody_else_s(run: Run, s3: S3) -> None:
    with little_site().serve() as origin:
        run.ok(*words(origin, s3))
    puts = [
        request
        for request in s3.log
        if request.method == "PUT" and request.headers.get("If-Match") != '"0x0"'
    ]
    assert (puts[0].key, puts[0].headers["If-None-Match"]) == ("p/q/manifest.json", "*")
    assert puts[-1].key == "p/q/manifest.json"
    assert puts[-2].key == "p/q/sitemap.xml.gz"


# -- what goes with it -----------------------------------------------------------------------------------------


def test_the_other_commands(run: Run, s3: S3) -> None:
    with little_site().serve() as origin:
        place = f"s3://{s3.bucket}/p/q"
        run.ok(*words(origin, s3, "--dry-run"))
        assert [request.method for request in s3.log if request.method != "GET"] == []
        run.ok(*words(origin, s3))
        s3.log.clear()
        code, out, _ = run("explain", f"{origin}/a")
        assert (code, f"not read: the sitemap is in {place}" in out) == (0, True)
        code, out, _ = run("explain", f"{origin}/a", "--format", "json")
        assert json.loads(out)["file"] is None
        run.ok("status", origin)
        run.ok("report", origin)
        assert s3.log == [], "these commands make no request"
        for command in (
            ("validate", place),
            ("diff", place, place),
            ("diff", "https://www.example.com/", f"{place}/sitemap.xml.gz"),
        ):
            code, _, err = run(*command)
            assert (code, "is in an object store: give the URL at which it is served" in err) == (2, True)
            assert err.count("\n") == 1
        code, _, err = run("submit", f"{origin}/", "--new-key")
        assert (code, f"--new-key writes a file, and {place} is no folder" in err) == (2, True)
        code, _, err = run("demo", "-o", place)
        assert (code, "demo writes into a folder" in err) == (2, True)
        assert s3.log == []
        code, _, err = run("export", f"{origin}/", "-o", place, "--max-urls", "1")
        assert (code, "Nothing changed" in err) == (0, True), err


def test_publish_command_is_told_the_url(run: Run, tmp_path: Path, s3: S3) -> None:
    (tmp_path / "note.py").write_text(
        "import os; open('told', 'a').write(os.environ['SITEMAP_FOLDER'] + '|' + os.environ['SITEMAP_CHANGED'] + '\\n')"
    )
    with little_site().serve() as origin:
        call = (
            "crawl",
            origin + "/",
            *QUICK,
            "-o",
            f"s3://{s3.bucket}/p/q",
            "--publish-command",
            f"{sys.executable} note.py",
        )
        run.ok(*call)
        run.ok(*call)
    assert (tmp_path / "told").read_text() == f"s3://{s3.bucket}/p/q|sitemap.xml.gz\nmanifest.json\n"


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (("-o", "s3://key:very-secret-access-key@bucket/p"), "must not contain credentials"),
        (("-o", "az://bucket/p?sig=very-secret-access-key"), "must not contain credentials"),
        (("-o", "ftp://bucket/p"), "must be a folder, or a URL with s3://, gs:// or az://"),
        (("-o", "gcs://bucket/p"), "did you mean gs://?"),
        (("--file-mode", "0640"), "--file-mode is for folders"),
        (("--stylesheet",), "--stylesheet needs XML files"),
        (("--cache-control", "Cache-Control: no-cache"), "must be directives such as"),
    ],
)
def test_what_makes_no_sense_is_exit_2(run: Run, s3: S3, more: tuple[str, ...], said: str) -> None:
    code, _, err = run(*words("http://127.0.0.1:9", s3, *more))
    assert (code, said in err, SECRET in err) == (2, True, False), err
    assert err.count("\n") == 1
    assert s3.log == []


# -- failures --------------------------------------------------------------------------------------------------

FAILS = {
    "a wrong key": ("InvalidAccessKeyId", 3, "the credentials in the environment are not accepted (403 InvalidAccessKeyId)"),
    "an expired token": ("ExpiredToken", 3, "the credentials in the environment are not accepted (403 ExpiredToken)"),
    "no permission": ("AccessDenied", 3, "access is denied (403 AccessDenied)"),
    "busy for ever": ("SlowDown", 3, "the store answered 503 SlowDown, also when asked again"),
    "slow": ("slow", 3, "the store did not answer within 1s"),
    "careless": ("careless", 3, "the store ignores the condition of a put (If-Match)"),
}  # fmt: skip


@pytest.mark.parametrize("name", FAILS)
def test_a_store_that_fails_is_noticed_before_the_crawl(
    run: Run, s3: S3, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    fault, code, said = FAILS[name]
    s3.fault = lambda _: fault
    if fault == "slow":
        monkeypatch.setattr(object_store, "REQUEST_TIMEOUT", 1.0)
        monkeypatch.setattr(object_store, "RETRIES", 0)
    site = little_site()
    with site.serve() as origin:
        done, _, err = run(*words(origin, s3, "-q"))
    assert (done, said in err) == (code, True), err
    assert err.count("\n") == 1
    assert SECRET not in err
    assert site.log == []
    s3.fault = lambda _: None
    s3.finish_slow()
    assert s3.objects() == []


@pytest.mark.parametrize(
    ("name", "at"),
    [
        *(("no permission", at) for at in ("claim", "part", "entry point", "manifest", "delete")),
        *((name, at) for name in ("busy for ever", "slow") for at in ("part", "manifest")),
    ],
)
def test_a_store_that_fails_while_files_are_put_breaks_nothing(
    run: Run, s3: S3, monkeypatch: pytest.MonkeyPatch, name: str, at: str
) -> None:
    fault, code, said = FAILS[name]
    site = little_site()

    def fails(request: Request) -> str | None:
        s3_key, method = request.key.rpartition("/")[2], request.method
        if at == "delete":
            return fault if method in {"DELETE", "POST"} else None
        if method != "PUT" or request.headers.get("If-Match") == '"0x0"':
            return None
        puts = [
            r
            for r in s3.log
            if r.method == "PUT" and r.key == request.key and r.headers.get("If-Match") != '"0x0"'
        ]
        match at:
            case "claim":
                return fault if s3_key == "manifest.json" else None
            case "manifest":
                return fault if s3_key == "manifest.json" and len(puts) > 1 else None
            case "part":
                return fault if s3_key.startswith("sitemap-") else None
            case _:
                return fault if s3_key == "sitemap.xml.gz" else None

    with site.serve() as origin:
        run.ok(*words(origin, s3))
        site.page("/", links=["/a", "/c"])
        site.page("/a", noindex=True)
        site.page("/c")
        stay, s3.fault = {f"{origin}/"}, fails
        s3.log.clear()
        if fault == "slow":
            monkeypatch.setattr(object_store, "REQUEST_TIMEOUT", 1.0)
            monkeypatch.setattr(object_store, "RETRIES", 0)
        done, _, err = run(*words(origin, s3, "-q", "--force"))
        assert (done, said in err, err.count("\n"), SECRET in err) == (code, True, 1, False), err
        s3.fault = lambda _: None
        s3.finish_slow()
        monkeypatch.setattr(object_store, "REQUEST_TIMEOUT", 60.0)
        assert stay <= {*locs(s3)}
        run.ok(*words(origin, s3, "-q", "--force"))
        assert locs(s3) == [f"{origin}/", f"{origin}/c"]
    manifest = json.loads(s3.ask("GET", "p/q/manifest.json")[0])
    assert {f"p/q/{file['name']}" for file in manifest["files"]} | {"p/q/manifest.json"} == {*s3.objects()}
    assert not {"publishing", "leaving"} & {*manifest}


@pytest.mark.parametrize("fault", ["SlowDown", "TooManyRequests", "lost"])
def test_a_store_that_recovers_is_asked_again(run: Run, s3: S3, fault: str) -> None:
    """Also where the first attempt was done: then the second one finds another version, which is ours."""
    failed: set[tuple[str, str, str]] = set()

    def once(request: Request) -> str | None:
        key = (request.method, request.key, request.headers.get("If-Match", ""))
        if key in failed or request.headers.get("If-Match") == '"0x0"':
            return None
        failed.add(key)
        return fault

    s3.fault = once
    with little_site().serve() as origin:
        code, _, err = run(*words(origin, s3, "--log-format", "json"))
    s3.fault = lambda _: None
    assert code == 0, err
    assert len(failed) > 5
    told = [json.loads(line) for line in err.splitlines() if "trying again" in line]
    status = "429 TooManyRequests" if fault == "TooManyRequests" else "503 SlowDown"
    assert {(one["url"], one["because"], one["attempt"]) for one in told} == {
        (f"s3://{s3.bucket}/p/q", f"the store answered {status}", 2)
    }
    assert len(told) == len(failed)
    assert len(locs(s3)) == 3


def test_no_bucket_no_network_no_credentials(run: Run, s3: S3, monkeypatch: pytest.MonkeyPatch) -> None:
    code, _, err = run("crawl", "http://127.0.0.1:9/", "-q", "-o", "s3://no-such-bucket/p")
    assert (code, "cannot be written to s3://no-such-bucket/p: there is no such bucket" in err) == (
        3,
        True,
    ), err
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    monkeypatch.setattr(object_store, "RETRIES", 0)
    code, _, err = run(*words("http://127.0.0.1:9", s3, "-q"))
    assert (code, "the store cannot be reached" in err) == (3, True), err
    monkeypatch.setenv("AWS_ENDPOINT_URL", "garbage")
    code, _, err = run(*words("http://127.0.0.1:9", s3, "-q"))
    assert (code, "AWS_ENDPOINT_URL must be an address" in err, err.count("\n")) == (2, True, 1), err
    monkeypatch.setenv("AWS_ENDPOINT_URL", s3.address)
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    code, _, err = run(*words("http://127.0.0.1:9", s3, "-q"))
    assert (code, "not complete or not valid: check AWS_ACCESS_KEY_ID" in err, err.count("\n")) == (
        2,
        True,
        1,
    ), err
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    monkeypatch.setenv("AWS_METADATA_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setattr(object_store, "CONNECT", 1.0)
    code, _, err = run(*words("http://127.0.0.1:9", s3, "-q"))
    assert (code, "in the environment" in err or "cannot be reached" in err, err.count("\n")) == (
        3,
        True,
        1,
    ), err


def test_another_run_is_exit_9(run: Run, s3: S3) -> None:
    with little_site().serve() as origin:
        run.ok(*words(origin, s3))
        known = json.loads(s3.ask("GET", "p/q/manifest.json")[0])
        body = json.dumps(known | {"publishing": {"by": "another", "seconds": 900}}).encode()
        s3.ask("PUT", "p/q/manifest.json", body)
        code, _, err = run(*words(origin, s3, "-q"))
        assert (code, "Another run is publishing to s3://" in err, err.count("\n")) == (9, True, 1), err
        s3.ask("PUT", "p/q/manifest.json", json.dumps(known).encode())
        run.ok(*words(origin, s3, "-q"))


# -- deaths and secrets ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "moment",
    [
        "after put of claim",
        "before put of sitemap-00002.xml.gz",
        "before put of sitemap.xml.gz",
        "after put of sitemap.xml.gz",
        "after put of manifest",
        "after delete of sitemap-00003.xml.gz",
        "after put of settled",
    ],
)  # fmt: skip
def test_the_next_run_completes_what_a_killed_one_began(
    run: Run, s3: S3, moment: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (temporary := tmp_path / "temporary").mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    site = little_site()
    with site.serve() as origin:
        run.ok(*words(origin, s3))
        site.page("/", links=["/a", "/c"])
        site.page("/a", noindex=True)
        site.page("/c")
        call = words(origin, s3, "--force")
        died = program.run(call, dies=moment)
        assert died.returncode == -signal.SIGKILL, died.stderr
        assert f"{origin}/" in locs(s3)
        assert [*temporary.glob(f"{scratch.PREFIX}*")]
        run.ok(*call)
        assert not [*temporary.glob(f"{scratch.PREFIX}*")]
        assert locs(s3) == [f"{origin}/", f"{origin}/c"]
    manifest = json.loads(s3.ask("GET", "p/q/manifest.json")[0])
    assert {f"p/q/{file['name']}" for file in manifest["files"]} | {"p/q/manifest.json"} == {*s3.objects()}
    assert not {"publishing", "leaving"} & {*manifest}


@pytest.mark.parametrize(
    ("at", "signals"), [("GET", 1), ("PUT", 2)], ids=["the check, one signal", "a put, two"]
)
def test_a_store_that_hangs_keeps_nobody_from_leaving(run: Run, s3: S3, at: str, signals: int) -> None:
    s3.fault = lambda request: (
        "hangs" if request.method == at and request.headers.get("If-Match") != '"0x0"' else None
    )
    with little_site().serve() as origin:
        call = words(origin, s3)
        running = program.start(call)
        until(lambda: any(asked.method == at for asked in s3.log if asked.headers.get("If-Match") != '"0x0"'))
        for _ in range(signals):
            send_signal(running, signal.SIGTERM)
        assert (running.wait(), s3.released.is_set()) == (143, False), running.stderr
        s3.released.set()
        s3.fault = lambda _: None
        run.ok(*call)
        assert len(locs(s3)) == 3


def test_credentials_are_nowhere(run: Run, tmp_path: Path, s3: S3, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SESSION_TOKEN", f"{SECRET}-token")
    texts: list[str] = []
    with little_site().serve() as origin:
        more = (
            "-v",
            "--report",
            "r.html",
            "--report",
            "r.json",
            "--report",
            "r.md",
            "--metrics-file",
            "m.prom",
        )
        texts += run(*words(origin, s3, *more))[1:]
        for fault in ("AccessDenied", "SignatureDoesNotMatch", "SlowDown"):
            s3.fault = lambda request, fault=fault: fault if request.method == "PUT" else None  # type: ignore[misc]
            texts += run(*words(origin, s3, *more, "--log-format", "json"))[1:]
        texts += run("report", origin)[1:] + run("config")[1:]
    s3.fault = lambda _: None
    texts += [s3.ask("GET", key)[0].decode("latin-1") for key in s3.objects()]
    texts += [path.read_bytes().decode("latin-1") for path in tmp_path.rglob("*") if path.is_file()]
    assert len(texts) > 18
    assert not any(SECRET in text or KEY in text for text in texts)


# -- permissions -----------------------------------------------------------------------------------------------

POLICY = (ROOT / "docs/run/delivery.md").read_text().partition("```json\n")[2].partition("```")[0]


@pytest.fixture
def permitted(s3: S3, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Gives the program a key with the policy of the document, without one of its actions."""
    owner = {"aws_access_key_id": "x", "aws_secret_access_key": "x", "region_name": "us-east-1"}
    iam = package("boto3").client("iam", endpoint_url=s3.address, **owner)
    user = {"UserName": s3.bucket}
    iam.create_user(**user)
    key = iam.create_access_key(**user)["AccessKey"]
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", key["AccessKeyId"])
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", key["SecretAccessKey"])

    def permit(without: str) -> None:
        policy = json.loads(
            POLICY.replace("www-example-com/sitemaps/", f"{s3.bucket}/p/q/").replace(
                "www-example-com", s3.bucket
            )
        )
        policy["Statement"][0]["Action"].remove(without or "s3:AbortMultipartUpload")
        iam.put_user_policy(**user, PolicyName="sitemap", PolicyDocument=json.dumps(policy))

    return permit


@pytest.mark.parametrize(("without", "first", "second"), [("", 0, 0), ("s3:GetObject", 3, 3), ("s3:PutObject", 3, 3), ("s3:DeleteObject", 0, 3)])  # fmt: skip
def test_the_policy_of_the_document_is_enough_and_no_more(
    run: Run, s3: S3, permitted: Callable[[str], None], without: str, first: int, second: int
) -> None:
    permitted(without)
    site = little_site()

    def crawls() -> None:
        with site.serve() as origin:
            for code in (first, second):
                left, _, err = run(*words(origin, s3, "-q", "--force"))
                assert (left, "access is denied (403 AccessDenied)" in err) == (code, code == 3), err
                site.page("/a", noindex=True)

    # Until it ends, the server checks signatures and policies.
    package("moto.core").set_initial_no_auth_action_count(0)(crawls)()
    assert len(s3.objects()) == {"": 2, "s3:DeleteObject": 5}.get(without, 0)
