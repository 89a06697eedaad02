"""Digests of settings: whether a run may be resumed with them, and facts of the last run be reused."""

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Final

from crawler.app.features import FEATURES
from crawler.fetch.request_headers import has_login
from crawler.model.run import Terms
from crawler.parse.url import Url
from crawler.settings.sections import Settings, keys

AGREED: Final = frozenset({
    "scope", "urls", "verdicts", "output", "dates", "rules", "guard",
    "check-external", "rate", "max-wait", "ignore-robots", "user-agent", "fail-on", "keep-runs", "render",
})  # fmt: skip
"""Sections and settings that all members of a run must have alike."""
READ: Final = 3  # increment when more is extracted from a page: all pages are then fetched and parsed again


def fingerprint(settings: Settings, starts: Iterable[Url]) -> str:
    """A digest of the settings that affect what is found and listed; politeness, limits and output do not.

    An unfinished run is resumed only if its fingerprint is the same.
    """
    scope = asdict(settings.scope)
    for name in ("start", "max_pages", "max_time"):
        del scope[name]
    deciding = [
        sorted(starts),
        scope,
        asdict(settings.urls),
        asdict(settings.verdicts),
        settings.dates.lastmod,
        settings.http.user_agent,
        settings.http.auth_env,
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
        *_rules(settings, "follow"),  # a link that is not followed is stored as one with nofollow
    ])  # fmt: skip


def terms(settings: Settings) -> Terms:
    """What the members of one run must agree on. Requests in flight and processes are the member's own."""
    agreed = {
        key.heading if key.option.kind.tables else f"--{key.name}": _digest(
            getattr(getattr(settings, key.section), key.field)
        )[:8]
        for key in keys()
        if key.section in AGREED or key.name in AGREED
    }
    scope = settings.scope
    return Terms(settings.state.run or "", agreed, scope.max_pages, scope.max_time)


def avoids_logout(settings: Settings) -> bool:
    """Whether logout links are not followed: with a login, unless the rule is switched off."""
    return has_login(settings.http) and "logout" not in settings.verdicts.no_rule


def _rules(settings: Settings, *keys: str) -> Sequence[object]:
    """The rules by pattern, as far as they decide by these keys; nothing if all have the default."""
    rules = settings.rules.rule
    if all(getattr(rule, key) for rule in rules for key in keys):
        return ()
    return [[[rule.match, *(getattr(rule, key) for key in keys)] for rule in rules]]


def _render(settings: Settings) -> Sequence[str]:
    mode = settings.render.render
    return () if mode == "off" else (f"render {mode}",)


def _digest(deciding: object) -> str:
    return hashlib.sha256(json.dumps(deciding, sort_keys=True, default=asdict).encode()).hexdigest()[:32]
