"""Declarative shadow roots: what a browser shows in place is read."""

import pytest

from crawler.parse import html, shadow

ROOT = '<template shadowrootmode="open">'


@pytest.mark.parametrize(
    ("body", "paths"),
    [
        (f"<x-card>{ROOT}<a href=/in>x</a></template><a href=/out>x</a></x-card>", ["/in", "/out"]),
        (f"{ROOT}<p>{ROOT}<a href=/deep>x</a></template></p></template><a href=/out>x</a>", ["/deep", "/out"]),
        ("<TEMPLATE id=a shadowrootmode=closed><a href=/in>x</a></TEMPLATE>", ["/in"]),
        # Other templates are none, nor is what stands in one.
        (f"<template><a href=/inert>x</a></template>{ROOT}<a href=/in>x</a></template>", ["/in"]),
        (f"<template>{ROOT}<a href=/inert>x</a></template></template><a href=/out>x</a>", ["/out"]),
        (f"{ROOT}<template><a href=/inert>x</a></template><a href=/in>x</a></template>", ["/in"]),
        ("<template shadowrootmode=none><a href=/inert>x</a></template><a href=/out>x</a>", ["/out"]),
        ("<template data-x=shadowrootmode><a href=/inert>x</a></template><a href=/out>x</a>", ["/out"]),
        # Text is no tag.
        (f"<script>'{ROOT}'</script><template><a href=/inert>x</a></template><a href=/out>x</a>", ["/out"]),
        (f"<!-- {ROOT} --><template><a href=/inert>x</a></template><a href=/out>x</a>", ["/out"]),
        (f"{ROOT}<a href=/in>x</a>", ["/in"]),
        (f"</template>{ROOT}<a href=/in>x</a></template><a href=/out>x</a>", ["/in", "/out"]),
    ],
)  # fmt: skip
def test_links_in_shadow_roots_are_read(body: str, paths: list[str]) -> None:
    page = html.PageSource(f"<body>{body}".encode(), "https://a.example/").read()
    assert list(page.followed) == paths


def test_a_page_without_shadow_roots_stays_as_it_is() -> None:
    body = b"<template><a href=/inert>x</a></template>"
    assert shadow.opened(body) is body
