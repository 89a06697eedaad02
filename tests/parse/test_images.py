"""The images of a page, as written."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from selectolax.lexbor import LexborHTMLParser

from crawler.parse import html
from crawler.parse.extract import Extract
from crawler.parse.images import LONGEST_SRCSET, MOST_IMAGES, images
from crawler.parse.url import LONGEST_URL

URL = "https://x.example/a/page"
BLANK = "data:image/gif;base64,R0lGODlhAQABAAAAACw="


def read(markup: str) -> list[str]:
    return list(images(LexborHTMLParser(markup)))


@pytest.mark.parametrize(
    ("markup", "found"),
    [
        ("<img src=a.jpg>", ["a.jpg"]),
        ("<img src=' \n a.jpg\t'>", ["a.jpg"]),
        ("<IMG SRC=a.jpg>", ["a.jpg"]),
        ("<img src=a.svg#icon><img src='#icon'>", ["a.svg"]),
        ("<img src=a><img src=b><img src=a#x>", ["a", "b"]),
        ("<img><img src><img src=''><img src='  '>", []),
        # the largest of srcset
        ("<img src=s srcset='m 300w, l 1200w, x 600w'>", ["l"]),
        ("<img src=s srcset='m, l 2x, x 1.5x'>", ["l"]),
        ("<img src=s srcset='m 2x, l 10w'>", ["l"]),
        ("<img src=s srcset='m 2x, l 2x'>", ["m"]),
        ("<img src=s srcset='m 1q, l -2x'>", ["s"]),
        ("<img src=s srcset=''>", ["s"]),
        (f"<img src=s srcset='{BLANK} 2x, m 1x'>", ["m"]),
        (f"<img src=s srcset='{BLANK}'>", ["s"]),
        # picture
        ("<picture><source srcset='a 1x, b 2x'><source src=c><img src=d></picture>", ["b", "c", "d"]),
        ("<picture><source data-srcset='a 1x, b 2x'></picture>", ["b"]),
        ("<video><source src=a srcset=b></video><audio><source src=a></audio>", []),
        # lazy loading
        ("<img data-src=a>", ["a"]),
        (f"<img src='{BLANK}' data-src=a>", ["a"]),
        (f"<img src='{BLANK}' data-lazy-src=a>", ["a"]),
        (f"<img src='{BLANK}' data-original=a>", ["a"]),
        (f"<img src='{BLANK}' data-srcset='a 1x, b 2x'>", ["b"]),
        ("<img data-original=c data-lazy-src=b data-src=a>", ["a"]),
        ("<img data-src=a data-srcset='b 100w, c 200w'>", ["c"]),
        ("<img src=s data-src=a data-srcset='b 2x'>", ["s"]),
        (f"<img src='{BLANK}' data-src='{BLANK}' data-original=a>", ["a"]),
        # noscript, in the head too
        ("<head><noscript><img src=a></noscript></head><noscript><img src=b></noscript>", ["a", "b"]),
        # og:image, in the order of the page
        ("<meta property='og:image' content=a><img src=b><meta property=og:image content=c>", ["a", "b", "c"]),
        ("<meta name=OG:Image content=a><meta property='og:title og:image:url' content=b>", ["a", "b"]),
        ("<meta property=og:image><meta property=og:image:width content=5>", []),
        # other schemes
        ("<img src=javascript:a()><img src=' java\nscript:a()'><img src=blob:x><img src=C:\\a.jpg>", []),
        ("<img src=HTTPS://y.example/a.jpg><img src=http:b.jpg>", ["HTTPS://y.example/a.jpg", "http:b.jpg"]),
        ("<img src=//y.example/a:b.jpg><img src=/a:b.jpg><img src=?a:b>", ["//y.example/a:b.jpg", "/a:b.jpg", "?a:b"]),
        # what nobody sees
        ("<img src=a width=1 height=1><img src=b width=0 height=1px><img src=c width=1>", ["c"]),
        # what is no image of the page
        ("<link rel=icon href=a><link rel=image_src href=b><meta itemprop=image content=c>", []),
        ("<div style='background: url(a)'></div><style>p { background: url(a) }</style>", []),
        ("<a href=a.jpg>x</a><input type=image src=a><svg><image href=a></image></svg>", []),
        ("<template><img src=a></template><!-- <img src=b> --><script>'<img src=c>'</script>", []),
    ],
)  # fmt: skip
def test_what_counts_as_an_image(markup: str, found: list[str]) -> None:
    assert read(markup) == found


def test_limits() -> None:
    many = "".join(f"<img src={number}>" for number in range(100_000))
    assert read(many) == [str(number) for number in range(MOST_IMAGES)]
    assert read("<img src=a>" * 5_000 + "<img src=b>") == ["a", "b"]
    assert read(f"<img src='{'a' * (LONGEST_URL + 1)}' data-src=b>") == ["b"]
    assert read(f"<img src=a srcset='{'b' * LONGEST_SRCSET} 2x'>") == ["a"]


def test_they_are_read_on_request_with_query_in_encoding_of_page() -> None:
    body = "<img src='ä.jpg?ä'>".encode("latin-1")
    assert html.extract(html.PageSource(body, URL, charset="latin-1")).images == ()
    assert html.extract(
        html.PageSource(body, URL, charset="latin-1", wanted=frozenset({Extract.IMAGES}))
    ).images == ("ä.jpg?%E4",)


@given(st.text(st.sampled_from("<>imgscr=\"' /aetd-lzyoi:,1x2w\n#?&;")))
def test_any_markup_is_accepted(text: str) -> None:
    found = read(f"<img {text}>{text}<img srcset='{text}'>")
    assert len(found) == len(set(found))
    assert all(url and "#" not in url and url == url.strip("\t\n\x0c\r ") for url in found)
