"""The flat list of elements: what it holds, and that every byte of it is looked at once, whatever was sent."""

import sys
from types import FrameType
from typing import Any

import pytest

from crawler.parse.elements import elements


def test_elements_are_listed() -> None:
    seen = elements(
        b"<!doctype html><title> T </title><meta http-equiv=Refresh content='0; /r'><script src=/a.js></script>"
        b'<body ID="x"><p>One &amp; <b>two</b></p><!-- <a href=/no> --><a href=/yes>yes</a><a>no</a>'
        b'<iframe src="/f">inside</iframe><script>if (a < b) { "<p>" }</script><img alt="a>b" src="/i"> three'
    )
    assert seen.resources == (b"0; /r", b"/a.js", b"/f", b"/i")
    assert seen.frames == (b"/f",)
    assert seen.scripts == (b"", b'if (a < b) { "<p>" }')
    assert (seen.ids, seen.links, seen.has_title) == (frozenset([b"x"]), 1, True)
    assert seen.text == b"One &amp; two yes no three"


@pytest.mark.parametrize("cut", [b"<script>never closed", b"<a href='", b"<!-- never closed", b"a < b", b"<"])
def test_markup_without_an_end_is_no_text(cut: bytes) -> None:
    assert elements(b"text" + cut).text in {b"text", b"texta b"}


HOSTILE = (
    b"<", b"<a ", b'<a "', b"<script>", b"<!--", b"</", b"<a b='c' ", b"<title><", b"x", b"<b a=", b"<iframe src=",
    b"</script", b"<a href=x>", b"a='", b'<meta content="',
)  # fmt: skip


def steps(body: bytes) -> int:
    """Lines of our modules that are run; finalizers of other tests may run as well."""
    count = 0

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal count
        if not frame.f_globals["__name__"].startswith("crawler."):
            return None
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        elements(body)
    finally:
        sys.settrace(before)
    return count


@pytest.mark.parametrize("piece", HOSTILE)
def test_twice_the_bytes_take_twice_the_work(piece: bytes) -> None:
    assert steps(piece * 400) <= 2.2 * steps(piece * 200) + 50
