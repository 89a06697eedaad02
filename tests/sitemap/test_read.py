"""Sitemaps of strangers: every form of the protocol, the usual sloppiness, and what is meant to harm."""

import gzip
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler.sitemap.read import Found, SitemapReading, read
from crawler.sitemap.sniff import LONGEST_LOC

NS = 'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'
A, B = "https://example.com/a", "https://example.com/b"


def found(body: bytes | str | Iterable[bytes], limit: int = 1_000_000) -> tuple[list[Found], SitemapReading]:
    if isinstance(body, str):
        body = body.encode()
    reading = read([body] if isinstance(body, bytes) else body, limit)
    return list(reading), reading


def locs(body: bytes | str | Iterable[bytes]) -> list[str]:
    return [item.loc for item in found(body)[0]]


def urlset(*locs: str) -> str:
    return f"<urlset {NS}>" + "".join(f"<url><loc>{loc}</loc></url>" for loc in locs) + "</urlset>"


@pytest.mark.parametrize(
    "body",
    [
        urlset(A, B),
        '<?xml version="1.0" encoding="UTF-8"?>\n' + urlset(A, B),
        "\n\t " + urlset(A, B),
        "\ufeff" + urlset(A, B),
        f"<urlset><url><loc> {A}\n</loc></url><url><loc>{B}</loc></url></urlset>",
        f'<s:urlset xmlns:s="https://wrong.example/"><s:url><s:loc>{A}</s:loc></s:url><s:url><s:loc>{B}</s:loc></s:url></s:urlset>',
        f"<URLSET><URL><LOC>{A}</LOC></URL><Url><Loc>{B}</Loc></Url></URLSET>",
        f"<urlset><url><loc><![CDATA[{A}]]></loc></url><!-- x --><?x y?><url><loc>{B}</loc></url></urlset>",
        f"<urlset><url><loc/></url><url/><url><loc>{A}</loc><loc>{B}</loc></url></urlset>",
        f'<urlset {NS} xmlns:i="urn:i"><url><i:image><i:loc>https://cdn/i.png</i:loc></i:image><loc>{A}</loc></url>'
        f"<url><loc>{B}</loc></url></urlset>",
        f"<rss version='2.0'><channel><link>https://example.com/</link><item><link>{A}</link></item>"
        f"<item><title/><link>{B}</link></item></channel></rss>",
        f"<feed xmlns='http://www.w3.org/2005/Atom'><link href='https://example.com/'/><entry><link rel='edit' href='x'/>"
        f"<link href='{A}'/></entry><entry><link rel='alternate' href='{B}'/></entry></feed>",
        f"{A}\n{B}\n",
        f"\ufeff{A}\r\n\r\n  {B}",
        gzip.compress(urlset(A, B).encode(), mtime=0),
        gzip.compress(f"{A}\n{B}".encode(), mtime=0),
        urlset(A, B).encode("utf-16"),
        f'<?xml version="1.0" encoding="ISO-8859-1"?><!-- \xe9 -->{urlset(A, B)}'.encode("latin1"),
    ],
)
def test_all_formats_give_the_same_entries(body: str | bytes) -> None:
    assert locs(body) == [A, B]
    assert found(body)[1].malformed is None


def test_an_index_yields_sitemaps_with_dates() -> None:
    body = (
        f"<sitemapindex {NS}><sitemap><loc>{A}</loc><lastmod> 2024-01-01 </lastmod></sitemap></sitemapindex>"
    )
    assert found(body)[0] == [Found("sitemap", A, "2024-01-01")]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (urlset(A, B).replace("</urlset>", ""), [A, B]),
        (urlset(A, B)[:-20], [A]),
        (urlset(A) + "trailing <garbage", [A]),
        (urlset(A).replace("</loc>", "</lok>"), []),
        (f"<urlset><url><loc>{A}</loc></url><url><loc>{B}\x00</loc></url></urlset>", [A]),
        (gzip.compress(urlset(A, B).encode(), mtime=0)[:-10], []),
        ("", []),
        ("   ", []),
        ("no sitemap at all", []),
    ],
)
def test_a_broken_file_is_read_up_to_the_error(body: str | bytes, expected: list[str]) -> None:
    items, reading = found(body)
    assert [item.loc for item in items][: len(expected)] == expected
    assert reading.malformed


@pytest.mark.parametrize("coding", ["utf-8", "utf-16"])
def test_what_a_file_ends_in_the_middle_of_is_not_read(coding: str) -> None:
    """Of a URL that is cut, the beginning is another one, which probably does not exist."""
    entries = {A: "2026-11-25", f"{B}/longer/than/that": "2026-11-26"}
    body = "".join(f"<url><loc>{loc}</loc><lastmod>{date}</lastmod></url>" for loc, date in entries.items())
    whole = f"<urlset {NS}>{body}</urlset>".encode(coding)
    for end in range(len(whole)):
        read_so_far = [(item.loc, item.lastmod) for item in found(whole[:end])[0]]
        assert all(loc in entries and date in {None, entries[loc]} for loc, date in read_so_far), end
    assert [(item.loc, item.lastmod) for item in found(whole)[0]] == list(entries.items())


def test_a_web_page_is_not_a_sitemap() -> None:
    assert locs("<!doctype html><html><body><a href=/a>x</a><br></body></html>") == []


def test_bare_ampersands_are_tolerated_for_any_chunks() -> None:
    body = urlset(f"{A}?x=1&y=2&amp;z=3&#38;w=4").encode()
    wanted = [f"{A}?x=1&y=2&z=3&w=4"]
    assert all(locs([body[:cut], body[cut:]]) == wanted for cut in range(len(body)))


def test_ampersands_in_cdata_for_any_chunks() -> None:
    body = urlset(f"<![CDATA[{A}?x=1&y=2]]></loc></url><url><loc>{A}?x=[3]]&y=4").encode()
    wanted = [f"{A}?x=1&y=2", f"{A}?x=[3]]&y=4"]
    assert all(locs([body[:cut], body[cut : cut + 1], body[cut + 1 :]]) == wanted for cut in range(len(body)))


@pytest.mark.parametrize(
    "attack",
    [
        '<!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;">]>' + urlset("https://example.com/&b;"),
        '<!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/passwd">]>' + urlset("https://example.com/&a;"),
        '<!DOCTYPE x [<!ENTITY % a SYSTEM "http://127.0.0.1/"> %a;]>' + urlset(A),
    ],
)
def test_document_types_are_refused(attack: str) -> None:
    items, reading = found(attack)
    assert items == []
    assert reading.malformed == "declares a document type"


def test_sizes_are_limited() -> None:
    bomb = gzip.compress(urlset(A).encode() + b" " * 10_000_000, mtime=0)
    items, reading = found(bomb, limit=1_000)
    assert [item.loc for item in items] in ([], [A])
    assert "more than 1,000 bytes" in (reading.malformed or "")
    assert len(locs(urlset("https://example.com/" + "x" * 100_000))[0]) == LONGEST_LOC
    assert len(locs("https://example.com/" + "x" * 100_000)[0]) == LONGEST_LOC


@pytest.mark.parametrize("cut", range(0, 120, 7))
def test_document_type_is_recognised_for_any_chunks_and_encoding(cut: int) -> None:
    text = f'<?xml version="1.0"?><!DOCTYPE urlset [<!ENTITY a "b">]>{urlset(A)}'
    for body in (text.encode(), text.encode("utf-16")):
        items, reading = found([body[:cut], body[cut:]])
        assert (items, reading.malformed) == ([], "declares a document type")


def test_two_sitemaps_in_one_file_are_both_read_for_any_chunks() -> None:
    one = f'<?xml version="1.0"?><?xml-stylesheet href="x"?>{urlset(A)}'.encode()
    two = f'\n<?xml version="1.0"?>{urlset(B)}'.encode()
    body = one + two
    assert all(locs([body[:cut], body[cut:]]) == [A, B] for cut in range(len(body)))


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (f"<urlset><url><loc><url>{A}</url></loc></url></urlset>", [A]),
        (f"<sitemapindex><sitemap><loc>{A}</loc><loc>{B}</loc></sitemap></sitemapindex>", [A, B]),
        (f"<rss><channel><item><guid isPermaLink='false'>{A}</guid></item></channel></rss>", [A]),
        (f"<rss><channel><item><guid>123</guid><link>{A}</link></item></channel></rss>", [A]),
        (f"<feed><entry><link href='{A}'/><link href='{B}' hreflang='de'/></entry></feed>", [A]),
        (f"{A}\n# further pages\n{B}", [A, B]),
        (f"www.example.com/a?b=1\n{B}", ["//www.example.com/a?b=1", B]),
    ],
)
def test_common_errors_are_tolerated(body: str, expected: list[str]) -> None:
    assert locs(body) == expected


def test_deep_nesting_is_limited() -> None:
    assert found("<a>" * 100_000)[1].malformed


LINE = st.sampled_from([
    f"<url><loc>{A}</loc></url>\n", f"<url><loc>{B}?x=1</loc><lastmod>2026-01-02</lastmod></url>\n",
    f"<url><loc>{A}?x=1&amp;y=2</loc></url>\n", f"<url><loc>{B}</loc><lastmod></lastmod></url>\n", "<url>\n",
    f"<url><loc>{A}&y</loc></url>", "<!-- ", " -->\n", "<![CDATA[", "]]>", "</urlset>", "\n", "<url><loc> x </loc></url>\n",
])  # fmt: skip


@given(st.lists(LINE, max_size=12), st.integers(0, 900), st.integers(1, 200))
def test_our_own_files_are_read_like_those_of_others(lines: list[str], cut: int, size: int) -> None:
    """Their plain lines need no parser."""
    rest = f"\n<urlset {NS}>\n<url><loc>{A}</loc></url>\n{''.join(lines)}</urlset>\n"[: 120 + cut]
    ours, other = (f"<?xml version={q}1.0{q} encoding={q}UTF-8{q}?>{rest}".encode() for q in "\"'")
    chunks = [ours[at : at + size] for at in range(0, len(ours), size)]
    (some, fast), (same, slow) = found(chunks), found(other)
    assert fast.is_like_ours
    assert not slow.is_like_ours
    assert (some, fast.malformed, fast.is_sitemap) == (same, slow.malformed, slow.is_sitemap)


def test_lines_like_ours_end_where_another_form_begins() -> None:
    ours = "<url><loc>https://example.com/{}</loc><lastmod>2026-01-01</lastmod></url>\n".format
    head = '<?xml version="1.0" encoding="UTF-8"?>\n<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">\n'
    other = (
        "<url><loc> https://example.com/b </loc></url>\n<url><loc>https://example.com/\u00fc</loc></url>\n"
    )
    text = f"{head}{ours('a')}{other}{ours('c')}</urlset>\n".encode()
    for size in (1, 7, 100, len(text)):
        found = [item.loc for item in read(text[at : at + size] for at in range(0, len(text), size))]
        assert found == [f"https://example.com/{name}" for name in ("a", "b", "\u00fc", "c")]
