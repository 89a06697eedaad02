"""Sitemaps and files as a source of URLs: what is followed, how far, and what a broken one costs."""

import gzip
import io
import logging
from collections.abc import Iterator, Sequence
from contextlib import aclosing, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace

import pytest

from crawler.app.input_files import URLS_AT_ONCE, InputFile
from crawler.app.seeding import Entries, Seeds
from crawler.engine.robots import Access
from crawler.errors import ConfigError
from crawler.frontier.sqlite.frontier import SqliteFrontier
from crawler.model.protocol import MAX_BYTES, MAX_ENTRIES
from crawler.model.reasons import Cause, SeedKind
from crawler.model.reply import Broken, Headers, Permit, Reply, Response
from crawler.model.seed import Seed
from crawler.model.visit import Visit
from crawler.parse.normalise import Normaliser
from crawler.parse.url import Url
from crawler.ports import Request, reads
from crawler.sitemap.tree import NESTED

pytestmark = pytest.mark.anyio
SITE = "https://example.com"
ROOT = Url(f"{SITE}/sitemap.xml")


def urlset(*paths: str) -> bytes:
    return (
        b"<urlset>"
        + b"".join(b"<url><loc>%s%s</loc></url>" % (SITE.encode(), p.encode()) for p in paths)
        + b"</urlset>"
    )


def index(*paths: str) -> bytes:
    return (
        b"<sitemapindex>"
        + b"".join(b"<sitemap><loc>%s</loc></sitemap>" % p.encode() for p in paths)
        + b"</sitemapindex>"
    )


OPENED: list[SqliteFrontier] = []


def in_memory() -> SqliteFrontier:
    OPENED.append(SqliteFrontier(":memory:"))
    return OPENED[-1]


@pytest.fixture(autouse=True)
def _closed() -> Iterator[None]:
    """From 3.13 on, a connection that is left to the garbage collector is a warning."""
    yield
    while OPENED:
        OPENED.pop()._connection.close()


@dataclass
class World:
    """A site of sitemaps, which checks that each request waits for its slot. `frontier` survives a crash of the reader."""

    answers: dict[str, Reply | bytes]
    asked: list[str] = field(default_factory=list)
    slots: int = 0
    forbidden: str = ""
    frontier: SqliteFrontier = field(default_factory=in_memory)

    async def fetch(self, request: Request) -> Reply:
        assert request.limit == MAX_BYTES
        self.asked.append(request.url.removeprefix(SITE))
        assert self.slots == len(self.asked), "each request takes a slot"
        answer = self.answers.get(request.url.removeprefix(SITE), Response(404))
        return Response(200, body=answer) if isinstance(answer, bytes) else answer

    def knows(self, _: str) -> bool:
        return True

    def permit(self, url: Url) -> Permit:
        return Permit(not self.forbidden or self.forbidden not in url)

    async def __call__(self, *_: object) -> None:
        self.slots += 1

    async def on_site(self, urls: Sequence[Url]) -> Sequence[Url]:
        return [url for url in urls if url.startswith(SITE)]

    def seeds(self) -> Seeds:
        access = Access(self.frontier, self, self, self)  # type: ignore[arg-type]
        return Seeds(self.frontier, access, self.on_site, Normaliser(), ROOT, nullcontext)

    async def read(self, *sitemaps: str) -> list[str]:
        """What the sitemaps name, added to the frontier group by group."""
        await self.frontier.begin("settings")
        found: list[str] = []
        async for seed, group in self.seeds().read(sitemaps or [ROOT]):
            await self.frontier.add([Visit(url) for url in group], seed)
            found += [url.removeprefix(SITE) for url in group]
        return found


async def test_pages_are_normalised_and_unique() -> None:
    world = World({"/sitemap.xml": urlset("/a", "/b?utm_source=x", "/a", "/a#x") + b""})
    assert await world.read() == ["/a", "/b"]


async def test_indexes_are_followed_and_each_sitemap_is_read_once() -> None:
    one, two = f"{SITE}/one.xml", f"{SITE}/two.xml.gz"
    world = World({
        "/sitemap.xml": index(one, two, one, ROOT),
        "/one.xml": urlset("/a"),
        "/two.xml.gz": gzip.compress(urlset("/b")),
    })  # fmt: skip
    assert await world.read() == ["/a", "/b"]
    assert world.asked == ["/sitemap.xml", "/one.xml", "/two.xml.gz"]


async def test_the_depth_of_indexes_is_limited() -> None:
    chain: dict[str, Reply | bytes] = {f"/{n}.xml": index(f"{SITE}/{n + 1}.xml") for n in range(50)}
    world = World(chain)
    await world.read(Url(f"{SITE}/0.xml"))
    assert world.asked == ["/0.xml", "/1.xml", "/2.xml"]


async def test_each_sitemap_is_read_once_per_run() -> None:
    world = World({"/sitemap.xml": index(f"{SITE}/a.xml", f"{SITE}/b.xml"), "/a.xml": urlset("/a")})
    assert await world.read() == ["/a"]
    assert world.asked == ["/sitemap.xml", "/a.xml", "/b.xml"]
    assert await world.read() == []
    assert len(world.asked) == 3, "settled, the one that failed, too"
    assert (await world.frontier.read(reads.Sitemaps())).outcomes == {"read": 2, "failed": 1}
    await world.frontier.finish()
    await world.frontier.conclude()
    assert await world.read() == ["/a"]
    assert world.asked[3:] == ["/sitemap.xml", "/a.xml", "/b.xml"]


@pytest.mark.slow
async def test_after_crash_only_interrupted_sitemap_is_read_again() -> None:
    big = [f"/{number}" for number in range(5_000)]
    world = World({"/sitemap.xml": index(f"{SITE}/a.xml", f"{SITE}/big.xml"), "/a.xml": urlset("/a"), "/big.xml": urlset(*big)})  # fmt: skip
    await world.frontier.begin("settings")
    async with aclosing(world.seeds().read([ROOT])) as reading:
        async for seed, group in reading:
            await world.frontier.add([Visit(url) for url in group], seed)
            if seed.name.endswith("big.xml"):
                break
    assert world.asked == ["/sitemap.xml", "/a.xml", "/big.xml"]
    assert await world.read() == big
    assert world.asked[3:] == ["/big.xml"]
    balance = await world.frontier.read(reads.RunBalance())
    assert (balance.discovered, balance.balanced) == (5_001, True)


@pytest.mark.slow
async def test_sitemaps_in_nested_indexes_are_limited_and_told_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    answers: dict[str, Reply | bytes] = {"/sitemap.xml": index(*(f"{SITE}/{n}.xml" for n in range(50)))}
    answers |= {f"/{n}.xml": index(*(f"{SITE}/{n}-{m}.xml" for m in range(50))) for n in range(50)}
    answers |= {f"/{n}-{m}.xml": urlset(f"/{n}-{m}") for n in range(50) for m in range(50)}
    world = World(answers)
    with caplog.at_level(logging.WARNING):
        assert len(await world.read()) == NESTED == 500
    assert len(world.asked) == 1 + 50 + NESTED
    assert [record.message for record in caplog.records] == ["limit on the number of sitemaps reached"]
    assert caplog.records[0].fields["passed_over"] == 2_000  # type: ignore[attr-defined]
    assert (await world.frontier.read(reads.Sitemaps())).outcomes == {"read": 551, "passed": 2_000}


@pytest.mark.parametrize("status", [300, 304, 305, 306])
async def test_only_redirect_statuses_are_followed(status: int) -> None:
    world = World({
        "/sitemap.xml": Response(status, Headers([("Location", "/new.xml")])), "/new.xml": urlset("/a"),
    })  # fmt: skip
    assert await world.read() == []
    assert world.asked == ["/sitemap.xml"]


@pytest.mark.slow
async def test_the_number_of_entries_is_limited(caplog: pytest.LogCaptureFixture) -> None:
    body = "".join(f"{SITE}/{number}\n" for number in range(MAX_ENTRIES + 10)).encode()
    with caplog.at_level(logging.WARNING):
        assert len(await World({"/sitemap.xml": body}).read()) == MAX_ENTRIES
    assert [record.message for record in caplog.records] == ["sitemap could not be read in full"]


async def test_index_on_disk_leads_to_local_files_and_one_on_web_never(tmp_path: Path) -> None:
    (tmp_path / "index.xml").write_bytes(index(f"{SITE}/x/a.xml.gz", f"{SITE}/web.xml", f"{SITE}/.."))
    (tmp_path / "a.xml.gz").write_bytes(gzip.compress(urlset("/a")))
    world = World({"/web.xml": index(f"{SITE}/x/a.xml.gz", str(tmp_path / "a.xml.gz"), "file:///etc/passwd")})
    assert await world.read(str(tmp_path / "index.xml")) == ["/a"]
    assert set(world.asked) == {"/web.xml", "/x/a.xml.gz", "/", str(tmp_path / "a.xml.gz")}


async def test_a_missing_file_fails_like_a_sitemap(tmp_path: Path) -> None:
    world = World({})
    assert await world.read(str(tmp_path / "gone.xml")) == []
    assert (await world.frontier.read(reads.Sitemaps())).outcomes == {"failed": 1}


async def test_sitemaps_of_others_and_disallowed_ones_are_not_fetched() -> None:
    world = World(
        {"/sitemap.xml": index("https://other.example/s.xml", f"{SITE}/secret.xml")}, forbidden="secret"
    )
    assert await world.read() == []
    assert world.asked == ["/sitemap.xml"]


async def test_a_sitemap_given_explicitly_is_reported_if_not_read(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.WARNING):
        assert await World({}).read(Url("https://nope/"), Url("https://nope/")) == []
    assert [(record.message, record.fields) for record in caplog.records] == [  # type: ignore[attr-defined]
        ("sitemap skipped", {"url": "https://nope/", "reason": "is not on the site"})
    ]


async def test_redirects_of_sitemap_are_followed_on_site_and_limited() -> None:
    def moved(to: str) -> Response:
        return Response(301, Headers([("Location", to)]))

    world = World({"/sitemap.xml": moved("/new.xml"), "/new.xml": urlset("/a")})
    assert await world.read() == ["/a"]
    assert await World({"/sitemap.xml": moved("https://other.example/")}).read() == []
    assert await World({"/sitemap.xml": moved("/sitemap.xml")}).read() == []


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (Response(404), "sitemap skipped"),
        (Response(301), "sitemap skipped"),
        (Broken(Cause.TIMEOUT), "sitemap skipped"),
        (b"<urlset><url><loc>https://example.com/a</loc></url>", "sitemap could not be read in full"),
        (b"", "sitemap skipped"),
    ],
)
async def test_a_broken_sitemap_is_reported_and_the_others_are_read(
    answer: Reply | bytes, said: str, caplog: pytest.LogCaptureFixture
) -> None:
    world = World({"/bad.xml": answer, "/good.xml": urlset("/b")})
    with caplog.at_level(logging.WARNING):
        found = await world.read(Url(f"{SITE}/bad.xml"), Url(f"{SITE}/good.xml"))
    assert found[-1] == "/b"
    assert [record.message for record in caplog.records] == [said]


def taken(given: InputFile) -> list[str]:
    found: list[str] = []
    while (chunk := given.take()) is not None:
        found += chunk
    return found


def lines(content: bytes, tmp_path: Path) -> list[str]:
    path = tmp_path / "urls.txt"
    path.write_bytes(content)
    given = InputFile(str(path), Normaliser())
    try:
        return taken(given)
    finally:
        given.close()


def test_lines_are_urls_comments_or_ignored(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    content = (
        "\ufeffhttps://a.example/\r\n\n# comment\n  http://b.example/x#y \nmailto:x\nnonsense\n".encode()
    )
    assert lines(content + b"\xff\xfe", tmp_path) == ["https://a.example/", "http://b.example/x"]
    assert len(caplog.records) == 3


def test_a_long_file_is_read_in_groups(tmp_path: Path) -> None:
    assert len(lines(b"".join(b"http://a.example/%d\n" % n for n in range(12_000)), tmp_path)) == 12_000


def test_a_dash_is_stdin(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(b"http://a.example/\n")))
    given = InputFile("-", Normaliser())
    assert taken(given) == ["http://a.example/"]
    given.close()


@pytest.mark.parametrize("name", ["none.txt", "."])
def test_an_unreadable_file_is_one_sentence(tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigError, match=r"--input: .* cannot be read"):
        InputFile(str(tmp_path / name), Normaliser())


def test_long_urls_of_short_links_are_limited() -> None:
    here = f"{SITE}/{'s' * 7_000}/"
    body = b"<urlset>" + b"".join(b"<url><loc>%d</loc></url>" % n for n in range(20_000)) + b"</urlset>"
    entries = Entries([body], lambda loc: Url(here + loc), place=f"{here}sitemap.xml")
    total = 0
    while (urls := entries.take()) is not None:
        total += sum(map(len, urls))
    assert MAX_BYTES < total < MAX_BYTES + URLS_AT_ONCE * 8_000
    said = entries.settlement(Seed(SeedKind.SITEMAP, f"{here}sitemap.xml", 0))
    assert said.detail == "names more than 52,428,800 bytes of URLs"
