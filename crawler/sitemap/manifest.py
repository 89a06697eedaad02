"""manifest.json: what lies in the output folder, written down beside it for the next publication and for people.

Whatever it says is checked before it is believed: somebody may have written there.
"""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from crawler.sitemap.shards import Shard
from crawler.sitemap.write import FORMS, Part
from crawler.urls import Url

MANIFEST: Final = "manifest.json"
CHUNK: Final = 65_536  # bytes

_NUMBERED: Final = re.compile(r"sitemap-(\d{5})\.(\w+)", re.ASCII)

Manifest = Mapping[str, Any]


def read_manifest(folder: Path) -> Manifest | None:
    """What was published last; nothing when that cannot be known."""
    try:
        known = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return known if isinstance(known, dict) else None


def count(old: Manifest | None) -> int:
    """How many URLs were published."""
    urls = (old or {}).get("urls")
    return urls if isinstance(urls, int) else 0


def facts_of(part: Part) -> dict[str, Any]:
    """What is written down of a file."""
    facts: dict[str, Any] = {"name": part.name, "sha256": part.sha256, "bytes": part.size, "urls": part.urls}
    return facts | ({"from": part.shard.first} if part.shard else {})


def shards_of(old: Manifest | None, form: str) -> list[Shard]:
    """Which range of URLs each file held the last time, as far as a manifest of ours can tell."""
    found = []
    for file in files_of(old):
        name, first = file.get("name"), file.get("from")
        number = _NUMBERED.match(name) if isinstance(name, str) else None
        if number and number[2] == FORMS[form].suffix and isinstance(first, str):
            found.append(Shard(int(number[1]), first))
    return found


def files_of(old: Manifest | None) -> list[dict[str, Any]]:
    """What a manifest says of files, as far as it is ours."""
    files = (old or {}).get("files")
    return [file for file in files if isinstance(file, dict)] if isinstance(files, list) else []


def names_of(old: Manifest | None) -> set[str]:
    """The files of the last publication, as far as a manifest of ours can name them."""
    names = {str(file.get("name")) for file in files_of(old)}
    suffixes = tuple(f".{form.suffix}{gz}" for form in FORMS.values() for gz in ("", ".gz"))
    return {
        name
        for name in names
        if Path(name).name == name and name.startswith("sitemap") and name.endswith(suffixes)
    }


def place_of(url: Url, folder: Path) -> tuple[str, int] | None:
    """In which published file a URL stands, and as the how-manieth entry from 1. Reads that file, and no other."""
    from crawler.sitemap.read import read  # noqa: PLC0415 - lxml takes long to import, and a crawl asks for no place

    known = read_manifest(folder)
    files = sorted(files_of(known), key=lambda file: str(file.get("from") or ""))
    below = [file for file in files if file.get("urls") and str(file.get("from") or "") <= url]
    if not below:
        return None
    path = folder / Path(str(below[-1].get("name"))).name
    try:
        with open(path, "rb") as file:
            for number, found in enumerate(read(iter(lambda: file.read(CHUNK), b"")), 1):
                if found.loc == url:
                    return path.name, number
    except OSError:
        return None
    return None
