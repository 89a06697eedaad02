"""Pairs of pages: what must change the fingerprint, and what must not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from selectolax.lexbor import LexborHTMLParser

from crawler.parse.extract import Extract, wording
from crawler.parse.fingerprint import fingerprint, fold, lasting, visible_text
from crawler.parse.html import PageSource, extract, tree_of

PAGE = """<!doctype html><html lang="en"><head><title>Storm lantern</title>
<meta name="csrf-token" content="abc"><script nonce="n1">var t = 1;</script><style>p { color: red }</style></head>
<body class="a"><nav><a href="/">Home</a> <a href="/shop?sid=1">Shop</a></nav>
<h1>Storm lantern</h1><p>Hand-made, 30 cm, 48.00 EUR. Open from 18:30.</p>
<form><input type="hidden" name="csrf" value="x1"><input type="submit" value="Buy"></form>
<p>1,024 views</p><p>Posted 3 minutes ago</p><!-- generated at 2026-01-01 -->
<p>Session a8f5f167f44f4964e6c998dee827110c</p>
<footer>© 2025 Lanterns &amp; Co. Page generated in 0.013 s</footer></body></html>"""


def dates(body: bytes) -> list[str]:
    return list(
        extract(
            PageSource(
                body,
                "https://a.example/",
                charset="utf-8",
                wanted=frozenset({Extract.DATES, Extract.FINGERPRINT}),
            )
        ).dates
    )


def printed(markup: str) -> str:
    return of_tree(tree_of(markup.encode(), "utf-8"))


def of_tree(tree: LexborHTMLParser) -> str:
    return fingerprint(lasting(fold(visible_text(tree))))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("n1", "n2"),
        ("var t = 1", "var t = 2"),
        ("color: red", "color: blue"),
        ("x1", "x2"),
        ('content="abc"', 'content="def"'),
        ("sid=1", "sid=2"),
        ('class="a"', 'class="b"'),
        ("1,024 views", "1,025 views"),
        ("1,024 views", "Views: 99.1k"),
        ("3 minutes ago", "2 hours ago"),
        ("2026-01-01", "2026-01-02"),
        ("© 2025", "© 2026"),
        ("0.013", "0.2"),
        ("a8f5f167f44f4964e6c998dee827110c", "0cc175b9c0f1b6a831c399e269772661"),
        ("<h1>", "\n  <h1>\n "),
        ("<nav>", "<nav><a href=/new>New arrivals</a>"),
        ("</body>", "<script>more()</script></body>"),
        ("</body>", "<p>Generated on 2026-11-21 at 05:00:13 by server-7</p></body>"),
        ("</body>", "<p>Copyright (c) 2026 Somebody</p></body>"),
    ],
)
def test_volatile_text_is_not_a_change(old: str, new: str) -> None:
    assert old in PAGE
    assert printed(PAGE.replace(old, new)) == printed(PAGE)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("<title>Storm", "<title>Ship's"),
        ("<h1>Storm", "<h1>Ship's"),
        ("48.00", "49.00"),
        ("30 cm", "31 cm"),
        ("18:30", "19:30"),
        ("Hand-made", "hand-made"),
        ("</form>", "</form><p>Now in blue.</p>"),
        ("Hand-made, ", ""),
    ],
)
def test_visible_changes_change_the_fingerprint(old: str, new: str) -> None:
    assert old in PAGE
    assert printed(PAGE.replace(old, new)) != printed(PAGE)


@pytest.mark.parametrize(
    "markup",
    ["<b>{}</b> views", "Visitors: <b>{}</b>", "Page generated in <i>0.{}</i> s", "<b>{}</b> people online"],
)
def test_a_counter_in_an_element_of_its_own_is_not_a_change(markup: str) -> None:
    assert printed("<p>x</p>" + markup.format(17)) == printed("<p>x</p>" + markup.format(18))


@pytest.mark.parametrize(
    ("old", "new", "same"),
    [
        ("<h1>", "<div class=menu><a href=/new>New arrivals</a></div><h1>", True),
        ("<h1>", "<ul><li><a href=/1><b>One</b> and two</a><li><a href=/2>Three</a></ul><h1>", True),
        ("<h1>", "<p>New.</p><h1>", False),
        ("Hand-made", "Machine-made", False),
        ("<h1>", "<h1>The ", False),
        ("<title>", "<title>The ", False),
    ],
)
def test_wording_is_the_content_without_links(old: str, new: str, same: bool) -> None:
    changed = PAGE.replace(old, new)
    assert printed(changed) != printed(PAGE)
    assert (wording(printed(changed)) == wording(printed(PAGE))) is same


def test_wording_of_a_page_of_links_is_the_links() -> None:
    one, two = (f"<title>Links</title><a href=/1>One</a>{more}" for more in ("", "<a href=/2>Two</a>"))
    assert wording(printed(one)) != wording(printed(two))


def test_wording_of_bytes_is_their_digest() -> None:
    assert wording("=0123456789abcdef") == "=0123456789abcdef"


def test_the_main_element_is_found_in_any_encoding() -> None:
    page = "<title>t</title><p>around {}</p><div role=main>said</div>"
    one, other = (
        extract(
            PageSource(
                page.format(number).encode("utf-16"),
                "https://a.example/",
                wanted=frozenset({Extract.FINGERPRINT}),
            )
        ).content
        for number in ("one", "two")
    )
    assert one == other


def test_a_number_in_an_element_of_its_own_is_a_change() -> None:
    assert printed("<p>Price: <b>48.00</b> EUR") != printed("<p>Price: <b>49.00</b> EUR")


def test_only_the_main_element_counts_if_there_is_one() -> None:
    page = "<title>t</title><div>around {}</div><main>said {}</main>"
    assert printed(page.format(1, 1)) == printed(page.format(2, 1))
    assert printed(page.format(1, 1)) != printed(page.format(1, 2))


@given(st.binary(max_size=300))
def test_any_bytes_are_accepted(body: bytes) -> None:
    dates(body)
    assert len(of_tree(tree_of(body, "windows-1252"))) == 16


@pytest.mark.parametrize("piece", ["1,", "1 view", "a1", "1:", "© ", "an hour ", "<p>", "Views: "])
def test_time_is_linear_in_the_length_of_a_page(piece: str) -> None:
    printed(piece * 100_000)


def ld(text: str) -> str:
    return f'<script type="application/ld+json">{text}</script>'


@pytest.mark.parametrize(
    ("markup", "expected"),
    [
        ("<p>nothing", []),
        (
            '<meta property="article:modified_time" content=" 2024-01-02T03:04:05Z ">',
            ["2024-01-02T03:04:05Z"],
        ),
        ('<time itemprop="dateModified" datetime="2024-01-02">yesterday</time>', ["2024-01-02"]),
        ('<time itemprop="dateModified">2024-01-02</time>', ["2024-01-02"]),
        ('<time itemprop="datePublished" datetime="2024-01-02">', []),
        ('<meta itemprop="dateModified" content="2024-01-02">', ["2024-01-02"]),
        (ld('{"@type": "Article", "dateModified": "2024-01-02"}'), ["2024-01-02"]),
        (ld('{"dateModified": "2024-01-02", "datePublished": "2024-01-05"}'), ["2024-01-02", "2024-01-05"]),
        (ld('{"datePublished": "2024-01-05"}'), []),
        (
            '<meta property="article:published_time" content="2024-01-05">'
            '<meta property="article:modified_time" content="2024-01-02">',
            ["2024-01-02", "2024-01-05"],
        ),
        ('<meta property="article:published_time" content="2024-01-05">', []),
        (
            '<time itemprop="datePublished" datetime="2024-01-05">a</time><time itemprop="dateModified">2024-01-02</time>',
            ["2024-01-02", "2024-01-05"],
        ),
        (
            '<time itemprop="dateModified">2024-01-02</time><time itemprop="datePublished">2024-01-05</time>'
            '<p>A comment: <time itemprop="datePublished">2024-02-03</time>',
            ["2024-01-02"],
        ),
        (ld('[{"dateModified": "2024-01-02"}, {"dateModified": 3}]'), ["2024-01-02"]),
        (ld('{"@graph": [{"@type": ["WebPage", "X"], "dateModified": "2024-01-02"}]}'), ["2024-01-02"]),
        (ld('{"@type": "Article", "comment": {"@type": "Comment", "dateModified": "2025-01-02"}}'), []),
        (ld('[{"@type": "Review", "dateModified": "2025-01-02"}]'), []),
        (ld("{broken"), []),
        (ld("[" * 50_000), []),
    ],
)
def test_dates_that_a_page_states(markup: str, expected: list[str]) -> None:
    assert dates(markup.encode()) == expected


def test_the_fingerprint_is_the_same_alone_and_in_extract() -> None:
    for failpoint in (
        "<main>{}</main>",
        "<div role=main>{}</div>",
        "<base href=/a><base href=/b><frame src=x>{}",
        "{}",
    ):
        page = PAGE.replace(
            "<h1>", "<nav>x</nav><noscript><nav>y</nav></noscript>" + failpoint.format("said") + "<h1>"
        )
        alone = printed(page)
        assert (
            extract(
                PageSource(
                    page.encode(),
                    "https://a.example/",
                    charset="utf-8",
                    wanted=frozenset({Extract.FINGERPRINT}),
                )
            ).content
            == alone
        )


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("<img src=/1.jpg>", "<img src=/2.jpg>"),
        ("<img src=/1.jpg alt=Rome>", "<img src=/1.jpg alt=Bern>"),
        ("<iframe src=/1></iframe>", "<iframe src=/2></iframe>"),
        ("<video><source src=/1.webm></video>", "<video><source src=/2.webm></video>"),
        ("<object data=/1.pdf></object>", "<object data=/2.pdf></object>"),
    ],
)
@pytest.mark.parametrize("around", ["", "<p>A photo, taken with care.</p><p>Previous, next</p>"])
def test_media_are_content_where_there_is_little_text(one: str, other: str, around: str) -> None:
    assert printed(around + one) != printed(around + other)
    assert printed(around + one) == printed(around + one)


def test_a_picture_in_much_text_is_no_content() -> None:
    text = "<p>Long words. " * 300
    assert printed(text + "<img src=/1.jpg>") == printed(text + "<img src=/2.jpg>")
    assert printed(text + "<img src=/1.jpg>" * 20) != printed(text + "<img src=/2.jpg>" * 20), "a gallery"
