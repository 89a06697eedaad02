"""Which pages a feed links to."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler.parse import feeds

RSS = b"""<?xml version="1.0"?><rss version="2.0" xmlns:atom="http://www.w3.org/2005/Atom"><channel>
<link>https://example.com/</link><atom:link href="https://example.com/feed" rel="self"/>%s</channel></rss>"""


@pytest.mark.parametrize(
    ("item", "found"),
    [
        (b"<item><title>A</title><link>https://example.com/a</link></item>", ["https://example.com/a"]),
        (b"<item><link><![CDATA[https://example.com/a?b=1&c=2]]></link></item>", ["https://example.com/a?b=1&c=2"]),
        (b"<item><link>/a?b=1&amp;c=2</link></item>", ["/a?b=1&c=2"]),
        (b'<item><guid isPermaLink="true">https://example.com/a</guid></item>', ["https://example.com/a"]),
        (b"<item><guid>https://example.com/a</guid><link>https://example.com/b</link></item>", ["https://example.com/b"]),
        (b'<item><guid isPermaLink="false">https://example.com/a</guid></item>', []),
        (b"<item><guid>tag:example.com,2026:1</guid></item>", []),
        (b"<item><link></link></item><item><link>/b</link></item>", ["/b"]),
        (b'<item><atom:link rel="replies" href="/r"/><link>/a</link></item>', ["/a"]),
        (b"<image><link>https://example.com/logo</link></image>", []),
    ],
)  # fmt: skip
def test_each_item_of_rss_gives_its_page(item: bytes, found: list[str]) -> None:
    body = RSS % item
    assert feeds.is_feed(body)
    assert [item.href for item in feeds.items(body)] == found


def test_entries_of_atom_give_their_alternate_link() -> None:
    body = b"""<feed xmlns="http://www.w3.org/2005/Atom"><link href="https://example.com/"/>
    <entry><link rel="edit" href="/edit/1"/><link rel='alternate' type="text/html" href='/1'/><id>urn:1</id></entry>
    <entry><link href="/2"/><content type="html">&lt;link href="/no"&gt;</content></entry></feed>"""
    assert feeds.is_feed(body)
    assert [item.href for item in feeds.items(body)] == ["/1", "/2"]


def test_items_of_rdf_give_their_link() -> None:
    body = b'<rdf:RDF><channel><link>/</link></channel><item rdf:about="/a"><link>/a</link></item></rdf:RDF>'
    assert feeds.is_feed(body)
    assert [item.href for item in feeds.items(body)] == ["/a"]


@pytest.mark.parametrize("body", [b"", b"<urlset><url><loc>/a</loc></url></urlset>", b"<html><p>a feed</p>"])
def test_other_documents_are_no_feeds(body: bytes) -> None:
    assert not feeds.is_feed(body)


@given(
    st.lists(
        st.sampled_from([b"<item>", b"<link ", b"href='", b"<![CDATA[", b"</link>", b"x", b">", b"\xff"])
    )
)
def test_broken_feeds_are_read_without_an_error(pieces: list[bytes]) -> None:
    assert all(item.href for item in feeds.items(b"".join(pieces), titled=True))


@pytest.mark.parametrize(
    "piece", [b"<item><link ", b"<item>" + b"<link>", b"<link href=", b"<item", b"<![CDATA[", b" "]
)
def test_time_is_linear_in_the_size_of_a_feed(piece: bytes) -> None:
    """A quadratic scan of two megabytes would take minutes."""
    assert list(feeds.items(b"<item>" + piece * 300_000, titled=True)) == []


@pytest.mark.parametrize(
    ("title", "said"),
    [
        (b"<title>Good &amp; new</title>", "Good & new"),
        (b"<title type='html'>A &lt;b&gt;bold&lt;/b&gt; step</title>", "A bold step"),
        (b"<title><![CDATA[Brackets [1] <i>and</i> more]]></title>", "Brackets [1] and more"),
        (b"<media:title>Picture</media:title><title>\nText</title>", "Text"),
        (b"<title><![CDATA[never closed", ""),
        (b"", ""),
    ],
)
def test_items_have_their_titles_without_markup(title: bytes, said: str) -> None:
    body = b"<rss><channel><title>All</title><item><link>/a</link>" + title + b"</item></channel></rss>"
    assert list(feeds.items(body, titled=True)) == [feeds.FeedItem("/a", said)]


def test_time_is_linear_in_the_size_of_a_title() -> None:
    for piece in (b"<title><![CDATA[", b"<title ", b"<title>&lt;", b"<title>]]"):
        assert len(list(feeds.items(b"<item><link>/a</link>" + piece * 300_000, titled=True))) == 1
