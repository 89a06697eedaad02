"""Which elements of a page are links, and its other metadata."""

import pytest

from crawler.parse import html, page_links, refresh, risk
from crawler.parse.extract import Extract
from crawler.parse.html_elements import SMALL_PAGE
from crawler.parse.normalise import Normaliser
from crawler.parse.parsed_page import ParsedPage

URL = "https://example.com/dir/page"


def page(markup: str | bytes, charset: str | None = "utf-8") -> ParsedPage:
    body = markup.encode() if isinstance(markup, str) else markup
    return html.extract(html.PageSource(body, URL, charset=charset))


def followed(markup: str | bytes, charset: str | None = "utf-8") -> list[str]:
    return list(page_links.resolve(page(markup, charset), Normaliser())[0])


@pytest.mark.parametrize(
    ("markup", "hrefs"),
    [
        ("<a href=a>", ["a"]),
        ("<A HREF=' a\n'>", ["a"]),
        ("<map><area href=a>", ["a"]),
        ("<iframe src=a></iframe>", ["a"]),
        ("<frameset><frame src=a><frame src=b></frameset>", ["a", "b"]),
        ("<link rel=alternate href=a><link rel=next href=b><link rel=prev href=c>", ["a", "b", "c"]),
        ("<link rel='alternate stylesheet' href=a><link rel=icon href=b>", []),
        ("<noscript><a href=a></noscript>", ["a"]),
        ("<a href=a#one><a href=a#two><a href='#three'><a href=''><a href=' '>", ["a"]),
        ("<a href=a&amp;b=1&copy=2>", ["a&b=1&copy=2"]),
        ("<a href='&#x2F;a&#47;b'>", ["/a/b"]),
        ("<a>", []),
        ("<img src=a><script src=a></script><form action=a><embed src=a>", []),
        ("<!-- <a href=a> --><script>'<a href=a>'</script><template><a href=a></template>", []),
        ("<textarea><a href=a></textarea><title><a href=b></title>", []),
        ("<table><a href=a><tr><td><a href=b></table>", ["a", "b"]),
        ("<svg><a href=a></a></svg>", ["a"]),
        ("<p <a href=a>", []),
        ("<a href=a href=b>", ["a"]),
    ],
)
def test_where_links_come_from(markup: str, hrefs: list[str]) -> None:
    assert list(page(markup).followed) == hrefs


ODD = (
    "<frameset><frame src=a><noframes><iframe src=b></noframes></frameset>",
    "<frame src=a><svg><base href=x><script src=b></script></svg><base href=/c/><AREA href=d><area href=e rel=nofollow>",
    "<template><link rel=next href=a></template><table><base href=/b/><link rel=prev href=c><meta name=Robots content=x>",
    "<svg:script src=a></svg:script><x-script><time itemprop=dateModified datetime=2026-01-02><iframe src=b></iframe>",
    "<body><link rel=canonical href=a><meta http-equiv=refresh content='1; b'><script></script><link rel=next href=c>",
)


@pytest.mark.parametrize("markup", ODD)
def test_large_pages_are_read_as_small_ones(markup: str) -> None:
    """Elements of large pages are searched for in another way."""
    small, large = (
        html.extract(
            html.PageSource(f"{markup}<!--{'-' * length}".encode(), URL, "utf-8", frozenset(Extract))
        )
        for length in (0, SMALL_PAGE)
    )
    assert small == large


def test_a_link_is_nofollow_only_if_every_occurrence_is() -> None:
    found = page("<a rel='NoFollow x' href=a><a rel=nofollow href=b><a href=b>")
    assert (found.followed, found.avoided) == (("b",), ("a",))


@pytest.mark.parametrize(
    ("markup", "url"),
    [
        ("<base href=/root/><a href=x>", "https://example.com/root/x"),
        ("<base target=x><base href=/root/><a href=x>", "https://example.com/root/x"),
        ("<base href=/one/><base href=/two/><a href=x>", "https://example.com/one/x"),
        ("<a href=x><base href=/late/>", "https://example.com/late/x"),
        ("<svg><base href=/drawn/></svg><a href=x>", "https://example.com/dir/x"),
        ("<math><base href=/sum/></math><base href=/root/><a href=x>", "https://example.com/root/x"),
        ("<svg><foreignObject><base href=/in/></foreignObject></svg><a href=x>", "https://example.com/in/x"),
        ("<base href='http://a:b:c'><a href=x>", "https://example.com/dir/x"),
        ("<base href='data:,x'><a href=x>", "https://example.com/dir/x"),
        ("<base href='../'><a href=x>", "https://example.com/x"),
        ("<base href=/><a href='#part'><iframe src=''></iframe>", "https://example.com/"),
        ("<a href=''><base href=/top?q=é#one>", "https://example.com/top?q=%C3%A9"),
        ("<base href=/top><map><area href>", "https://example.com/top"),
        ("<a href='/A//b/../C/'>", "https://example.com/A//C/"),
        ("<a href='?q=1&utm_source=x'>", "https://example.com/dir/page?q=1"),
        ("<a href='\\\\host\\x'>", "https://host/x"),
        ("<a href='a\tb'>", "https://example.com/dir/ab"),
    ],
)
def test_links_are_joined_by_the_url_standard(markup: str, url: str) -> None:
    assert followed(markup) == [url]


@pytest.mark.parametrize(
    "markup",
    [
        "<a href='#part'><a href=''>",
        "<base href='/dir/page'><a href='#part'>",
        "<base href='#x'><a href='#part'>",
        "<base href=/><a>no link</a><link rel=next href=''><iframe src='#x'></iframe>",
        "<base href='data:,x'><a href='#part'>",
    ],
)
def test_link_without_a_path_is_none_if_it_leads_to_the_page(markup: str) -> None:
    assert followed(markup) == []


def test_links_to_the_base_are_nofollow_only_if_all_are() -> None:
    base = "<base href=/top#x><a rel=nofollow href='#1'>"
    assert page(base).avoided == ("https://example.com/top",)
    assert page(f"{base}<a href='#2'>").followed == ("https://example.com/top",)


def test_only_http_urls_are_links() -> None:
    assert followed("<a href='mailto:x'><a href='javascript:x'><a href='data:,'><a href='http://'>") == []


@pytest.mark.parametrize(
    ("body", "charset", "url"),
    [
        ("<a href='é?é'>".encode(), "utf-8", "https://example.com/dir/%C3%A9?%C3%A9"),
        ("<a href='é?é'>".encode("latin1"), None, "https://example.com/dir/%C3%A9?%E9"),
        ("<meta charset=koi8-r><a href='?я'>".encode("koi8-r"), None, "https://example.com/dir/page?%D1"),
        ("<a href='?€'>".encode("utf-16"), None, "https://example.com/dir/page?%E2%82%AC"),
        ("<a href='?&#8364;'>".encode("koi8-r"), "koi8-r", "https://example.com/dir/page?%26%238364%3B"),
        (
            b" " * 2_000 + "<meta charset=koi8-r><a href='?я'>".encode("koi8-r"),
            None,
            "https://example.com/dir/page?%D1",
        ),
    ],
)
def test_queries_are_encoded_in_the_encoding_of_the_page(body: bytes, charset: str | None, url: str) -> None:
    assert followed(body, charset) == [url]


@pytest.mark.parametrize(
    ("markup", "canonicals"),
    [
        ("<head><link rel=canonical href=/c></head>", ("/c",)),
        ("<link rel=canonical href=' /c '>", ("/c",)),
        ("<link rel='canonical next' href=/c>", ("/c",)),
        ("<body><link rel=canonical href=/c>", ()),
        ("<head><p><link rel=canonical href=/c>", ()),
        ("<link rel=canonical href=/c><link rel=canonical href=/d>", ("/c", "/d")),
        ("<link rel=canonical>", ()),
        ("<head><noscript><link rel=canonical href=/c></noscript>", ("/c",)),
        ("<svg><link rel=canonical href=/c>", ()),
    ],
)
def test_a_canonical_counts_only_in_the_head(markup: str, canonicals: tuple[str, ...]) -> None:
    assert page(markup).canonicals == canonicals


def test_meta_elements_are_returned_as_written() -> None:
    found = page(
        "<meta name=ROBOTS content='noindex'><meta name=' googlebot ' content=x><meta name=description>"
    )
    assert found.robots == (("robots", "noindex"), ("googlebot", "x"), ("description", ""))


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("0; url=/a", (0, "/a")),
        ("5;URL = '/a' x", (5, "/a")),
        (' 3.7 , url="/a', (3, "/a")),
        ("0;/a", (0, "/a")),
        ("0 /a", (0, "/a")),
        ("0", (0, "")),
        ("0;", (0, "")),
        (".5; url=a", (0, "a")),
        ("", None),
        ("x; url=a", None),
        ("-1; url=a", None),
        ("0url=a", None),
        ("0; url", (0, "url")),
        ("9" * 400 + "; url=a", (float("9" * 15), "a")),
    ],
)
def test_refresh(content: str, expected: tuple[float, str] | None) -> None:
    assert refresh.parse_refresh(content) == expected


def test_the_first_refresh_outside_noscript_counts() -> None:
    markup = "<meta http-equiv=Refresh content='0;url=%s'>"
    assert page(f"<noscript>{markup % 'n'}</noscript>" + markup % "a" + markup % "b").refresh == (0, "a")


def test_the_number_of_links_is_limited_and_reported() -> None:
    body = "".join(f"<a href={n}>" for n in range(30)).encode()
    found = html.extract(html.PageSource(body, URL, charset="utf-8", max_links=10))
    assert (len(found.followed), found.truncated) == (10, True)


PADDING = b"<p title='" + b"a " * risk.SMALL_BYTES + b"'>"


@pytest.mark.parametrize(
    ("body", "risky"),
    [
        (b"<div>" * 100_000, True),
        (b"<div>" * 5_500 + b"</x>" * 5_500, False),
        (b"<div>" * 5_501 + b"</x>", True),
        (b"<div></x></x>" * 2_751, True),
        (b"<p " + b" ".join(b"a%d" % n for n in range(100_000)) + b">", True),
        (b"".join(b"<b %d>" % n for n in range(1_000)) + b"x</b>" * 200, True),
        (b"".join(b"<B\n%d>" % n for n in range(1_000)) + b"x</b>" * 200, True),
        (b"<b>" * 4_000, False),
        (b"<p title='" + b"long " * 100 + b"'>", False),
        (b"<p>text</p>" * 2_000, False),
        (PADDING + b'<code class="literal">x</code>' * 400, False),
        (PADDING + b'<code class="literal">x</code>' * 700, True),
        (PADDING + b"<b a b c d e f g h i j k l m n o p>" * 100, False),
        (PADDING + b"<b a b c d e f g h i j k l m n o p>" * 101, True),
        (PADDING + b"<b a=b'c>", True),
        (PADDING + b"<i x>" * 801, False),
        (PADDING + b"<i x>" * 801 + b"</p>" * 200, True),
        (b"<b /a/b/c/d/e/f/g/h/i/j>" * 600, False),
        (b"x" * 65_537, False),
        (b"<p>some text of a long page</p>" * 2_490 + b"<pre>" + b"a b = 'c' " * 60_000, False),
        (b"x" * (risk.PLAIN_BYTES + 1), True),
        (b"<img src='data:" + b"x" * 100_000 + b"'>", False),
        (b"<p " + b" ".join(b"a%x" % n for n in range(5_500)) + b">", True),
        (b"<p " + b" ".join(b"a%x='>'" % n for n in range(9_000)) + b">", True),
        (b"<p " + b" ".join(b'a%x = "<"' % n for n in range(4_000)) + b" b" * 30_000 + b">", True),
        (b"text </p>" * 9 + b"x" * 20_000 + b"<p " + b"/".join(b"a%x" % n for n in range(5_500)), True),
        (b"", False),
    ],
)
def test_pages_that_may_stall_the_parser_are_recognised(body: bytes, risky: bool) -> None:
    assert html.PageSource(body, URL).is_risky is risky


def test_a_page_with_too_many_attributes_is_truncated() -> None:
    body = b"<a href=1><p" + b" a=1" * html.MAX_ATTRIBUTES + b"><a href=2>"
    found = html.extract(html.PageSource(body, URL, charset="utf-8"))
    assert (found.followed, found.truncated) == (("1",), True)
    most = b"<a href=1>" + b" a=1" * (html.MAX_ATTRIBUTES - 2) + b"<a href=2>"
    assert not html.extract(html.PageSource(most, URL, charset="utf-8")).truncated


def test_a_page_with_too_many_tags_is_truncated() -> None:
    body = b"<a href=1>" + b"<b>" * html.MAX_ELEMENTS + b"<a href=2>"
    found = html.extract(html.PageSource(body, URL, charset="utf-8"))
    assert (found.followed, found.truncated) == (("1",), True)
    assert not html.extract(html.PageSource(body[10:-10], URL, charset="utf-8")).truncated


@pytest.mark.parametrize("most", [1, 2])
def test_blocks_that_repeat_the_address_are_told_as_written(most: int) -> None:
    body = b"<title>Page not found</title><p>There is no such thing.</p>"
    wanted = frozenset({Extract.BLOCKS})
    plain = html.PageSource(body, "https://a.example/x", wanted=wanted).read()
    within = html.PageSource(body, "https://a.example/page/x", wanted=wanted, most_blocks=most).read()
    assert len(plain.said[0].blocks) == len(within.said[0].blocks) == 2
    assert {*plain.said[0].blocks} != {*within.said[0].blocks}
    assert (plain.said[1] in within.said) is (most == 2)


@pytest.mark.parametrize(
    ("url", "body"),
    [
        ("https://a.example/a1", b"<title>No a1?</title><p>We have no &quot;a1&quot;.</p>"),
        ("https://a.example/old/prices", b"<title>No old prices</title><p>We have no old prices .</p>"),
    ],
)
def test_how_an_error_spells_its_address_does_not_matter(url: str, body: bytes) -> None:
    def said(url: str, body: bytes) -> str:
        return html.PageSource(body, url, wanted=frozenset({Extract.BLOCKS})).read().said[0].content

    other = b"<title>No abc</title><p>We have no abc.</p>"
    assert said(url, body) == said("https://a.example/abc", other)
    assert said(url, body) != said("https://a.example/abc", other.replace(b"have", b"had"))
