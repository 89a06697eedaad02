"""Publication to an object store: a reader never meets a missing part, and two writers never mix their files.

Against the library's store in memory, which honours conditions; `test_s3.py` asks a server.
"""

import asyncio
import gzip
import hashlib
import itertools
import json
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from email.utils import formatdate
from typing import Any
from urllib.parse import unquote

import anyio
import pytest

from crawler.errors import ConfigError, OutputBusy, OutputError, PublishRefused
from crawler.model import failpoints
from crawler.model.facts import Entry
from crawler.parse.url import Url
from crawler.settings.object_url import ObjectUrl, parsed
from crawler.settings.sections import Guard, Output, Settings, Split
from crawler.settings.tables import SitemapSection
from crawler.sitemap.publish import object_store, upload
from crawler.sitemap.publish.guard import CrawlResult
from crawler.sitemap.publish.object_store import REQUEST_TIMEOUT, Store
from crawler.sitemap.publish.publish import CrawlToPublish, check_output, publish
from crawler.sitemap.publish.published import Published
from crawler.sitemap.publish.store_errors import code_of, reason
from tests.s3 import package
from tests.server import Origin, Talk, http, serving
from tests.sitemap.test_publish import EVEN, SITE, Death, urls_of

obstore = package("obstore.store") and package("obstore")
pytestmark = [pytest.mark.anyio, pytest.mark.system]
PLACE = "s3://bucket/prefix"


class Bucket:
    """A store in memory, and a stranger's view of it. It keeps a log of what is written."""

    def __init__(self) -> None:
        self.client = obstore.store.MemoryStore()

    def __getitem__(self, name: str) -> bytes:
        return bytes(obstore.get(self.client, name).bytes())

    def __setitem__(self, name: str, body: bytes) -> None:
        obstore.put(self.client, name, body)

    def __delitem__(self, name: str) -> None:
        obstore.delete(self.client, name)

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(found["path"] for found in obstore.list(self.client).collect()))

    @property
    def manifest(self) -> dict[str, Any]:
        return dict(json.loads(self["manifest.json"]))

    def attributes(self, name: str) -> dict[str, str]:
        return dict(obstore.get(self.client, name).attributes)

    def etags(self) -> dict[str, str]:
        return {found["path"]: found["e_tag"] or "" for found in obstore.list(self.client).collect()}

    def contents(self) -> dict[str, bytes]:
        """All objects; a manifest without the ETags, which count all puts of this store."""
        found = {name: self[name] for name in self}
        known = json.loads(found.pop("manifest.json"))
        for file in known["files"]:
            assert file.pop("etag"), file
        return found | {"manifest.json": json.dumps(known).encode()}

    def lines(self, name: str) -> list[str]:
        body = self[name]
        text = (gzip.decompress(body) if name.endswith(".gz") else body).decode()
        if ".xml" not in name:
            return [json.loads(line)["loc"] if line.startswith("{") else line for line in text.splitlines()]
        return [piece.partition("</loc>")[0] for piece in text.split("<loc>")[1:]]

    def locs(self) -> list[str]:
        """What a reader finds who comes by any entry point; each file that an index names must be there."""
        found = []
        for entry in (name for name in self if name.startswith("sitemap.")):
            named = self.lines(entry)
            is_index = bool(named) and "/sitemap-" in named[0]
            found += (
                [url for name in named for url in self.lines(name.rpartition("/")[2])] if is_index else named
            )
        return found


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Bucket:
    made = Bucket()
    monkeypatch.setattr(object_store, "client_of", lambda *_: made.client)
    return made


async def put(
    numbers: Iterable[int] = range(3), *, sections: tuple[SitemapSection, ...] = (), **chosen: Any
) -> Published:
    async def found() -> AsyncIterator[Sequence[Entry]]:
        yield [Entry(Url(url)) for url in urls_of(numbers)]

    def of(section: type) -> dict[str, Any]:
        return {name: chosen.pop(name) for name in list(chosen) if name in section.__dataclass_fields__}  # type: ignore[attr-defined]

    guard, output = (
        Guard(**{"max_shrink": 1.0, "max_removed": 1.0, **of(Guard)}),
        Output(**{"output": PLACE, "max_urls": 16, **of(Output)}),
    )
    return await publish(
        found(),
        Settings(output=output, guard=guard, split=Split(section=sections)),
        CrawlToPublish(SITE, CrawlResult(True, {}, {}), "1", chosen.pop("writer", "me")),
        **chosen,
    )


# -- what is put -----------------------------------------------------------------------------------------------


async def test_pages_for_people_are_put_and_those_of_others_stay(bucket: Bucket) -> None:
    await put(range(1_001), format="html", max_urls=50_000)
    pages = ["sitemap-00001.html", "sitemap-00002.html", "sitemap.html"]
    assert list(bucket) == ["manifest.json", *pages, "sitemap.xml.gz"]
    assert bucket.attributes("sitemap.html") == {"Content-Type": "text/html; charset=utf-8"}
    before = bucket.etags()
    assert all(file.unchanged for file in (await put(range(1_001), format="html", max_urls=50_000)).files)
    assert {name: before[name] for name in pages} == {name: bucket.etags()[name] for name in pages}
    await put(range(1_001), max_urls=50_000)
    assert list(bucket) == ["manifest.json", "sitemap.xml.gz"]
    bucket["sitemap.html"] = b"<h1>Made by hand</h1>"
    with pytest.raises(OutputError, match=f"{PLACE}/sitemap.html was not made by this program"):
        await put(range(1_001), format="html")
    assert bucket["sitemap.html"] == b"<h1>Made by hand</h1>"


async def test_files_manifest_and_types(bucket: Bucket) -> None:
    done = await put(range(40), cache_control="public, max-age=3600")
    names = [*(f"sitemap-0000{number}.xml.gz" for number in (1, 2, 3)), "sitemap.xml.gz"]
    assert list(bucket) == ["manifest.json", *names]
    assert [file.name for file in done.files] == names
    assert (done.folder, done.robots_line) == (PLACE, f"Sitemap: {SITE}/sitemap.xml.gz")
    assert bucket.locs() == urls_of(range(40))
    for name in names:
        assert bucket.attributes(name) == {
            "Content-Type": "application/gzip",
            "Cache-Control": "public, max-age=3600",
        }
    assert bucket.attributes("manifest.json") == {"Content-Type": "application/json"}
    assert [file["name"] for file in bucket.manifest["files"]] == names
    assert "publishing" not in bucket.manifest
    assert "leaving" not in bucket.manifest


@pytest.mark.parametrize(
    ("chosen", "types"),
    [
        ({"gzip": False}, {"sitemap.xml": "application/xml"}),
        ({"gzip": False, "stylesheet": True}, {"sitemap.css": "text/css; charset=utf-8", "sitemap.xml": "application/xml"}),
        ({"gzip": False, "format": "txt"}, {"sitemap.txt": "text/plain; charset=utf-8"}),
        ({"gzip": False, "format": "jsonl"}, {"sitemap.jsonl": "application/x-ndjson"}),
        ({"format": "txt"}, {"sitemap.txt.gz": "application/gzip"}),
    ],
)  # fmt: skip
async def test_types_by_format(bucket: Bucket, chosen: dict[str, Any], types: dict[str, str]) -> None:
    await put(**chosen)
    assert {name: bucket.attributes(name) for name in bucket if name != "manifest.json"} == {
        name: {"Content-Type": kind} for name, kind in types.items()
    }


async def test_what_is_unchanged_is_not_put_again(bucket: Bucket) -> None:
    await put(EVEN)
    before = bucket.etags()
    done = await put(EVEN)
    assert {name for name, etag in bucket.etags().items() if before[name] != etag} == {"manifest.json"}
    assert all(file.unchanged for file in done.files)
    done = await put({*EVEN} - {40} | {41})
    assert [file.name for file in done.files if not file.unchanged] == ["sitemap-00002.xml.gz"]
    assert bucket.manifest["publications"] == [48, 48]


@pytest.mark.parametrize("harm", ["removed", "overwritten", "cached otherwise"])
async def test_what_others_changed_is_put_again(bucket: Bucket, harm: str) -> None:
    await put(EVEN)
    name = "sitemap-00002.xml.gz"
    chosen: dict[str, Any] = {}
    if harm == "removed":
        del bucket[name]
    elif harm == "overwritten":
        bucket[name] = bucket[name]
    else:
        chosen = {"cache_control": "no-cache"}
    done = await put(EVEN, **chosen)
    assert name in {file.name for file in done.files if not file.unchanged}
    assert bucket.locs() == urls_of(EVEN)
    assert all(file.unchanged for file in (await put(EVEN, **chosen)).files)


async def test_obsolete_files_go_and_those_of_others_stay(bucket: Bucket) -> None:
    await put(EVEN)
    bucket["index.html"] = bucket["sitemap-news.xml"] = b"mine"
    await put(range(5))
    assert list(bucket) == ["index.html", "manifest.json", "sitemap-news.xml", "sitemap.xml.gz"]


async def test_a_stylesheet_that_is_there_is_left_alone(bucket: Bucket) -> None:
    await put(gzip=False, stylesheet=True)
    bucket["sitemap.css"] = b"mine"
    await put(range(5), gzip=False, stylesheet=True)
    assert bucket["sitemap.css"] == b"mine"
    del bucket["sitemap.css"]
    await put(range(5), gzip=False, stylesheet=True)
    assert b"urlset" in bucket["sitemap.css"], "put again, though no file changed"


@pytest.mark.usefixtures("bucket")
async def test_the_order_of_puts(monkeypatch: pytest.MonkeyPatch) -> None:
    await put(EVEN)
    order: list[str] = []
    monkeypatch.setattr(failpoints, "hook", order.append)
    await put(range(20))
    done = [name.removeprefix("after ") for name in order if name.startswith("after")]
    assert done[0] == "put of claim"
    entry, manifest = done.index("put of sitemap.xml.gz"), done.index("put of manifest")
    deletes = [at for at, name in enumerate(done) if name.startswith("delete")]
    parts = [at for at, name in enumerate(done) if name.startswith("put of sitemap-")]
    assert parts
    assert deletes
    assert max(parts) < entry < manifest < min(deletes)
    assert done[-1] == "put of settled"


# -- the guard -------------------------------------------------------------------------------------------------


async def test_the_guard_compares_with_the_manifest_in_the_bucket(bucket: Bucket) -> None:
    await put(range(10))
    before = bucket.contents()
    with pytest.raises(PublishRefused, match="URLs listed: 7, where 10 are published: 30% fewer"):
        await put(range(7), max_shrink=0.2)
    assert bucket.contents() == before


@pytest.mark.parametrize("name", ["sitemap.xml.gz", "sitemap_index.xml", "sitemap.txt"])
async def test_the_sitemap_of_another_program_is_counted(bucket: Bucket, name: str) -> None:
    urls = "".join(f"<url><loc>{url}</loc></url>" for url in urls_of(range(10)))
    whole = f'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{urls}</urlset>'.encode()
    match name:
        case "sitemap_index.xml":
            bucket["deep/part.xml"] = whole
            loc = f"<sitemap><loc>{SITE}/sub/deep/part.xml</loc></sitemap>"
            bucket[name] = (
                f'<sitemapindex xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{loc}</sitemapindex>'.encode()
            )
        case "sitemap.txt":
            bucket[name] = "\n".join(urls_of(range(10))).encode()
        case _:
            bucket[name] = gzip.compress(whole)
    with pytest.raises(PublishRefused, match="URLs listed: 7, where 10 are published"):
        await put(range(7), max_shrink=0.2)
    assert "manifest.json" not in list(bucket)
    await put(range(9), max_shrink=0.2)


async def test_missing_file_of_another_program_cannot_be_counted(bucket: Bucket) -> None:
    loc = f"<sitemap><loc>{SITE}/gone.xml</loc></sitemap>"
    bucket["sitemap.xml"] = (
        f'<sitemapindex xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{loc}</sitemapindex>'.encode()
    )
    with pytest.raises(PublishRefused, match="It is unknown how many URLs are published"):
        await put(range(7), max_shrink=0.2)


@pytest.mark.parametrize("name", ["..%5c..", "a\\b", "x" * 300, "sitemap.xml/part.xml", "%00", "ü ü", "~"])
async def test_an_index_may_name_what_is_no_file(bucket: Bucket, name: str) -> None:
    loc = f"<sitemap><loc>{SITE}/sitemaps/{name}</loc></sitemap>"
    bucket["sitemap.xml"] = (
        f'<sitemapindex xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{loc}</sitemapindex>'.encode()
    )
    for key in ("x" * 300, "sitemap.xml/part.xml"):
        bucket[key] = b"x"
    with pytest.raises(PublishRefused, match="It is unknown how many URLs are published"):
        await put(range(7), max_shrink=0.2)


async def test_a_dry_run_writes_nothing(bucket: Bucket) -> None:
    await put(range(10))
    before = bucket.etags()
    assert (await put(range(9), dry_run=True)).urls == 9
    with pytest.raises(PublishRefused, match="30% fewer"):
        await put(range(7), dry_run=True, max_shrink=0.2)
    assert bucket.etags() == before


@pytest.mark.parametrize("text", [b'{"name": "app"}', b"[]", b"# mine"])
async def test_a_manifest_of_another_program_is_never_overwritten(bucket: Bucket, text: bytes) -> None:
    bucket["manifest.json"] = text
    for call in (lambda: check_output(Output(output=PLACE)), lambda: put(force=True)):
        with pytest.raises(
            OutputError, match=r"s3://bucket/prefix/manifest\.json belongs to another program .*--output"
        ):
            await call()
    assert list(bucket) == ["manifest.json"]
    assert bucket["manifest.json"] == text


async def test_a_forged_manifest_deletes_nothing_else(bucket: Bucket) -> None:
    bucket["precious.txt"] = bucket["sitemaps.html"] = b"x"
    names = ["precious.txt", "../precious.txt", "sitemaps.html", "", ".", None, 5]
    bucket["manifest.json"] = json.dumps(
        {
            "run": 1,
            "urls": "x",
            "files": [{"name": name} for name in names] + [1],
            "leaving": names,
            "publishing": "x",
        }
    ).encode()
    await put()
    assert {"precious.txt", "sitemaps.html"} < {*bucket}


# -- other writers ---------------------------------------------------------------------------------------------


def dies_before(moment: str) -> Callable[[str], None]:
    def hook(name: str) -> None:
        if name == f"before {moment}":
            raise Death

    return hook


async def die(monkeypatch: pytest.MonkeyPatch, moment: str, numbers: Iterable[int], **chosen: Any) -> None:
    monkeypatch.setattr(failpoints, "hook", dies_before(moment))
    with pytest.raises(Death):
        await put(numbers, **chosen)
    monkeypatch.setattr(failpoints, "hook", None)


@pytest.mark.parametrize("moment", ["put of sitemap.xml.gz", "put of manifest"])
async def test_after_a_death_the_guard_compares_with_what_readers_see(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    await put(EVEN)
    await die(monkeypatch, moment, range(5), force=True)
    live = len(bucket.locs())
    assert live == (48 if "xml" in moment else 5)
    if live == 48:
        with pytest.raises(PublishRefused, match="URLs listed: 5, where 48 are published"):
            await put(range(5), max_shrink=0.2)
        await put(EVEN, max_shrink=0.2)
    else:
        await put(range(5), max_shrink=0.2)
    assert len(bucket.locs()) == live
    assert {file["name"] for file in bucket.manifest["files"]} == {*bucket} - {"manifest.json"}


async def test_another_run_is_kept_out_until_the_claim_is_void(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    await put(EVEN)
    await die(monkeypatch, "put of sitemap.xml.gz", range(40), writer="one", publish_timeout=600.0)
    assert bucket.manifest["publishing"] == {"by": "one", "seconds": 900.0}
    before = bucket.etags()
    with pytest.raises(
        OutputBusy, match=r"Another run is publishing to s3://bucket/prefix since .* UTC: run again"
    ):
        await put(EVEN, writer="two")
    assert bucket.etags() == before
    before_now = upload.check_unclaimed
    late = datetime.now(UTC) + timedelta(seconds=901)
    monkeypatch.setattr(
        upload, "check_unclaimed", lambda store, known, writer, _: before_now(store, known, writer, late)
    )
    await put(EVEN, writer="two")
    assert bucket.locs() == urls_of(EVEN)


@pytest.mark.parametrize("claim", [True, "x", {}, {"by": "x"}, {"by": "x", "seconds": "9"}, {"by": "x", "seconds": -1}, {"by": "x", "seconds": 1e300}])  # fmt: skip
async def test_a_claim_that_makes_no_sense_is_void(bucket: Bucket, claim: object) -> None:
    await put()
    bucket["manifest.json"] = json.dumps(bucket.manifest | {"publishing": claim}).encode()
    await put()
    assert "publishing" not in bucket.manifest


@pytest.mark.parametrize(
    ("moment", "said"),
    [
        ("put of claim", "the old files are kept"),
        ("put of sitemap-00004.xml.gz", "the old sitemap is still complete: run again"),
        ("put of manifest", "the new sitemap is in place, but old files may remain next to it: run again"),
        ("put of settled", "the new sitemap is in place, but old files may remain next to it: run again"),
    ],
)  # fmt: skip
async def test_another_writer_in_between_is_noticed(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch, moment: str, said: str
) -> None:
    """One that pays no attention to the claim, or took it over because this one was slow."""
    await put(EVEN)

    def hook(name: str) -> None:
        if name == f"before {moment}":
            bucket["manifest.json"] = json.dumps(bucket.manifest | {"run": "other"}).encode()

    monkeypatch.setattr(failpoints, "hook", hook)
    with pytest.raises(
        OutputBusy, match=f"Another run has changed s3://bucket/prefix in the meantime; {said}"
    ) as raised:
        await put(range(20))
    assert raised.value.exit == 9
    assert bucket.manifest["run"] == "other"
    assert {*urls_of(range(0, 20, 2))} <= {*bucket.locs()}


@pytest.mark.parametrize("moment", ["put of sitemap-00004.xml.gz", "delete of sitemap-00001.xml.gz"])
async def test_run_that_was_suspended_looks_whether_another_took_over(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    """One that resumes the same run may, at once."""
    await put(EVEN)
    monkeypatch.setattr(upload, "PARALLEL", 1)
    now, done = [0.0], list[str]()
    monkeypatch.setattr(upload, "monotonic", lambda: now[0])

    def hook(name: str) -> None:
        done.append(name)
        if name == f"after {moment}":
            now[0] += 20.0
            bucket["manifest.json"] = json.dumps(bucket.manifest | {"run": "other"}).encode()

    monkeypatch.setattr(failpoints, "hook", hook)
    with pytest.raises(OutputBusy, match="Another run has changed"):
        await put(range(20))
    assert done[-1] == f"after {moment}"


async def test_of_two_writers_one_is_kept_out_and_nothing_is_mixed(bucket: Bucket) -> None:
    ends: list[str] = []

    async def one(numbers: Iterable[int], writer: str) -> None:
        try:
            await put(numbers, writer=writer)
            ends.append(writer)
        except OutputBusy:
            ends.append("busy")

    for turn in range(5):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(one, range(turn, 40), "one")
            tasks.start_soon(one, range(turn, 80), "two")
        last = [end for end in ends if end != "busy"][-1]
        assert bucket.locs() == urls_of(range(turn, 40 if last == "one" else 80)), ends
        assert {file["name"] for file in bucket.manifest["files"]} == {*bucket} - {"manifest.json"}


async def test_a_lost_answer_is_no_other_writer(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    """The library repeats a put whose answer was lost, and the second one finds the object changed: by the first."""
    real = Store._put

    def twice(self: Store, name: str, body: bytes, expected: Any) -> Any:
        if expected and expected.get("version") == "1":
            return real(self, name, body, expected)
        real(self, name, body, expected)
        return real(self, name, body, expected)

    monkeypatch.setattr(Store, "_put", twice)
    await put(EVEN)
    await put(range(40))
    assert bucket.locs() == urls_of(range(40))


class Google:
    """As much of Google's XML API as is used: its conditions are generations, and not ETags."""

    def __init__(self) -> None:
        self.objects: dict[str, tuple[int, bytes]] = {}
        self.generations = itertools.count(1_700_000_000_000_000)
        self.origin = Origin("google", "127.0.0.1", others=lambda _: self._reply)

    def _reply(self, talk: Talk) -> None:
        asked, there = talk.asked, self.objects.get(talk.asked.path)
        if asked.method == "PUT":
            expected = asked.headers.get("x-goog-if-generation-match")
            if expected is not None and int(expected) != (there or (0,))[0]:
                self._say(talk, "412 Precondition Failed", b"<Error><Code>PreconditionFailed</Code></Error>")
                return
            self.objects[asked.path] = (next(self.generations), asked.body)
            self._say(talk, "200 OK")
        elif asked.method == "DELETE":
            self._say(talk, "204 No Content" if self.objects.pop(asked.path, None) else "404 Not Found")
        elif there:
            self._say(talk, "200 OK", there[1])
        else:
            self._say(talk, "404 Not Found", b"<Error><Code>NoSuchKey</Code></Error>")

    def _say(self, talk: Talk, status: str, body: bytes = b"") -> None:
        generation, content = self.objects.get(talk.asked.path, (0, b""))
        answer = http(
            body,
            status,
            x_goog_generation=str(generation),
            ETag=f'"{hashlib.sha256(content).hexdigest()}"',
            Last_Modified=formatdate(usegmt=True),
        )
        talk.say(answer.removesuffix(body) if talk.asked.method == "HEAD" else answer)


async def test_conditions_of_google_are_generations(monkeypatch: pytest.MonkeyPatch) -> None:
    google = Google()
    with serving(google.origin):
        key = {
            "gcs_base_url": google.origin.url()[:-1],
            "disable_oauth": True,
            "client_email": "",
            "private_key": "",
        }
        monkeypatch.setenv("GOOGLE_BASE_URL", str(key["gcs_base_url"]))
        monkeypatch.setenv("GOOGLE_SERVICE_ACCOUNT_KEY", json.dumps(key | {"private_key_id": ""}))
        place = "gs://bucket/prefix"
        await check_output(Output(output=place))
        assert google.objects == {}
        await put(EVEN, output=place)
        assert all(file.unchanged for file in (await put(EVEN, output=place)).files)
        await die(monkeypatch, "put of sitemap.xml.gz", range(20), output=place)
        with pytest.raises(OutputBusy):
            await put(range(20), output=place, writer="other")
        await put(range(20), output=place)
        names = [unquote(path).rpartition("/")[2] for path in sorted(google.objects)]
        assert names == ["manifest.json", "sitemap-00004.xml.gz", "sitemap-00005.xml.gz", "sitemap.xml.gz"]
        url = parsed(place)
        assert url
        for version in (None, object_store.ObjectVersion(version="5")):
            store = object_store.connect(url, 60.0)
            with pytest.raises(object_store.Changed):
                await anyio.to_thread.run_sync(store.put_if, "manifest.json", b"{}", version)


# -- stores that cannot be used --------------------------------------------------------------------------------


@pytest.mark.parametrize("first", [True, False], ids=["first", "again"])
async def test_a_store_that_ignores_conditions_is_refused(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch, first: bool
) -> None:
    if not first:
        await put(EVEN)
    before = {name: bucket[name] for name in bucket}
    real = obstore.put_async

    async def careless(*words: Any, **more: Any) -> Any:
        return await real(*words, **more | {"mode": None})

    monkeypatch.setattr(obstore, "put_async", careless)
    for call in (lambda: check_output(Output(output=PLACE)), lambda: put(range(40))):
        with pytest.raises(
            OutputError,
            match=r"the store ignores the condition of a put \(If-Match\).*the old files are kept",
        ):
            await call()
        assert {name: bucket[name] for name in bucket} == before


async def test_the_check_before_a_crawl_changes_nothing(bucket: Bucket) -> None:
    await check_output(Output(output=PLACE))
    assert list(bucket) == []
    await put()
    before = bucket.etags()
    await check_output(Output(output=PLACE))
    assert bucket.etags() == before


async def test_a_publication_that_takes_too_long_ends(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The time of all requests together counts."""
    times = itertools.count(0, 40)
    monkeypatch.setattr(object_store, "monotonic", lambda: float(next(times)))
    with pytest.raises(OutputError, match=r"it took longer than 10m \(--publish-timeout\); the old"):
        await put(EVEN)
    assert bucket.locs() == []


@pytest.mark.parametrize("request_", ["get_async", "put_async"])
async def test_a_store_that_never_answers_delays_nothing(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch, request_: str
) -> None:
    async def never(*_: Any, **__: Any) -> None:
        await asyncio.Event().wait()

    await put(EVEN)
    before = bucket.locs()
    monkeypatch.setattr(obstore, request_, never)
    for call in (
        lambda: check_output(Output(output=PLACE, publish_timeout=0.01)),
        lambda: put(publish_timeout=0.01),
    ):
        with pytest.raises(OutputError, match=r"it took longer than 0.01s \(--publish-timeout\); the old"):
            await call()
    monkeypatch.undo()
    assert bucket.locs() == before


@pytest.mark.parametrize(
    ("chosen", "said"),
    [
        ({"file_mode": "0640"}, "--file-mode is for folders"),
        ({"stylesheet": True}, "--stylesheet needs XML files without compression"),
        ({"output": "sitemaps", "cache_control": "no-cache"}, "--cache-control is for object stores"),
    ],
)
async def test_settings_that_this_place_cannot_have(chosen: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        await put(**chosen)


# -- words -----------------------------------------------------------------------------------------------------


class PermissionDeniedError(Exception):
    """As the library names it."""


def answer(status: int, code: str) -> str:
    return f"Error performing PUT REDACTED - Server returned non-2xx status code: {status} X: <Error><Code>{code}</Code>"


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (PermissionDeniedError(answer(403, "AccessDenied")), "access is denied (403 AccessDenied): the credentials need"),
        (PermissionDeniedError(answer(403, "InvalidAccessKeyId")), "the credentials in the environment are not accepted (403 InvalidAccessKeyId): check AWS_ACCESS_KEY_ID"),
        (PermissionDeniedError(answer(403, "SignatureDoesNotMatch") + "X-Amz-Credential"), "the credentials in the environment are not accepted"),
        (PermissionDeniedError(answer(403, "RequestTimeTooSkewed")), "the clock of this machine is wrong"),
        (Exception(answer(404, "NoSuchBucket")), "there is no such bucket"),
        (Exception(answer(301, "PermanentRedirect")), "the bucket is in another region (301 PermanentRedirect): set AWS_REGION"),
        (Exception(answer(501, "NotImplemented")), "the store does not support what is needed (conditional puts)"),
        (Exception(answer(503, "SlowDown")), "the store answered 503 SlowDown"),
        (Exception("Error performing PUT http://169.254.169.254/latest/api/token - HTTP error"), "there are no valid credentials in the environment: set AWS_ACCESS_KEY_ID"),
        (Exception("kind: Timeout, https://x.test/?sig=secret"), "the store did not answer within 1m"),
        (Exception("kind: Connect, https://x.test/?sig=secret"), "the store cannot be reached"),
        (Exception("HTTP error: builder error http://secret"), "the address of the store is not valid"),
        (Exception("invalid XML: secret"), "the answer of the store was not understood"),
        (Exception("<Code>secret=+/</Code> status code: 500"), "the store answered 500"),
    ],
)  # fmt: skip
def test_the_reason_of_a_failure(error: Exception, said: str) -> None:
    words = reason(ObjectUrl("s3", "bucket"), error, REQUEST_TIMEOUT)
    assert words.startswith(said)
    assert "secret" not in words


def test_a_code_is_letters_only() -> None:
    assert code_of("<Code>\x1b[2J</Code>") == ""


@pytest.mark.parametrize(
    ("scheme", "environ", "said"),
    [
        ("s3", {"AWS_SECRET_ACCESS_KEY": "secret\n"}, "AWS_SECRET_ACCESS_KEY contains a line break"),
        ("s3", {"AWS_SSH_KEY": "of another program\n", "AWS_ACCESS_KEY_ID": "x", "AWS_SECRET_ACCESS_KEY": "y"}, ""),
        ("s3", {"AWS_ENDPOINT_URL": ""}, "AWS_ENDPOINT_URL must be an address such as"),
        ("s3", {"AWS_ENDPOINT_URL_S3": "user:secret@storage.test"}, "AWS_ENDPOINT_URL_S3 must be an address"),
        ("s3", {"AWS_ENDPOINT": "https://user:secret@storage.test"}, "AWS_ENDPOINT must be an address"),
        ("gs", {"GOOGLE_BASE_URL": "ftp://x"}, "GOOGLE_BASE_URL must be an address"),
        ("gs", {"GOOGLE_SERVICE_ACCOUNT_KEY": '{"secret'}, "the settings of Google Cloud Storage in the environment are not"),
        ("gs", {"GOOGLE_SERVICE_ACCOUNT": "/no/secret.json"}, "the settings of Google Cloud Storage in the environment are not"),
        ("az", {}, "the settings of Azure Blob Storage in the environment are not complete or not valid: check AZURE_STORAGE_ACC"),
        ("az", {"AZURE_STORAGE_ACCOUNT_NAME": "a", "AZURE_STORAGE_ACCOUNT_KEY": "c2VjcmV0"}, ""),
    ],
)  # fmt: skip
def test_an_environment_that_cannot_be_used(
    monkeypatch: pytest.MonkeyPatch, scheme: str, environ: dict[str, str], said: str
) -> None:
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    url = ObjectUrl(scheme, "bucket")
    if not said:
        object_store.connect(url, 60.0)
        return
    with pytest.raises(ConfigError, match=said) as raised:
        object_store.connect(url, 60.0)
    assert "secret" not in str(raised.value)


def test_without_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(object_store, "find_spec", lambda _: None)
    url = parsed(PLACE)
    assert url
    with pytest.raises(
        ConfigError, match=r"--output s3:// needs the cloud extra: pip install 'sitemap-crawler\[cloud\]'"
    ):
        object_store.connect(url, 60.0)


async def test_what_leaves_is_counted_in_the_objects(bucket: Bucket) -> None:
    done = await put(EVEN)
    assert (done.added, done.removed) == (48, 0)
    done = await put({*EVEN} - {40} | {41})
    assert (done.added, done.removed, done.changed) == (1, 1, 0)
    before = bucket.etags()
    with pytest.raises(PublishRefused, match="Of 48 published URLs, 47 would no longer be listed"):
        await put({number + 1 for number in EVEN}, max_removed=0.5)
    assert bucket.etags() == before
