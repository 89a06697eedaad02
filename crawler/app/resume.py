"""Which settings decide whether an unfinished run is gone on with, and whether facts of the last run hold."""

import hashlib
import json
from collections.abc import Iterable
from dataclasses import asdict
from typing import Final

from crawler.fetch.request_headers import has_login
from crawler.parse.url import Url
from crawler.settings.sections import Settings

READ: Final = 3  # counts up when more is read from a page: what an earlier version learned is then read anew


def fingerprint(settings: Settings, starts: Iterable[Url]) -> str:
    """Stands for the settings that decide what is found and listed; pace, limits and output do not.

    An unfinished run is gone on with only under the same.
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
        has_login(settings.http),
    ]
    return _digest(deciding)


def reading(settings: Settings) -> str:
    """Stands for the settings that decide what is read from a page: under others, every page is read anew.

    The scope is not among them: a page that has not changed is held against it again, with its links.
    """
    http = settings.http
    return _digest([
        READ,
        asdict(settings.urls), asdict(settings.verdicts), settings.dates.lastmod, http.user_agent, http.auth_env, http.header,
        http.cookie_file, settings.scope.allow_trap, settings.output.publish_base,
    ])  # fmt: skip


def _digest(deciding: object) -> str:
    return hashlib.sha256(json.dumps(deciding, sort_keys=True).encode()).hexdigest()[:32]
