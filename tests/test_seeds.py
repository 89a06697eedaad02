"""Sitemaps and files as a source of URLs: what is followed, how far, and what a broken one costs."""

import gzip
import io
import logging
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace

import pytest

from crawler.errors import ConfigError
from crawler.model import MAX_BYTES, Broken, Cause, Headers, Permit, Reply, Response
from crawler.ports import Request
from crawler.seeds import Lines, Seeds
from crawler.urls import Normaliser, Url

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


@dataclass
class World:
    """A site of sitemaps that is never asked out of turn."""

    answers: dict[str, Reply | bytes]
    asked: list[str] = field(default_factory=list)
    slots: int = 0
    forbidden: str = ""

    async def fetch(self, request: Request) -> Reply:
        assert request.limit == MAX_BYTES
        self.asked.append(request.url.removeprefix(SITE))
        assert self.slots == len(self.asked), "each request takes a slot"
        answer = self.answers.get(request.url.removeprefix(SITE), Response(404))
        return Response(200, body=answer) if isinstance(answer, bytes) else answer

    async def slot(self, _: str) -> float:
        self.slots += 1
        return 0.0

    async def slow(self, *_: object) -> None:
        """Nothing here is slow."""

    async def permit(self, url: Url) -> Permit:
        return Permit(not self.forbidden or self.forbidden not in url)

    async def turn(self, *_: object) -> None:
        """No time passes."""

    async def read(self, *sitemaps: Url) -> list[str]:
        seeds = Seeds(
            self, self, Normaliser(), permit=self.permit,
            belongs=lambda url: url.startswith(SITE), turn=self.turn,
        )  # fmt: skip
        return [url.removeprefix(SITE) async for chunk in seeds.read(sitemaps or [ROOT]) for url in chunk]


async def test_pages_come_out_normalised_and_once() -> None:
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


async def test_a_chain_of_indexes_ends() -> None:
    chain: dict[str, Reply | bytes] = {f"/{n}.xml": index(f"{SITE}/{n + 1}.xml") for n in range(50)}
    world = World(chain)
    await world.read(Url(f"{SITE}/0.xml"))
    assert world.asked == ["/0.xml", "/1.xml", "/2.xml"]


async def test_sitemaps_of_other_sites_and_forbidden_ones_are_not_asked() -> None:
    world = World(
        {"/sitemap.xml": index("https://other.example/s.xml", f"{SITE}/secret.xml")}, forbidden="secret"
    )
    assert await world.read() == []
    assert world.asked == ["/sitemap.xml"]


async def test_a_sitemap_that_somebody_named_is_not_passed_over_without_a_word(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.WARNING):
        assert await World({}).read(Url("https://nope/"), Url("https://nope/")) == []
    assert [(record.message, record.fields) for record in caplog.records] == [  # type: ignore[attr-defined]
        ("a sitemap was passed over", {"url": "https://nope/", "reason": "is not on the site"})
    ]


async def test_a_sitemap_may_have_moved_but_not_away_and_not_for_ever() -> None:
    def moved(to: str) -> Response:
        return Response(301, Headers([("Location", to)]))

    world = World({"/sitemap.xml": moved("/new.xml"), "/new.xml": urlset("/a")})
    assert await world.read() == ["/a"]
    assert await World({"/sitemap.xml": moved("https://other.example/")}).read() == []
    assert await World({"/sitemap.xml": moved("/sitemap.xml")}).read() == []


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (Response(404), "a sitemap was passed over"),
        (Response(301), "a sitemap was passed over"),
        (Broken(Cause.TIMEOUT), "a sitemap was passed over"),
        (b"<urlset><url><loc>https://example.com/a</loc></url>", "a sitemap is broken"),
        (b"", "a sitemap is broken"),
    ],
)
async def test_what_is_wrong_with_one_is_said_and_costs_that_one_only(
    answer: Reply | bytes, said: str, caplog: pytest.LogCaptureFixture
) -> None:
    world = World({"/bad.xml": answer, "/good.xml": urlset("/b")})
    with caplog.at_level(logging.WARNING):
        found = await world.read(Url(f"{SITE}/bad.xml"), Url(f"{SITE}/good.xml"))
    assert found[-1] == "/b"
    assert [record.message for record in caplog.records] == [said]


def lines(content: bytes, tmp_path: Path) -> list[str]:
    path = tmp_path / "urls.txt"
    path.write_bytes(content)
    given = Lines(str(path), Normaliser())
    try:
        return [url for chunk in given.chunks() for url in chunk]
    finally:
        given.close()


def test_lines_are_urls_comments_or_passed_over(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    content = (
        "\ufeffhttps://a.example/\r\n\n# comment\n  http://b.example/x#y \nmailto:x\nnonsense\n".encode()
    )
    assert lines(content + b"\xff\xfe", tmp_path) == ["https://a.example/", "http://b.example/x"]
    assert len(caplog.records) == 3


def test_a_long_file_comes_in_portions(tmp_path: Path) -> None:
    assert len(lines(b"".join(b"http://a.example/%d\n" % n for n in range(12_000)), tmp_path)) == 12_000


def test_a_dash_is_stdin(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(b"http://a.example/\n")))
    given = Lines("-", Normaliser())
    assert list(given.chunks()) == [["http://a.example/"]]
    given.close()


@pytest.mark.parametrize("name", ["none.txt", "."])
def test_a_file_that_cannot_be_read_is_one_sentence(tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigError, match=r"--input: .* cannot be read"):
        Lines(str(tmp_path / name), Normaliser())
