"""`--state s3://…`: jobs without a disk, into a server that speaks S3: what one leaves, the next one knows; deaths, faults, a second job."""

import gzip
import hashlib
import json
import signal
import tempfile
import threading
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from crawler import scratch
from crawler.app import stored_state
from crawler.model import failpoints
from crawler.sitemap.publish import object_store
from tests import program
from tests import server as site_server
from tests.cli.test_cli import QUICK, little_site
from tests.commands import Run
from tests.s3 import S3, SECRET, Request, package
from tests.server import Origin, Talk, http, page
from tests.waiting import send_signal, until

if TYPE_CHECKING:
    from collections.abc import Callable

package("obstore")
pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[2]


PATIENT = ("--timeout", "600", "--total-timeout", "600")


def place(s3: S3) -> str:
    return f"s3://{s3.bucket}/p/site.db"


def words(origin: str, s3: S3, *more: str) -> tuple[str, ...]:
    return ("crawl", origin + "/", *QUICK, "--state", place(s3), *more)


def packs(s3: S3) -> list[str]:
    return [name for name in s3.objects() if name.endswith(".gz")]


def record(s3: S3) -> dict[str, object]:
    return dict(json.loads(s3.ask("GET", "p/site.db")[0]))


def test_a_second_night_on_another_machine(run: Run, tmp_path: Path, s3: S3) -> None:
    site = little_site()
    with site.serve() as origin:
        _, err = run.ok(*words(origin, s3))
        assert [path.name for path in tmp_path.iterdir()] == ["sitemaps"], "nothing but the sitemap is left"
        assert s3.objects() == ["p/site.db", *packs(s3)]
        assert len(packs(s3)) == 1
        assert gzip.decompress(s3.ask("GET", packs(s3)[0])[0]).startswith(b"SQLite format 3\0")
        for body in (s3.ask("GET", name)[0] for name in s3.objects()):
            assert SECRET.encode() not in body
        before = record(s3)
        code, _, err = run(*words(origin, s3))
        assert (code, "Nothing changed" in err) == (0, True), err
        assert place(s3) in err
        assert record(s3)["pack"] != before["pack"]
        assert packs(s3) == [f"p/site.db.{record(s3)['pack']}.gz"], "the old state is deleted"
        code, out, err = run("list", "runs", "--state", place(s3), "--format", "jsonl")
        assert (code, len(out.splitlines())) == (0, 2), err


def test_what_reads_a_state_reads_a_copy(run: Run, s3: S3, tmp_path: Path) -> None:
    with little_site().serve() as origin:
        code, _, err = run("status", "--state", place(s3))
        assert (code, f"There is no state at {place(s3)}: crawl first" in err) == (3, True), err
        run.ok(*words(origin, s3))
        s3.ask("PUT", "p/site.db.lock", b"another job is at work")
        s3.log.clear()
        commands = {
            ("status",): place(s3),
            ("explain", f"{origin}/a"): "listed",
            ("report", "--format", "json"): f"{origin}/gone",
            ("list", "pages"): f"{origin}/deep",
            ("export", "-o", "sitemaps"): "",
            ("submit", "--dry-run"): "First submission",
            ("diff", "sitemaps", "sitemaps"): "",
        }
        for command, said in commands.items():
            code, out, err = run(*command, "--state", place(s3))
            assert (code, said in out) == (0, True), (command, out, err)
            assert f"{place(s3)}: read as it was put there at " in err, command
        assert {request.method for request in s3.log} == {"GET"}
        assert [path.name for path in tmp_path.iterdir()] == ["sitemaps"]
    code, _, err = run("state", "list", "--state", place(s3))
    assert (code, "not for files or object stores" in err) == (2, True), err


def test_submit_notes_in_the_state_what_it_sent(run: Run, s3: S3) -> None:
    with little_site().serve() as origin:
        run.ok(*words(origin, s3))
        before = record(s3)
        code, out, err = run("submit", "--state", place(s3), "--indexnow-key", "0f3c9a51d2e84b76")
        assert (code, "First submission" in out) == (0, True), err
        assert record(s3) != before
        assert "p/site.db.lock" not in s3.objects()


def test_several_sites_and_two_processes(run: Run, s3: S3) -> None:
    with little_site().serve() as first, little_site().serve() as second:
        Path("sitemap-crawler.toml").write_text(
            f'[pace]\nrate = 0\nprocesses = 2\n[state]\nstate = "{place(s3)}"\n'
            f'[[site]]\nname = "one"\nstart = "{first}"\n[[site]]\nname = "two"\nstart = "{second}"\n'
        )
        run.ok("crawl")
        assert {name for name in s3.objects() if name.endswith(".db")} == {"p/site-one.db", "p/site-two.db"}
        code, out, _ = run("status", "--site", "two")
        assert (code, f"{second}" in out, f"s3://{s3.bucket}/p/site-two.db" in out) == (0, True, True)


def test_nights_with_a_budget(run: Run, s3: S3) -> None:
    site = little_site()
    with site.serve() as origin:
        run.ok(*words(origin, s3))
        for _ in range(3):
            code, _, err = run(*words(origin, s3, "--budget", "1"))
            assert code in {0, 7}, err
        code, out, _ = run("list", "pages", "--only", "listed", "--state", place(s3), "--fields", "url")
        assert len(out.splitlines()) >= 3


@pytest.mark.parametrize(
    ("state", "said"),
    [
        ("s3://key:very-secret-access-key@bucket/site.db", "must not contain credentials"),
        ("s3://", "must name a bucket, as in s3://my-bucket/site.db"),
        (
            "s3://b/x.db",
            "must name a bucket of 2 to 222 letters, digits, dots, dashes and underscores, as in",
        ),
        ("s3://bucket", "must name an object, as in s3://bucket/site.db"),
        ("gcs://bucket/site.db", "did you mean gs://?"),
        ("ftp://bucket/site.db", "ftp is not supported"),
    ],
)
def test_what_makes_no_sense_is_exit_2(run: Run, s3: S3, state: str, said: str) -> None:
    for command in ("crawl", "http://127.0.0.1:8123/"), ("status",):
        code, _, err = run(*command, "--state", state)
        assert (code, said in err, SECRET in err, err.count("\n")) == (2, True, False, 1), err
    assert s3.log == []


# -- a second job ------------------------------------------------------------------------------------------------


def test_a_second_job_is_exit_9_whatever_our_clock_says(
    run: Run, s3: S3, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = little_site()
    with site.serve() as origin:
        owner = json.dumps({"token": "0123456789abcdef", "host": "pod-\x1b[1m7"}).encode()
        s3.ask("PUT", "p/site.db.lock", owner)
        now = time.time()
        for off in (0.0, 86_400.0, -86_400.0):
            monkeypatch.setattr(time, "time", partial(float, now + off))
            code, _, err = run(*words(origin, s3, "-q"))
            assert (code, err.count("\n"), site.log) == (9, 1, []), err
            assert f"Another run on pod-\\x1b[1m7 is using the state {place(s3)}" in err
            assert f"as soon as you delete {place(s3)}.lock" in err
            assert s3.objects() == ["p/site.db.lock"]
        monkeypatch.undo()


def test_the_lock_of_a_killed_job_ends_by_the_clock_of_the_store(
    run: Run, s3: S3, monkeypatch: pytest.MonkeyPatch
) -> None:
    with little_site().serve() as origin:
        token = "0123456789abcdef"
        s3.ask("PUT", "p/site.db.lock", json.dumps({"token": token, "puts": 1}).encode())
        s3.ask("PUT", f"p/site.db.{token}.1.gz", b"put, and not recorded")
        monkeypatch.setattr(stored_state, "EXPIRY", -10.0)
        run.ok(*words(origin, s3, "-q"))
        assert s3.objects() == ["p/site.db", *packs(s3)]
        assert len(packs(s3)) == 1


@pytest.mark.parametrize("how", ["taken", "deleted", "state replaced"])
def test_a_job_that_lost_its_lock_publishes_nothing(
    run: Run, s3: S3, tmp_path: Path, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At the last check before files are replaced; where only the state was replaced, when it is put back."""
    other = json.dumps({"token": "0123456789abcdef"}).encode()
    steal: Callable[[], object] = {
        "taken": lambda: s3.ask("PUT", "p/site.db.lock", other),
        "deleted": lambda: s3.ask("DELETE", "p/site.db.lock"),
        "state replaced": lambda: s3.ask("PUT", "p/site.db", s3.ask("GET", "p/site.db")[0] + b" "),
    }[how]
    with little_site().serve() as origin:
        run.ok(*words(origin, s3))
        before = {path: path.read_bytes() for path in tmp_path.glob("sitemaps/*")}

        def at(name: str) -> None:
            if name == "before commit of finish":
                steal()

        monkeypatch.setattr(failpoints, "hook", at)
        code, _, err = run(*words(origin, s3, "-q", "--force"))
        assert (code, "Another run has taken the state" in err) == (9, True), err
        if how != "state replaced":
            assert {path: path.read_bytes() for path in tmp_path.glob("sitemaps/*")} == before
        monkeypatch.undo()


# -- faults --------------------------------------------------------------------------------------------------------

FAILS = {
    "a wrong key": ("InvalidAccessKeyId", "the credentials in the environment are not accepted (403 InvalidAccessKeyId)"),
    "no permission": ("AccessDenied", "access is denied (403 AccessDenied)"),
    "a clock that is off": ("RequestTimeTooSkewed", "the clock of this machine is wrong"),
    "busy for ever": ("SlowDown", "the store answered 503 SlowDown, also when asked again"),
    "slow": ("slow", "the store did not answer within 1s"),
    "careless": ("careless", "the store ignores the condition of a put (If-Match)"),
}  # fmt: skip


def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(object_store, "REQUEST_TIMEOUT", 1.0)
    monkeypatch.setattr(object_store, "RETRIES", 0)


@pytest.mark.parametrize("name", FAILS)
def test_a_store_that_fails_is_noticed_before_the_crawl(
    run: Run, s3: S3, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    fault, said = FAILS[name]
    s3.fault = lambda _: fault
    if fault == "slow":
        impatient(monkeypatch)
    site = little_site()
    with site.serve() as origin:
        code, _, err = run(*words(origin, s3, "-q"))
    assert (code, said in err, err.count("\n"), SECRET in err, site.log) == (3, True, 1, False, []), err
    s3.fault = lambda _: None
    assert s3.objects() == []


@pytest.mark.parametrize(
    ("name", "at"), [("no permission", "state"), ("busy for ever", "record"), ("no permission", "delete")]
)  # fmt: skip
def test_a_store_that_fails_at_the_end_keeps_the_state_it_had(
    run: Run, s3: S3, monkeypatch: pytest.MonkeyPatch, name: str, at: str
) -> None:
    fault, said = FAILS[name]

    def fails(request: Request) -> str | None:
        key, method = request.key.rpartition("/")[2], request.method
        match at:
            case "state":
                return fault if method == "PUT" and key.endswith(".gz") else None
            case "record":
                return fault if method == "PUT" and key == "site.db" else None
            case _:
                return fault if method == "DELETE" and key.endswith(".gz") else None

    with little_site().serve() as origin:
        run.ok(*words(origin, s3))
        before = record(s3)
        s3.fault = fails
        code, _, err = run(*words(origin, s3, "-q"))
        s3.fault = lambda _: None
        assert (code, said in err, SECRET in err) == (3, True, False), err
        assert f"The state {place(s3)} cannot be " in err
        assert record(s3) == before
        if "p/site.db.lock" in s3.objects():
            monkeypatch.setattr(stored_state, "EXPIRY", -10.0)
        code, _, err = run(*words(origin, s3))
        assert (code, "Nothing changed" in err) == (0, True), err
        assert len(packs(s3)) == 1


def damage(s3: S3, how: str) -> None:
    name, known = packs(s3)[0], record(s3)
    body = s3.ask("GET", name)[0]
    match how:
        case "truncated":
            s3.ask("PUT", name, body[:-100])
        case "one bit":
            s3.ask("PUT", name, body[:200] + bytes([body[200] ^ 1]) + body[201:])
        case "longer":
            s3.ask("PUT", name, body + bytes(1_000_000))
        case "missing":
            s3.ask("DELETE", name)
        case "a bomb":
            bomb = gzip.compress(bytes(50_000_000))
            s3.ask("PUT", name, bomb)
            told = known | {"bytes": len(bomb), "sha256": hashlib.sha256(bomb).hexdigest()}
            s3.ask("PUT", "p/site.db", json.dumps(told).encode())
        case "a larger disk":
            s3.ask("PUT", "p/site.db", json.dumps(known | {"size": 1 << 60}).encode())
        case "another program's":
            other = gzip.compress(b"SQLite format 3\0" + bytes([1]) * 200)
            s3.ask("PUT", name, other)
            told = {"bytes": len(other), "sha256": hashlib.sha256(other).hexdigest(), "size": 216}
            s3.ask("PUT", "p/site.db", json.dumps(known | told).encode())
        case "no record":
            s3.ask("PUT", "p/site.db", b"SQLite format 3\0" + bytes(20_000))


DAMAGES = {
    "truncated": "is damaged (it has ",
    "one bit": "is damaged (its checksum is wrong)",
    "longer": "is damaged (it has ",
    "missing": "is damaged (there is a record of it, but not the state itself)",
    "a bomb": "is damaged (unpacked, it has more than ",
    "a larger disk": "cannot be fetched: unpacked, it has 1,152,921,504,606,846,976 bytes",
    "another program's": "is not a state file of sitemap-crawler and is left untouched",
    "no record": "is not a state of sitemap-crawler and is left untouched",
}


@pytest.mark.parametrize("how", DAMAGES)
def test_a_damaged_state_is_not_opened(run: Run, s3: S3, tmp_path: Path, how: str) -> None:
    site = little_site()
    with site.serve() as origin:
        run.ok(*words(origin, s3))
        damage(s3, how)
        there = {name: s3.ask("GET", name)[0] for name in s3.objects()}
        site.log.clear()
        for command in words(origin, s3, "-q"), ("status", "--state", place(s3)):
            code, _, err = run(*command)
            assert (code, DAMAGES[how] in err, err.count("\n"), site.log) == (3, True, 1, []), err
            assert place(s3) in err
            assert "/tmp" not in err.replace(str(tmp_path), "")
            assert {name: s3.ask("GET", name)[0] for name in s3.objects()} == there
        code, _, err = run(*words(origin, s3, "-q", "--fresh"))
        assert code == (3 if how == "no record" else 0), err
        assert code == 3 or len(packs(s3)) == 1


# -- deaths --------------------------------------------------------------------------------------------------------

SAVE_OFTEN = "from crawler.app import stored_frontier; stored_frontier.SAVE_EVERY = "


@pytest.mark.parametrize(
    "moment",
    [
        "after put of lock", "before put of state", "after put of state", "before put of record",
        "after put of record", "after commit of conclude",
    ],
)  # fmt: skip
def test_the_next_job_goes_on_where_a_killed_one_was(
    run: Run, s3: S3, monkeypatch: pytest.MonkeyPatch, moment: str, tmp_path: Path
) -> None:
    (temporary := tmp_path / "temporary").mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    with little_site().serve() as origin:
        run.ok(*words(origin, s3))
        died = program.run(words(origin, s3), patch=f"{SAVE_OFTEN}0.05", dies=moment)
        assert died.returncode == -signal.SIGKILL, died.stderr
        assert "p/site.db.lock" in s3.objects()
        assert [*temporary.glob(f"{scratch.PREFIX}*")]
        run.ok("status", "--state", place(s3))
        monkeypatch.setattr(stored_state, "EXPIRY", -10.0)
        run.ok(*words(origin, s3))
        assert s3.objects() == ["p/site.db", *packs(s3)]
        assert len(packs(s3)) == 1
        assert not [*temporary.glob(f"{scratch.PREFIX}*")]


def hanging(origin: Origin, path: str) -> tuple[threading.Event, threading.Event]:
    """A page that answers once it is released: events for that it was asked, and for that."""
    asked, released = threading.Event(), threading.Event()

    def answer(talk: Talk) -> None:
        asked.set()
        released.wait(600)
        talk.say(http(page(text="the last page")))

    origin.put(path, answer)
    return asked, released


def test_what_a_killed_job_had_put_is_not_asked_again(
    run: Run, s3: S3, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It saves all the time; the last page hangs, so that it is killed in the middle."""
    origin = Origin("site", "127.0.0.1")
    asked, released = hanging(origin, "/last")
    pages = [f"/{number}" for number in range(20)]
    origin.put("/", http(page(*pages, "/last")))
    for name in pages:
        origin.put(name, http(page(text=f"page {name}")))
    with site_server.serving(origin):
        call = words(origin.url("").removesuffix("/"), s3, *PATIENT)
        job = program.start(call, patch=f"{SAVE_OFTEN}1.0")
        assert asked.wait(300)
        until(lambda: settled(run, s3) >= 21, 300)
        job.kill()
        job.wait(300)
        released.set()
        before = origin.counts()
        monkeypatch.setattr(stored_state, "EXPIRY", -10.0)
        run.ok(*call)
        after = origin.counts()
        assert [name for name in pages if after[name] > before[name]] == []


def settled(run: Run, s3: S3) -> int:
    """How many pages the state in the store has an outcome of."""
    code, out, _ = run("status", "--state", place(s3), "--format", "json")
    return sum(json.loads(out)["outcomes"].values()) if code == 0 else 0


@pytest.mark.parametrize("hangs", [False, True])
def test_term_puts_the_state_back_unless_the_store_hangs(
    run: Run, s3: S3, hangs: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    origin = Origin("site", "127.0.0.1")
    asked, released = hanging(origin, "/last")
    origin.put("/", http(page("/one", "/last")))
    origin.put("/one", http(page(text="page one")))
    if hangs:
        s3.fault = lambda request: (
            "hangs" if request.method == "PUT" and request.key.endswith(".gz") else None
        )
    with site_server.serving(origin):
        call = words(origin.url("").removesuffix("/"), s3, *PATIENT)
        patient = "from crawler.cli import signals; signals.ENDING = 600.0"
        job = program.start(call, patch="" if hangs else patient)
        assert asked.wait(300)
        until(lambda: "/one" in origin.counts())
        send_signal(job, signal.SIGTERM)
        released.set()
        _, err = job.communicate(timeout=300)
        assert (job.returncode, s3.released.is_set()) == (143, False), err
        assert ("state not put back" in err) == hangs
        s3.released.set()
        s3.fault = lambda _: None
        assert ("p/site.db" in s3.objects()) != hangs
        monkeypatch.setattr(stored_state, "EXPIRY", -10.0)
        code, _, err = run(*call)
        assert (code, "resuming an unfinished crawl" in err) == (0, not hangs), err
