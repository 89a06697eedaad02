"""Sitemaps as independent readers see them: lxml, the official schemas, gzip; and exact limits."""

import gzip
import hashlib
import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree
from msgspec.structs import replace

from crawler.app.features.hreflang import Hreflang
from crawler.app.features.images import Images
from crawler.errors import OutputError
from crawler.model.facts import Element, Entry, Extras
from crawler.model.protocol import MAX_ENTRIES
from crawler.parse.normalise import Normaliser
from crawler.parse.url import Url
from crawler.sitemap.write import writer as write
from crawler.sitemap.write.writer import FORMS, Part, Style, Writer, refusal

DATA = Path(__file__).parents[1] / "data/sitemap"
URLSET = etree.XMLSchema(etree.parse(DATA / "sitemap.xsd"))
INDEX = etree.XMLSchema(etree.parse(DATA / "siteindex.xsd"))
BASE = "https://example.com"
PLAIN = Style(gzip=False)


def entries(count: int, start: int = 0) -> list[Entry]:
    return [Entry(Url(f"{BASE}/{number:07}")) for number in range(start, start + count)]


def written(folder: Path, found: Sequence[Entry], style: Style = PLAIN, base: str = BASE) -> list[Part]:
    writer = Writer(folder, base, style)
    writer.add(found)
    return writer.finish()


def tree(path: Path) -> etree._Element:
    data = path.read_bytes()
    return etree.fromstring(gzip.decompress(data) if path.suffix == ".gz" else data)


def locs(path: Path) -> list[str]:
    root = tree(path)
    (INDEX if etree.QName(root).localname == "sitemapindex" else URLSET).assertValid(root)
    return [element.text or "" for element in root.iter("{*}loc")]


def test_extras_of_an_entry_are_in_the_order_of_the_schema(tmp_path: Path) -> None:
    now = datetime(2024, 2, 29, tzinfo=UTC)
    found = [
        Entry(Url(f"{BASE}/a"), now, Extras("weekly", 0.8)),
        Entry(Url(f"{BASE}/b"), None, Extras(priority=1)),
        Entry(Url(f"{BASE}/c")),
    ]
    written(tmp_path, found, Style(gzip=False, changefreq="never"))
    assert locs(tmp_path / "sitemap.xml") == [entry.url for entry in found]
    first = [(etree.QName(element).localname, element.text) for element in tree(tmp_path / "sitemap.xml")[0]]
    assert first[1:] == [
        ("lastmod", "2024-02-29T00:00:00+00:00"),
        ("changefreq", "weekly"),
        ("priority", "0.8"),
    ]
    rest = [[element.text for element in url][1:] for url in tree(tmp_path / "sitemap.xml")[1:]]
    assert rest == [["never", "1.0"], ["never"]]


@pytest.mark.parametrize("form", ["txt", "jsonl"])
def test_extras_are_for_xml_only(tmp_path: Path, form: str) -> None:
    plain, more = Entry(Url(f"{BASE}/a")), Entry(Url(f"{BASE}/a"), None, Extras("daily", 0.1))
    lines = []
    for entry in (plain, more):
        [part] = written(tmp_path, [entry], Style(form, gzip=False))
        lines.append((tmp_path / part.name).read_bytes())
        (tmp_path / part.name).unlink()
    assert lines[0] == lines[1]


def test_extras_count_for_the_size_of_a_file(tmp_path: Path) -> None:
    found = [replace(entry, extras=Extras("monthly", 0.5)) for entry in entries(400)]
    style = Style(gzip=False, max_bytes=10_000)
    parts = written(tmp_path, found, style)
    assert all(part.size <= 10_000 for part in parts)
    assert sum(part.urls for part in parts) == 400
    for part in parts:
        (tmp_path / part.name).unlink()
    assert len(parts) > len(written(tmp_path, entries(400), style))


def extended(namespace: str, file: str) -> etree.XMLSchema:
    """The official schema with that of an extension."""
    return etree.XMLSchema(
        etree.fromstring(
            '<schema xmlns="http://www.w3.org/2001/XMLSchema">'
            '<import namespace="http://www.sitemaps.org/schemas/sitemap/0.9" schemaLocation="../data/sitemap/sitemap.xsd"/>'
            f'<import namespace="{namespace}" schemaLocation="{file}"/></schema>',
            base_url=str(Path(__file__).parent / "all.xsd"),
        )
    )


def version(link: tuple[str, Url]) -> Element:
    return Element(f'<xhtml:link rel="alternate" hreflang="{link[0]}" href="', link[1], '"/>')


def image(url: Url) -> Element:
    return Element("<image:image><image:loc>", url, "</image:loc></image:image>", is_optional=True)


def test_language_versions_are_valid_and_of_known_size(tmp_path: Path) -> None:
    versions = (("de", Url(f"{BASE}/a?b&c")), ("en", Url(f"{BASE}/en")))
    found = [
        replace(entry, extras=Extras("daily", elements=tuple(map(version, versions))))
        for entry in entries(100)
    ]
    style = Style(gzip=False, max_bytes=10_000, namespaces=(Hreflang.namespace,))
    parts = written(tmp_path, found, style)
    assert len(parts) > 2
    schema = extended("http://www.w3.org/1999/xhtml", "xhtml-link.xsd")
    for part in parts[:-1]:
        file = tmp_path / part.name
        assert part.size == file.stat().st_size <= 10_000
        schema.assertValid(tree(file))
        for entry in tree(file):
            links = entry.iter("{http://www.w3.org/1999/xhtml}link")
            assert [(link.get("hreflang"), link.get("href")) for link in links] == list(versions)


def test_images_are_valid_and_of_known_size(tmp_path: Path) -> None:
    images = tuple(Url(f"https://cdn.example/{number}?a=1&b='<2>'") for number in range(3))
    found = [
        replace(entry, extras=Extras("daily", elements=tuple(map(image, images)))) for entry in entries(100)
    ]
    found[:50] = [replace(entry, extras=None) for entry in found[:50]]
    parts = written(
        tmp_path, found, Style(gzip=False, max_urls=50, max_bytes=10_000, namespaces=(Images.namespace,))
    )
    assert len(parts) > 3
    schema = extended("http://www.google.com/schemas/sitemap-image/1.1", "image.xsd")
    counts = []
    for part in parts[:-1]:
        file = tmp_path / part.name
        assert part.size == file.stat().st_size <= 10_000
        schema.assertValid(tree(file))
        locs = [loc.text for loc in tree(file).iter("{http://www.google.com/schemas/sitemap-image/1.1}loc")]
        assert locs == [*images] * (len(locs) // 3)
        counts.append(len(locs))
        assert (b"xmlns:image" in file.read_bytes()) is bool(locs)
    assert (counts[0], sum(counts)) == (0, 150)


HOSTILE = [
    "https://x/\x07",
    "https://x/a b",
    "https://x/é",
    "",
    f"https://x/{'a' * 2_038}",
    "https://x/]]>&<",
]


def test_images_that_are_no_urls_are_left_out(tmp_path: Path) -> None:
    """The crawl stores none, but a state may have been edited."""
    [entry] = entries(1)
    images = tuple(map(Url, [*HOSTILE, "https://x/a.jpg"]))
    writer = Writer(tmp_path, BASE, Style(gzip=False, namespaces=(Images.namespace,)))
    writer.add([replace(entry, extras=Extras(elements=tuple(map(image, images))))])
    [part] = writer.finish()
    locs = [loc.text for loc in tree(tmp_path / part.name).iter("{*}loc")]
    assert locs == [entry.url, "https://x/]]>&<", "https://x/a.jpg"]
    assert writer.optional == 2


def test_a_file_that_is_too_small_has_fewer_images(tmp_path: Path) -> None:
    found = [
        replace(
            entry, extras=Extras(elements=tuple(image(Url(f"{BASE}/{n}{'a' * 2_000}")) for n in range(9)))
        )
        for entry in entries(2)
    ]
    writer = Writer(tmp_path, BASE, Style(gzip=False, namespaces=(Images.namespace,), max_bytes=10_000))
    writer.add(found)
    parts = writer.finish()
    assert [part.urls for part in parts] == [1, 1, 0]
    assert writer.optional == 8


def test_few_entries_are_one_file_valid_by_the_schema(tmp_path: Path) -> None:
    moment = datetime(2024, 2, 29, 12, 0, 1, tzinfo=timezone(timedelta(hours=2)))
    found = [Entry(Url(f"{BASE}/a?b=1&c='2'"), moment), Entry(Url(f"{BASE}/b"))]
    [part] = written(tmp_path, found, Style())
    assert [path.name for path in tmp_path.iterdir()] == [part.name] == ["sitemap.xml.gz"]
    assert locs(tmp_path / part.name) == [entry.url for entry in found]
    [date] = tree(tmp_path / part.name).iter("{*}lastmod")
    assert date.text == "2024-02-29T10:00:01+00:00"
    assert (part.urls, part.newest) == (2, moment)


def test_a_part_describes_its_file_correctly(tmp_path: Path) -> None:
    [part] = written(tmp_path, entries(100), Style())
    data = (tmp_path / part.name).read_bytes()
    assert (part.size, part.sha256) == (len(data), hashlib.sha256(data).hexdigest())


def test_gzip_headers_have_no_time_and_no_name(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    for folder in "ab":
        written(tmp_path / folder, entries(1_000), Style())
    one, other = ((tmp_path / folder / "sitemap.xml.gz").read_bytes() for folder in "ab")
    assert one == other
    assert one[3:8] == b"\0\0\0\0\0", "no flags, no time"


@pytest.mark.slow
@pytest.mark.parametrize(("count", "parts"), [(49_999, [49_999]), (50_000, [50_000]), (50_001, [50_000, 1])])
def test_fifty_thousand_is_the_limit(tmp_path: Path, count: int, parts: list[int]) -> None:
    done = written(tmp_path, entries(count))
    assert [part.urls for part in done if part.urls] == parts
    assert done[-1].name == "sitemap.xml"
    assert len(locs(tmp_path / "sitemap.xml")) == (count if len(parts) == 1 else len(parts))


@pytest.mark.parametrize("form", ["xml", "txt"])
@pytest.mark.parametrize("spare", [-1, 0, 1])
def test_the_byte_limit_is_exact(tmp_path: Path, form: str, spare: int) -> None:
    whole = sum(part.size for part in written(tmp_path, entries(10), Style(form, gzip=False)))
    (tmp_path / "again").mkdir()
    style = Style(form, gzip=False, max_bytes=whole + spare)
    done = written(tmp_path / "again", entries(10), style)
    assert [part.urls for part in done if part.urls] == ([9, 1] if spare < 0 else [10])
    for part in done:
        size = (tmp_path / "again" / part.name).stat().st_size
        assert size == part.size
        assert size <= whole + spare or part is done[-1], "the index is no part"


@pytest.mark.slow
def test_the_real_byte_limit_holds_with_real_entries(tmp_path: Path) -> None:
    """Longest URLs that need the most escaping: 50,000 of them would not fit."""
    tail = "&" * 2_000
    found = [Entry(Url(f"{BASE}/{number:06}{tail}")) for number in range(5_400)]
    first, second, _ = written(tmp_path, found)
    line = first.size // first.urls
    assert 52_428_800 - line < first.size <= 52_428_800
    assert first.size == (tmp_path / first.name).stat().st_size
    assert first.urls + second.urls == 5_400


def test_an_index_contains_the_public_urls_of_the_files(tmp_path: Path) -> None:
    dates = [datetime(2024, 1, day, tzinfo=UTC) for day in (3, 9, 5)]
    found = [Entry(entry.url, date) for entry, date in zip(entries(3), dates, strict=True)]
    done = written(tmp_path, [*found, *entries(1, 3)], Style(max_urls=2), f"{BASE}/maps")
    assert [part.name for part in done] == ["sitemap-00001.xml.gz", "sitemap-00002.xml.gz", "sitemap.xml.gz"]
    assert locs(tmp_path / "sitemap.xml.gz") == [f"{BASE}/maps/{part.name}" for part in done[:2]]
    lastmods = [element.text for element in tree(tmp_path / "sitemap.xml.gz").iter("{*}lastmod")]
    assert lastmods == ["2024-01-09T00:00:00+00:00", "2024-01-05T00:00:00+00:00"]


def test_parts_without_dates_have_none_in_the_index(tmp_path: Path) -> None:
    written(tmp_path, entries(2), Style(max_urls=1, gzip=False))
    assert not list(tree(tmp_path / "sitemap.xml").iter("{*}lastmod"))


def test_text_is_one_url_per_line_and_is_split_with_an_xml_index(tmp_path: Path) -> None:
    done = written(tmp_path, entries(3), Style("txt", gzip=False, max_urls=2))
    assert [part.name for part in done] == ["sitemap-00001.txt", "sitemap-00002.txt", "sitemap.xml"]
    assert (tmp_path / "sitemap-00001.txt").read_text() == f"{BASE}/0000000\n{BASE}/0000001\n"
    assert locs(tmp_path / "sitemap.xml") == [f"{BASE}/sitemap-00001.txt", f"{BASE}/sitemap-00002.txt"]


def test_jsonl_is_one_object_per_line_and_never_split(tmp_path: Path) -> None:
    [part] = written(tmp_path, entries(3), Style("jsonl", gzip=False, max_urls=2))
    lines = (tmp_path / part.name).read_text().splitlines()
    assert json.loads(lines[0]) == {"loc": f"{BASE}/0000000", "lastmod": None}
    assert len(lines) == 3


def test_jsonl_is_written_in_gzip_members_and_read_as_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(write, "MAX_ENTRIES", 3)
    [part] = written(tmp_path, entries(10), Style("jsonl"))
    lines = gzip.decompress((tmp_path / part.name).read_bytes()).splitlines()
    assert [json.loads(line)["loc"] for line in lines] == [entry.url for entry in entries(10)]
    assert (part.urls, part.size) == (10, (tmp_path / part.name).stat().st_size)


def test_changefreq_and_priority_only_if_set(tmp_path: Path) -> None:
    [part] = written(tmp_path, entries(1), Style(gzip=False, changefreq="daily", priority=0.85))
    URLSET.assertValid(tree(tmp_path / part.name))
    assert b"<changefreq>daily</changefreq><priority>0.8</priority>" in (tmp_path / part.name).read_bytes()


@pytest.mark.parametrize(
    ("loc", "reason"),
    [
        (f"{BASE}/" + "a" * (2_047 - 20), None),
        (f"{BASE}/" + "a" * (2_048 - 20), "longer than 2,047 characters"),
        ("http://a.b/", "shorter than 12 characters"),
        ("http://a.b/c", None),
        (f"{BASE}/\x0b", "contains characters that are not allowed in a URL"),
        (f"{BASE}/\ufffe", "contains characters that are not allowed in a URL"),
        (f"{BASE}/a b", "contains characters that are not allowed in a URL"),
        (f"{BASE}/é", "contains characters that are not allowed in a URL"),
    ],
)
def test_refused_urls_have_a_reason(loc: str, reason: str | None) -> None:
    assert refusal(loc) == reason


def test_refused_urls_are_counted_and_the_rest_is_written(tmp_path: Path) -> None:
    writer = Writer(tmp_path, BASE, PLAIN)
    writer.add([Entry(Url(f"{BASE}/\x00")), *entries(1)])
    [part] = writer.finish()
    assert (writer.refused, part.urls) == (1, 1)


def test_an_entry_larger_than_a_whole_file_is_refused(tmp_path: Path) -> None:
    writer = Writer(tmp_path, BASE, Style(gzip=False, max_bytes=len(FORMS["xml"].head) + 20))
    writer.add(entries(2))
    assert writer.finish() == []
    assert writer.refused == 2


def test_no_entries_are_no_files(tmp_path: Path) -> None:
    assert written(tmp_path, []) == []
    assert not list(tmp_path.iterdir())


def test_an_index_has_a_limit_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(write, "MAX_ENTRIES", 3)
    with pytest.raises(OutputError, match="4 files are more than an index may list"):
        written(tmp_path, entries(4), Style(max_urls=1))
    assert MAX_ENTRIES == 50_000


URLS = st.text(min_size=1, max_size=60).map(lambda text: Normaliser()(f"{BASE}/{text}")).filter(bool)
DATES = st.none() | st.datetimes(datetime(1990, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001


@given(st.dictionaries(URLS, DATES, max_size=12), st.integers(1, 5), st.booleans())
def test_any_entries_are_valid_by_schema_and_survive_round_trip(
    listed: dict[Url, datetime | None], max_urls: int, gzipped: bool
) -> None:
    found = [Entry(url, listed[url]) for url in sorted(listed)]
    with TemporaryDirectory() as name:
        folder = Path(name)
        done = written(folder, found, Style(gzip=gzipped, max_urls=max_urls))
        back = [loc for part in done if part.urls for loc in locs(folder / part.name)]
        assert back == [entry.url for entry in found]
        if len(done) > 1:
            locs(folder / done[-1].name)
