"""The catalogue of findings: the code, severity and heading of each, and a sentence that says why it matters.

Codes are stable: they are used in `--fail-on`, reports and alerts, and never change their meaning. The rules
for each finding are in `findings`; how to fix each is in docs/use/report.md.
"""

from enum import Enum
from typing import Final, Self


class Severity(Enum):
    """How severe a finding is, the most severe first."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


class Code(Enum):
    """A kind of finding. Reports list them in this order."""

    severity: Severity
    heading: str
    says: str

    def __new__(cls, code: str, severity: Severity, heading: str, says: str) -> Self:
        """`code` is the value of the member; the others become attributes."""
        member = object.__new__(cls)
        member._value_ = code
        member.severity, member.heading, member.says = severity, heading, says
        return member

    BROKEN_LINK = (
        "broken-link", Severity.ERROR, "Broken links",
        "Visitors who follow a link to one of these URLs get an error page (404 or 410), perhaps after a "
        "redirect.",
    )  # fmt: skip
    SERVER_ERROR = (
        "server-error", Severity.ERROR, "Server errors",
        "The server responded with an error (5xx) to these URLs, and to the retries.",
    )  # fmt: skip
    UNREACHABLE = (
        "unreachable", Severity.ERROR, "No usable response",
        "These URLs gave no response, or none that could be read.",
    )  # fmt: skip
    REDIRECT_LOOP = (
        "redirect-loop", Severity.ERROR, "Redirects without an end",
        "These redirects are a loop, too many in a row, or have no valid target.",
    )  # fmt: skip
    CANONICAL_BROKEN = (
        "canonical-broken", Severity.ERROR, "Canonical URL fails",
        "These pages ask to be indexed under a URL that fails, so they may not be indexed at all.",
    )  # fmt: skip
    SITEMAP_STALE = (
        "sitemap-stale", Severity.ERROR, "Stale entries in sitemaps",
        "A sitemap of the site contains these URLs, which cannot be indexed.",
    )  # fmt: skip
    BROKEN_EXTERNAL = (
        "broken-external", Severity.ERROR, "Broken links to other sites",
        "Visitors who follow a link to one of these URLs on other sites get no page.",
    )  # fmt: skip
    CLIENT_ERROR = (
        "client-error", Severity.WARNING, "Other client errors (4xx)",
        "The server responds with 4xx to these URLs, other than 404, 410 and those of restricted pages.",
    )  # fmt: skip
    CANONICAL_CHAIN = (
        "canonical-chain", Severity.WARNING, "Canonical URL is not indexable",
        "These pages name a canonical URL that is not listed itself.",
    )  # fmt: skip
    NOINDEX_CANONICAL = (
        "noindex-canonical", Severity.WARNING, "Both noindex and a canonical URL",
        "These pages say noindex and name another page as canonical: search engines have to choose.",
    )  # fmt: skip
    CANONICAL_CONFLICT = (
        "canonical-conflict", Severity.WARNING, "Canonical URL is ignored",
        "The canonical URL of these pages fails, leads back to them, or is one of several: it is ignored.",
    )  # fmt: skip
    NOINDEX_FOR_BOT = (
        "noindex-for-bot", Severity.WARNING, "Noindex for one search engine",
        "These listed pages are marked noindex for a search engine that --bots does not name.",
    )  # fmt: skip
    REDIRECT_CHAIN = (
        "redirect-chain", Severity.WARNING, "Redirect chains",
        "These redirects take two hops or more.",
    )  # fmt: skip
    REDIRECT_LINKED = (
        "redirect-linked", Severity.WARNING, "Links to redirects",
        "Pages link to these redirects instead of their targets.",
    )  # fmt: skip
    ORPHAN = (
        "orphan", Severity.WARNING, "Orphans",
        "These listed pages are not linked by any page: only a sitemap or --input contains them.",
    )  # fmt: skip
    VANISHED = (
        "vanished", Severity.WARNING, "Listed pages that are no longer linked",
        "The last sitemap listed these pages, and no link leads to them any more, so they are not listed.",
    )  # fmt: skip
    DUPLICATE_CONTENT = (
        "duplicate-content", Severity.WARNING, "Duplicate content",
        "Each item is a group of listed pages with the same title and text.",
    )  # fmt: skip
    DUPLICATE_TITLE = (
        "duplicate-title", Severity.WARNING, "Duplicate titles",
        "Each item is a group of listed pages with the same title, and not all with the same text.",
    )  # fmt: skip
    HREFLANG_NO_RETURN = (
        "hreflang-no-return", Severity.WARNING, "Language versions without a return link",
        "These pages name language versions that do not name them, so search engines ignore both links.",
    )  # fmt: skip
    HREFLANG_CODE = (
        "hreflang-code", Severity.WARNING, "Invalid hreflang codes",
        "These pages name versions under codes that search engines do not know.",
    )  # fmt: skip
    HREFLANG_TARGET = (
        "hreflang-target", Severity.WARNING, "Language versions that are not listed",
        "These pages name language versions that are not indexable themselves.",
    )  # fmt: skip
    HREFLANG_CONFLICT = (
        "hreflang-conflict", Severity.WARNING, "Conflicting language versions",
        "These pages name several URLs for one code, so none of them counts.",
    )  # fmt: skip
    HREFLANG_NO_SELF = (
        "hreflang-no-self", Severity.WARNING, "Language versions without the page itself",
        "These pages do not name themselves among their versions; the sitemap adds them if the others agree "
        "on their code.",
    )  # fmt: skip
    IMAGES_CUT = (
        "images-cut", Severity.WARNING, "More images than search engines read",
        "Search engines read 1,000 images of a page: the sitemap has the first 1,000 of these pages.",
    )  # fmt: skip
    BROKEN_IMAGE = (
        "broken-image", Severity.WARNING, "Broken images",
        "Visitors see no picture where one of these images should be.",
    )  # fmt: skip
    BROKEN_SCRIPT = (
        "broken-script", Severity.WARNING, "Broken scripts",
        "Pages may not work, or show less, without these scripts, also to search engines.",
    )  # fmt: skip
    BROKEN_STYLE = (
        "broken-style", Severity.WARNING, "Broken style sheets",
        "Pages look wrong without these style sheets, also to search engines.",
    )  # fmt: skip
    BLOCKED_FILE = (
        "blocked-file", Severity.WARNING, "Files that robots.txt disallows",
        "Pages load these files, and robots.txt disallows them: search engines that obey such a line see "
        "pages without them.",
    )  # fmt: skip
    TRAP = (
        "trap", Severity.WARNING, "Crawler traps",
        "The site generates endless URLs of these patterns; the crawl skipped them.",
    )  # fmt: skip
    LASTMOD_LIES = (
        "lastmod-lies", Severity.WARNING, "Unreliable Last-Modified",
        "Most Last-Modified headers of these hosts are wrong, so none of them is used as a date.",
    )  # fmt: skip
    ROBOTS_LINE = (
        "robots-line", Severity.WARNING, "robots.txt does not name the sitemap",
        "Search engines find the sitemap by a line in robots.txt.",
    )  # fmt: skip
    HASH_ROUTES = (
        "hash-routes", Severity.WARNING, "Links to hash routes",
        "These pages link to addresses like #/about, which search engines take for the page itself.",
    )  # fmt: skip
    NOT_RENDERED = (
        "not-rendered", Severity.WARNING, "Pages that were not rendered",
        "The scripts of these pages did not end, or the browser did: only their HTML was judged.",
    )  # fmt: skip
    RESTRICTED = (
        "restricted", Severity.INFO, "Links to restricted pages",
        "Visitors may need a login or a permission for these URLs (401, 403, 405, 407 or 451).",
    )  # fmt: skip
    ROBOTS_LINKED = (
        "robots-linked", Severity.INFO, "Links to disallowed URLs",
        "Pages link to these URLs, which robots.txt disallows.",
    )  # fmt: skip
    NOINDEX_LINKED = (
        "noindex-linked", Severity.INFO, "Links to noindex pages",
        "Pages link to these pages, which are marked noindex.",
    )  # fmt: skip
    NEEDS_SCRIPTS = (
        "needs-scripts", Severity.INFO, "Pages that need scripts",
        "These pages lack much without JavaScript: search engines see it late, and some not at all.",
    )  # fmt: skip
    NO_LASTMOD = (
        "no-lastmod", Severity.INFO, "Listed without a date",
        "No reliable date of these pages is known, so the sitemap contains none.",
    )  # fmt: skip
    LASTMOD_UNIFORM = (
        "lastmod-uniform", Severity.INFO, "One date on every page",
        "All listed pages have the same date, so search engines ignore it.",
    )  # fmt: skip


NOUNS: Final = {
    Code.TRAP: "pattern",
    Code.LASTMOD_LIES: "host",
    Code.LASTMOD_UNIFORM: "date",
    Code.ROBOTS_LINE: "line",
    Code.BROKEN_IMAGE: "image",
    Code.BROKEN_SCRIPT: "script",
    Code.BROKEN_STYLE: "style sheet",
    Code.BLOCKED_FILE: "file",
}
"""What the items of a code are, if not URLs that have the fault themselves."""
BROKEN_FILES: Final = {
    "images": Code.BROKEN_IMAGE,
    "scripts": Code.BROKEN_SCRIPT,
    "styles": Code.BROKEN_STYLE,
}
"""By the kind of files that pages load: the code of those that do not answer."""
FILES: Final = frozenset({*BROKEN_FILES.values(), Code.BLOCKED_FILE})
"""Codes whose items are such files."""
GROUPED: Final = frozenset({Code.DUPLICATE_CONTENT, Code.DUPLICATE_TITLE})
"""Codes whose items are groups of pages."""
COMPARED: Final = frozenset(Code) - GROUPED - FILES - {
    Code.VANISHED, Code.TRAP, Code.LASTMOD_LIES, Code.ROBOTS_LINE, Code.NO_LASTMOD, Code.LASTMOD_UNIFORM,
}  # fmt: skip
"""Codes whose findings are of one URL each, which the run before had or not."""
LEADING: Final = frozenset({Code.REDIRECT_CHAIN, Code.REDIRECT_LINKED, Code.NOINDEX_CANONICAL})
"""Codes whose detail is where a URL leads."""
NEEDS_COMPLETE: Final = frozenset(
    {
        Code.ORPHAN, Code.VANISHED,
        Code.SITEMAP_STALE, Code.DUPLICATE_CONTENT, Code.DUPLICATE_TITLE, Code.LASTMOD_LIES,
        Code.LASTMOD_UNIFORM,
        Code.NO_LASTMOD, Code.HREFLANG_NO_RETURN, Code.HREFLANG_TARGET, Code.IMAGES_CUT,
    }
)  # fmt: skip
"""Codes that need a complete run: until then, links, dates and duplicates are undecided."""
