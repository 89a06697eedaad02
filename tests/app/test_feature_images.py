"""Which images of a page are stored, and what becomes of these."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler.app.features import images
from crawler.app.features.images import LONGEST_ALL, Images, LeftOut, shown
from crawler.model.facts import Facts, LabelledUrl
from crawler.model.outcome import Listed
from crawler.model.protocol import MAX_IMAGES, MAX_LOC
from crawler.model.reply import Headers, Response
from crawler.model.visit import Lease, Prior, Visit
from crawler.parse.images import MOST_IMAGES
from crawler.parse.normalise import Normaliser
from crawler.parse.url import Url
from crawler.rules.judge import Judge, JudgeRules, unchanged
from crawler.settings.sections import DEFAULTS, Verdicts

NONE = LeftOut((), {})

PAGE = Url("https://x.example/a/page")


def judged(markup: str, *fields: tuple[str, str], is_on: bool = True, **rules: Any) -> tuple[str, ...]:
    """The images in the verdict on a page."""
    verdicts = Verdicts(no_rule=tuple(rules.get("off", ())))
    reader = Images().reader(replace(DEFAULTS, verdicts=verdicts), Normaliser(), None)
    judge = Judge(JudgeRules("sitemap-crawler", Normaliser(), features=(reader,) if is_on else (), **rules))
    headers = Headers([("Content-Type", "text/html; charset=utf-8"), *fields])
    reply = Response(200, headers, markup.encode())
    verdict = judge(Lease(1, 1, Visit(PAGE)), reply, datetime(2026, 1, 1, tzinfo=UTC))
    return tuple(url for _, url in verdict.features.get("images", ()))


def stored(found: Iterable[Url], page: Url) -> tuple[Url, ...]:
    return tuple(url for _, url in images.stored(found, page))


def labelled(urls: Iterable[Url]) -> list[LabelledUrl]:
    return [("", url) for url in urls]


@pytest.mark.parametrize(
    ("href", "url"),
    [
        ("b.jpg", "https://x.example/a/b.jpg"),
        ("//cdn.example/b.jpg", "https://cdn.example/b.jpg"),
        ("http://user:secret@cdn.example/b.jpg", "http://cdn.example/b.jpg"),
        (
            "?w=2&amp;utm_source=a&amp;PHPSESSID=abc",
            "https://x.example/a/page?w=2&utm_source=a&PHPSESSID=abc",
        ),
        ("http://b\u00fccher.example/\u00df.jpg", "http://xn--bcher-kva.example/%C3%9F.jpg"),
        ("a\u0007b|c.jpg", "https://x.example/a/a%07b%7Cc.jpg"),
        ("%7euser/%c3%9f.jpg", "https://x.example/a/~user/%C3%9F.jpg"),
        ("&lt;&gt;&amp;'&quot;.jpg", "https://x.example/a/%3C%3E&'%22.jpg"),
    ],
)
def test_images_are_resolved_as_the_url_standard_says(href: str, url: str) -> None:
    assert judged(f'<img src="{href}">') == (url,)


@pytest.mark.parametrize(
    "href",
    [
        "#a",
        "",
        "page",
        "page#a",
        "data:image/gif,a",
        "javascript:a",
        "http://",
        "http://a b/",
        "http://[::1",
        "ftp://x/a",
    ],
)
def test_what_is_no_url_of_an_image(href: str) -> None:
    assert judged(f'<img src="{href}">') == ()


def test_only_urls_under_2048_characters() -> None:
    start = "https://x.example/"
    sizes = [MAX_LOC - len(start), MAX_LOC - len(start) + 1]
    assert [len(url) for url in judged("".join(f"<img src=/{'a' * size}>" for size in sizes))] == [2_047]


def test_each_once_however_it_is_written() -> None:
    markup = "<img src=b.jpg><img src=./b.jpg><img src=/a/b.jpg#x><img src=HTTPS://X.example/a/b.jpg><img src=c.jpg>"
    assert judged(markup) == ("https://x.example/a/b.jpg", "https://x.example/a/c.jpg")


def test_the_base_of_the_page_counts_unless_it_is_too_long() -> None:
    assert judged("<base href=/img/><img src=a>") == ("https://x.example/img/a",)
    assert judged(f"<base href=/{'b' * 9_000}/><img src=a>") == ("https://x.example/a/a",)


@pytest.mark.parametrize(
    ("markup", "fields", "rules"),
    [
        ("", [], {"is_on": False}),
        ("<meta name=robots content=noimageindex>", [], {}),
        ("<meta name=sitemap-crawler content='index, NoImageIndex'>", [], {}),
        ("", [("X-Robots-Tag", "noimageindex")], {}),
        ("<meta name=robots content=noindex>", [], {}),
        ("<meta http-equiv=refresh content='0; url=/other'>", [], {}),
        ("", [], {"types": frozenset({"application/pdf"})}),
    ],
)
def test_pages_without_images(markup: str, fields: list[tuple[str, str]], rules: dict[str, Any]) -> None:
    assert judged(f"{markup}<img src=a>", *fields, **rules) == ()
    assert judged("<img src=a>")


def test_noimageindex_can_be_switched_off_with_noindex() -> None:
    markup = "<meta name=robots content=noimageindex><img src=a>"
    assert judged(markup, off=frozenset({"noindex"}))
    assert not judged(markup, ("X-Robots-Tag", "googlebot: noimageindex"))


def test_a_304_has_none_of_its_own() -> None:
    verdict = unchanged(Prior(Listed(), Facts(200)))
    assert (verdict.unchanged, verdict.features) == (True, {})


def urls(count: int, length: int = 0) -> list[Url]:
    return [Url(f"https://x.example/{number:06}{'a' * length}") for number in range(count)]


def test_what_a_page_may_store_is_limited() -> None:
    assert stored(urls(100_000), PAGE) == tuple(urls(MOST_IMAGES))
    many = stored(urls(MOST_IMAGES, 2_000), PAGE)
    assert many == tuple(urls(len(many), 2_000))
    assert LONGEST_ALL - 2_100 < sum(map(len, many)) <= LONGEST_ALL


def test_the_words_on_a_cut_page_say_what_is_known() -> None:
    long = labelled(stored(urls(MOST_IMAGES, 2_000), PAGE))
    assert MAX_IMAGES < len(long) < MOST_IMAGES
    assert images.cut_words(shown(long, NONE)) == f"at least {len(long):,} images"
    most = labelled(urls(MOST_IMAGES))
    assert images.cut_words(shown(most, LeftOut({urls(1)[0]}, {}))) == "at least 1,999 images"
    assert images.cut_words(shown(most[1:], NONE)) == "1,999 images"


def test_site_wide_images_are_left_out_before_the_cut() -> None:
    found = labelled(urls(1_300))
    result = shown(found, LeftOut(frozenset(urls(400)[::2]), {}))
    assert result.site_wide == tuple(urls(400)[::2])
    assert result.written + result.cut == tuple(url for url in urls(1_300) if url not in result.site_wide)
    assert len(result.written) == MAX_IMAGES
    assert images.cut_words(result) == "1,100 images"


@given(st.lists(st.integers(0, 30), unique=True), st.frozensets(st.integers(0, 30)))
def test_every_image_has_one_fate(numbers: list[int], site_wide: frozenset[int]) -> None:
    found = [Url(f"https://x.example/{number}") for number in numbers]
    everywhere = {Url(f"https://x.example/{number}") for number in site_wide}
    result = shown(labelled(found), LeftOut(everywhere, {}))
    assert sorted([*result.written, *result.site_wide, *result.cut]) == sorted(found)
    assert [url for url in found if url in everywhere] == list(result.site_wide)
