"""Validates what extensions add to an entry of an XML sitemap: images, language versions, news, videos.

`xml` reads the elements of the protocol itself; the values of fields are validated in `values`.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from msgspec import Struct, field

from crawler.model.protocol import MAX_IMAGES
from crawler.sitemap.validate import values
from crawler.sitemap.validate.findings import FaultCode
from crawler.sitemap.validate.values import EXTENSIONS, Extension

if TYPE_CHECKING:
    from crawler.sitemap.validate.file import Check

MOST_VERSIONS: Final = 1_000  # language versions of one entry that are read
_UNKNOWN: Final = Extension("", {}, {}, {})


class SitemapEntry(Struct, eq=False):
    """The url or sitemap element being read."""

    line: int
    name: str
    has: set[str] = field(default_factory=set)
    last: str = ""  # the latest field so far, in the order of the schema
    extras: dict[str, int] = field(default_factory=dict)  # number of each element of an extension
    loc: str = ""
    versions: dict[str, None] = field(default_factory=dict)  # URLs of its language versions
    images: set[str] = field(default_factory=set)  # URLs of its images
    repeats: bool = False  # one of them was there twice, and reported


class _Extra(Struct, eq=False):
    """The element of an extension being read."""

    extension: Extension
    name: str
    line: int
    has: set[str] = field(default_factory=set)


class ExtensionCheck:
    """The elements of extensions in one file."""

    def __init__(self, report: "Check") -> None:
        self._report = report
        self._open: list[_Extra] = []
        self._retired: set[str] = set()  # retired elements that were reported: once in a file

    @property
    def is_open(self) -> bool:
        """Whether an element of an extension is being read."""
        return bool(self._open)

    def begin(
        self, entry: SitemapEntry, space: str, local: str, attributes: Mapping[str, str], line: int
    ) -> None:
        """The start of an element."""
        extension = EXTENSIONS.get(space)
        outer = self._open[-1] if self._open else None
        if extension is None and outer is None:
            self._report.add(FaultCode.EXTENSION, line, space or f"<{local}> without a namespace")
            extension = _UNKNOWN
        elif extension is None:
            extension = _UNKNOWN
        name = f"{extension.prefix}:{local}"
        if outer is None:
            self._count(entry, extension, local, line)
        elif outer.extension is not _UNKNOWN and outer.name in outer.extension.fields:
            outer.has.add(local)
            if local not in outer.extension.fields[outer.name]:
                self._report.add(
                    FaultCode.EXTENSION_FIELD, line, name, f"{outer.extension.prefix}:{outer.name}"
                )
        if extension.prefix == "xhtml" and local == "link":
            self._report.add_all(values.check_link(attributes), line)
            self._version(entry, attributes)
        self._open.append(_Extra(extension, local, line))

    def _version(self, entry: SitemapEntry, attributes: Mapping[str, str]) -> None:
        """Notes a language version that is complete."""
        href = attributes.get("href", "")
        if attributes.get("rel") != "alternate" or not attributes.get("hreflang"):
            return
        if href.startswith(("http://", "https://")) and len(entry.versions) < MOST_VERSIONS:
            entry.versions[href] = None

    def _count(self, entry: SitemapEntry, extension: Extension, local: str, line: int) -> None:
        name = f"{extension.prefix}:{local}"
        if extension.fields and local not in extension.fields:
            self._report.add(FaultCode.EXTENSION_FIELD, line, name, entry.name)
        entry.extras[name] = entry.extras.get(name, 0) + 1
        most = extension.most.get(local)
        if most is not None and entry.extras[name] == most + 1:
            self._report.add(FaultCode.EXTENSION_MANY, line, most, name)

    def end(self, entry: SitemapEntry, local: str, text: str, line: int) -> None:
        """The end of an element that contains `text`."""
        extra = self._open.pop()
        prefix = extra.extension.prefix
        for wanted in extra.extension.required.get(local, ()):
            if not extra.has.intersection(wanted.split("|")):
                self._report.add(
                    FaultCode.EXTENSION_MISSING,
                    extra.line,
                    f"{prefix}:{local}",
                    f"{prefix}:{wanted.replace('|', ' or ')}",
                )
        if self._open and extra.extension is not _UNKNOWN:
            self._report.add_all(values.check_value(prefix, local, text), line)
            if prefix == "image":
                self._image(entry, local, text, line)

    def _image(self, entry: SitemapEntry, local: str, text: str, line: int) -> None:
        if local in values.RETIRED and local not in self._retired:
            self._retired.add(local)
            self._report.add(FaultCode.IMAGE_RETIRED, line, f"image:{local}")
        if local != "loc":
            return
        self._report.add_all(values.check_image(text), line)
        if text in entry.images and not entry.repeats:
            entry.repeats = True
            self._report.add(FaultCode.IMAGE_REPEATED, line, text)
        elif len(entry.images) < MAX_IMAGES:
            entry.images.add(text)
