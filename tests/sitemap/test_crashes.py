"""A reader misses no URL while a sitemap is published, nor after crashes: in a folder, and in a store."""

import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crawler.model import failpoints
from crawler.settings.tables import SitemapSection
from crawler.sitemap.publish import object_store, upload
from tests.sitemap.test_publish import EVEN, Death, contents, locs, urls_of
from tests.sitemap.test_upload import PLACE, Bucket, put

pytestmark = [pytest.mark.slow, pytest.mark.system]


class Folder:
    """A folder."""

    def __init__(self, path: Path) -> None:
        self._path = path / "out"
        self.name = str(self._path)

    def clear(self) -> None:
        shutil.rmtree(self._path, ignore_errors=True)

    def forget(self) -> None:
        (self._path / "manifest.json").unlink()

    def locs(self) -> list[str]:
        return locs(self._path)

    def contents(self) -> dict[str, bytes]:
        return contents(self._path)


class Store:
    """An object store."""

    name = PLACE

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        self.bucket = Bucket()

    def forget(self) -> None:
        del self.bucket["manifest.json"]

    def locs(self) -> list[str]:
        return self.bucket.locs()

    def contents(self) -> dict[str, bytes]:
        return self.bucket.contents()


@contextmanager
def opened(kind: str) -> Iterator[Folder | Store]:
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(failpoints, "hook", None)
        patch.setattr(upload, "PARALLEL", 1)
        store = Store()
        patch.setattr(object_store, "client_of", lambda *_: store.bucket.client)
        yield Folder(Path(folder)) if kind == "folder" else store


async def publish(place: Folder | Store, numbers: Iterable[int], **chosen: Any) -> None:
    await put(numbers, **{"output": place.name, "gzip": False, **chosen})


PAIRS: dict[str, tuple[Iterable[int], Iterable[int], dict[str, Any]]] = {
    "nothing changes": (EVEN, EVEN, {}),
    "one file changes": (EVEN, {*EVEN} - {40} | {41}, {}),
    "one file becomes several": (range(10), range(40), {}),
    "several files become one": (EVEN, range(0, 96, 10), {}),
    "the first splits": (EVEN, {*EVEN, 5}, {}),
    "one in the middle splits": (EVEN, {*EVEN, 33}, {}),
    "all split": (EVEN, range(96), {}),
    "the first joins": (EVEN, {2, *range(32, 48, 2), *range(64, 96, 2)}, {}),
    "one in the middle joins": (EVEN, {*range(0, 20, 2), 40, *range(64, 96, 2)}, {}),
    "one joins and one splits": (EVEN, {*range(0, 20, 2), 40, *range(64, 96)}, {}),
    "what joins grew": (EVEN, {*range(0, 8, 2), 33, 40, *range(64, 96, 2)}, {}),
    "one goes": (EVEN, {*range(32), *range(64, 96, 2)}, {}),
    "some are added behind": (EVEN, range(0, 200, 2), {}),
    "the limit falls": (EVEN, EVEN, {"max_urls": 5}),
    "the limit rises": (EVEN, EVEN, {"max_urls": 40}),
    "they are compressed": (EVEN, range(96), {"gzip": True}),
    "they become text": (EVEN, range(96), {"format": "txt"}),
    "they become one of text": (EVEN, EVEN, {"format": "txt", "max_urls": 1_000}),
}
# Those in which other files are put or leave; the entries that move between them are the same for a store.
PUT = (
    "nothing changes", "one file changes", "one file becomes several", "several files become one", "one joins and one splits",
    "one goes", "the limit falls", "they are compressed", "they become text", "they become one of text",
)  # fmt: skip
# Where what is there makes most of a difference to a publication that finds no manifest.
UNKNOWN = ("nothing changes", "one joins and one splits", "the limit falls", "they become text")


CASES = [
    (kind, pair, knows)
    for kind, pairs in (("folder", PAIRS), ("store", PUT))
    for knows in (True, False)
    for pair in pairs
    if knows or pair in UNKNOWN
]


@pytest.mark.parametrize(("kind", "pair", "knows"), CASES)
def test_reader_never_misses_url_while_publishing_or_after_crash(kind: str, pair: str, knows: bool) -> None:
    """After each step of a publication, and if it ends there; the next one is as if nothing had happened."""
    old, new, chosen = PAIRS[pair]
    stay = {*urls_of(old)} & {*urls_of(new)}

    async def begin(place: Folder | Store) -> None:
        failpoints.hook = None
        place.clear()
        await publish(place, old)
        if not knows:
            place.forget()

    async def live(place: Folder | Store) -> None:
        moments = list[str]()

        def look(name: str) -> None:
            if name.startswith("after"):
                moments.append(name)
                assert stay <= {*place.locs()}, name
                if len(moments) == last:
                    raise Death

        last = 0
        await begin(place)
        failpoints.hook = look
        await publish(place, new, **chosen)
        calm, count = place.contents(), len(moments)
        assert {*place.locs()} >= {*urls_of(new)}
        assert not knows or place.locs() == urls_of(new)
        step = max(2, count // 16)  # the other moments in other pairs
        for number in range(1 + len(pair) % step, count + 1, step):
            await begin(place)
            moments.clear()
            last = number
            failpoints.hook = look
            with pytest.raises(Death):
                await publish(place, new, **chosen)
            died = moments[-1]
            last = 0
            await publish(place, new, **chosen)
            assert place.contents() == calm, died

    with opened(kind) as place:
        anyio.run(live, place)


FEW = SitemapSection("few", "/0000*")
SECTIONS = {
    "folder": ((), (FEW,), (SitemapSection("few", "/0001*"),), (SitemapSection("odd", "re:[13579]$"), FEW)),
    "store": ((),),
}
NUMBERS = st.sets(st.integers(0, 40), min_size=1, max_size=30)
History = list[tuple[set[int], tuple[SitemapSection, ...], int, int]]


async def live_on(place: Folder | Store, history: History) -> None:
    stay: set[str] = set()
    for numbers, sections, most, death in history:
        stay &= {*urls_of(numbers)}
        left = [death]

        def look(_: str, stay: set[str] = stay, left: list[int] = left) -> None:
            assert stay <= {*place.locs()}
            left[0] -= 1
            if not left[0]:
                raise Death

        failpoints.hook = look
        with suppress(Death):
            await publish(place, numbers, sections=sections, max_urls=most)
            stay = {*urls_of(numbers)}
            assert sorted(place.locs()) == urls_of(numbers)


@pytest.mark.parametrize("kind", SECTIONS)
def test_a_reader_never_misses_a_url_after_any_series_of_crashes(kind: str) -> None:
    """It stays when it was in the last publication that came to its end, and in all that was tried since."""
    sections, most, deaths = st.sampled_from(SECTIONS[kind]), st.integers(2, 9), st.integers(0, 30)

    @settings(max_examples=45, deadline=None)
    @given(st.lists(st.tuples(NUMBERS, sections, most, deaths), min_size=2, max_size=6))
    def holds(history: History) -> None:
        with opened(kind) as place:
            anyio.run(live_on, place, history)

    holds()
