"""The encoding of a page, by the sources of the HTML Standard in order."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler.parse import encoding
from crawler.parse.encoding import Sniffed


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
def test_sources_of_the_encoding_in_order(body: bytes, charset: str | None, name: str, certain: bool) -> None:
    assert encoding.sniff(body, charset) == Sniffed(name, certain)


@given(
    st.binary(max_size=200) | st.text("<metacharsetcontent=\"'-/> !").map(str.encode), st.none() | st.text()
)
def test_any_bytes_get_an_encoding_that_decodes_them(body: bytes, charset: str | None) -> None:
    encoding.decode(body, encoding.sniff(body, charset).name)


@pytest.mark.parametrize(
    ("query", "spelled"),
    [
        ("plain=ascii", "plain=ascii"),
        ("a\x0eb", "a%26%2365533%3Bb"),  # step 3: they would switch the state of a decoder
        ("a\x0fb", "a%26%2365533%3Bb"),
        ("a\x1b$Bb", "a%26%2365533%3B$Bb"),
        ("あ\x1bい", "%1B$B$%22%1B(B%26%2365533%3B%1B$B$$%1B(B"),
        ("あaい", "%1B$B$%22%1B(Ba%1B$B$$%1B(B"),
        ("ｱﾞ", "%1B$B%%22!+%1B(B"),  # half-width katakana
        ("①", "%1B$B-!%1B(B"),  # row 13, which Python does not know
        ("\uff5e", "%1B$B!A%1B(B"),
        ("\u2212", "%1B$B!]%1B(B"),
        ("\xa5a\\", "%1B(J\\a%1B(B\\"),  # JIS X 0201 Roman
        ("あä", "%1B$B$%22%1B(B%26%23228%3B"),
        ("\xa5ä", "%1B(J\\%26%23228%3B%1B(B"),
    ],
)
def test_queries_are_encoded_in_iso_2022_jp_as_in_the_standard(query: str, spelled: str) -> None:
    """Encoding Standard 12.2.2."""
    assert encoding.spell_query(f"/p?{query}", "iso-2022-jp") == f"/p?{spelled}"
    assert encoding.spell_query(f"/{query}", "iso-2022-jp") == f"/{query}", "only queries are"


@given(st.text(max_size=20))
def test_iso_2022_jp_round_trip(text: str) -> None:
    coded = b"".join(piece for piece in encoding.encode_iso_2022_jp(text) if isinstance(piece, bytes))
    assert not coded or coded.isascii()
    assert (
        coded.count(b"\x1b") == 0
        or coded.endswith(b"\x1b(B")
        or coded.rpartition(b"\x1b")[2].startswith(b"(B")
    )
