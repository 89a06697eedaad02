"""What is extracted of a page beside its links.

Names only, without the parser, which commands that read the state do not load.
"""

from enum import Enum
from typing import Final

BYTES: Final = "="  # begins a digest of the bytes that stands for an unknown content
WORDING_DIGITS: Final = 6  # the first ones; compared with those of the same page only

LABEL: Final = 0x8000  # a bit of the digest of a piece of text that is a word or a few


class Extract(Enum):
    """What is extracted from a page on request, besides links and directives."""

    DATES = "dates"  # that it states
    FINGERPRINT = "fingerprint"  # of its content
    PIECES = "pieces"  # digests of its text in order, if it is new
    BLOCKS = "blocks"  # digests of the pieces of its text
    ECHOLESS = "echoless"  # the fingerprint is without what repeats the URL
    VALUELESS = "valueless"  # the fingerprint is without pieces of text that repeat a value of the query
    CALENDAR = "calendar"  # the fingerprint is without the date of the URL and its neighbours
    SPARING = "sparing"  # the fingerprint is needed only if the page links to queries
    VERSIONS = "versions"  # in other languages
    IMAGES = "images"
    FILES = "files"  # scripts and style sheets that it loads
    ANCHORS = "anchors"  # what its links say, and where they stand
    PICTURES = "pictures"  # the same of its images, scripts and style sheets, in place of links
    SCRIPTS = "scripts"  # how much text it has, if it runs scripts


def wording(version: str) -> str:
    """What shows whether two versions of a page differ in more than links.

    A version is a fingerprint, or a digest of the bytes.
    """
    return version if version.startswith(BYTES) else version[:WORDING_DIGITS]
