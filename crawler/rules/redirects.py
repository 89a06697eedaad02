"""Following redirects of requests that are not visits: robots.txt, sitemaps, the probe of an alias, links to
other sites.

The limit is here, once. Whether and when a target may be requested (scope, robots.txt, pace) is decided by
the caller, who makes the requests. The redirect of a page is not followed here: `judge` makes its target a
visit.
"""

from collections.abc import Callable
from enum import Enum
from typing import Final

from crawler.model.protocol import REDIRECTS
from crawler.model.reply import Broken, Reply
from crawler.parse import headers
from crawler.parse.normalise import Normaliser
from crawler.parse.url import Url

ROBOTS_REDIRECTS: Final = 5  # consecutive redirects; RFC 9309 section 2.3.1.2 asks for five at least

PLAIN: Final = Normaliser(strip=())  # keeps all parameters


class Stopped(Enum):
    """Why a redirect was not followed."""

    NO_TARGET = "redirect without a valid target"
    LOOP = "redirect loop"
    TOO_MANY = "too many redirects"


def target_of(url: Url, reply: Reply, normalise: Callable[[str, str], Url | None] = PLAIN) -> Url | None:
    """The http(s) URL to which the reply for `url` redirects (RFC 9110 15.4), if any."""
    if isinstance(reply, Broken) or reply.status not in REDIRECTS:
        return None
    location = headers.text_of(reply.headers.get("location") or "")
    return normalise(location, url) if location else None


class Redirects:
    """The URLs that one request leads to, each at most once.

    redirects = Redirects(url)
    reply = await ask(url)
    while to := redirects.follow(reply):
        reply = await ask(to)
    """

    def __init__(
        self, url: Url, normalise: Callable[[str, str], Url | None] = PLAIN, *, hops: int = ROBOTS_REDIRECTS
    ) -> None:
        """`hops`: most redirects to follow."""
        self.url = url  # the last one that was given out
        self.stopped: Stopped | None = None  # None at the end: the last reply is no redirect
        self._normalise, self._seen, self._hops = normalise, {url}, hops

    def follow(self, reply: Reply) -> Url | None:
        """What to request next, after `reply` for `url`; None at the end."""
        if isinstance(reply, Broken) or reply.status not in REDIRECTS:
            return None
        to = target_of(self.url, reply, self._normalise)
        self.stopped = self._why_not(to)
        if to is None or self.stopped:
            return None
        self._seen.add(to)
        self.url = to
        return to

    @property
    def moved(self) -> bool:
        """Whether a redirect was followed."""
        return len(self._seen) > 1

    def _why_not(self, to: Url | None) -> Stopped | None:
        if to is None:
            return Stopped.NO_TARGET
        if to in self._seen:
            return Stopped.LOOP
        return Stopped.TOO_MANY if len(self._seen) > self._hops else None
