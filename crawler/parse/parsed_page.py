"""What was read of a page. Pure values."""

from typing import Annotated, Final, NamedTuple

from msgspec import Meta

from crawler.parse import anchors as page_anchors
from crawler.parse import files as loaded_files
from crawler.parse import images as shown_images
from crawler.parse.fingerprint import MOST_PIECES, Fingerprint, PageText

MAX_LINKS: Final = 50_000  # distinct links of one page
MAX_CANONICALS: Final = 10  # two different ones are already ignored
MAX_ALTERNATES: Final = 500  # language versions
MAX_IN_HEAD: Final = 500  # links of link elements that are told from others


class ParsedPage(NamedTuple):
    """What a page contains, as written. Hrefs have no surrounding whitespace and no fragment.

    The types of the fields bound what the process that parses risky pages may send.
    """

    base: str  # document base URL
    followed: Annotated[tuple[str, ...], Meta(max_length=MAX_LINKS)] = ()
    # Linked only with nofollow, but for link elements.
    avoided: Annotated[tuple[str, ...], Meta(max_length=MAX_LINKS)] = ()
    # Those of `followed` that only link elements name, which nobody can click; but with nofollow.
    in_head: Annotated[tuple[str, ...], Meta(max_length=MAX_IN_HEAD)] = ()
    canonicals: Annotated[tuple[str, ...], Meta(max_length=MAX_CANONICALS)] = ()
    robots: tuple[tuple[str, str], ...] = ()  # name in lower case, and content, of meta elements
    refresh: tuple[float, str] | None = None  # seconds, and the URL
    encoding: str = "utf-8"
    truncated: bool = False  # there were more links or tags than are read
    dates: tuple[str, ...] = ()  # modification dates that the page states
    content: Fingerprint | None = None  # if requested
    # Of a page whose content is without what repeats the URL: the same with it, but for links to variations.
    echoing: Fingerprint | None = None
    unordered: Fingerprint | None = None  # ignores the order of the pieces of text
    # Digest of the names of its script files; None: it runs no scripts.
    scripts: Annotated[str, Meta(max_length=40)] | None = None
    password: bool = False  # it has a password field
    # Characters of text, if it may be a login form, or what its scripts do is asked for.
    length: int | None = None
    title: str | None = None  # white space folded, and cut
    # Digests of the pieces of text, if the content is not what was known, or on request.
    pieces: Annotated[tuple[int, ...], Meta(max_length=MOST_PIECES)] = ()
    # Without what repeats the URL, if requested; of a page with few, also with it, and without its name.
    said: Annotated[tuple[PageText, ...], Meta(max_length=3)] = ()
    # hreflang and href of language versions, if requested
    alternates: Annotated[tuple[tuple[str, str], ...], Meta(max_length=MAX_ALTERNATES)] = ()
    images: Annotated[tuple[str, ...], Meta(max_length=shown_images.MOST_IMAGES)] = ()  # if requested
    # Kind and URL of the scripts and style sheets that it loads, if requested
    files: Annotated[tuple[tuple[str, str], ...], Meta(max_length=loaded_files.MOST_FILES)] = ()
    anchors: page_anchors.Anchors = ()  # if requested

    @property
    def scripted(self) -> bool:
        return self.scripts is not None
