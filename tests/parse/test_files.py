"""The scripts and style sheets that a page loads, and where they stand."""

import pytest

from crawler.parse.extract import Extract
from crawler.parse.files import MOST_FILES
from crawler.parse.html import PageSource

URL = "https://x.example/a/"


def loaded(markup: str) -> list[str]:
    page = PageSource(markup.encode(), URL, "utf-8", frozenset({Extract.FILES})).read()
    return [f"{kind} {url}" for kind, url in page.files]


@pytest.mark.parametrize(
    ("markup", "found"),
    [
        ('<script src="a.js"></script>', ["scripts a.js"]),
        ('<script type=module src=" /a.mjs?v=2#x "></script>', ["scripts /a.mjs?v=2"]),
        ('<script type="text/javascript" src=a.js></script>', ["scripts a.js"]),
        ('<script type="application/json" src=a.json></script>', []),
        ('<script type="text/template" src=a.html></script>', []),
        ("<script>let a = 1</script>", []),
        ('<script src=""></script><script src="#"></script>', []),
        ('<script src="data:text/javascript,1"></script>', []),
        ('<script src="//cdn.example/a.js"></script>', ["scripts //cdn.example/a.js"]),
        ("<link rel=stylesheet href=a.css>", ["styles a.css"]),
        ('<link rel="Alternate StyleSheet" href=a.css title=Dark>', ["styles a.css"]),
        ("<link rel=preload as=style href=a.css>", []),
        ("<link rel=icon href=a.ico><link rel=canonical href=/>", []),
        ("<link rel=stylesheet>", []),
        ("<!-- <script src=a.js></script> --><template><script src=b.js></script></template>", []),
        ("<body><main><link rel=stylesheet href=b.css></main>", ["styles b.css"]),
        ("<script src=b.js></script><link rel=stylesheet href=a.css><script src=b.js></script>",
         ["scripts b.js", "styles a.css"]),
    ],
)  # fmt: skip
def test_scripts_and_style_sheets(markup: str, found: list[str]) -> None:
    assert loaded(markup) == found


def test_of_very_many_files_the_first_count() -> None:
    markup = "".join(f"<script src={number}.js></script>" for number in range(MOST_FILES + 5))
    found = loaded(markup)
    assert (len(found), found[-1]) == (MOST_FILES, f"scripts {MOST_FILES - 1}.js")


def test_the_place_of_a_file_is_known() -> None:
    markup = "<head><script src=a.js></script></head><footer><script src=b.js></script></footer><img src=c.png alt=C>"
    page = PageSource(markup.encode(), URL, "utf-8", frozenset({Extract.PICTURES})).read()
    assert {(one.href, one.text, one.place) for one in page.anchors} == {
        ("a.js", "", "head"), ("b.js", "", "footer"), ("c.png", "C", ""),
    }  # fmt: skip
