"""Reading case files: folders as in `tests/data`, or flat files named by topic."""

import gzip
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

TOPICS = (
    "robots", "robots_real", "url_parse", "url_normalise", "html_tree", "html_links", "html_encoding",
    "html_base_refresh", "srcset", "http_dates", "http_dates_made", "link_header", "conditional", "sitemaps", "xsd",
)  # fmt: skip
# Files whose cases do not say their topic.
FILES = {
    "refresh_content": "html_base_refresh",
    "content_type": "html_encoding",
    "rfc3986_5_4": "url_parse",
    "rfc3986_6_2": "url_normalise",
    "tree": "html_tree",
    "parse": "url_parse",
    "dates_rfc9110": "http_dates_made",
}


@dataclass(frozen=True, slots=True)
class Case:
    """One case, and the topic it counts for."""

    topic: str
    kind: str
    normative: bool
    given: dict[str, Any]


class Unreadable(Exception):  # noqa: N818 - a word for what it is
    """A file that holds no cases."""


def read(folder: Path) -> Iterator[Case]:
    """Every case below a folder. Raises `Unreadable`."""
    for path in sorted(folder.rglob("*")):
        if path.suffix == ".xsd":
            yield Case("xsd", "schema", normative=True, given={"schema": path.read_bytes(), "id": path.name})
        elif path.name.removesuffix(".gz").endswith((".json", ".jsonl")):
            yield from _cases(path)


def _cases(path: Path) -> Iterator[Case]:
    for given in _objects(path):
        stem = path.name.partition(".")[0]
        topic = str(given.get("topic") or FILES.get(stem, stem))
        yield Case(topic, str(given.get("kind")), bool(given.get("normative", True)), given)


def _objects(path: Path) -> Sequence[dict[str, Any]]:
    try:
        content = path.read_bytes()
        text = (gzip.decompress(content) if path.suffix == ".gz" else content).decode()
        if ".jsonl" in path.suffixes:
            return [json.loads(line) for line in text.splitlines() if line.strip()]
        found = json.loads(text)
    except (OSError, ValueError) as error:
        raise Unreadable(f"{path}: {error}") from error
    if isinstance(found, dict):
        found = found.get("cases", [])
    if not isinstance(found, list) or not all(isinstance(case, dict) for case in found):
        raise Unreadable(f"{path}: is no list of cases")
    return found
