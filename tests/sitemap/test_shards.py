"""A URL keeps its file from run to run, whatever is added and removed elsewhere."""

from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crawler.model.facts import Entry
from crawler.parse.url import Url
from crawler.sitemap.write.shards import SMALL_LEAF, FileLimits, Leaf, OldFiles, Shard, Shards
from crawler.sitemap.write.writer import Part, Style, Writer

MOST = 16
Files = dict[int, list[str]]


def publish(
    urls: Iterable[str], old: Sequence[Shard] = (), most: int = MOST, taken: Collection[int] = ()
) -> list[Leaf]:
    shards = Shards(OldFiles(old, taken), FileLimits(most, 1_000_000), bytes.decode)
    leaves = [leaf for url in sorted(urls) for leaf in shards.add(url, url.encode())]
    return [*leaves, *shards.finish()]


def files(leaves: Iterable[Leaf]) -> Files:
    return {leaf.shard.number: [line.decode() for line in leaf.lines] for leaf in leaves}


def numbered(*numbers: int) -> list[str]:
    return [f"{number:05}" for number in numbers]


def test_the_first_publication_fills_every_file() -> None:
    assert [len(leaf.lines) for leaf in publish(numbered(*range(40)))] == [16, 16, 8]


def test_one_more_page_changes_one_file() -> None:
    first = publish(numbered(*range(0, 100, 2)))
    spare = publish(numbered(*range(0, 100, 2)), [leaf.shard for leaf in first])
    assert files(spare) == files(first)
    last = first[-1].shard.number
    grown = files(publish([*numbered(*range(0, 100, 2)), "00099"], [leaf.shard for leaf in first]))
    assert {number for number in grown if grown[number] != files(first).get(number)} == {last}


def test_a_full_file_is_split_and_no_other_changes() -> None:
    first = publish(numbered(*range(0, 96, 2)))
    before = files(first)
    after = files(publish([*numbered(*range(0, 96, 2)), "00033"], [leaf.shard for leaf in first]))
    changed = {number for number in after if after[number] != before.get(number)}
    assert changed == {4, 5}, "two new ones"
    assert before.keys() - after.keys() == {2}, "the one that was full"
    assert {len(after[number]) for number in changed} == {8, 9}


def test_a_nearly_empty_file_is_merged_and_no_other_changes() -> None:
    old = [Shard(1), Shard(2, "00100"), Shard(3, "00200"), Shard(4, "00300")]
    urls = numbered(*range(8), 100, 101, *range(200, 208), *range(300, 312))
    assert set(files(publish(urls, old))) == {1, 3, 4}
    assert files(publish(urls, old))[1] == numbered(*range(8), 100, 101)


def test_numbers_of_removed_files_are_not_reused_at_once() -> None:
    old = [Shard(2), Shard(7, "00050")]
    leaves = publish(numbered(*range(40)), old)
    assert [leaf.shard.number for leaf in leaves] == [1, 3, 4, 5]
    assert [leaf.shard.number for leaf in publish(numbered(*range(40)), taken=[1, 3])] == [2, 4, 5]


URLS = st.sets(st.integers(0, 400), max_size=120)


@settings(max_examples=2 * settings().max_examples)
@given(st.lists(URLS, min_size=1, max_size=6))
def test_no_url_is_lost_and_limits_hold_for_any_history(history: list[set[int]]) -> None:
    old: list[Shard] = []
    for numbers in history:
        urls = numbered(*numbers)
        leaves = publish(urls, old)
        assert [line.decode() for leaf in leaves for line in leaf.lines] == sorted(urls)
        assert all(0 < len(leaf.lines) <= MOST for leaf in leaves)
        assert len({leaf.shard.number for leaf in leaves}) == len(leaves)
        for leaf in leaves:
            assert leaf.size == sum(map(len, leaf.lines))
            assert all(line.decode() >= leaf.shard.first for line in leaf.lines)
        old = [leaf.shard for leaf in leaves]


@settings(max_examples=2 * settings().max_examples)
@given(st.sets(st.integers(0, 400), min_size=20, max_size=150), st.lists(st.integers(0, 400), max_size=30))
@pytest.mark.slow
def test_each_single_change_changes_few_files(start: set[int], changes: list[int]) -> None:
    """One file; when it splits, two new ones; and a neighbour that joins what is left of another."""
    urls = set(start)
    leaves = publish(numbered(*urls))
    leaves = publish(numbered(*urls), [leaf.shard for leaf in leaves])
    for number in changes:
        urls ^= {number}
        before = files(leaves)
        leaves = publish(numbered(*urls), [leaf.shard for leaf in leaves])
        after = files(leaves)
        touched = {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}
        assert len(touched) <= 4
        if touched and before.keys() == after.keys():
            assert len(touched) == 1


@settings(max_examples=2 * settings().max_examples)
@given(st.lists(URLS, min_size=2, max_size=6), st.lists(st.integers(4, 40), min_size=6, max_size=6))
def test_the_range_of_a_file_number_never_shrinks(history: list[set[int]], limits: list[int]) -> None:
    """Whoever still reads the index of before finds in each file all that belongs there and is not gone."""
    old: list[Leaf] = []
    for numbers, most in zip(history, limits, strict=False):
        leaves = publish(numbered(*numbers), [leaf.shard for leaf in old], most)
        now = files(leaves)
        for number, held in files(old).items():
            if number in now:
                assert set(held) & set(numbered(*numbers)) <= set(now[number])
        old = leaves


def test_unchanged_file_keeps_its_bytes_and_its_line_in_index() -> None:
    urls = numbered(*range(0, 96, 2))

    def write(folder: Path, found: Iterable[str], old: Sequence[Part] = ()) -> list[Part]:
        files = {"": OldFiles([part.shard for part in old if part.shard])}
        writer = Writer(folder, "https://e.com", Style(max_urls=MOST, gzip=False), files)
        writer.add([Entry(Url(f"https://e.com/{url}")) for url in sorted(found)])
        return writer.finish()

    with TemporaryDirectory() as one, TemporaryDirectory() as two:
        first = write(Path(one), urls)
        second = write(Path(two), [*urls, "00033"], first)
        sums = {part.name: part.sha256 for part in first}
        same = [part.name for part in second if part.sha256 == sums.get(part.name)]
        index = [set((Path(folder) / "sitemap.xml").read_text().splitlines()) for folder in (one, two)]
    assert same == ["sitemap-00001.xml", "sitemap-00003.xml"]
    assert len(index[1] - index[0]) == 2, "the lines of the new files"


@pytest.mark.parametrize("count", [MOST // SMALL_LEAF, MOST // SMALL_LEAF + 1])
def test_a_file_below_an_eighth_is_merged(count: int) -> None:
    old = [Shard(1), Shard(2, "00100")]
    joined = files(publish(numbered(*range(4), *range(100, 100 + count)), old))
    assert (len(joined) == 1) is (count * SMALL_LEAF <= MOST)


@given(
    st.lists(st.tuples(st.integers(0, 60), st.integers(1, 40)), max_size=60),
    st.lists(st.integers(0, 60), max_size=5),
)
def test_lines_of_any_size_stay_below_the_limits(lines: list[tuple[int, int]], firsts: list[int]) -> None:
    """Lines with images may be thousands of times as long as others: half of the lines may be nearly all bytes."""
    limits = FileLimits(MOST, 50)
    old = [Shard(number, f"{first:05}") for number, first in enumerate(sorted({*firsts}), 1)]
    shards = Shards(OldFiles(old), limits, lambda line: line.decode()[:5])
    sizes = {f"{number:05}": size for number, size in lines}
    leaves = [leaf for url in sorted(sizes) for leaf in shards.add(url, url.encode() + b"." * sizes[url])]
    leaves += shards.finish()
    assert [line[:5].decode() for leaf in leaves for line in leaf.lines] == sorted(sizes)
    for leaf in leaves:
        assert leaf.size == sum(map(len, leaf.lines))
        assert limits.hold(len(leaf.lines), leaf.size)
    assert len({leaf.shard.number for leaf in leaves}) == len(leaves)
