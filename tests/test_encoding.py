"""Which encoding a page is in: the standard's order of evidence."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler import encoding
from crawler.encoding import Sniffed


def late(markup: bytes) -> bytes:
    return b" " * encoding.PRESCAN + markup


@pytest.mark.parametrize(
    ("body", "charset", "name", "certain"),
    [
        (b"", None, "windows-1252", False),
        (b"\xef\xbb\xbfx", "latin1", "utf-8", True),
        (b"\xfe\xff\0x", None, "utf-16be", True),
        (b"\xff\xfex\0", None, "utf-16le", True),
        (b"<meta charset=koi8-r>", "utf-8", "utf-8", True),
        (b"<meta charset=koi8-r>", "no-such", "koi8-r", True),
        (b"<META CHARSET = 'ISO-8859-1' >", None, "windows-1252", True),
        (b"<meta http-equiv=Content-Type content='text/html; charset=shift_jis'>", None, "shift_jis", True),
        (b"<meta content='text/html; charset=shift_jis'>", None, "windows-1252", False),
        (b"<!-- <meta charset=koi8-r> --><meta charset=big5>", None, "big5", True),
        (b"<meta charset=utf-16>", None, "utf-8", True),
        (b"<meta charset=x-user-defined>", None, "windows-1252", True),
        (b"<meta charset=utf-7>", None, "windows-1252", False),
        (b"<p title='<meta charset=koi8-r>'>", None, "windows-1252", False),
        (late(b"<meta charset=koi8-r>"), None, "windows-1252", False),
        (b'<?xml version="1.0" encoding="koi8-r"?>', None, "koi8-r", True),
    ],
)
def test_evidence_in_its_order(body: bytes, charset: str | None, name: str, certain: bool) -> None:
    assert encoding.sniff(body, charset) == Sniffed(name, certain)


@given(
    st.binary(max_size=200) | st.text("<metacharsetcontent=\"'-/> !").map(str.encode), st.none() | st.text()
)
def test_any_bytes_have_an_encoding_that_decodes_them(body: bytes, charset: str | None) -> None:
    encoding.decode(body, encoding.sniff(body, charset).name)
