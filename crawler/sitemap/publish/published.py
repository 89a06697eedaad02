"""The result of a publication, as callers and `swap` and `upload` see it."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class File:
    """A published file. `size`: bytes on disk."""

    name: str
    urls: int
    size: int
    unchanged: bool
    sha256: str = ""


@dataclass(frozen=True, slots=True)
class Published:
    """The result of a publication."""

    files: tuple[File, ...]
    urls: int
    folder: str
    robots_line: str  # empty for a format that no search engine reads
    refused: int = 0  # URLs that are not allowed in a sitemap
    optional: int = 0  # optional elements of all its URLs together, such as images
