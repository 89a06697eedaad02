"""Publication: old files survive any failure, a reader never sees half a file, and the guard decides."""

import errno
import gzip
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest
from lxml import etree

from crawler.errors import OutputError, PublishRefused
from crawler.model import failpoints
from crawler.model.facts import Entry
from crawler.parse.url import Url
from crawler.settings.sections import Guard, Output, Settings
from crawler.sitemap.publish.guard import CrawlResult
from crawler.sitemap.publish.publish import CrawlToPublish, check_folder, publish
from crawler.sitemap.publish.published import Published

pytestmark = pytest.mark.anyio
SITE = "https://example.com"
ROOT = Path(__file__).parents[2]


async def stream(count: int, site: str = SITE) -> AsyncIterator[Sequence[Entry]]:
    for number in range(count):
        yield [Entry(Url(f"{site}/{number:03}"))]


async def put(folder: Path, count: int = 3, *, complete: bool = True, **chosen: Any) -> Published:
    guard = {name: chosen.pop(name) for name in list(chosen) if name in Guard.__dataclass_fields__}
    return await publish(
        stream(count),
        Settings(output=Output(**{"output": str(folder), **chosen}), guard=Guard(**guard)),
        CrawlToPublish(SITE, CrawlResult(complete, {"listed": count, "failed:dns": 1}, {}), "7"),
    )


class Death(Exception):  # noqa: N818
    """The process ends here."""


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


async def test_the_folder_contains_only_files_and_manifest(tmp_path: Path) -> None:
    done = await put(tmp_path / "new/folder", 5, max_urls=2)
    names = ["sitemap-00001.xml.gz", "sitemap-00002.xml.gz", "sitemap-00003.xml.gz", "sitemap.xml.gz"]
    assert sorted(contents(tmp_path / "new/folder")) == ["manifest.json", *names]
    assert [(file.name, file.urls) for file in done.files] == list(zip(names, (2, 2, 1, 0), strict=True))
    assert (done.urls, done.robots_line) == (5, f"Sitemap: {SITE}/sitemap.xml.gz")
    manifest = json.loads((tmp_path / "new/folder/manifest.json").read_text())
    assert (manifest["run"], manifest["urls"], manifest["complete"]) == ("7", 5, True)
    assert manifest["outcomes"] == {"failed:dns": 1, "listed": 5}
    assert [file["name"] for file in manifest["files"]] == names


async def test_an_index_of_another_program_may_name_what_is_no_file(tmp_path: Path) -> None:
    loc = f"<sitemap><loc>{SITE}/{'x' * 300}</loc></sitemap>"
    (tmp_path / "sitemap.xml").write_text(
        f'<sitemapindex xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{loc}</sitemapindex>'
    )
    with pytest.raises(PublishRefused, match="It is unknown how many URLs are published"):
        await put(tmp_path)


async def test_json_lines_have_no_robots_line(tmp_path: Path) -> None:
    assert (await put(tmp_path, format="jsonl")).robots_line == ""
    assert (await put(tmp_path, format="txt")).robots_line == f"Sitemap: {SITE}/sitemap.txt.gz"


async def test_unchanged_entries_leave_the_files_untouched(tmp_path: Path) -> None:
    await put(tmp_path, 5, max_urls=2)
    before = {path.name: path.stat().st_ino for path in tmp_path.glob("sitemap*")}
    done = await put(tmp_path, 5, max_urls=2)
    assert {path.name: path.stat().st_ino for path in tmp_path.glob("sitemap*")} == before
    assert all(file.unchanged for file in done.files)


async def test_obsolete_files_are_removed_and_files_of_others_stay(tmp_path: Path) -> None:
    await put(tmp_path, 5, max_urls=2)
    (tmp_path / "index.html").write_text("mine")
    (tmp_path / "sitemap-news.xml").write_text("mine, too")
    await put(tmp_path, 4)
    assert sorted(contents(tmp_path)) == ["index.html", "manifest.json", "sitemap-news.xml", "sitemap.xml.gz"]


async def test_a_forged_manifest_removes_no_files(tmp_path: Path) -> None:
    (tmp_path / "precious.txt").write_text("x")
    out = tmp_path / "out"
    out.mkdir()
    (out / "sitemap.html").write_text("x")
    names = ["../precious.txt", "/etc/passwd", "sitemap.html", "", ".", None, 5]
    (out / "manifest.json").write_text(
        json.dumps({"files": [{"name": name} for name in names] + [1], "urls": "x", "run": 1})
    )
    await put(out)
    assert (tmp_path / "precious.txt").exists()
    assert (out / "sitemap.html").exists()


@pytest.mark.parametrize("text", ["", "{", '{\n  "run": "7",\n  "compl', "\0\0\0", "\n"])
async def test_a_truncated_manifest_is_replaced(tmp_path: Path, text: str) -> None:
    (tmp_path / "manifest.json").write_text(text)
    assert (await put(tmp_path)).urls == 3
    assert json.loads((tmp_path / "manifest.json").read_text())["urls"] == 3


@pytest.mark.parametrize(
    "text", ['{"name": "app", "icons": []}', "[]", "[" * 100_000, "# mine", '{"files": 3}']
)
async def test_a_manifest_of_another_program_is_never_overwritten(tmp_path: Path, text: str) -> None:
    (tmp_path / "manifest.json").write_text(text)
    with pytest.raises(
        OutputError, match=r"manifest.json belongs to another program .*: choose another .* --output"
    ):
        check_folder(Output(output=str(tmp_path)))
    with pytest.raises(OutputError, match="belongs to another program"):
        await put(tmp_path, force=True)
    assert contents(tmp_path) == {"manifest.json": text.encode()}


@pytest.mark.parametrize(
    ("count", "chosen", "said"),
    [
        (0, {}, "an empty sitemap is never published"),
        (0, {"force": True}, "an empty sitemap is never published"),
        (7, {"complete": False}, "not complete; the old files are kept. --allow-partial"),
        (7, {"min_urls": 8}, "URLs listed: 7, fewer than --min-urls 8"),
        (7, {}, "URLs listed: 7, where 10 are published: 30% fewer, and --max-shrink is 20%"),
    ],
)
async def test_the_guard_keeps_the_old_files(
    tmp_path: Path, count: int, chosen: dict[str, Any], said: str
) -> None:
    await put(tmp_path, 10)
    before = contents(tmp_path)
    with pytest.raises(PublishRefused, match=said):
        await put(tmp_path, count, **chosen)
    assert contents(tmp_path) == before


@pytest.mark.parametrize(
    ("count", "chosen"),
    [
        (8, {}),
        (7, {"force": True}),
        (7, {"max_shrink": 0.3}),
        (9, {"complete": False, "allow_partial": True}),
    ],
)
async def test_the_guard_can_be_overridden(tmp_path: Path, count: int, chosen: dict[str, Any]) -> None:
    await put(tmp_path, 10)
    assert (await put(tmp_path, count, **chosen)).urls == count


FORMS: list[dict[str, Any]] = [
    {},
    {"gzip": False},
    {"max_urls": 4},
    {"max_urls": 4, "format": "txt", "gzip": False},
    {"format": "txt"},
    {"format": "jsonl"},
    {"format": "jsonl", "gzip": False},
]


@pytest.mark.parametrize("form", FORMS, ids=str)
@pytest.mark.parametrize("text", [None, "", '{\n  "run": "7"', '{"run": "7", "files": [], "urls": "many"}'])
@pytest.mark.slow
async def test_without_a_manifest_the_published_files_are_counted(
    tmp_path: Path, form: dict[str, Any], text: str | None
) -> None:
    await put(tmp_path, 10, **form)
    if text is None:
        (tmp_path / "manifest.json").unlink()
    else:
        (tmp_path / "manifest.json").write_text(text)
    before = contents(tmp_path)
    with pytest.raises(PublishRefused, match="URLs listed: 7, where 10 are published"):
        await put(tmp_path, 7)
    assert contents(tmp_path) == before
    await put(tmp_path, 9, **form)
    assert len(locs(tmp_path)) == 9


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-30])


BROKEN: dict[str, Callable[[Path], object]] = {
    "a part is cut short": lambda folder: cut(folder / "sitemap-00002.xml.gz"),
    "a part is gone": lambda folder: (folder / "sitemap-00002.xml.gz").unlink(),
    "the index is cut short": lambda folder: cut(folder / "sitemap.xml.gz"),
    "the index is empty": lambda folder: (folder / "sitemap.xml.gz").write_bytes(b""),
    "the index names itself": lambda folder: (folder / "sitemap.xml.gz").write_text(
        f"<sitemapindex><sitemap><loc>{SITE}/sitemap.xml.gz</loc></sitemap></sitemapindex>"
    ),
    "the index leads elsewhere": lambda folder: (folder / "sitemap.xml.gz").write_text(
        f"<sitemapindex><sitemap><loc>{SITE}/..</loc></sitemap><sitemap><loc>{SITE}/</loc></sitemap></sitemapindex>"
    ),
    "there is a stranger": lambda folder: (folder / "sitemap.jsonl.gz").write_bytes(b"no gzip"),
}


@pytest.mark.parametrize("damage", BROKEN)
@pytest.mark.slow
async def test_files_that_cannot_be_counted_need_force(tmp_path: Path, damage: str) -> None:
    await put(tmp_path, 10, max_urls=4)
    (tmp_path / "manifest.json").unlink()
    BROKEN[damage](tmp_path)
    before = contents(tmp_path)
    with pytest.raises(
        PublishRefused, match=r"It is unknown how many.*the old files are kept\. --max-shrink 100% publishes"
    ):
        await put(tmp_path, 10, max_urls=4)
    assert contents(tmp_path) == before
    assert (await put(tmp_path, 10, max_urls=4, force=True)).urls == 10


async def test_files_not_in_the_manifest_are_left_untouched(tmp_path: Path) -> None:
    await put(tmp_path, 10, max_urls=4)
    (tmp_path / "manifest.json").unlink()
    before = set(contents(tmp_path))
    await put(tmp_path, 10, format="txt")
    assert set(contents(tmp_path)) == before | {"manifest.json", "sitemap.txt.gz"}


async def test_remains_of_a_crash_are_removed_by_the_next_publication(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await put(tmp_path, 9, max_urls=2)
    (tmp_path / "sitemap-00009.xml.gz").write_bytes(b"mine")

    def dies(name: str) -> None:
        if name.startswith("before removal"):
            raise Death

    monkeypatch.setattr(failpoints, "hook", dies)
    with pytest.raises(Death):
        await put(tmp_path, 2, max_urls=2, force=True)
    monkeypatch.setattr(failpoints, "hook", None)
    assert len(contents(tmp_path)) > 3
    await put(tmp_path, 2, max_urls=2)
    assert sorted(contents(tmp_path)) == ["manifest.json", "sitemap-00009.xml.gz", "sitemap.xml.gz"]


async def test_an_invalid_sitemap_is_never_published(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    await put(tmp_path, 10)
    before = contents(tmp_path)
    monkeypatch.setattr("crawler.sitemap.write.writer.w3c", lambda _: "yesterday")

    async def dated() -> AsyncIterator[Sequence[Entry]]:
        yield [Entry(Url(f"{SITE}/a"), datetime(2024, 1, 1, tzinfo=UTC))]

    settings = Settings(output=Output(output=str(tmp_path)), guard=Guard(max_shrink=1.0, max_removed=1.0))
    with pytest.raises(
        PublishRefused, match=r"not valid \(sitemap.xml.gz, line 3: is not a W3C datetime: yesterday\)"
    ):
        await publish(dated(), settings, CrawlToPublish(SITE, CrawlResult(True, {}, {}), "1"))
    assert contents(tmp_path) == before


async def test_urls_of_several_hosts_may_be_published(tmp_path: Path) -> None:
    async def both() -> AsyncIterator[Sequence[Entry]]:
        yield [Entry(Url("https://a.example/")), Entry(Url("https://b.example/"))]

    settings = Settings(output=Output(output=str(tmp_path)))
    done = await publish(both(), settings, CrawlToPublish(SITE, CrawlResult(True, {}, {}), "1"))
    assert done.urls == 2


async def test_a_dry_run_writes_nothing(tmp_path: Path) -> None:
    await put(tmp_path, 10)
    before = contents(tmp_path)
    assert (await put(tmp_path, 9, dry_run=True)).files == ()
    assert contents(tmp_path) == before


async def test_staging_can_be_crawled_and_production_published(tmp_path: Path) -> None:
    done = await put(tmp_path, publish_base="https://www.example.com/", gzip=False)
    text = (tmp_path / "sitemap.xml").read_text()
    assert "<loc>https://www.example.com/000</loc>" in text
    assert SITE not in text
    assert done.robots_line == "Sitemap: https://www.example.com/sitemap.xml"


async def test_a_dash_writes_to_stdout(tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    sys.stdout.flush()
    await put(tmp_path, output="-")
    assert capfdbinary.readouterr().out.count(b"<loc>") == 3
    with pytest.raises(OutputError, match="2 files cannot be written to stdout"):
        await put(tmp_path, output="-", max_urls=2)
    assert not list(tmp_path.iterdir())


async def test_a_dry_run_prints_nothing(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    done = await put(Path(), output="-", dry_run=True)
    assert (done.urls, done.files, done.folder) == (3, (), "")
    assert capfdbinary.readouterr().out == b""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_an_unwritable_stdout_is_reported_once() -> None:
    """In a process of its own: what stays in a buffer would be complained of at its end."""
    source = (
        "import anyio, sys; from functools import partial; from pathlib import Path\n"
        "from tests.sitemap.test_publish import put; from crawler.errors import OutputError\n"
        "try: anyio.run(partial(put, Path(), output='-'))\n"
        "except OutputError as error: sys.exit(str(error))\n"
    )
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [sys.executable, "-c", source], cwd=ROOT, stdout=full, stderr=subprocess.PIPE, check=False
        )
    said = b"The sitemap cannot be written to standard output: the disk is full."
    assert (done.returncode, done.stderr.strip()) == (1, said)


def test_a_closed_pipe_is_not_reported_as_a_disk_error(monkeypatch: pytest.MonkeyPatch) -> None:
    reads, writes = os.pipe()
    os.close(reads)
    with open(writes, "w") as nobody:
        monkeypatch.setattr(sys, "stdout", nobody)
        with pytest.raises(BrokenPipeError):
            anyio.run(partial(put, Path(), output="-"))


# -- the disk --------------------------------------------------------------------------------------------


def failing(times: int, number: int) -> Callable[..., Any]:
    """Works so often, then is an error of the disk."""
    calls = [0]
    real = os.fsync

    def fsync(handle: int) -> None:
        calls[0] += 1
        if calls[0] > times:
            raise OSError(number, os.strerror(number))
        real(handle)

    return fsync


@pytest.mark.parametrize("times", range(5))
async def test_on_a_full_disk_the_old_files_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, times: int
) -> None:
    """At every moment up to the last file of a set of three, an index and the manifest."""
    await put(tmp_path, 6, max_urls=2)
    before = contents(tmp_path)
    monkeypatch.setattr(os, "fsync", failing(times, errno.ENOSPC))
    with pytest.raises(
        OutputError, match=r"cannot be written to .*: the disk is full; the old files are kept\."
    ):
        await put(tmp_path, 7, max_urls=2, format="txt")
    assert contents(tmp_path) == before


async def test_if_the_disk_fills_while_writing_the_old_files_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await put(tmp_path, 6)
    before = contents(tmp_path)
    real = gzip.GzipFile.write

    def write(self: gzip.GzipFile, data: bytes) -> int:
        real(self, data)
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(gzip.GzipFile, "write", write)
    with pytest.raises(OutputError, match="the disk is full"):
        await put(tmp_path, 6)
    assert contents(tmp_path) == before


@pytest.mark.parametrize(
    ("moment", "said"),
    [
        ("before rename of sitemap-00004.xml.gz", "the old files are kept"),
        (
            "before rename of sitemap-00005.xml.gz",
            "the old sitemap is still complete: run again",
        ),
        (
            "before rename of sitemap.xml.gz",
            "the old sitemap is still complete: run again",
        ),
        (
            "before fsync of the folder",
            "the new sitemap is in place, but old files may remain next to it: run again",
        ),
        ("before removal of sitemap-00001.xml.gz", "the new sitemap is in place, but old files may"),
    ],
)
async def test_a_disk_error_reports_the_true_state_of_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str, said: str
) -> None:
    await put(tmp_path, 6, max_urls=2)

    def fail(name: str) -> None:
        if name == moment:
            raise OSError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(failpoints, "hook", fail)
    with pytest.raises(OutputError, match=f": permission is denied; {said}"):
        await put(tmp_path, 6, max_urls=1)
    monkeypatch.undo()
    assert len(set(locs(tmp_path))) == 6
    await put(tmp_path, 6, max_urls=1)
    assert len(contents(tmp_path)) == 8, "six, an index and the manifest"


# -- whoever reads meanwhile -----------------------------------------------------------------------------


def lines(path: Path) -> list[str]:
    """The URLs in a file, which must be whole."""
    body = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    if path.name.startswith("sitemap") and ".xml" in path.suffixes:
        return [loc.text or "" for loc in etree.fromstring(body).iter("{*}loc")]
    text = body.decode()
    assert text.endswith("\n")
    return [json.loads(line)["loc"] if line.startswith("{") else line for line in text.splitlines()]


def locs(folder: Path) -> list[str]:
    """What a reader finds who comes by any entry point; each file that an index names must be there."""
    found = []
    for entry in sorted(folder.glob("sitemap.*")):
        named = lines(entry)
        is_index = bool(named) and "/sitemap-" in named[0]
        found += (
            [url for name in named for url in lines(folder / name.rpartition("/")[2])] if is_index else named
        )
    return found


def urls_of(numbers: Iterable[int]) -> list[str]:
    return [f"{SITE}/{number:05}" for number in sorted(numbers)]


EVEN = range(0, 96, 2)  # three full files


async def test_the_entry_point_is_moved_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    await put(tmp_path, 4, max_urls=2)
    moved: list[str] = []
    monkeypatch.setattr(failpoints, "hook", moved.append)
    await put(tmp_path, 7, max_urls=2)
    names = [name.removeprefix("after rename of ") for name in moved if name.startswith("after rename")]
    assert names[-3:] == ["manifest.json", "sitemap.xml.gz", "settled.json"], (
        "what left is forgotten at the end"
    )


# -- others who publish ----------------------------------------------------------------------------------


async def test_staging_folders_of_crashed_runs_are_removed(tmp_path: Path) -> None:
    (tmp_path / ".staging-dead").mkdir()
    (tmp_path / ".staging-dead/sitemap.xml").write_text("half")
    check_folder(Output(output=str(tmp_path)))
    assert not list(tmp_path.glob(".staging*"))


async def test_without_locks_only_old_staging_folders_are_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".staging-live").mkdir()
    (tmp_path / ".staging-dead").mkdir()
    os.utime(tmp_path / ".staging-dead", (0, 0))
    monkeypatch.setattr("crawler.sitemap.publish.staging.fcntl", None)
    await put(tmp_path)
    assert [path.name for path in tmp_path.glob(".staging*")] == [".staging-live"]


# Publishes, says so when its files are written, and then sticks.
STICKING = """
import sys, time
from functools import partial
from pathlib import Path
import anyio
from crawler.model import failpoints
from tests.sitemap.test_publish import put
def hook(name):
    if name.startswith("before rename"):
        print("ready", flush=True)
        time.sleep(600)
failpoints.hook = hook
anyio.run(partial(put, Path(sys.argv[1]), 5))
"""


@pytest.mark.slow
async def test_running_publication_has_lock_and_killed_one_does_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with subprocess.Popen(  # noqa: ASYNC220 - it is only killed
        [sys.executable, "-c", STICKING, str(tmp_path)], cwd=ROOT, stdout=subprocess.PIPE
    ) as other:
        assert other.stdout
        assert other.stdout.readline() == b"ready\n"
        [staging] = tmp_path.glob(".staging*")
        names = sorted(contents(staging))
        check_folder(Output(output=str(tmp_path)))
        monkeypatch.setattr("crawler.sitemap.publish.staging.LOCK_PATIENCE", 0.0)
        with pytest.raises(OutputError, match=r"Another run is publishing to .*: run again when it is done"):
            await put(tmp_path, 9)
        assert sorted(contents(staging)) == names == ["manifest.json", "settled.json", "sitemap.xml.gz"]
        other.kill()
    await put(tmp_path, 9)
    assert not list(tmp_path.glob(".staging*"))


async def test_two_concurrent_publications_both_succeed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("crawler.sitemap.publish.staging.LOCK_INTERVAL", 0.001)
    async with anyio.create_task_group() as tasks:
        for most in (2, 3):
            tasks.start_soon(partial(put, tmp_path, 9, max_urls=most))
    assert sorted(locs(tmp_path)) == urls_in(9)
    assert not list(tmp_path.glob(".staging*"))


def urls_in(count: int) -> list[str]:
    return [f"{SITE}/{number:03}" for number in range(count)]


async def test_a_file_in_the_way_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(OutputError, match="a file is in the way"):
        await put(tmp_path / "file")


@pytest.mark.parametrize(
    ("chosen", "files", "folders"), [({}, 0o644, 0o755), ({"file_mode": "0640"}, 0o640, 0o750)]
)
async def test_files_and_folders_can_be_read_whatever_the_umask(
    tmp_path: Path, chosen: dict[str, Any], files: int, folders: int
) -> None:
    tmp_path.chmod(0o700)
    before = os.umask(0o077)
    try:
        await put(tmp_path / "new/folder", 5, max_urls=2, **chosen)
        for file in (tmp_path / "new/folder").iterdir():
            assert file.stat().st_mode & 0o777 == files, file
            file.chmod(0o600)
        await put(tmp_path / "new/folder", 5, max_urls=2, **chosen)
    finally:
        os.umask(before)
    modes = {file.name: file.stat().st_mode & 0o777 for file in (tmp_path / "new/folder").iterdir()}
    assert set(modes.values()) == {files}, "also of what is unchanged"
    assert {path.stat().st_mode & 0o777 for path in (tmp_path / "new", tmp_path / "new/folder")} == {folders}
    assert tmp_path.stat().st_mode & 0o777 == 0o700, "a folder that was there stays as it is"
