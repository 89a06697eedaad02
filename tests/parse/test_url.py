"""`Normaliser`: tables and properties. The WHATWG and RFC 3986 suites run in `test_conformance`."""

from itertools import chain
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler.parse import url as urls
from crawler.parse.normalise import Normaliser

DATA = Path(__file__).parents[1] / "data" / "url"
normalise = Normaliser()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("HTTP://EXAMPLE.com:80/A", "http://example.com/A"),
        ("https://example.com", "https://example.com/"),
        ("https://example.com:443/", "https://example.com/"),
        ("https://example.com:0443/", "https://example.com/"),
        ("https://example.com/a#b", "https://example.com/a"),
        ("https://example.com/a?#b", "https://example.com/a"),
        ("https://example.com/a?", "https://example.com/a"),
        ("https://user:secret@example.com/", "https://example.com/"),
        ("https://example.com/a//b/", "https://example.com/a//b/"),
        ("https://example.com/Case/KEPT", "https://example.com/Case/KEPT"),
        ("https://example.com/%7euser/%2f/%zz", "https://example.com/~user/%2F/%25zz"),
        ("http://[::1]/a[1]?b[]=2", "http://[::1]/a%5B1%5D?b%5B%5D=2"),
        ("https://example.com/caf\u00e9", "https://example.com/caf%C3%A9"),
        ("https://example.com/a/../b/./c/%2e%2e/d", "https://example.com/b/d"),
        ("https://example.com\\a\\b?c\\d", "https://example.com/a/b?c%5Cd"),
        (" \thttps://exa\nmple.com/ ", "https://example.com/"),
        ("https://b\u00fccher.example/", "https://xn--bcher-kva.example/"),
        ("http://2130706433/", "http://127.0.0.1/"),
        ("http://[::1]:8080/", "http://[::1]:8080/"),
        ("https://example.com/?b=2&a=1&b=2", "https://example.com/?b=2&a=1&b=2"),
        ("https://example.com/?UTM_Source=x&id=1&fbclid=2", "https://example.com/?id=1"),
        ("https://example.com/?utm%5Fsource=x", "https://example.com/"),
        ("https://example.com/?gclid=x", "https://example.com/"),
        ("https://example.com/?a=&b", "https://example.com/?a=&b"),
    ],
)
def test_equivalent_urls_are_normalised_to_one(text: str, expected: str) -> None:
    assert normalise(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "mailto:a@b",
        "javascript:alert(1)",
        "data:,x",
        "tel:1",
        "ftp://e.com/",
        "about:blank",
        "http://",
        "http://a.b:99999/",
        "//x",
        "/x",
    ],
)
def test_urls_other_than_http_are_none(text: str) -> None:
    assert normalise(text) is None


def test_parameters_can_be_stripped_and_kept_by_name() -> None:
    chosen = Normaliser(["utm_*", "sid"], keep=["utm_id"])
    assert chosen("http://e.com/?sid=1&utm_id=2&utm_x=3&q=4") == "http://e.com/?utm_id=2&q=4"
    assert Normaliser(drop_query=True)("http://e.com/?q=4") == "http://e.com/"


def test_links_are_resolved_relative_to_their_base() -> None:
    assert normalise("../c?d", "http://e.com/a/b") == "http://e.com/c?d"
    assert normalise("//other.com", "https://e.com/") == "https://other.com/"
    assert normalise("https:x", "https://e.com/a/") == "https://e.com/a/x"


@given(st.text())
def test_normalisation_is_idempotent(text: str) -> None:
    once = normalise("https://example.com/" + text)
    assert once is not None
    assert normalise(once) == once
    assert once.isascii()
    assert "#" not in once
    assert urls.host(once) == "example.com"


@given(st.text(), st.text())
def test_any_link_on_any_page_is_a_url_or_none(path: str, link: str) -> None:
    base = normalise("http://example.com/" + path)
    joined = normalise(link, base)
    assert joined is None or normalise(joined) == joined


def test_the_parts_of_a_url() -> None:
    url = "https://example.com:8443/a/b?c=/d"
    assert urls.origin(url) == "https://example.com:8443"
    assert urls.netloc(url) == "example.com:8443"
    assert urls.host(url) == "example.com"
    assert urls.target(url) == "/a/b?c=/d"
    assert urls.host("http://[::1]:80/") == "[::1]"


@pytest.mark.parametrize(
    ("path", "folder", "name"),
    [
        ("/", "/", ""),
        ("/a", "/", "a"),
        ("/a/", "/", "a/"),
        ("/a/b", "/a/", "b"),
        ("/a/b/", "/a/", "b/"),
        ("/a/b/?c=/d", "/a/", "b/"),
        ("//", "/", "/"),
        ("/a//", "/a/", "/"),
    ],
)
def test_a_slash_at_the_end_belongs_to_the_name(path: str, folder: str, name: str) -> None:
    assert urls.in_folder(f"https://example.com{path}") == (f"https://example.com{folder}", name)


@pytest.mark.parametrize(
    ("name", "domain"),
    [
        ("www.example.co.uk", "example.co.uk"),
        ("example.com", "example.com"),
        ("localhost", "localhost"),
        ("127.0.0.1", "127.0.0.1"),
        ("[::1]", "[::1]"),
        ("a.github.io", "a.github.io"),
    ],
)
def test_the_registrable_domain_follows_the_public_suffix_list(name: str, domain: str) -> None:
    assert urls.registrable(name) == domain


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("/p?PHPSESSID=1&a=2", "/p?a=2"),
        ("/p;jsessionid=ABC?a=2", "/p?a=2"),
        ("/p;JSESSIONID=ABC/q", "/p/q"),
        ("/.;sid=1/p", "/p"),
        ("/p?sid=abc12345", "/p"),
        ("/p?sid=17", "/p?sid=17"),
        ("/p?session=keynote", "/p?session=keynote"),
        ("/p?session_id=0123456789abcdef", "/p"),
        ("/p?s=search-me", "/p?s=search-me"),
        ("/p?s=0123456789abcdef0123456789abcdef", "/p"),
        ("/p?ASPSESSIONIDQQ=X", "/p"),
        ("/p;v=1", "/p;v=1"),
    ],
)
def test_session_ids_are_removed_and_reported(text: str, expected: str) -> None:
    told: list[tuple[str, str]] = []
    normalise = Normaliser(sessions=lambda name, url: told.append((name, url)))
    assert normalise(text, "https://a.example/") == "https://a.example" + expected
    assert bool(told) is (expected != text)
    assert Normaliser(sessions=None)(text, "https://a.example/") == urls.join("https://a.example/", text)


def test_a_session_id_can_be_kept_by_name() -> None:
    assert (
        Normaliser(keep=["phpsessid"])("https://a.example/?PHPSESSID=1") == "https://a.example/?PHPSESSID=1"
    )


_LINK_PARTS = st.sampled_from(
    ["a", "B", "~u", "..", ".", "../", "/", "//", "./", "x.html", "-", "@", ":", ";", "%41", "?q", "#f", "é", " ", "\t", "",
     "http://h", "http://H", "https://h", "http://h:80", "http://h:8080", "http:", "http://u@h", "&", "'", "\\", "|"]
)  # fmt: skip


@given(
    st.lists(_LINK_PARTS, max_size=6).map("".join),
    st.lists(_LINK_PARTS, max_size=4).map("".join),
)
def test_the_shortcut_for_simple_links_agrees_with_ada(text: str, path: str) -> None:
    base = urls.join("http://h/", path)
    if base is None or not base.startswith("http"):
        return
    slowly = Normaliser()(text, base)
    assert list(chain.from_iterable(Normaliser().chunks([text, text], base))) == [slowly, slowly] * (
        slowly is not None
    )


@given(
    st.sampled_from(
        ["http://h", "http://h:80", "https://h:8080", "http://1.2", "http://a..b", "https://xn--a"]
    ),
    st.lists(_LINK_PARTS, max_size=6).map("".join),
)
def test_what_is_plain_is_as_ada_writes_it(origin: str, path: str) -> None:
    if urls.is_plain(text := f"{origin}/{path}"):
        assert urls.join(None, text) == text


_BASES = (
    st.lists(_LINK_PARTS, max_size=4)
    .map(lambda parts: urls.join("http://h/", "".join(parts)) or "")
    .filter(lambda base: base.startswith("http"))
)


@given(
    st.lists(st.lists(_LINK_PARTS, max_size=4).map("".join), min_size=1, max_size=4),
    st.lists(_BASES, min_size=1),
)
def test_cached_links_are_correct_on_other_pages(texts: list[str], bases: list[str]) -> None:
    remembering = Normaliser()
    for base in bases:
        slowly = [Normaliser()(text, base) for text in texts]
        assert list(chain.from_iterable(remembering.chunks(texts, base))) == [url for url in slowly if url]


def test_many_are_plain_if_each_is() -> None:
    plain, other = "https://example.com/a/b.html", "https://example.com/a b"
    assert urls.are_plain([plain, "http://example.com:8080/"])
    for some in (
        [],
        [plain, other],
        [f"{plain}\n{plain}", other],
        [f"{plain}\n"],
        ["https://EXAMPLE.com/", plain],
    ):
        assert not urls.are_plain(some)
