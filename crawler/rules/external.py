"""What a reply says about a URL of another site: whether a link to it is broken. Pure.

"Broken" must be certain: what may only be aimed at crawlers is "unknown". When it is asked again, and which
of two replies counts, is decided in `engine.external`.
"""

from collections import Counter, defaultdict
from typing import Final

from crawler.model.external import Answer, DueLink
from crawler.model.outcome import HTML
from crawler.model.protocol import REDIRECTS
from crawler.model.reasons import Cause
from crawler.model.reply import Broken, Reply, Response
from crawler.parse import url as urls
from crawler.parse.headers import content_type
from crawler.rules.redirects import Redirects, Stopped

REFUSING: Final = frozenset({401, 403, 407, 408, 425, 429, 451, 999})
"""Statuses by which a host declines to tell: a login, a block of crawlers or of a country, too many requests.
"""

GONE_STATUSES: Final = frozenset({404, 410})

AGAIN: Final = 10
"""How many times further back the place of a link is that was checked before, in an earlier run."""

ANSWER_BY_CAUSE: Final = {
    Cause.DNS: Answer.DNS,
    Cause.ADDRESS: Answer.ADDRESS,
    Cause.CONNECT: Answer.CONNECT,
    Cause.TLS: Answer.TLS,
    Cause.TIMEOUT: Answer.TIMEOUT,
    Cause.TRUNCATED: Answer.TRUNCATED,
    Cause.PROTOCOL: Answer.PROTOCOL,
    Cause.WALL: Answer.WALL,
}
"""How an exchange that brought no response is reported; others cannot happen without a body."""

UNREACHED: Final = frozenset({Cause.DNS, Cause.CONNECT, Cause.TLS, Cause.TIMEOUT, Cause.TRUNCATED})
"""Causes that concern the host, not the page."""

HOST_IS_DEAD: Final = frozenset({Cause.DNS, Cause.ADDRESS, Cause.CONNECT, Cause.TLS, Cause.TIMEOUT})
"""Causes for which no URL of the host needs to be asked for, if even its robots.txt meets them."""

FINAL: Final = frozenset({Cause.DNS, Cause.TLS, Cause.ADDRESS})
"""Causes that another request would meet again."""
# By the first digit of a status.
ANSWER_BY_CLASS: Final = {2: Answer.OK, 4: Answer.CLIENT_ERROR, 5: Answer.SERVER_ERROR}


class LinkRanks:
    """Ranks links so that neither a host with many links nor a domain with many hosts keeps others waiting.

    The rank of a link grows with the number of links of its host and of hosts of its domain before it.
    """

    def __init__(self) -> None:
        self._links = Counter[str]()
        self._hosts = defaultdict[str, dict[str, int]](dict)  # of each domain, in the order of their links

    def of(self, link: DueLink) -> int:
        """The rank of the next link."""
        host = urls.host(link.url)
        hosts = self._hosts[urls.registrable(host)]
        self._links[host] += 1
        place = self._links[host] + hosts.setdefault(host, len(hosts))
        return place * AGAIN if link.checked else place


def asks_for_less(reply: Reply) -> bool:
    """Whether the host answers crawlers with a request to come more rarely, or not at all."""
    if isinstance(reply, Broken):
        return reply.cause is Cause.WALL
    return reply.status in {429, 999} or (reply.status == 503 and bool(reply.headers.get("retry-after")))


def needs_get(reply: Reply, *, is_file: bool = False) -> bool:
    """Whether the reply to a HEAD is to be confirmed by a GET: some hosts refuse HEAD, or answer it wrongly.

    No reply but a good one is taken from a HEAD, apart from those that ask for fewer requests.
    """
    if asks_for_less(reply):
        return False
    if is_file and _is_page(reply):
        return True
    return reply.transient or reply.cause not in FINAL if isinstance(reply, Broken) else reply.status >= 400


def _is_page(reply: Reply) -> bool:
    """Whether a web page is shown: some sites have one for all that is missing, with status 200."""
    return isinstance(reply, Response) and content_type(reply.headers.get("content-type"))[0] in HTML


def answer_of(reply: Reply, redirects: Redirects, *, sets_cookie: bool, is_file: bool = False) -> Answer:
    """What the last reply says. `redirects`: those that led to it; `sets_cookie`: one of these did;
    `is_file`: an image, script or style sheet was asked for.
    """
    if isinstance(reply, Broken):
        return ANSWER_BY_CAUSE.get(reply.cause, Answer.PROTOCOL)
    if reply.status in REDIRECTS:
        return _stopped(reply, redirects, sets_cookie=sets_cookie)
    if reply.status in GONE_STATUSES:
        return Answer.NOT_FOUND
    if reply.status in REFUSING or asks_for_less(reply):
        return Answer.REFUSED
    answer = ANSWER_BY_CLASS.get(reply.status // 100, Answer.STATUS)
    return Answer.PAGE if is_file and answer is Answer.OK and _is_page(reply) else answer


def _stopped(reply: Response, redirects: Redirects, *, sets_cookie: bool) -> Answer:
    """A redirect that was not followed."""
    if redirects.stopped is Stopped.NO_TARGET:
        return Answer.SCHEME if _leads_elsewhere(reply) else Answer.REDIRECT
    if sets_cookie:
        return Answer.COOKIES
    return Answer.REDIRECT_LOOP if redirects.stopped is Stopped.LOOP else Answer.REDIRECTS


def _leads_elsewhere(reply: Response) -> bool:
    """Whether the redirect has a target that is no http(s) URL, such as `mailto:` or an app."""
    scheme, colon, _ = (reply.headers.get("location") or "").strip().partition(":")
    return bool(colon) and scheme.isascii() and scheme.isalpha() and scheme.lower() not in {"http", "https"}
