"""Recognises the answer that a firewall or a bot check gives in place of the site. Pure.

A header field that only such an answer has decides; or else what a short page loads and runs, never a word of
its text alone, since pages also embed such checks and write about them. What follows from it is decided where
replies are used: it says nothing of the page that was asked for.
"""

import re
from typing import Final

from msgspec import Struct

from crawler.model.reply import Headers
from crawler.parse import headers as fields
from crawler.parse.elements import Elements, elements
from crawler.parse.late import late

LONGEST: Final = 65_536  # bytes of a page that may be such an answer
MOST_TEXT: Final = 2_000  # characters of its text
MOST_LINKS: Final = 12
MOST_RESOURCES: Final = 8
MOST_OPENED: Final = 600  # characters of text of a page that is recognised by how it opens

REFUSING: Final = frozenset({401, 403, 405, 429})
"""Statuses with which a field counts that is also sent with the answers of the site."""

# Redirects have no page, and what is not found is an answer of the site.
_WITHOUT_PAGE: Final = frozenset({204, 205, 304, 404, 410})


class FieldMark(Struct, frozen=True):
    """A header field that only the answer of a firewall has."""

    wall: str
    name: str  # in lower case
    value: str = ""  # how its value begins, in lower case
    statuses: frozenset[int] = frozenset()  # with which it counts; none: with any


class PageMark(Struct, frozen=True):
    """What the page of a firewall has. All that is given must be found."""

    wall: str
    resource: bytes = b""  # part of an address of a script, frame, image, style, form or refresh
    frame: bytes = b""  # part of the address of a frame
    code: bytes = b""  # part of a script in the page
    id: bytes = b""  # id of an element
    opening: bytes = b""  # how the text begins, of a page that has hardly more
    text: bytes = b""  # in the text
    is_empty: bool = False  # there is nothing else: no text, no link, no title, no other resource
    statuses: frozenset[int] = frozenset()  # with which it counts; none: with any

    @property
    def shown(self) -> str:
        """What was recognised, for people."""
        return next(filter(None, (self.resource, self.frame, self.code, self.id, self.opening))).decode()


FIELDS: Final = (
    FieldMark("Cloudflare", "cf-mitigated"),
    FieldMark("AWS WAF", "x-amzn-waf-action"),
    FieldMark("Vercel", "x-vercel-mitigated"),
    FieldMark("Vercel", "x-vercel-challenge-token"),
    FieldMark("Sucuri", "x-sucuri-block"),
    FieldMark("SiteGround", "sg-captcha"),
    FieldMark("DataDome", "x-dd-b"),
    # Also sent with pages that it let pass.
    FieldMark("DataDome", "x-datadome", "", REFUSING),
    FieldMark("DataDome", "server", "datadome", REFUSING),
    FieldMark("Kasada", "x-kpsdk-ct", "", frozenset({429})),
    FieldMark("Akamai", "sec-cp-challenge"),
    FieldMark("Akamai", "server", "akamaighost", frozenset({403})),
    FieldMark("Anubis", "set-cookie", "techaro.lol-anubis-cookie-verification="),
    FieldMark("Radware", "location", "https://validate.perfdrive.com/"),
)

PAGES: Final = (
    PageMark("Anubis", resource=b"/.within.website/"),
    PageMark("Anubis", id=b"anubis_challenge"),
    PageMark("go-away", resource=b"/.well-known/.git.gammaspectra.live/"),
    PageMark("Cloudflare", code=b"_cf_chl_opt"),
    # Its page for errors of the site is the same, with other statuses.
    PageMark("Cloudflare", id=b"cf-error-details", text=b"Ray ID", statuses=REFUSING),
    PageMark("AWS WAF", code=b"window.gokuProps"),
    PageMark("AWS WAF", opening=b"403 ERROR The request could not be satisfied. Request blocked."),
    PageMark("Imperva", frame=b"/_Incapsula_Resource"),
    # Also loaded by the pages of the site.
    PageMark("Imperva", resource=b"/_Incapsula_Resource", is_empty=True),
    PageMark("Imperva", code=b"onProtectionInitialized", text=b"Pardon Our Interruption"),
    PageMark("DataDome", resource=b"captcha-delivery.com/"),
    PageMark("HUMAN", code=b"_pxUuid"),
    PageMark("HUMAN", id=b"px-captcha"),
    PageMark("Akamai", resource=b"/_sec/cp_challenge/"),
    PageMark("Akamai", code=b"/_sec/verify?provider=interstitial"),
    PageMark("Akamai", id=b"sec-if-cpt-container"),
    PageMark("Akamai", opening=b"Access Denied You don't have permission to access", text=b"&#32;&#35;"),
    PageMark("Fastly", resource=b"/_fs-ch-"),
    PageMark("F5", opening=b"The requested URL was rejected.", text=b"support ID is"),
    PageMark("F5", opening=b"Please enable JavaScript to view the page content.", text=b"support ID is"),
    PageMark("DDoS-Guard", resource=b"/.well-known/ddos-guard/js-challenge/"),
    PageMark("DDoS-Guard", resource=b"/.well-known/ddos-guard/ddg-captcha-page/"),
    PageMark("Kasada", code=b"KPSDK.now"),
    PageMark("Reblaze", code=b"window.rbzns"),
    PageMark("Sucuri", code=b"sucuri_cloudproxy_js"),
    PageMark("SiteGround", resource=b"/.well-known/sgcaptcha/"),
    PageMark("Qrator", resource=b"/__qrator/"),
    PageMark("Imunify360", code=b"wsidchk"),
    PageMark("Bunny Shield", resource=b"/.bunny-shield/"),
    PageMark("SafeLine", resource=b"/.safeline/"),
    PageMark("Alibaba Cloud WAF", code=b"acw_sc__v2"),
    PageMark("Hostinger", code=b"/hcdn-cgi/jschallenge"),
    PageMark("Wordfence", opening=b"Your access to this site has been limited", text=b"Wordfence"),
)
# Most replies have none of these fields.
_NAMES: Final = frozenset(field.name for field in FIELDS if not field.statuses)
_NAMES_REFUSING: Final = frozenset(field.name for field in FIELDS)
_REFUSING: Final = frozenset().union(*(field.statuses for field in FIELDS))
_HINTS: Final = frozenset(mark.text or mark.shown.encode() for mark in PAGES)
_SCRIPT: Final = late(rb"<script", re.IGNORECASE)
_IN_SCRIPTS: Final = tuple(_HINTS & {mark.code for mark in PAGES})
_DOTTED: Final = tuple(hint for hint in _HINTS if hint.startswith(b"/."))
_ANYWHERE: Final = tuple(_HINTS - {*_IN_SCRIPTS, *_DOTTED})


def may_be_page(status: int, headers: Headers) -> bool:
    """Whether a reply of which only the header is in may be a page of a firewall."""
    is_redirect = 300 <= status < 400
    return not (is_redirect or status in _WITHOUT_PAGE) and _is_html(headers)


def wall_of(status: int, headers: Headers, body: bytes = b"") -> str:
    """Which firewall answered, and how that shows; "" if it was the site. `body`: decoded, if it was read."""
    if headers.has_any(_NAMES_REFUSING if status in _REFUSING else _NAMES):
        for field in FIELDS:
            if (not field.statuses or status in field.statuses) and any(
                value.strip().lower().startswith(field.value) for value in headers.all(field.name)
            ):
                return f"{field.wall} ({field.name})"
    return _wall_of_page(status, body) if body and may_be_page(status, headers) else ""


def _wall_of_page(status: int, body: bytes) -> str:
    if len(body) >= LONGEST or _links_much(body) or not _has_hint(body):
        return ""
    seen = elements(body)
    if seen.links > MOST_LINKS or len(seen.resources) > MOST_RESOURCES or len(seen.text) > MOST_TEXT:
        return ""
    return next((f"{mark.wall} ({mark.shown})" for mark in PAGES if _has(status, seen, mark)), "")


def _has_hint(body: bytes) -> bool:
    """Whether a word of a mark is on the page. By `find`: `in` first tries to read the word as a number."""
    hints = _ANYWHERE
    if body.find(b"/.") >= 0:
        hints += _DOTTED
    if body.find(b"<script") >= 0 or _SCRIPT.search(body):
        hints += _IN_SCRIPTS
    return any(body.find(hint) >= 0 for hint in hints)


def _links_much(body: bytes) -> bool:
    """Whether there are too many links, without reading much of a page that has them."""
    return len(body.split(b"<a ", MOST_LINKS + 1)) > MOST_LINKS + 1


def _has(status: int, seen: Elements, mark: PageMark) -> bool:
    return (
        (not mark.statuses or status in mark.statuses)
        and (not mark.resource or any(mark.resource in one for one in seen.resources))
        and (not mark.frame or any(mark.frame in one for one in seen.frames))
        and (not mark.code or any(mark.code in one for one in seen.scripts))
        and (not mark.id or mark.id in seen.ids)
        and (not mark.opening or (seen.text.startswith(mark.opening) and len(seen.text) <= MOST_OPENED))
        and mark.text in seen.text
        and (not mark.is_empty or _is_empty(seen, mark.resource))
    )


def _is_empty(seen: Elements, resource: bytes) -> bool:
    alone = all(resource in one for one in seen.resources)
    return alone and not (seen.text or seen.links or seen.has_title)


def _is_html(headers: Headers) -> bool:
    essence = fields.content_type(headers.get("content-type"))[0]
    return essence is None or "html" in essence
