"""Puts the sitemap files into an object store: parts, entry point, manifest; then deletes obsolete objects.

Each put is atomic, so a reader never meets an index that names a part that is not there. `manifest.json` is
the lock: a run claims the place by putting it with the condition that nobody else has put it since it was
read, and puts it again at the end. A run that dies in between leaves its claim, and the next one completes
the publication.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from time import monotonic
from typing import Any, Final

from msgspec import Struct

from crawler.errors import OutputBusy
from crawler.model.failpoints import failpoint
from crawler.settings.sections import Output
from crawler.sitemap.publish import stylesheet
from crawler.sitemap.publish.manifest import (
    MANIFEST,
    Last,
    Manifest,
    PublicationRecord,
    entry_points,
    files_of,
    is_file,
    last_of,
    left_over,
    read_manifest,
    uncounted,
)
from crawler.sitemap.publish.object_store import Changed, Object, Store
from crawler.sitemap.publish.published import File
from crawler.sitemap.publish.staging import FolderState
from crawler.sitemap.publish.store_errors import StoreError
from crawler.sitemap.publish.swap import BETWEEN, DONE
from crawler.sitemap.write.writer import Part

PARALLEL: Final = 8  # requests at the same time
CLAIM_MARGIN: Final = 300.0  # seconds that a claim is valid after the longest time of its publication
RECENT: Final = 10.0  # seconds for which a look at our claim is relied on
MOST_INDEXED_FILES: Final = 1_000  # files of an index of another program that are read to count its URLs
CLAIM: Final = "publishing"  # key of a manifest that is a claim
CACHE_CONTROL: Final = "cache_control"  # key of a manifest: with which the files were put


class Before(Struct, frozen=True):
    """The last publication, and the manifest that describes it."""

    last: Last
    manifest: Object | None


def look(store: Store, mirror: Path) -> Before:
    """Reads the last publication, into the folder `mirror`. Raises `StoreError`."""
    manifest = store.get(MANIFEST)
    mirror.mkdir()
    if manifest:
        (mirror / MANIFEST).write_bytes(manifest.body)
    names = entry_points(read_manifest(mirror))
    _each(lambda name: store.download(name, mirror / name), names)
    parts = uncounted(mirror)
    if len(parts) <= MOST_INDEXED_FILES:
        _each(lambda names: any(store.download(name, mirror / name) for name in names), parts)
    return Before(last_of(mirror), manifest)


def mirrored(store: Store, mirror: Path, names: Sequence[str]) -> list[Path]:
    """The paths of published files in `mirror`, which are fetched if they are not there yet."""
    missing = [name for name in names if not is_file(mirror / name)]
    _each(lambda name: store.download(name, mirror / name), missing)
    return [mirror / name for name in names]


def check_unclaimed(store: Store, before: Before, writer: str, now: datetime) -> None:
    """Raises `OutputBusy` if another run is publishing. Old claims are void."""
    claim = (before.last.manifest or {}).get(CLAIM)
    if before.manifest is None or not isinstance(claim, dict) or claim.get("by") == writer:
        return
    seconds = claim.get("seconds")
    if not isinstance(seconds, int | float) or not 0 <= seconds < 1e6:
        return
    since = before.manifest.modified
    until = since + timedelta(seconds=seconds)
    if now < until:
        raise OutputBusy(
            f"Another run is publishing to {store.url} since {since.astimezone(UTC):%H:%M:%S} UTC: run "
            f"again when it is done; if it was killed, after {until.astimezone(UTC):%H:%M:%S} UTC."
        )


def check_conditions(store: Store, manifest: Object | None) -> None:
    """Raises `StoreError` if the store cannot be written, or ignores conditions, so that there is no lock."""
    if not store.honours_conditions(MANIFEST, manifest):
        raise StoreError(
            "the store ignores the condition of a put (If-Match), so that two runs could mix their files; "
            "write to a folder, and copy that with --publish-command"
        )


@dataclass(eq=False, repr=False)
class Upload:
    """One publication. `writer`: the same for all attempts of one run."""

    store: Store
    place: Path  # of the prepared files
    parts: Sequence[Part]
    before: Before
    record: PublicationRecord
    writer: str
    output: Output
    state: FolderState  # is kept up to date

    def __call__(self) -> tuple[File, ...]:
        """Puts what changed. Raises `StoreError`, `OutputBusy`."""
        self._kept = self._unchanged()
        changed = [part.name for part in self.parts if part.name not in self._kept]
        gone = left_over(self.before.last, [part.name for part in self.parts])
        missing = self._missing_stylesheet()
        self._held = self.before.manifest.version if self.before.manifest else None
        self._checked = monotonic()
        try:
            if changed or gone or missing:
                # A claim, before anything else. Files without an ETag are not there yet.
                seconds = self.output.publish_timeout + CLAIM_MARGIN
                self._put_manifest("claim", gone, {CLAIM: {"by": self.writer, "seconds": seconds}})
                self._put_files(missing, changed)
            self._put_manifest("manifest", gone)
            self._delete(gone)
        except Changed:
            raise OutputBusy(
                f"Another run has changed {self.store.url} in the meantime; {self.state.says}."
            ) from None
        return tuple(File(p.name, p.urls, p.size, p.name not in changed, p.sha256) for p in self.parts)

    def _unchanged(self) -> dict[str, str]:
        """The ETag of each file that is there already, as the manifest describes it."""
        known = {str(file.get("name")): file for file in files_of(self.before.last.manifest)}
        if (self.before.last.manifest or {}).get(CACHE_CONTROL) != self.output.cache_control:
            return {}
        same = [part.name for part in self.parts if known.get(part.name, {}).get("sha256") == part.sha256]
        etags = dict(zip(same, _each(self.store.etag, same), strict=True))
        return {name: etag for name, etag in etags.items() if etag and etag == known[name].get("etag")}

    def _missing_stylesheet(self) -> list[str]:
        """A stylesheet that is there already is left alone, so that it can be changed."""
        if not self.output.stylesheet or self.store.etag(stylesheet.NAME):
            return []
        return [stylesheet.stage(self.place)]

    def _put_files(self, missing: Sequence[str], changed: Sequence[str]) -> None:
        entry = self.parts[-1].name
        _each(self._put, [*missing, *(name for name in changed if name != entry)])
        if entry in changed:
            self._check_claim(age=0.0)
            self._put(entry)
        self.state.says = DONE

    def _put(self, name: str) -> None:
        self._check_claim()
        with failpoint(f"put of {name}"):
            etag = self.store.put(name, self.place / name, self.output.cache_control)
        self.state.says = BETWEEN
        if etag := etag or self.store.etag(name):
            self._kept[name] = etag

    def _delete(self, gone: Sequence[str]) -> None:
        for name in gone:
            self._check_claim()
            with failpoint(f"delete of {name}"):
                self.store.delete(name)
        if gone:
            self._put_manifest("settled", ())

    def _check_claim(self, age: float = RECENT) -> None:
        """Raises `Changed` if another run has taken over. Not asked again within `age` seconds."""
        if monotonic() < self._checked + age:
            return
        there = self.store.get(MANIFEST)
        if there is None or there.version != self._held:
            raise Changed
        self._checked = monotonic()

    def _put_manifest(self, what: str, gone: Sequence[str], more: Manifest | None = None) -> None:
        chosen = {CACHE_CONTROL: self.output.cache_control} if self.output.cache_control else {}
        text = self.record.manifest(gone, self._kept, **chosen, **(more or {}))
        with failpoint(f"put of {what}"):
            self._held = self.store.put_if(MANIFEST, text.encode(), self._held)
        self._checked = monotonic()


def _each(call: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
    """Calls a function with each item, some at a time. The first error ends it."""
    if not items:
        return []
    with ThreadPoolExecutor(min(PARALLEL, len(items))) as pool:
        calls = [pool.submit(call, item) for item in items]
        try:
            return [made.result() for made in calls]
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
