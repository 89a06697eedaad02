"""The validator: one table of faults, each with its code and line; files, folders and URLs; flat memory."""

import gzip
import json
import re
import subprocess
import sys
import zlib
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crawler.cli.demo.site import Site
from crawler.model.facts import Entry
from crawler.model.protocol import NAMESPACE
from crawler.parse.dates import read_w3c
from crawler.parse.url import Url
from crawler.sitemap.validate import file as check_module
from crawler.sitemap.validate import xml as markup
from crawler.sitemap.validate.file import Check
from crawler.sitemap.validate.findings import WARNINGS, FaultCode
from crawler.sitemap.validate.xml import Ampersands
from crawler.sitemap.write.writer import Style, Writer
from tests.commands import Run

NOW = datetime(2026, 11, 21, tzinfo=UTC)
NS = 'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'
HOME = "https://example.com/sitemap.xml"
A = "<loc>https://example.com/a</loc>"
EXTENSIONS = (
    ' xmlns:image="http://www.google.com/schemas/sitemap-image/1.1"'
    ' xmlns:video="http://www.google.com/schemas/sitemap-video/1.1"'
    ' xmlns:news="http://www.google.com/schemas/sitemap-news/0.9" xmlns:xhtml="http://www.w3.org/1999/xhtml"'
)


IMAGE = "<image:image><image:loc>{}</image:loc></image:image>"
VERSION = '<xhtml:link rel="alternate" hreflang="{}" href="{}"/>'


def codes(
    body: bytes | str, place: str = "s.xml", home: str | None = HOME, step: int = 7
) -> list[tuple[str, int]]:
    data = body.encode() if isinstance(body, str) else body
    chunks = (data[at : at + step] for at in range(0, len(data), step))
    return [(found.code.value, found.line) for found in Check(place, home=home, now=NOW).run(chunks)]


def entry(fields: str) -> str:
    """The fault stands on line 2."""
    return f"<urlset {NS}{EXTENSIONS}>\n<url>{fields}</url></urlset>"


VIDEO = "<video:thumbnail_loc>https://e.com/t</video:thumbnail_loc><video:title>t</video:title><video:description>d</video:description>"
NEWS = (
    "<news:news><news:publication><news:name>n</news:name><news:language>en</news:language></news:publication>"
    "<news:publication_date>2024-01-01</news:publication_date><news:title>t</news:title></news:news>"
)


@pytest.mark.parametrize(
    "body",
    [
        entry(A),
        '<?xml version="1.0" encoding="UTF-8"?>\n' + entry(A),
        entry(
            A
            + "<lastmod>2024-01-01T00:00:00.5+01:00</lastmod><changefreq>daily</changefreq><priority>0.5</priority>"
        ),
        entry("<loc>https://example.com/a?b=1&amp;c=%C3%A9</loc>"),
        entry(A + "<image:image><image:loc>https://cdn.example/i.png</image:loc></image:image>"),
        entry(
            A + f"<video:video>{VIDEO}<video:content_loc>https://e.com/v</video:content_loc></video:video>"
        ),
        entry(A + NEWS),
        entry(
            A + VERSION.format("de", "https://example.com/de") + VERSION.format("en", "https://example.com/a")
        ),
        f"<sitemapindex {NS}><sitemap><loc>https://example.com/1.xml</loc><lastmod>2024-01</lastmod></sitemap></sitemapindex>",
        "https://example.com/a\r\nhttps://example.com/b\n",
        f"<urlset {NS}><!-- comment --><?pi x?><url>{A}</url></urlset>",
    ],
)
def test_valid_files_have_no_findings(body: str) -> None:
    assert codes(body) == []


RSS = "<rss version='2.0'><channel><link>https://example.com/</link>\n<item>{}</item></channel></rss>"
ATOM = "<feed xmlns='http://www.w3.org/2005/Atom'><link href='https://other.example/'/>\n<entry>{}</entry></feed>"


@pytest.mark.parametrize(
    ("body", "found"),
    [
        (RSS.format("<link>https://example.com/a</link><pubDate>Mon, 05 Jan 2026 10:00:00 GMT</pubDate>"), []),
        (RSS.format("<guid>https://example.com/a</guid>"), []),
        (RSS.format("<guid isPermaLink='false'>7</guid>"), ["feed-link"]),
        (RSS.format("<title>no link</title>"), ["feed-link"]),
        (RSS.format("<link>https://example.com/a</link><pubDate>yesterday</pubDate>"), ["feed-date"]),
        (RSS.format("<link>https://example.com/a</link><pubDate>Fri, 01 Jan 2100 00:00:00 GMT</pubDate>"), ["lastmod-future"]),
        (RSS.format("<link>https://other.example/a</link>"), ["loc-host"]),
        (ATOM.format("<link rel='edit' href='/x'/><link href='https://example.com/a'/><updated>2026-01-05</updated>"), []),
        (ATOM.format("<link href='https://example.com/a'/><updated>5 January</updated>"), ["lastmod-form"]),
        (ATOM.format("<link rel='self' href='https://example.com/a'/>"), ["feed-link"]),
        (ATOM.format("<link href='https://example.com/a'/><content><p>any markup</p></content>"), []),
        ("<feed><entry/></feed>", ["root"]),
    ],
)  # fmt: skip
def test_feeds_are_sitemaps_by_the_protocol(body: str, found: list[str]) -> None:
    assert [code for code, _ in codes(body)] == found


@pytest.mark.parametrize(
    ("dates", "found"),
    [
        (["2024-01-01"] * 9, []),
        (["2024-01-01"] * 10, [("lastmod-uniform", 0)]),
        (["2024-01-01"] * 9 + ["2024-01-02"], []),
        (["2024-01-01"] * 10 + [""], []),
        (["2024-01-02"] + ["2024-01-01"] * 10, []),
    ],
)
def test_one_date_on_every_url_is_an_info(dates: list[str], found: list[tuple[str, int]]) -> None:
    for space in ("", "\n"):  # read by the parser, and without it
        entries = space.join(
            f"<url><loc>https://example.com/{number}</loc>{f'<lastmod>{date}</lastmod>' if date else ''}</url>"
            for number, date in enumerate(dates)
        )
        assert codes(f"<urlset {NS}>\n{entries}\n</urlset>") == found


def test_urls_of_a_file_share_scheme_and_host() -> None:
    urls = [
        "https://example.com/1",
        "http://example.com/2",
        "https://www.example.com/3",
        "https://example.com/4",
    ]
    assert codes("\n".join(urls), home=None) == [("loc-host", 2), ("loc-host", 3)]


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ("<lastmod>2024-01-01</lastmod>", "loc-missing"),
        ("<loc></loc>", "loc-invalid"),
        ("<loc>/relative</loc>", "loc-invalid"),
        ("<loc>ftp://example.com/</loc>", "loc-invalid"),
        ("<loc>https:example.com/</loc>", "loc-invalid"),
        (f"<loc>https://example.com/{'a' * 2_028}</loc>", "loc-too-long"),
        ("<loc>https://example.com/a b</loc>", "loc-spelling"),
        ("<loc>https://example.com/é</loc>", "loc-spelling"),
        ("<loc>https://example.com/%zz</loc>", "loc-spelling"),
        ("<loc>https://example.com/a#b</loc>", "loc-fragment"),
        ("<loc>https://www.example.com/</loc>", "loc-host"),
        ("<loc>http://example.com/</loc>", "loc-host"),
        (A + "<lastmod>01.02.2024</lastmod>", "lastmod-form"),
        (A + "<lastmod>2024-02-30</lastmod>", "lastmod-form"),
        (A + "<lastmod>2024-01-01T10:00:00</lastmod>", "lastmod-form"),
        (A + "<lastmod/>", "lastmod-form"),
        (A + "<lastmod>2026-11-22</lastmod>", "lastmod-future"),
        (A + "<changefreq>Daily</changefreq>", "changefreq"),
        (A + "<priority>1.1</priority>", "priority"),
        (A + "<priority>high</priority>", "priority"),
        ("<lastmod>2024-01-01</lastmod>" + A, "order"),
        (A + "<lastmod>2024-01-01</lastmod><lastmod>2024-01-01</lastmod>", "repeated"),
        (A + "<title>x</title>", "element"),
        (A + "<lastmod><b/>2024-01-01</lastmod>", "element"),
        (A + "words", "text"),
        (A + "<x:y xmlns:x='urn:x'><x:z/></x:y>", "extension"),
        (A + "<image:image/>", "extension-missing"),
        (A + "<image:image><image:loc>/relative</image:loc></image:image>", "extension-value"),
        (
            A + "<image:image><image:loc>https://e.com/</image:loc><image:size/></image:image>",
            "extension-field",
        ),
        (A + "<image:picture/>", "extension-field"),
        (A + "".join(IMAGE.format(f"https://e.com/{number}") for number in range(1_001)), "extension-many"),
        (A + IMAGE.format("https://e.com/") * 3, "image-repeated"),
        (A + IMAGE.format("https://e.com/#a"), "image-loc"),
        (A + IMAGE.format("https://e.com/a b"), "image-loc"),
        (A + IMAGE.format(f"https://e.com/{'a' * 2_048}"), "image-loc"),
        (A + IMAGE.format("data:,a"), "extension-value"),
        (A + IMAGE.format(""), "extension-value"),
        (
            A
            + IMAGE.format(
                "https://e.com/</image:loc><image:title>a</image:title><image:title>c</image:title><image:loc>https://e.com/b"
            ),
            "image-retired",
        ),
        (A + f"<video:video>{VIDEO}</video:video>", "extension-missing"),
        (A + NEWS.replace("2024-01-01", "soon"), "extension-value"),
        (A + NEWS + NEWS, "extension-many"),
        (A + "<xhtml:link rel='alternate' href='https://example.com/'/>", "extension-missing"),
        (A + "<xhtml:link rel='alternate' hreflang='de' href='/de'/>", "extension-value"),
        (A + VERSION.format("en-UK", "https://example.com/a"), "hreflang-code"),
        (A + VERSION.format("de", "https://example.com/de"), "hreflang-self"),
    ],
)
def test_each_fault_of_an_entry_has_its_code_and_line(fields: str, code: str) -> None:
    assert codes(entry(fields), step=10_000) == [(code, 2)]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("", [("empty", 0)]),
        (" \n", [("empty", 0)]),
        (f"<urlset {NS}/>", [("empty", 0)]),
        (f"<urlset>\n<url>{A}</url></urlset>", [("namespace", 1)]),
        (
            f"<urlset xmlns='http://www.google.com/schemas/sitemap/0.84'><url>{A}</url></urlset>",
            [("namespace", 1)],
        ),
        ("<feed><entry/></feed>", [("root", 1)]),
        (f"<urlset {NS}>\n<sitemap>{A}</sitemap></urlset>", [("element", 2), ("empty", 0)]),
        (f"\n<urlset {NS}>\n<url><loc>https://example.com/?a&b</loc></url></urlset>", [("escaping", 3)]),
        (f"<urlset {NS}><url><loc>https://example.com/?a&nbsp;b</loc></url></urlset>", [("escaping", 1)]),
        (f"<urlset {NS}>\n<url>{A}</url>", [("not-well-formed", 2)]),
        (f"<urlset {NS}>\n<url>{A}</urls></urlset>", [("not-well-formed", 2)]),
        (f"<!DOCTYPE urlset [<!ENTITY a 'b'>]>\n<urlset {NS}/>", [("doctype", 1)]),
        (
            f"<?xml version='1.0' encoding='ISO-8859-1'?><urlset {NS}><url>{A}</url></urlset>",
            [("encoding", 1)],
        ),
        (f"\ufeff<urlset {NS}><url>{A}</url></urlset>", [("byte-order-mark", 1)]),
        (f"<urlset {NS}><url>{A}</url>\n<url>{A}</url></urlset>", [("duplicate", 2)]),
        (
            f"<sitemapindex {NS}><sitemap>{A}</sitemap>\n<sitemap>{A}</sitemap></sitemapindex>",
            [("index-loop", 2)],
        ),
        (f"<sitemapindex {NS}><sitemap>{A}<priority>1</priority></sitemap></sitemapindex>", [("element", 1)]),
        (
            "https://example.com/a\n# b\n/c\nhttps://example.com/a",
            [("loc-invalid", 2), ("loc-invalid", 3), ("duplicate", 4)],
        ),
        (b"https://example.com/a\nhttps://example.com/\xff", [("encoding", 2)]),
    ],
)
def test_each_fault_of_a_file_has_its_code_and_line(
    body: str | bytes, expected: list[tuple[str, int]]
) -> None:
    assert codes(body) == expected
    assert codes(body, step=100_000) == expected


def test_urls_must_be_in_the_folder_of_the_sitemap() -> None:
    body = entry("<loc>https://example.com/shop/a</loc>")
    assert codes(body, home="https://example.com/shop/sitemap.xml") == []
    assert codes(body, home="https://example.com/blog/sitemap.xml") == [("loc-folder", 2)]
    assert codes(body, home=None) == []


def test_without_a_known_url_all_entries_must_be_on_one_host() -> None:
    body = "https://a.example/\nhttps://a.example/b\nhttps://b.example/"
    assert codes(body, home=None) == [("loc-host", 3)]


@pytest.mark.parametrize(
    ("body", "place", "expected"),
    [
        (gzip.compress(entry(A).encode()), "s.xml.gz", []),
        (gzip.compress(entry(A).encode()), "s.xml", ["gzip-name"]),
        (entry(A).encode(), "s.xml.gz", ["not-gzip"]),
        (gzip.compress(entry(A).encode())[:-6], "s.xml.gz", ["broken-gzip"]),
        (entry(A).encode(), "https://example.com/s.xml.gz?x=1", ["not-gzip"]),
    ],
)
def test_gzip_files_and_names_must_match(body: bytes, place: str, expected: list[str]) -> None:
    assert [code for code, _ in codes(body, place)] == expected


@pytest.mark.parametrize("step", [1, 7, 65_536])
def test_validation_continues_after_a_bare_ampersand(step: int) -> None:
    plain = "<url><loc>https://example.com/b</loc></url>"
    body = "\n".join([
        f"<?xml version='1.0'?><?style a&b?><urlset {NS}>", "<!-- a & b -->",
        "<url><loc>https://example.com/?a&b&amp;c</loc></url>", plain,
        "<url><loc><![CDATA[https://example.com/?x&y]]></loc></url>",
        "<url><loc>https://example.com/?a=1&copy;=2</loc><lastmod>soon</lastmod></url>",
        "<url><loc>nonsense</loc></url></urlset>",
    ])  # fmt: skip
    assert codes(body, step=step) == [
        ("escaping", 3),
        ("escaping", 6),
        ("lastmod-form", 6),
        ("loc-invalid", 7),
    ]


@pytest.mark.parametrize("step", [997, 65_535, 65_536])
def test_a_file_of_one_line_is_never_cut_within_a_reference(step: int) -> None:
    entries = "".join(f"<url><loc>https://example.com/?a={n}&amp;b=&#x61;</loc></url>" for n in range(9_000))
    body = f"<urlset {NS}>{entries}<url><loc>https://example.com/?a&b</loc></url></urlset>"
    assert codes(body, step=step) == [("escaping", 1)]


@given(st.text("<>&;!-[]?#x1a \n").map(str.encode))
def test_no_ampersand_is_bare_after_escaping(body: bytes) -> None:
    escaped, bare = Ampersands()(b"<a>" + body)
    assert Ampersands()(escaped) == (escaped, [])
    assert len(escaped) == len(body) + 3 + 4 * len(bare)
    at = markup.whole(body)
    parts = Ampersands()
    assert parts(b"<a>" + body[:at])[0] + parts(body[at:])[0] == escaped


@pytest.mark.parametrize(
    "body",
    [
        "<!doctype html><p>a", "\ufeff<HTML lang=en>", "<!-- a --> <!-- b --><head>",
        "<?xml version='1.0'?>\n<!DOCTYPE html PUBLIC 'x'><html xmlns='http://www.w3.org/1999/xhtml'>",
    ],
)  # fmt: skip
def test_a_web_page_is_recognised(body: str) -> None:
    assert ("web-page", 0) in codes(body)


def test_json_lines_are_read() -> None:
    good = '{"loc": "https://example.com/a", "lastmod": "2024-01-01"}\n\n{"loc": "https://example.com/b"}'
    assert codes(good, "s.jsonl") == []
    bad = '{"loc": "https://example.com/a", "lastmod": "soon"}\n{"loc": "/b"}\n["loc"]\n{"loc": 1}\n{'
    assert codes(bad, "s.jsonl") == [
        ("lastmod-form", 1),
        ("loc-invalid", 2),
        ("not-json", 3),
        ("not-json", 4),
        ("not-json", 5),
    ]
    many = "".join(f'{{"loc": "https://example.com/{n}"}}\n' for n in range(50_001))
    assert codes(many, "s.jsonl", step=65_536) == [], "no form of the protocol, so none of its limits"


@pytest.mark.slow
def test_the_limit_of_entries_is_exact() -> None:
    def body(count: int) -> bytes:
        return (
            f"<urlset {NS}>".encode()
            + b"".join(b"<url><loc>https://example.com/%d</loc></url>\n" % n for n in range(count))
            + b"</urlset>"
        )

    assert codes(body(50_000), step=65_536) == []
    assert codes(body(50_001), step=65_536) == [("too-many", 50_001)]


@pytest.mark.parametrize("spare", [0, 1])
def test_the_limit_of_bytes_is_exact(monkeypatch: pytest.MonkeyPatch, spare: int) -> None:
    body = entry(A)
    monkeypatch.setattr(check_module, "MAX_BYTES", len(body) - spare)
    assert [code for code, _ in codes(body)] == (["too-large"] if spare else [])
    assert [code for code, _ in codes(gzip.compress(body.encode()), "s.xml.gz")] == (
        ["too-large"] if spare else []
    )


@pytest.mark.slow
def test_a_decompression_bomb_is_not_read_completely() -> None:
    def chunks() -> Iterator[bytes]:
        yield bomb

    packer = zlib.compressobj(wbits=31)
    bomb = b"".join(
        [
            packer.compress(f"<urlset {NS}>".encode()),
            *(packer.compress(b" " * 1_000_000) for _ in range(60)),
            packer.flush(),
        ]
    )
    found = list(Check("s.xml.gz", home=None, now=NOW).run(chunks()))
    assert FaultCode.TOO_LARGE in {item.code for item in found}


def test_every_code_has_a_severity_and_a_sentence() -> None:
    assert {code.value for code in WARNINGS} < {code.value for code in FaultCode}
    assert all(code.says for code in FaultCode)


@pytest.mark.parametrize(
    ("text", "iso"),
    [
        ("2024", "2024-01-01T00:00:00+00:00"),
        ("2024-03", "2024-03-01T00:00:00+00:00"),
        ("2024-02-29", "2024-02-29T00:00:00+00:00"),
        ("2024-02-29T23:30Z", "2024-02-29T23:30:00+00:00"),
        ("2024-02-29T23:30:15-02:00", "2024-03-01T01:30:15+00:00"),
        ("2024-02-29T23:30:15.123456789Z", "2024-02-29T23:30:15+00:00"),
        ("2024-02-29t23:30Z", None),
        ("2024-2-9", None),
        ("2024-02-30", None),
        ("0000-01-01", None),
        ("0001-01-01T00:00:00+14:00", None),
        ("2024-02-29T23:30", None),
        (" 2024", None),
        ("\uff12\uff10\uff12\uff14", None),
        ("2" * 1_000, None),
    ],
)
def test_w3c_datetimes(text: str, iso: str | None) -> None:
    at = read_w3c(text)
    assert (at.isoformat() if at else None) == iso


# -- the command -----------------------------------------------------------------------------------------


def write_set(folder: Path, count: int = 5) -> None:
    writer = Writer(folder, "https://example.com", Style(max_urls=2))
    writer.add([Entry(Url(f"https://example.com/{number}")) for number in range(count)])
    writer.finish()


def test_written_sitemaps_are_valid_and_index_is_followed(run: Run, tmp_path: Path) -> None:
    write_set(tmp_path)
    assert run.lines("validate", "sitemap.xml.gz") == (
        0,
        [],
        "4 files, 3 sitemaps in an index, 5 URLs: valid.\n",
    )
    (tmp_path / "sitemap-00002.xml.gz").write_bytes(b"<x/>")
    (tmp_path / "sitemap-00003.xml.gz").unlink()
    code, out, _ = run.lines("validate", "sitemap.xml.gz")
    assert code == 8
    assert out == [
        "sitemap-00002.xml.gz: error not-gzip: is named .gz and is not gzip",
        "sitemap-00002.xml.gz:1: error root: is not a sitemap: its root element is <x>",
        "sitemap.xml.gz: warning child-elsewhere: was not checked: there is no file sitemap-00003.xml.gz next to it",
    ]


def test_duplicates_and_hosts_are_checked_across_files_of_index(run: Run, tmp_path: Path) -> None:
    write_set(tmp_path, 4)
    (tmp_path / "sitemap-00002.xml.gz").write_bytes((tmp_path / "sitemap-00001.xml.gz").read_bytes())
    code, out, _ = run.lines("validate", "sitemap.xml.gz")
    assert code == 8
    assert [line.split(": ")[1] for line in out] == ["warning duplicate"] * 2
    code, out, _ = run.lines("validate", "sitemap.xml.gz", "--publish-base", "https://www.example.com")
    assert {line.split(": ")[1] for line in out} == {"error loc-host", "warning duplicate"}


def test_urls_are_fetched_and_index_is_followed_on_its_host(run: Run) -> None:
    site = Site()
    inner = b"<urlset " + NS.encode() + b"><url><loc>{origin}/a</loc></url></urlset>"
    site.raw("/1.xml", body=inner, headers={"Content-Type": "application/xml"})
    site.redirect("/2.xml", "/gone.xml")
    locs = ["{origin}/1.xml", "{origin}/2.xml", "{origin}/index.xml", "https://other.example/s.xml"]
    body = "".join(f"<sitemap><loc>{loc}</loc></sitemap>" for loc in locs)
    site.raw("/index.xml", body=f"<sitemapindex {NS}>{body}</sitemapindex>".encode())
    with site.serve() as origin:
        code, out, err = run.lines("validate", f"{origin}/index.xml", "--rate", "0")
    assert code == 8
    said = [line.removeprefix(origin) for line in out]
    assert "/2.xml: error unreadable: cannot be read: the server responded with status 404" in said
    assert "/index.xml: error index-nested: an index contains another index" in said
    assert (
        "/index.xml: warning child-elsewhere: was not checked: https://other.example/s.xml is on another host"
        in said
    )
    assert not [line for line in said if line.startswith("/1.xml")]
    assert "4 files" in err


def test_findings_as_json(run: Run, tmp_path: Path) -> None:
    (tmp_path / "s.xml").write_text(entry("<loc>x\x1b[31m</loc>".replace("\x1b", "")))
    code, out, _ = run.lines("validate", "s.xml", "--format", "jsonl")
    assert code == 8
    first, totals = map(json.loads, out)
    assert json.loads("".join(run.lines("validate", "s.xml", "--format", "json")[1])) == {
        "findings": [first],
        **totals,
    }
    assert first == {
        "place": "s.xml", "line": 2, "severity": "error", "code": "loc-invalid",
        "says": "is not an absolute http(s) URL: x[31m",
    }  # fmt: skip
    assert totals == {
        "totals": {"files": 1, "sitemaps": 0, "urls": 1, "errors": 1, "warnings": 0, "infos": 0}
    }


def test_many_findings_of_one_kind_are_only_counted(run: Run, tmp_path: Path) -> None:
    (tmp_path / "s.txt").write_text("https://a.example/\n" + "x\n" * 2_000)
    code, out, err = run.lines("validate", "s.txt", "--most", "3")
    assert code == 8
    assert len([line for line in out if "loc-invalid" in line]) == 3
    assert "s.txt: 1,997 more of loc-invalid" in err


def test_unreadable_files_are_findings_and_the_next_is_validated(run: Run, tmp_path: Path) -> None:
    write_set(tmp_path, 2)
    (tmp_path / "empty").mkdir()
    assert run.lines("validate", ".") == (0, [], "1 file, 2 URLs: valid.\n"), "a folder is its entry point"
    code, out, err = run.lines(
        "validate", "none.xml", "empty", "sitemap.xml.gz", "http://127.0.0.1:49151/s.xml"
    )
    assert code == 8
    assert [line.split(": ")[0] for line in out] == ["none.xml", "empty", "http://127.0.0.1:49151/s.xml"]
    assert err == "4 files, 2 URLs: 3 errors, 0 warnings.\n"


def test_usage(run: Run) -> None:
    assert run("validate")[0] == 2
    assert run.lines("validate", "x", "--format", "yaml")[0] == 2


MEASURE = """
import re, sys
from crawler.__main__ import main
try:
    main(["validate", sys.argv[1]])
except SystemExit as left:
    print(left.code, int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1]) // 1024)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="peak memory is read from /proc")
@pytest.mark.slow
def test_memory_use_is_constant_for_the_largest_file(tmp_path: Path) -> None:
    line = b"<url><loc>https://example.com/%06d/" + b"a" * 980 + b"</loc></url>\n"
    with (tmp_path / "s.xml").open("wb") as file:
        file.write(f"<urlset {NS}>\n".encode())
        for number in range(50_000):
            file.write(line % number)
        file.write(b"</urlset>\n")
    size = (tmp_path / "s.xml").stat().st_size
    assert 50_000_000 < size < 52_428_800
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, str(tmp_path / "s.xml")],
        capture_output=True, text=True, check=False, cwd=Path(__file__).parents[2],
    )  # fmt: skip
    code, peak = map(int, done.stdout.split())
    assert (code, done.stderr) == (0, "1 file, 50,000 URLs: valid.\n")
    assert peak < 120, "MB, of which the program takes about 60 to start"


_LINES = st.sampled_from([
    "<url><loc>https://x/a</loc></url>", "<url><loc>https://x/a</loc></url>", "<url><loc>https://x/b</loc><lastmod>2024-01-31T00:00:00+00:00</lastmod></url>",
    "<url><loc>https://x/c</loc><lastmod>2024-02-31T00:00:00+00:00</lastmod></url>", "<url><loc>https://x/d</loc><lastmod>2999-01-31T00:00:00+00:00</lastmod></url>",
    "<url><loc>https://x/a?b&amp;c</loc></url>", "<url><loc>https://x/#f</loc></url>", "<url><loc>http://y/%zz</loc></url>", "<url>", "</url>", "<loc>https://x/e</loc>",
    "<!--", "-->", "<![CDATA[", "]]>", "<?p", "?>", "text", "text>", "<foo a='x>", "'>", "</foo>", "<foo/>", "<url/>", "", " ", "</urlset>", "&", "<url><loc>/</loc></url>",
])  # fmt: skip


_IMAGE_SPACE = "http://www.google.com/schemas/sitemap-image/1.1"
_HEADS = st.sampled_from([
    f'<urlset xmlns="{NAMESPACE}" xmlns:image="{_IMAGE_SPACE}">', f'<urlset xmlns="{NAMESPACE}" xmlns:image="{_IMAGE_SPACE}">',
    f'<urlset xmlns="{NAMESPACE}">', f'<urlset xmlns="{NAMESPACE}" xmlns:image="urn:x">', f'<urlset xmlns="urn:x" xmlns:image="{NAMESPACE}">',
    f'<s:urlset xmlns:s="{NAMESPACE}" xmlns="urn:x">', f'<image:urlset xmlns:image="{NAMESPACE}" xmlns="{_IMAGE_SPACE}">',
])  # fmt: skip
_IMAGES = st.lists(
    st.sampled_from([
        "https://cdn/a.jpg", "https://cdn/b.jpg", "http://y:80/?c&amp;d", "https://cdn/%7E[1]", "https://cdn/%zz", "https://cdn/#f",
        "https://1.2.3.999/", "https://cdn:99999/", "https://CDN/", "https://cdn", "/a", "", "ftp://x/a", "https://a b/", "https://cdn/é",
        "https://x/" + "a" * 2_037, "https://x/" + "a" * 2_038, "https://cdn/a.jpg</image:loc><image:title>t</image:title><image:loc>https://cdn/e",
    ]),
    max_size=4,
).map(
    lambda locs: "<url><loc>https://x/i</loc>"
    + "".join(f"<image:image><image:loc>{loc}</image:loc></image:image>" for loc in locs)
    + "</url>"
)  # fmt: skip


@settings(max_examples=3 * settings().max_examples)
@given(_HEADS, st.lists(_LINES | _IMAGES, max_size=12), st.integers(1, 400))
def test_plain_entries_get_the_same_findings_as_with_the_parser(
    head: str, lines: list[str], piece: int
) -> None:
    tail = f"</{head[1:].partition(' ')[0]}>\n"
    body = "\n".join([f'<?xml version="1.0"?>\n{head}', *lines, tail]).encode()
    said: list[object] = []
    for plain in (markup._PLAIN, re.compile(rb"(?!)")):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(markup, "_PLAIN", plain)
            check = Check("s.xml", home="https://x/s.xml", now=NOW)
            found = list(check.run(body[at : at + piece] for at in range(0, len(body), piece)))
            said.append((found, check.entries, check.kind))
    assert said[0] == said[1]


def test_many_images_get_the_same_findings_as_with_the_parser() -> None:
    for count in (1_000, 1_001):
        many = "".join(IMAGE.format(f"https://cdn/{number}") for number in range(count))
        assert codes(
            f"<urlset {NS}{EXTENSIONS}>\n<url>{A}</url>\n<url><loc>https://example.com/b</loc>{many}</url>\n</urlset>\n"
        ) == ([("extension-many", 3)] if count > 1_000 else [])


@pytest.mark.parametrize(
    "spelled", ["HTTP://127.0.0.1:%s/s.xml#top", "http://127.1:%s/%%73.xml", " http://127.0.0.1:%s/./s.xml"]
)
def test_urls_are_normalised(run: Run, spelled: str) -> None:
    site = Site()
    site.sitemap("/s.xml", ["/a"])
    with site.serve() as origin:
        assert run.lines("validate", spelled % origin.rpartition(":")[2])[0] == 0
    assert {request.target for request in site.log} == {"/s.xml"}


def test_raw_bytes_in_a_url_are_escaped(run: Run) -> None:
    site = Site()
    site.sitemap("/%C3%BC%20.xml", ["/a"])
    with site.serve() as origin:
        assert run.lines("validate", f"{origin}/ü .xml")[0] == 0


def test_a_web_page_given_as_a_sitemap_is_exit_2(run: Run) -> None:
    site = Site()
    site.page("/")
    with site.serve() as origin:
        code, out, _ = run.lines("validate", f"{origin}/")
    assert code == 2
    assert out == [f"{origin}/: error web-page: is a web page, not a sitemap"]
