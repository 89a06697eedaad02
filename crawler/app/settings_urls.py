"""Converts settings to URLs: start URLs, publish base and the normaliser.

Opens no file and makes no request; wrong settings raise `ConfigError`.
"""

import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from ipaddress import ip_address
from pathlib import Path
from typing import Final

from crawler.errors import ConfigError
from crawler.fetch.bad_ports import BAD_PORTS
from crawler.parse import url as urls
from crawler.parse.late import late
from crawler.parse.normalise import TRACKING, Normaliser
from crawler.parse.publish_base import PublishBase
from crawler.parse.url import Url
from crawler.settings.sections import Settings

_WITH_LOGIN: Final = re.compile(r"[^/\\]*:[/\\]+[^/\\?#]*@|[^/\\:]*:[^/\\?#]*@")
# Schemes at the start, also misspelt ones: `https//`, `htp:/`, `http;//`. Not the host and port `http:8080`.
_SCHEMES: Final = re.compile(
    r"(?:[htps]{3,7}(?:[:;.,]*[/\\]{2,}:?|[:;](?![0-9]+(?:[/?#]|$))[/\\]?))+", re.IGNORECASE
)
_EMAIL: Final = re.compile(r"(?:mailto:)?[^\s/:@]+@([^\s/:@]+\.[^\s/:@]+)", re.IGNORECASE)
_PATH: Final = re.compile(r"\.{0,2}/(?!/)|\.{1,2}$")
_RESOLVABLE: Final = re.compile(r"\[[0-9a-f:.]+\]|[\w.-]+", re.ASCII)
_PORT: Final = late(r":[0-9]+$")
_HOST_NAME: Final = late(
    r"(localhost|\[[0-9a-f:.]+\]|[^\s/?#:@\\]+\.[^\s/?#:@\\]+)(:[0-9]+)?([/?#]|$)", re.IGNORECASE
)


def starts_of(settings: Settings) -> tuple[Url, ...]:
    """The start URLs, normalised. A bare host name is read as https. Raises `ConfigError`."""
    if not settings.scope.start:
        raise ConfigError("No start URL: give one, as in https://example.com/.")
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
    if found := _EMAIL.fullmatch(text):
        raise ConfigError(f"An e-mail address is no URL: give that of the site, as in https://{found[1]}/.")
    if _PATH.match(text):
        raise ConfigError(f"{text!r} is a path: give a whole URL, as in https://example.com/.")
    whole = with_scheme(right := meant(text))
    if _WITH_LOGIN.match(whole):
        raise ConfigError(
            "A URL must not contain a user name or password: put user:password into an environment variable "
            "and name it with --auth-env."
        )
    url = normalise(whole)
    is_url = url is not None and _RESOLVABLE.fullmatch(urls.host(url))
    if url is None or not is_url or right.lower() != text.lower():
        hint = f"; did you mean {right}?" if is_url else "."
        raise ConfigError(f"{text!r} is not an http or https URL{hint}")
    if urls.port(url) in BAD_PORTS:
        raise ConfigError(
            f"{text!r}: port {urls.port(url)} is reserved for another protocol and is never contacted."
        )
    return url


def meant(text: str) -> str:
    """The URL that a mistyped one stands for; the text itself if nothing is wrong with its beginning."""
    bare = text.strip("<>\"'\u200b\ufeff")
    if found := _SCHEMES.match(bare):
        last = re.findall("[htps]+", found[0], re.IGNORECASE)[-1]
        return f"http{'s' * ('s' in last.lower())}://{bare[found.end() :]}"
    return re.sub(r"^([^/?#]*[^/?#.])\.++(?=[/?#]|$)", r"\1", bare) if "://" not in bare else bare


def with_scheme(text: str) -> str:
    """A URL without a scheme, as people type it: http for this machine, addresses, port 80, else https."""
    if "://" in text:
        return text
    name = re.split(r"[/?#]", text, maxsplit=1)[0].lower()
    host = name.rpartition(":")[0] if _PORT.search(name) else name
    is_local = host == "localhost" or host.endswith(".localhost") or _is_address(host)
    return f"http{'' if is_local or name.endswith(':80') else 's'}://{text}"


def _is_address(host: str) -> bool:
    with suppress(ValueError):
        return bool(ip_address(host.removeprefix("[").removesuffix("]")))
    return False


def line_url(text: str, normalise: Callable[[str], Url | None]) -> Url | None:
    """The URL in a line of a file, as in an argument: the scheme of a host name may be missing."""
    is_bare = "://" not in text and bool(_HOST_NAME.match(text))
    return normalise(with_scheme(text) if is_bare else text)


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
