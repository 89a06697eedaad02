"""What is extracted of a page beside its links.

Names only, without the parser, which commands that read the state do not load.
"""

from enum import Enum


class Extract(Enum):
    """What is extracted from a page on request, besides links and directives."""

    DATES = "dates"  # that it states
    FINGERPRINT = "fingerprint"  # of its content
    CALENDAR = "calendar"  # the fingerprint is without numbers and months
    DIGEST = "digest"  # of the bytes will do in place of the fingerprint, unless the page links to queries
    VERSIONS = "versions"  # in other languages
    IMAGES = "images"
    SCRIPTS = "scripts"  # signs that it needs scripts
