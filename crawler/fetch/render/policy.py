"""What a page may request while its scripts run, and what is added to the page so that it tries nothing else.
Pure.

Only GET; images, media and fonts are not loaded; other origins only for scripts and what scripts fetch. `CSP`
shuts the same doors inside the browser, and those that no request shows: popups, downloads, forms,
WebSockets, WebRTC. Behind both there is no network: see `chromium`.
"""

import re
from collections.abc import Iterable, Mapping
from enum import Enum
from typing import Final

from crawler.parse import url as urls
from crawler.parse.url import Url

MAX_REQUESTS: Final = 300  # of one page
MAX_BYTES: Final = 50_000_000  # of their answers, decoded

CSP: Final = (
    "sandbox allow-scripts allow-same-origin; "
    "default-src http: https: data: blob: 'unsafe-inline' 'unsafe-eval'; "
    "connect-src http: https: data: blob:; img-src 'none'; media-src 'none'; font-src 'none'; "
    "object-src 'none'; manifest-src 'none'; frame-src 'self'; form-action 'none'; webrtc 'block'"
)
"""Added to the policies of the page (CSP 3; `webrtc`: 6.3.1).

Without allow-popups, -downloads, -forms and -modals.
"""

# Resource types of the DevTools protocol. What `fetch()` requests has the type XHR; scripts of workers have
# Other.
_ANYWHERE: Final = frozenset({"Script", "XHR", "Fetch"})
_OWN: Final = _ANYWHERE | {"Document", "Stylesheet", "Other"}
CACHED: Final = frozenset({"Script", "Stylesheet", "Other"})
"""Types whose answers are kept for the run."""

# Our own, of connections, or of conditional and partial requests; cookies are those of --cookie-file.
_NEVER: Final = frozenset({
    "user-agent", "cookie", "host", "connection", "keep-alive", "te", "trailer", "transfer-encoding",
    "upgrade", "expect", "content-length", "content-type", "accept-encoding", "accept-charset", "range",
    "cache-control", "pragma", "dnt", "via", "upgrade-insecure-requests",
})  # fmt: skip
_NEVER_PREFIXES: Final = ("sec-", "proxy-", "if-", "access-control-", "x-forwarded-")
# As a browser writes it, without credentials; `Url` promises no less.
_URL: Final = re.compile(r"https?://(?:\[[0-9a-f:.]+\]|[a-z0-9._~%!$&'()*+,;=-]+)(?::[0-9]{1,5})?/[!-~]*")
_NAME: Final = re.compile(r"[a-z0-9!#$%&'*+.^_`|~-]{1,100}")
_VALUE: Final = re.compile(r"[\t -~\x80-\xff]{0,4000}")
# The browser refuses a response with other characters in its headers.
_SHOWABLE: Final = re.compile(r"[\t -~]*")
MAX_HEADERS: Final = 30
# Of a response: framing, which is undone; cookies, which no later request would carry; reports, which could
# not be sent.
_DROPPED: Final = frozenset({
    "content-encoding", "content-length", "transfer-encoding", "connection", "keep-alive", "trailer",
    "upgrade", "set-cookie", "alt-svc", "nel", "report-to", "reporting-endpoints", "clear-site-data",
    "strict-transport-security", "content-security-policy-report-only", "speculation-rules",
})  # fmt: skip


class RequestAnswer(Enum):
    """What becomes of a request."""

    FETCH = "fetch"
    PREFLIGHT = "preflight"  # allowed here: the answer to the request itself decides what the script may read
    EMPTY_STYLE = "empty style"  # scripts may wait for a style sheet
    REFUSE = "refuse"


def answer(kind: str, method: str, url: str, headers: Mapping[str, str], page: Url) -> RequestAnswer:
    """What becomes of a request of `page`. `kind`: its resource type in the DevTools protocol."""
    if len(url) > urls.LONGEST_URL or not _URL.fullmatch(url):
        return RequestAnswer.REFUSE
    if method == "OPTIONS":
        return RequestAnswer.PREFLIGHT
    if method != "GET" or kind not in _OWN or _is_speculative(headers):
        return RequestAnswer.REFUSE
    if kind in _ANYWHERE or urls.origin(url) == urls.origin(page):
        return RequestAnswer.FETCH
    return RequestAnswer.EMPTY_STYLE if kind == "Stylesheet" else RequestAnswer.REFUSE


def _is_speculative(headers: Mapping[str, str]) -> bool:
    """Whether it is a prefetch, or a stream of events, which never ends."""
    named = {name.lower(): value for name, value in headers.items()}
    return "purpose" in named or "sec-purpose" in named or named.get("accept") == "text/event-stream"


def forwarded(headers: Mapping[str, str]) -> dict[str, str]:
    """The headers of a script's request that are sent; credentials of the settings come first."""
    kept: dict[str, str] = {}
    for name, value in headers.items():
        lower = name.lower()
        if lower in _NEVER or lower.startswith(_NEVER_PREFIXES):
            continue
        if _NAME.fullmatch(lower) and _VALUE.fullmatch(value) and len(kept) < MAX_HEADERS:
            kept[lower] = value
    return {"accept": "*/*", **kept}


def returned(headers: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """The headers of a response that the browser gets."""
    return [
        (name, value)
        for name, value in headers
        if name not in _DROPPED and _NAME.fullmatch(name) and _SHOWABLE.fullmatch(value)
    ]


def of_document(headers: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """The headers of a document, with the policy that applies to all."""
    return [*returned(headers), ("content-security-policy", CSP), ("x-dns-prefetch-control", "off")]


def allowing(headers: Mapping[str, str]) -> list[tuple[str, str]]:
    """The answer to a preflight (Fetch Standard, CORS preflight)."""
    fields = {name.lower(): value for name, value in headers.items()}
    return [
        ("access-control-allow-origin", fields.get("origin", "null")),
        ("access-control-allow-headers", fields.get("access-control-request-headers", "")),
        ("access-control-allow-methods", "GET"),
        ("access-control-allow-credentials", "true"),
    ]
