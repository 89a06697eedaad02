"""The result of a publication, as callers and `swap` and `upload` see it."""

from msgspec import Struct


class File(Struct, frozen=True):
    """A published file. `size`: bytes on disk."""

    name: str
    urls: int
    size: int
    unchanged: bool
    sha256: str = ""


class Published(Struct, frozen=True):
    """The result of a publication."""

    files: tuple[File, ...]
    urls: int
    folder: str
    robots_line: str  # empty for a format that no search engine reads
    refused: int = 0  # URLs that are not allowed in a sitemap
    # URLs added, removed, and with another date, compared with the files that were there.
    added: int = 0
    removed: int = 0
    changed: int = 0
    optional: int = 0  # optional elements of all its URLs together, such as images

    @property
    def changes(self) -> tuple[int, int, int]:
        """How many URLs were added, removed and changed."""
        return self.added, self.removed, self.changed
