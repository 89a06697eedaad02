"""Digests of settings: whether a run may be resumed with them, and facts of the last run be reused."""

import hashlib
import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Final

from msgspec import structs

from crawler.app.features import FEATURES
from crawler.fetch.request_headers import has_login
from crawler.model.run import Terms
from crawler.parse import url as urls
from crawler.parse.url import Url
from crawler.rules.record import AVERTED
from crawler.settings.sections import DEFAULTS, Http, Scope, Settings, keys
from crawler.sitemap.publish.identity import SitemapIdentity

AGREED: Final = frozenset({
    "scope", "urls", "verdicts", "split", "output", "dates", "rules", "guard",
    "check-external", "check-files", "rate", "ignore-robots", "user-agent", "fail-on", "keep-runs", "render",
    *AVERTED,
})  # fmt: skip
"""Sections and settings that all members of a run must have alike."""
CHOOSING: Final = frozenset({"scope", "urls", "verdicts", "rules", "ignore-robots"})
"""Sections and settings that choose which pages are listed."""
LIMITS: Final = ("max_pages", "max_time", "budget", "max_age")
"""Settings of the scope that end a run early: pages that are not visited stay as they are."""
NOT_CHOOSING: Final = frozenset({"start", "scope", *(name.replace("_", "-") for name in LIMITS)})
READ: Final = 3  # increment when more is extracted from a page: all pages are then fetched and parsed again


def fingerprint(settings: Settings, starts: Iterable[Url]) -> str:
    """A digest of the settings that affect what is found and listed; politeness, limits and output do not.

    An unfinished run is resumed only if its fingerprint is the same.
    """
    scope = asdict(settings.scope)
    for name in ("start", *LIMITS):
        del scope[name]
    deciding = [
        sorted(starts),
        scope,
        asdict(settings.urls),
        asdict(settings.verdicts),
        settings.dates.lastmod,
        settings.http.user_agent,
        settings.http.auth_env,
        *_answering(settings.http),
        settings.pace.ignore_robots,
        settings.output.publish_base,
        avoids_logout(settings),
        *_rules(settings, "list", "follow"),
        *(feature.name for feature in FEATURES if feature.is_on(settings)),
        *_render(settings),
    ]
    return _digest(deciding)


def reading(settings: Settings) -> str:
    """A digest of what affects what is extracted from a page: if it changes, every page is parsed again.

    It does not include the scope, which is applied again to unchanged pages and their links.
    """
    http = settings.http
    return _digest([
        READ,
        asdict(settings.urls), asdict(settings.verdicts), settings.dates.lastmod,
        http.user_agent, http.auth_env, http.header,
        http.cookie_file, settings.scope.allow_trap, settings.output.publish_base,
        *([http.header_for, http.client_cert] if http.header_for or http.client_cert else ()),
        *(feature.name for feature in FEATURES if feature.is_on(settings)),
        *_render(settings),
        *settings.dates.lastmod_ignore,
        *_rules(settings, "follow"),  # a link that is not followed is stored as one with nofollow
    ])  # fmt: skip


def terms(settings: Settings) -> Terms:
    """What the members of one run must agree on. Requests in flight and processes are the member's own."""
    agreed = {
        key.label: _digest(key.of(settings))[:8]
        for key in keys()
        if key.section in AGREED or key.name in AGREED
    }
    scope, limits = settings.scope, {key.name: key.of(settings) for key in keys() if key.name in AVERTED}
    asked_as = _asked_as(settings.http)
    return Terms(
        settings.state.run or "", agreed, most_pages(scope), scope.max_time, scope.max_age, asked_as, limits
    )


def most_pages(scope: Scope) -> int | None:
    """How many pages a run may visit."""
    given = [limit for limit in (scope.max_pages, scope.budget) if limit is not None]
    return min(given) if given else None


def identity(settings: Settings, starts: Sequence[Url]) -> SitemapIdentity:
    """What these settings crawl, and the digests of those that choose pages, if they are not the default."""
    scope = settings.scope
    chosen = {
        key.label: _digest(value)[:8]
        for key in keys()
        if (key.section in CHOOSING or key.name in CHOOSING) and key.name not in NOT_CHOOSING
        if (value := key.of(settings)) and value != key.of(DEFAULTS)
    }
    folders = sorted(
        f"{site_of(url)}{urls.target(url).partition('?')[0].rpartition('/')[0]}/" for url in starts
    )
    return SitemapIdentity(
        sorted({site_of(url) for url in starts}),
        scope.scope,
        folders if scope.scope == "path" else [],
        chosen,
    )


def site_of(url: str) -> str:
    """The host without `www.`, with its port: the same for http and https."""
    return urls.netloc(f"{url}/").removeprefix("www.")


def avoids_logout(settings: Settings) -> bool:
    """Whether logout links are not followed: with a login, unless the rule is switched off."""
    return has_login(settings.http) and "logout" not in settings.verdicts.no_rule


def _asked_as(http: Http) -> str:
    """A digest of who asks, with the values of secrets: too short to guess them by."""
    secret = os.environ.get(http.auth_env or "")
    cookies = Path(http.cookie_file).read_text(errors="replace") if http.cookie_file else None
    return _digest([http.user_agent, http.header, http.header_for, secret, cookies, http.client_cert])[:4]


def _rules(settings: Settings, *keys: str) -> Sequence[object]:
    """The rules by pattern, as far as they decide by these keys; nothing if all have the default."""
    rules = settings.rules.rule
    if all(getattr(rule, key) for rule in rules for key in keys):
        return ()
    return [[[rule.match, *(getattr(rule, key) for key in keys)] for rule in rules]]


def _answering(http: Http) -> Sequence[object]:
    """What decides whether a page answers, and how, as far as it is not the default."""
    names = ("header", "header_for", "cookie_file", "client_cert", "insecure", "allow_address")
    values = {name: getattr(http, name) for name in names}
    return [[name, value] for name, value in values.items() if value != getattr(DEFAULTS.http, name)]


def _render(settings: Settings) -> Sequence[str]:
    mode = settings.render.render
    return () if mode == "off" else (f"render {mode}",)


def _digest(deciding: object) -> str:
    text = json.dumps(deciding, sort_keys=True, default=structs.asdict)
    return hashlib.sha256(text.encode()).hexdigest()[:32]
