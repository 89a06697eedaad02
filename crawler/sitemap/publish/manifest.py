"""manifest.json: describes the files in the output folder, for the next publication and for people.

Its content is checked, as others may have changed the folder. Without a valid manifest the sitemap files
themselves are read. This module never changes the folder.
"""

import gzip
import hashlib
import json
import re
import zlib
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import IO, TYPE_CHECKING, Any, Final

from msgspec import Struct, field
from msgspec.structs import asdict

from crawler.parse.late import late
from crawler.parse.url import Url
from crawler.sitemap.publish.identity import SitemapIdentity
from crawler.sitemap.write.shards import OldFiles, Shard
from crawler.sitemap.write.writer import FORMS, HTML_PAGE, INDEX, Part

if TYPE_CHECKING:
    from crawler.sitemap.read import SitemapReading

MANIFEST: Final = "manifest.json"
SECTIONS: Final = "sections"  # key of a manifest: name and pattern of each
CHUNK: Final = 65_536  # bytes
DEEPEST: Final = 10  # levels of subfolders in which a file of an index is looked for

_BEGINNING: Final = b'{\n  "run": '  # of each manifest, to recognise a truncated one
_KEYS: Final = frozenset({"run", "urls", "files"})
_ENTRY_POINTS: Final = [f"sitemap.{form.suffix}{gz}" for form in FORMS.values() for gz in ("", ".gz")]
_INDEXES: Final = [f"sitemap.{INDEX.suffix}{gz}" for gz in ("", ".gz")]
_OTHERS: Final = [  # entry points of other programs
    f"{name}.xml{gz}" for name in ("sitemap_index", "sitemap-index", "wp-sitemap") for gz in ("", ".gz")
]
# The section, if any; the number; and the suffix.
_NUMBERED: Final = late(
    r"sitemap-(?:([a-z][a-z0-9-]*)-)?(\d{5}|[1-9]\d{5})\.(xml|txt|html)(?:\.gz)?", re.ASCII
)

Manifest = Mapping[str, Any]


class Last(Struct, frozen=True):
    """The last publication, from its manifest and files."""

    manifest: Manifest | None = None
    urls: int | None = 0  # None: there are files that cannot be counted
    recent: tuple[int, ...] = ()  # URLs of the last publications, newest last
    indexes: Mapping[str, set[str]] = field(default_factory=dict)  # the files in each index, by its name
    # The SHA-256 of each file that contains URLs, in their order, by its name; empty if it is not known.
    digests: Mapping[str, str] = field(default_factory=dict)


def last_of(folder: Path) -> Last:
    """The last publication in a folder. URLs are counted in the files if there is no valid manifest."""
    manifest = read_manifest(folder)
    digests = _files_with_urls(folder, manifest)
    return Last(manifest, _urls_of(folder, manifest), _recent(manifest), _indexes(folder), digests)


def read_manifest(folder: Path) -> Manifest | None:
    """The manifest; None if it is missing or invalid."""
    try:
        known = json.loads((folder / MANIFEST).read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
    return known if _is_ours(known) else None


def is_foreign(folder: Path) -> bool:
    """Whether manifest.json is another program's. A truncated or zero-filled one is not. Raises `OSError`."""
    try:
        body = (folder / MANIFEST).read_bytes()
    except FileNotFoundError:
        return False
    try:
        return not _is_ours(json.loads(body))
    except (ValueError, RecursionError):
        left = body.strip(b"\0\t\n\r ")
        return not (left.startswith(_BEGINNING) or _BEGINNING.startswith(left))


def _is_ours(known: object) -> bool:
    return isinstance(known, dict) and known.keys() >= _KEYS


class PublicationRecord(Struct, frozen=True):
    """What the manifests of one publication say."""

    run_id: str
    parts: Sequence[Part]
    complete: bool  # the run
    outcomes: Mapping[str, int]  # of the run, by code
    before: Sequence[int]  # URLs of earlier publications
    identity: SitemapIdentity | None = None  # what was crawled
    sections: Sequence[Mapping[str, str]] = ()  # that have files of their own

    def manifest(
        self, leaving: Sequence[str], etags: Mapping[str, str] = MappingProxyType({}), **more: object
    ) -> str:
        """The text of a manifest.

        `leaving`: files that will be removed. `etags`: of files in an object store, by name. `more`: further
        keys.
        """
        urls, outcomes = sum(part.urls for part in self.parts), dict(sorted(self.outcomes.items()))
        facts = {"run": self.run_id, "complete": self.complete, "urls": urls, "outcomes": outcomes}
        facts["publications"] = [*self.before, urls]
        facts |= {"site": asdict(self.identity)} if self.identity else {}
        facts |= {SECTIONS: self.sections} if self.sections else {}
        facts |= {"files": [_facts_of(part, etags.get(part.name)) for part in self.parts]}
        facts |= ({"leaving": leaving} if leaving else {}) | more
        return json.dumps(facts, indent=2) + "\n"


def _facts_of(part: Part, etag: str | None) -> dict[str, Any]:
    facts: dict[str, Any] = {"name": part.name, "sha256": part.sha256, "bytes": part.size, "urls": part.urls}
    return facts | ({"from": part.shard.first} if part.shard else {}) | ({"etag": etag} if etag else {})


def old_files(last: Last, suffix: str, section: str = "") -> OldFiles:
    """The files with a number of the last publication: their ranges of URLs by its manifest.

    Their numbers also by the published indexes, whether or not they are in the manifest.
    """
    found: dict[int, Shard] = {}
    for file in files_of(last.manifest):
        number, first = _number(str(file.get("name")), suffix, section), file.get("from")
        if number is not None and isinstance(first, str):
            found[number] = Shard(number, first)
    numbers = {_number(name, suffix, section) for names in last.indexes.values() for name in names}
    return OldFiles(list(found.values()), {number for number in numbers if number is not None})


def _number(name: str, suffix: str, section: str) -> int | None:
    found = _NUMBERED.fullmatch(name)
    return int(found[2]) if found and (found[1] or "", found[3]) == (section, suffix) else None


def files_of(old: Manifest | None) -> list[dict[str, Any]]:
    """The descriptions of files in a manifest, without invalid ones."""
    files = (old or {}).get("files")
    return [file for file in files if isinstance(file, dict)] if isinstance(files, list) else []


def left_over(last: Last, kept: Collection[str]) -> list[str]:
    """The files of the last publication that are not in `kept`, entry points first. Some may be removed
    already.

    Only files in the manifest: others with such a name may not be ours. Includes files that an earlier
    publication was about to remove when it was killed.
    """
    left = (last.manifest or {}).get("leaving")
    named = {str(file.get("name")) for file in files_of(last.manifest)}
    named |= set(map(str, left)) if isinstance(left, list) else set()
    ours = {name for name in named if name in (*_ENTRY_POINTS, HTML_PAGE) or _NUMBERED.fullmatch(name)}
    return sorted(ours.difference(kept), key=lambda name: (name not in _ENTRY_POINTS, name))


def publications_before(last: Last, run_id: str, parts: Sequence[Part]) -> tuple[int, ...]:
    """The URLs of earlier publications, without the last one if it is this one, repeated after a crash."""
    known = last.manifest or {}
    sums = [file.get("sha256") for file in files_of(last.manifest)]
    again = known.get("run") == run_id and sums == [part.sha256 for part in parts]
    return last.recent[:-1] if again else last.recent


def _recent(manifest: Manifest | None) -> tuple[int, ...]:
    recent = (manifest or {}).get("publications")
    known = recent if isinstance(recent, list) else []
    return tuple(urls for urls in known if type(urls) is int and urls > 0)


def _urls_of(folder: Path, manifest: Manifest | None) -> int | None:
    """The number of published URLs: by the manifest, unless another program has overwritten its files."""
    stated = _stated(manifest)
    if stated is None:
        return _counted(folder)
    return max(stated, _counted(folder) or 0) if _is_overwritten(folder, manifest) else stated


def _is_overwritten(folder: Path, manifest: Manifest | None) -> bool:
    """Whether an entry point differs from its description in the manifest."""
    for file in files_of(manifest):
        if file.get("name") in _ENTRY_POINTS:
            with suppress(OSError), open(folder / str(file["name"]), "rb") as there:
                return hashlib.file_digest(there, "sha256").hexdigest() != file.get("sha256")
    return False


def _stated(manifest: Manifest | None) -> int | None:
    urls = (manifest or {}).get("urls")
    return urls if isinstance(urls, int) and urls > 0 else None  # an empty sitemap is never published


def _counted(folder: Path) -> int | None:
    """The number of URLs in the largest sitemap of a folder; None if one cannot be read completely."""
    counts = [_urls_in(folder / name) for name in (*_ENTRY_POINTS, *_OTHERS) if (folder / name).exists()]
    known = [count for count in counts if count is not None]
    return max(known, default=0) if len(known) == len(counts) else None


def _urls_in(path: Path, *, is_part: bool = False) -> int | None:
    """The number of URLs in a sitemap, or in all local files of an index; None if unreadable."""
    try:
        if ".jsonl" in path.suffixes:
            return _lines_in(path)
        with open(path, "rb") as file:
            pages, locs, whole = _read(file)
    except (OSError, EOFError, zlib.error):
        return None
    if not whole or (is_part and locs):
        return None
    counts = [_urls_in(_beside(path.parent, loc), is_part=True) for loc in locs]
    known = [count for count in counts if count is not None]
    return pages + sum(known) if len(known) == len(counts) else None


def _beside(folder: Path, loc: str) -> Path:
    """The local path of a file in an index: in the same folder or below."""
    below = [folder / name for name in _names_of(loc)]
    return next((path for path in below if is_file(path)), below[0] if below else folder)


def is_file(path: Path) -> bool:
    """Whether there is such a file; False for an impossible name."""
    try:
        return path.is_file()
    except OSError:  # a name that is too long
        return False


def _names_of(loc: str) -> list[str]:
    """The names that a file of an index may have, relative to that: in the same folder, or below."""
    parts = [part for part in loc.partition("?")[0].split("/") if part not in {"", ".", ".."}]
    tails = range(len(parts) - 1, max(0, len(parts) - DEEPEST), -1)
    return ["/".join(parts[at:]) for at in tails] or parts


def entry_points(manifest: Manifest | None) -> list[str]:
    """The names that an entry point may have. Without a valid manifest also those of other programs."""
    if _stated(manifest) is None:
        return [*_ENTRY_POINTS, *_OTHERS]
    named = {str(file.get("name")) for file in files_of(manifest)}
    return [*_INDEXES, *sorted(named.intersection(_ENTRY_POINTS).difference(_INDEXES))]


def uncounted(folder: Path) -> list[list[str]]:
    """The files of indexes that `last_of` needs to count the URLs: the names that each may have."""
    manifest = read_manifest(folder)
    if _stated(manifest) is not None and not _is_overwritten(folder, manifest):
        return []
    found = []
    for name in (*_ENTRY_POINTS, *_OTHERS):
        if name.startswith("sitemap.jsonl"):
            continue
        with suppress(OSError, EOFError, zlib.error), open(folder / name, "rb") as file:
            found += [_names_of(loc) for loc in sorted(_read(file)[1])]
    return found


def _files_with_urls(folder: Path, manifest: Manifest | None) -> dict[str, str]:
    """The published files that contain URLs, as in `Last.digests`: by the manifest, or as found."""
    if _stated(manifest) is not None and not _is_overwritten(folder, manifest):
        files = [file for file in files_of(manifest) if file.get("urls")]
        files.sort(key=lambda file: str(file.get("from") or ""))
        named = {str(file.get("name")): str(file.get("sha256")) for file in files}
        return {name: at for name, at in named.items() if name in _ENTRY_POINTS or _NUMBERED.fullmatch(name)}
    names: dict[str, str] = {}
    for name in (*_ENTRY_POINTS, *_OTHERS):
        with suppress(OSError, EOFError, zlib.error), open(folder / name, "rb") as file:
            locs = () if ".jsonl" in name else sorted(_read(file)[1])
            below = [str(_beside(folder, loc).relative_to(folder)) for loc in locs]
            names |= dict.fromkeys(below or [name], "")
    return names


def _lines_in(path: Path) -> int:
    with gzip.open(path) if path.suffix == ".gz" else open(path, "rb") as file:
        return sum(1 for line in file if line.strip())


def _reading(file: IO[bytes]) -> "SitemapReading":
    from crawler.sitemap.read import read  # noqa: PLC0415 - lxml is slow to import and rarely needed here

    return read(iter(lambda: file.read(CHUNK), b""))


def _read(file: IO[bytes]) -> tuple[int, set[str], bool]:
    """Pages of a sitemap, files of an index, and whether it was read completely."""
    reading, pages, locs = _reading(file), 0, set()
    for found in reading:
        if found.kind == "page":
            pages += 1
        else:
            locs.add(found.loc)
    return pages, locs, reading.malformed is None


def _indexes(folder: Path) -> dict[str, set[str]]:
    """The indexes in a folder, with the names of their files."""
    indexes: dict[str, set[str]] = {}
    for entry in _INDEXES:
        with suppress(OSError), open(folder / entry, "rb") as file:
            for found in _reading(file):
                if found.kind == "page":
                    break
                indexes.setdefault(entry, set()).add(found.loc.rpartition("/")[2])
    return indexes


def place_of(url: Url, folder: Path) -> tuple[str, int] | None:
    """The published file that contains a URL, and the number of its entry, from 1.

    Reads one file of each section at most.
    """
    files = sorted(files_of(read_manifest(folder)), key=lambda file: str(file.get("from") or ""))
    # The last one of each section whose range begins before the URL.
    below: dict[str, str] = {}
    for file in files:
        name = Path(str(file.get("name"))).name
        if file.get("urls") and str(file.get("from") or "") <= url:
            numbered = _NUMBERED.fullmatch(name)
            below[numbered[1] or "" if numbered else ""] = name
    for name in below.values():
        with suppress(OSError), open(folder / name, "rb") as opened:
            for number, found in enumerate(_reading(opened), 1):
                if found.loc == url:
                    return name, number
    return None
