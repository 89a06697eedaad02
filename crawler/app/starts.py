"""Converts settings to URLs: start URLs, publish base and the normaliser.

Opens no file and makes no request; wrong settings raise `ConfigError`.
"""

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from crawler.errors import ConfigError
from crawler.fetch.bad_ports import BAD_PORTS
from crawler.parse import url as urls
from crawler.parse.normalise import TRACKING, Normaliser
from crawler.parse.publish_base import PublishBase
from crawler.parse.url import Url
from crawler.settings.sections import Settings

_WITH_LOGIN: Final = re.compile(r"[^/\\]*:[/\\]+[^/\\?#]*@|[^/\\:]*:[^/\\?#]*@")
# A scheme that is misspelt: "https:/example.com" would be read as the host "https".
_ONE_SLASH: Final = re.compile(r"[^/:?#]+:/(?!/)")


def starts_of(settings: Settings) -> tuple[Url, ...]:
    """The start URLs, normalised. A bare host name is read as https. Raises `ConfigError`."""
    if not settings.scope.start:
        raise ConfigError("No start URL: give one, as in `sitemap-crawler crawl https://example.com/`.")
    starts = [start_url(text, normaliser(settings)) for text in settings.scope.start]
    base = publish_base(settings, starts)
    return tuple(dict.fromkeys(base.crawled(url) if base else url for url in starts))


def publish_base(settings: Settings, starts: Sequence[Url]) -> PublishBase | None:
    """Where the first start URL is published; None without --publish-base. Raises `ConfigError`."""
    base = settings.output.publish_base
    if base is None:
        return None
    folder = urls.target(base) + "/"
    if folder != "/" and any(urls.target(url).startswith(folder) for url in starts[:1]):
        raise ConfigError(
            f"--publish-base: {starts[0]} is already below {folder}, "
            f"so its pages would be published below {base}{folder}: "
            f"give {urls.origin(base)}, or crawl the copy where it is served at /."
        )
    return PublishBase(base, urls.origin(starts[0]))


def start_url(text: str, normalise: Normaliser) -> Url:
    """The normalised URL of user input. Raises `ConfigError`, whose message contains no password."""
    text = text.strip()
    whole = text if "://" in text else f"https://{text}"
    if _WITH_LOGIN.match(whole):
        raise ConfigError(
            "A URL must not contain a user name or password: put user:password into an environment variable "
            "and name it with --auth-env."
        )
    url = None if _ONE_SLASH.match(text) else normalise(whole)
    if url is None or not urls.host(url):
        raise ConfigError(f"{text!r} is not an http or https URL.")
    if urls.port(url) in BAD_PORTS:
        raise ConfigError(
            f"{text!r}: port {urls.port(url)} is reserved for another protocol and is never contacted."
        )
    return url


def sitemap_of(settings: Settings) -> str:
    """The value of --seed-sitemaps: "auto", "off", the path of a file, or a URL. Raises `ConfigError`."""
    chosen = settings.scope.seed_sitemaps
    if chosen in {"auto", "off"}:
        return chosen
    if "://" in chosen:
        return start_url(chosen, normaliser(settings))
    if Path(chosen).is_dir() or not Path(chosen).exists():
        raise ConfigError(
            f"--seed-sitemaps: there is no file {chosen}; a URL begins with https:// or http://."
        )
    return chosen


def normaliser(
    settings: Settings,
    sessions: Callable[[str, str], None] = lambda *_: None,
    base: PublishBase | None = None,
) -> Normaliser:
    """The normaliser for these settings. `sessions` is called for each session id that is removed.

    `base`: published URLs are mapped to those of the crawled copy.
    """
    chosen = settings.urls
    return Normaliser(
        TRACKING | set(chosen.strip_param),
        keep=chosen.keep_param,
        drop_query=chosen.drop_query,
        sessions=None if "session" in settings.scope.allow_trap else sessions,
        base=base,
    )


def product_token(user_agent: str) -> str:
    """The crawler's name in robots.txt and robots meta tags: the first word of the User-Agent header."""
    return user_agent.split(maxsplit=1)[0].partition("/")[0].lower()
