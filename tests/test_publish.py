"""Publication: old files survive any failure, a reader never meets half a file, and the guard has the last word."""

import errno
import gzip
import json
import os
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from crawler.errors import OutputError, PublishRefused
from crawler.model import Entry
from crawler.publish import Published, publish
from crawler.settings import Dates, Guard, Output
from crawler.urls import Url

pytestmark = pytest.mark.anyio
SITE = "https://example.com"


async def stream(count: int, site: str = SITE) -> AsyncIterator[Sequence[Entry]]:
    for number in range(count):
        yield [Entry(Url(f"{site}/{number:03}"))]


async def put(folder: Path, count: int = 3, *, complete: bool = True, **chosen: Any) -> Published:
    guard = {name: chosen.pop(name) for name in list(chosen) if name in Guard.__dataclass_fields__}
    return await publish(
        stream(count),
        Output(**{"output": str(folder), **chosen}),
        Dates(),
        Guard(**guard),
        SITE,
        complete=complete,
        counts={"listed": count, "failed:dns": 1},
        run_id="7",
    )


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


async def test_files_and_manifest_lie_in_the_folder_and_nothing_else(tmp_path: Path) -> None:
    done = await put(tmp_path / "new/folder", 5, max_urls=2)
    names = ["sitemap-00001.xml.gz", "sitemap-00002.xml.gz", "sitemap-00003.xml.gz", "sitemap.xml.gz"]
    assert sorted(contents(tmp_path / "new/folder")) == ["manifest.json", *names]
    assert [(file.name, file.urls) for file in done.files] == list(zip(names, (2, 2, 1, 0), strict=True))
    assert (done.urls, done.robots_line) == (5, f"Sitemap: {SITE}/sitemap.xml.gz")
    manifest = json.loads((tmp_path / "new/folder/manifest.json").read_text())
    assert (manifest["run"], manifest["urls"], manifest["complete"]) == ("7", 5, True)
    assert manifest["outcomes"] == {"failed:dns": 1, "listed": 5}
    assert [file["name"] for file in manifest["files"]] == names


async def test_the_same_entries_touch_no_file(tmp_path: Path) -> None:
    await put(tmp_path, 5, max_urls=2)
    before = {path.name: path.stat().st_ino for path in tmp_path.glob("sitemap*")}
    done = await put(tmp_path, 5, max_urls=2)
    assert {path.name: path.stat().st_ino for path in tmp_path.glob("sitemap*")} == before
    assert all(file.unchanged for file in done.files)


async def test_parts_that_are_no_more_go_and_strangers_stay(tmp_path: Path) -> None:
    await put(tmp_path, 5, max_urls=2)
    (tmp_path / "index.html").write_text("mine")
    (tmp_path / "sitemap-news.xml").write_text("mine, too")
    await put(tmp_path, 4)
    assert sorted(contents(tmp_path)) == ["index.html", "manifest.json", "sitemap-news.xml", "sitemap.xml.gz"]


async def test_a_manifest_that_somebody_wrote_removes_nothing(tmp_path: Path) -> None:
    (tmp_path / "precious.txt").write_text("x")
    out = tmp_path / "out"
    out.mkdir()
    (out / "sitemap.html").write_text("x")
    names = ["../precious.txt", "/etc/passwd", "sitemap.html", "", ".", None, 5]
    (out / "manifest.json").write_text(
        json.dumps({"files": [{"name": name} for name in names] + [1], "urls": "x"})
    )
    await put(out)
    assert (tmp_path / "precious.txt").exists()
    assert (out / "sitemap.html").exists()


@pytest.mark.parametrize("text", ["", "[]", "{", '{"files": 3}', "\x00"])
async def test_a_manifest_that_cannot_be_read_is_none(tmp_path: Path, text: str) -> None:
    (tmp_path / "manifest.json").write_text(text)
    assert (await put(tmp_path)).urls == 3


@pytest.mark.parametrize(
    ("count", "chosen", "said"),
    [
        (0, {}, "an empty sitemap is never published"),
        (0, {"force": True}, "an empty sitemap is never published"),
        (7, {"complete": False}, "not complete; the old files are kept. --allow-partial"),
        (7, {"min_urls": 8}, "7 URLs are fewer than --min-urls 8"),
        (7, {}, "7 URLs where 10 are published: 30% fewer, and --max-shrink is 20%"),
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
async def test_the_guard_can_be_told_otherwise(tmp_path: Path, count: int, chosen: dict[str, Any]) -> None:
    await put(tmp_path, 10)
    assert (await put(tmp_path, count, **chosen)).urls == count


async def test_what_our_validator_refuses_is_never_published(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await put(tmp_path, 10)
    before = contents(tmp_path)
    monkeypatch.setattr("crawler.sitemap.write.w3c", lambda _: "yesterday")

    async def dated() -> AsyncIterator[Sequence[Entry]]:
        yield [Entry(Url(f"{SITE}/a"), datetime(2024, 1, 1, tzinfo=UTC))]

    with pytest.raises(
        PublishRefused, match=r"not valid \(sitemap.xml.gz, line 3: is no W3C datetime: yesterday\)"
    ):
        await publish(
            dated(), Output(output=str(tmp_path)), Dates(), Guard(max_shrink=1.0), SITE,
            complete=True, counts={}, run_id="1",
        )  # fmt: skip
    assert contents(tmp_path) == before


async def test_urls_of_several_hosts_are_the_scopes_business(tmp_path: Path) -> None:
    async def both() -> AsyncIterator[Sequence[Entry]]:
        yield [Entry(Url("https://a.example/")), Entry(Url("https://b.example/"))]

    done = await publish(
        both(), Output(output=str(tmp_path)), Dates(), Guard(), SITE, complete=True, counts={}, run_id="1"
    )
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
    with pytest.raises(OutputError, match="2 files do not fit stdout"):
        await put(tmp_path, output="-", max_urls=2)
    assert not list(tmp_path.iterdir())


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


@pytest.mark.parametrize("times", range(4))
async def test_a_full_disk_keeps_the_old_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, times: int
) -> None:
    """At every moment up to the last file of a set of three and an index."""
    await put(tmp_path, 6, max_urls=2)
    before = contents(tmp_path)
    monkeypatch.setattr(os, "fsync", failing(times, errno.ENOSPC))
    with pytest.raises(
        OutputError, match=r"cannot be written to .*: the disk is full; the old files are kept\."
    ):
        await put(tmp_path, 7, max_urls=2, format="txt")
    assert contents(tmp_path) == before


async def test_a_disk_that_fills_while_writing_keeps_the_old_files(
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


async def test_a_reader_never_meets_half_a_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The entry point is moved last: whatever it names is there in full at every moment."""
    await put(tmp_path, 4, max_urls=2, gzip=False)
    real = Path.replace
    moved = []

    def replace(self: Path, target: Path) -> Path:
        moved.append(target.name)
        named = [
            line.split("<")[0] for line in (tmp_path / "sitemap.xml").read_text().split(f"<loc>{SITE}/")[1:]
        ]
        assert all((tmp_path / name).exists() for name in named)
        return real(self, target)

    monkeypatch.setattr(Path, "replace", replace)
    await put(tmp_path, 7, max_urls=2, gzip=False)
    assert moved[-2:] == ["sitemap.xml", "manifest.json"]


async def test_what_dead_runs_left_is_cleared_away(tmp_path: Path) -> None:
    (tmp_path / ".staging-dead").mkdir()
    (tmp_path / ".staging-dead/sitemap.xml").write_text("half")
    await put(tmp_path)
    assert not list(tmp_path.glob(".staging*"))


async def test_a_file_in_the_way_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(OutputError, match="a file is in the way"):
        await put(tmp_path / "file")
