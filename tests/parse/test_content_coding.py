"""Content decoding, in pieces and within limits."""

import gzip
import sys
import zlib
from collections.abc import Iterator
from types import ModuleType

import brotli
import pytest
from hypothesis import given
from hypothesis import strategies as st
from zlib_ng import zlib_ng

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

from crawler.parse import content_coding as room
from crawler.parse.content_coding import (
    PIECE,
    STREAMS,
    BrokenCoding,
    DecompressionBomb,
    TooLarge,
    UnknownCoding,
    decoder,
    gunzip,
)


@pytest.fixture(autouse=True, params=[zlib, zlib_ng], ids=["zlib", "zlib-ng"], scope="module")
def decompress_with(request: pytest.FixtureRequest) -> Iterator[ModuleType]:
    """zlib and zlib-ng."""
    kept = vars(room)["zlib"]
    vars(room)["zlib"] = request.param
    yield request.param
    vars(room)["zlib"] = kept


def inflate(codings: list[str], *chunks: bytes, limit: int = 10_000_000) -> bytes:
    inflater = decoder(codings, limit)
    body = b"".join(piece for chunk in chunks for piece in inflater.feed(chunk))
    inflater.finish()
    return body


@given(st.binary(max_size=3_000), st.sampled_from(["gzip", "deflate"]), st.data())
def test_both_zlib_modules_report_the_same_broken_bodies(
    decompress_with: ModuleType, data: bytes, coding: str, draw: st.DataObject
) -> None:
    coded = bytearray(gzip.compress(data, mtime=0) if coding == "gzip" else zlib.compress(data))
    for at in draw.draw(st.lists(st.integers(0, len(coded) - 1), max_size=3)):
        coded[at] ^= 1 << draw.draw(st.integers(0, 7))
    cut = bytes(coded[: draw.draw(st.integers(0, len(coded)))])
    ends = []
    for module in (zlib, zlib_ng):
        vars(room)["zlib"] = module
        try:
            ends.append(inflate([coding], cut, limit=5_000))
        except (BrokenCoding, TooLarge) as error:
            ends.append(type(error).__name__.encode())
    vars(room)["zlib"] = decompress_with
    assert ends[0] == ends[1]


def bare(data: bytes) -> bytes:
    return zlib.compress(data)[2:-4]


@given(
    st.binary(max_size=5_000),
    st.integers(1, 50),
    st.sampled_from(["gzip", "deflate", "bare", "twice", "members", "br", "zstd", "frames"]),
)
def test_decoding_restores_the_data_for_any_chunk_size(data: bytes, size: int, form: str) -> None:
    coded, codings = {
        "gzip": (gzip.compress(data, mtime=0), ["gzip"]),
        "deflate": (zlib.compress(data), ["deflate"]),
        "bare": (bare(data), ["deflate"]),
        "twice": (gzip.compress(zlib.compress(data)), ["deflate", "gzip"]),
        "br": (brotli.compress(data), ["br"]),
        "zstd": (zstd.compress(data), ["zstd"]),
        "frames": (zstd.compress(data[:7]) + zstd.compress(data[7:]), ["zstd"]),
        "members": (gzip.compress(data[:7], mtime=0) + gzip.compress(data[7:], mtime=0), ["x-gzip"]),
    }[form]
    if form == "bare" and coded[0] & 0x0F == 8 and (coded[0] << 8 | coded[1]) % 31 == 0:
        return  # one in a thousand bare streams begins as a zlib one would
    assert inflate(codings, *(coded[at : at + size] for at in range(0, len(coded), size))) == data


@pytest.mark.parametrize("tail", [b"\0" * 600, b"garbage", b"\x1f", b"\0\x1f\x8b"])
def test_bytes_after_a_complete_gzip_member_are_ignored(tail: bytes) -> None:
    assert inflate(["gzip"], gzip.compress(b"hello", mtime=0) + tail) == b"hello"
    assert (
        inflate(["gzip"], gzip.compress(b"hello", mtime=0), *(tail[n : n + 1] for n in range(len(tail))))
        == b"hello"
    )


@pytest.mark.parametrize(
    ("coding", "body"),
    [
        ("gzip", b"plain text"),
        ("gzip", gzip.compress(b"hello", mtime=0)[:-1]),
        ("gzip", gzip.compress(b"hello", mtime=0)[:5]),
        ("gzip", gzip.compress(b"hello", mtime=0)[:-8] + b"badcrc!!"),
        ("gzip", gzip.compress(b"hello", mtime=0) + gzip.compress(b"more", mtime=0)[:-3]),
        ("deflate", zlib.compress(b"hello")[:-1]),
        ("deflate", zlib.compress(b"hello")[:-4] + b"adle"),
        ("deflate", b"\xff\xff\xff\xff"),
        ("br", brotli.compress(b"hello")[:-1]),
        ("br", b"\xff\xff\xff\xff"),
        ("zstd", zstd.compress(b"hello")[:-1]),
        ("zstd", b"plain text"),
        ("zstd", zstd.compress(b"hello") + b"more"),
        ("zstd", b"\x28\xb5\x2f\xfd\x00\xb8" + bytes(20)),  # a window of 128 MB
    ],
)
def test_broken_or_truncated_bodies_raise(coding: str, body: bytes) -> None:
    with pytest.raises(BrokenCoding):
        inflate([coding], body)


@pytest.mark.parametrize("codings", [["compress"], ["gzip", "gzip", "gzip"], ["gzip\x1b"]])
def test_unsupported_codings_raise(codings: list[str]) -> None:
    with pytest.raises(UnknownCoding):
        decoder(codings, 1)


@pytest.mark.parametrize("codings", [[], ["gzip"], ["deflate"], ["identity"]])
def test_an_empty_body_is_empty(codings: list[str]) -> None:
    assert inflate(codings) == b""
    assert inflate(codings, b"") == b""


def test_the_limit_is_exact_and_counts_decoded_bytes() -> None:
    assert len(inflate(["gzip"], gzip.compress(bytes(1000)), limit=1000)) == 1000
    with pytest.raises(TooLarge, match="more than 1,000 bytes"):
        inflate(["gzip"], gzip.compress(bytes(1001)), limit=1000)
    with pytest.raises(TooLarge):
        inflate([], bytes(1001), limit=1000)


@pytest.mark.parametrize("coding", ["gzip", "br", "zstd"])
@pytest.mark.slow
def test_a_decompression_bomb_is_never_fully_in_memory(coding: str) -> None:
    plain = bytes(50_000_000)
    bomb, codings = {
        "gzip": (gzip.compress(gzip.compress(plain, 9), 9), ["gzip", "gzip"]),
        "br": (brotli.compress(plain, quality=5), ["br"]),
        "zstd": (zstd.compress(plain), ["zstd"]),
    }[coding]
    inflater = decoder(codings, 1_000_000)
    largest = 0
    with pytest.raises(TooLarge):  # noqa: PT012 - how it went on the way there is the point
        for piece in inflater.feed(bomb):
            largest = max(largest, len(piece))
    assert largest <= 2 * PIECE


MEMBER, FRAME = (
    gzip.compress(b"", mtime=0),
    bytes.fromhex("28b52ffd0068010000"),
)  # a window of 8 MB, nothing in it
SKIPPED = b"\x50\x2a\x4d\x18" + bytes(4)
LATE = 8_000_000  # bytes behind the end


@pytest.mark.parametrize(
    ("codings", "body"),
    [
        (["zstd"], FRAME * 5_000),
        (["zstd"], zstd.compress(b"page") + SKIPPED * 5_000),
        (["zstd"], zstd.compress(b"p") * 5_000),
        (["zstd", "gzip"], gzip.compress(FRAME * 100_000)),
        (["gzip"], MEMBER * 5_000),
        (["gzip", "br"], brotli.compress(MEMBER * 5_000, quality=5)),
        (["gzip"], gzip.compress(b"page") + bytes(LATE)),
        (["deflate"], zlib.compress(b"page") + bytes(LATE)),
        (["gzip", "gzip"], gzip.compress(gzip.compress(b"page") + bytes(LATE))),
        (["deflate", "zstd"], zstd.compress(zlib.compress(b"page") + bytes(LATE))),
        (["zstd", "gzip"], gzip.compress(SKIPPED[:4] + LATE.to_bytes(4, "little") + bytes(LATE))),
        (["br", "gzip"], gzip.compress(brotli.compress(b"page")[:-1] + bytes(LATE))),
    ],
)
def test_decoding_work_without_output_is_bounded(codings: list[str], body: bytes) -> None:
    inflater = decoder(codings, 1_000_000)
    steps = 0
    with pytest.raises((DecompressionBomb, BrokenCoding)):  # noqa: PT012 - how it went on the way there is the point
        for at in range(0, len(body), 65_536):
            for _ in inflater.steps(body[at : at + 65_536]):
                steps += 1
    assert steps < 2_500


def test_each_decoding_step_yields() -> None:
    body = MEMBER * (STREAMS - 1)
    assert list(decoder(["gzip"], 1).feed(body)) == []
    assert len(list(decoder(["gzip"], 1).steps(body))) >= STREAMS - 1


@pytest.mark.parametrize("outer", ["gzip", "br", "zstd"])
def test_every_layer_counts_against_the_limit(outer: str) -> None:
    inner = gzip.compress(b"x", 0) + bytes(60_000)  # behind the end, and ignored
    coded = {"gzip": gzip.compress, "br": brotli.compress, "zstd": zstd.compress}[outer](inner)
    assert inflate(["gzip", outer], coded, limit=61_000) == b"x"
    with pytest.raises(DecompressionBomb, match="after removing the outer coding"):
        inflate(["gzip", outer], coded, limit=50_000)


def test_a_bgzip_file_with_many_members_is_decoded() -> None:
    body = gzip.compress(b"a" * 60_000) * (STREAMS - 100)
    assert len(inflate(["gzip"], body, limit=60_000_000)) == 60_000 * (STREAMS - 100)


@pytest.mark.parametrize(
    ("coded", "plain"),
    [
        (gzip.compress(b"a" * 100), b"a" * 100),
        (gzip.compress(b"a" * 101), None),
        (gzip.compress(b"a") + gzip.compress(b"b"), None),
        (gzip.compress(b"a") + b"\0", None),
        (gzip.compress(b"a")[:-1], None),
        (gzip.compress(b"a")[:-8] + bytes(8), None),
        (b"nonsense", None),
        (b"", None),
    ],
    ids=["whole", "too long", "two members", "tail", "cut", "wrong sum", "nonsense", "empty"],
)
def test_one_step_decodes_one_whole_member_only(coded: bytes, plain: bytes | None) -> None:
    assert gunzip(coded, 100) == plain
