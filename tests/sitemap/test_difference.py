"""What a publication changes, by comparison of the files."""

import gzip
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crawler.sitemap.publish.difference import compare

PAGES = st.dictionaries(
    st.integers(0, 60).map("https://www.example.com/a?b={}&c=ü".format), st.sampled_from("123")
)


def written(folder: Path, name: str, pages: dict[str, str], form: str = "xml") -> Path:
    def line(url: str, day: str) -> str:
        if form == "txt":
            return f"{url}\n"
        if form == "jsonl":
            return f'{{"loc": "{url}", "lastmod": "2026-01-0{day}"}}\n'
        return f"<url><loc>{url.replace('&', '&amp;')}</loc><lastmod>2026-01-0{day}</lastmod></url>\n"

    folder.mkdir(exist_ok=True)
    path = folder / f"{name}.{form}.gz"
    path.write_bytes(gzip.compress("".join(line(*page) for page in pages.items()).encode()))
    return path


@settings(max_examples=60, deadline=None)
@given(PAGES, PAGES, st.sampled_from(["xml", "jsonl"]), st.integers(1, 4), st.integers(1, 4))
def test_every_difference_is_counted_over_all_files(
    old: dict[str, str], new: dict[str, str], form: str, before: int, after: int
) -> None:
    with TemporaryDirectory() as place:
        sides = []
        for side, pages, files in (("old", old, before), ("new", new, after)):
            parts = [dict(list(pages.items())[part::files]) for part in range(files)]
            sides.append(
                {str(at): written(Path(place) / side, str(at), part, form) for at, part in enumerate(parts)}
            )
        found = compare(sides[0], sides[1], 7)
    both = old.keys() & new.keys()
    assert found[:4] == (
        len(old) + 7,
        len(new.keys() - old.keys()),
        len(old.keys() - new.keys()),
        sum(old[url] != new[url] for url in both),
    )
    gone = sorted(url.removeprefix("https://www.") for url in old.keys() - new.keys())
    assert list(found.examples) == gone[:3]


@pytest.mark.parametrize("form", ["xml", "txt", "jsonl"])
def test_https_and_www_are_the_same_site(tmp_path: Path, form: str) -> None:
    old = {f"http://example.com/{n}": "1" for n in range(9)}
    new = {f"https://www.example.com/{n}": "1" for n in range(9)}
    paths = {"a": written(tmp_path / "old", "a", old, form)}, {"a": written(tmp_path / "new", "a", new, form)}
    assert compare(*paths, 0) == (9, 0, 0, 0, ())


def test_an_unreadable_file_counts_as_far_as_it_can(tmp_path: Path) -> None:
    (tmp_path / "cut.xml.gz").write_bytes(gzip.compress(b"<loc>https://a.com/</loc>")[:-9])
    assert compare({"a": tmp_path / "cut.xml.gz", "b": tmp_path / "none"}, {}, 0).removed == 0
