"""Request headers: User-Agent for every host; custom headers, credentials and cookies for start hosts.

Headers for the start hosts, and those of `--header-for`, are never sent to another host, also not after a
redirect, and their values never appear in the state, logs or reports.
"""

import base64
import os
import re
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from crawler.errors import ConfigError
from crawler.parse import url as urls
from crawler.parse.credentials import MASK
from crawler.settings.sections import Http

if TYPE_CHECKING:
    from http.cookiejar import MozillaCookieJar

_TOKEN: Final = frozenset("!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
_SCHEMES: Final = frozenset({"basic", "bearer", "token", "digest", "negotiate", "apikey", "hoba", "dpop"})
CODINGS: Final = "gzip, deflate, br, zstd"
# Headers for connections, framing and conditional requests: repeated or wrong ones break the exchange.
_OURS: Final = frozenset({
    "accept-encoding", "connection", "content-length", "host", "if-modified-since", "if-none-match",
    "keep-alive", "proxy-authorization", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade",
})  # fmt: skip


class RequestIdentity:
    """As whom pages are requested: user agent, credentials and cookies, as headers for a URL."""

    def __init__(self, chosen: Http, origins: Iterable[str], environ: Mapping[str, str] = os.environ) -> None:
        """Raises `ConfigError` for a header, variable or cookie file that cannot be used."""
        self._common = {
            "user-agent": chosen.user_agent,
            "accept": "text/html,application/xhtml+xml,*/*;q=0.8",
            "accept-encoding": CODINGS,
        }
        self._origins = frozenset(origins)
        self._own = self._common | dict(_header(text) for text in chosen.header)
        if chosen.auth_env:
            self._own["authorization"] = _authorization(chosen.auth_env, environ)
        self._cookies = _cookies(chosen.cookie_file) if chosen.cookie_file else None
        self._for_host: dict[str, dict[str, str]] = {}
        for text in chosen.header_for:
            host, _, header = text.partition(" ")
            name, value = _header(header, "--header-for")
            self._for_host.setdefault(host, {})[name] = value
        # A secret of a site with TLS is not sent in the clear because of one link to http.
        self._schemes = {"https", *(origin.partition(":")[0] for origin in self._origins)}

    @property
    def origins(self) -> frozenset[str]:
        """The origins of the start URLs, which credentials are for."""
        return self._origins

    def headers(self, url: str) -> dict[str, str]:
        """All headers of a request for `url`."""
        cookie = self.cookie(url)
        return {**self.of_origin(urls.origin(url)), **({"cookie": cookie} if cookie else {})}

    def of_origin(self, origin: str) -> Mapping[str, str]:
        """The headers of every request to `origin`."""
        headers = self._own if origin in self._origins else self._common
        extra = self._for_host.get(urls.netloc(origin)) if origin.partition(":")[0] in self._schemes else None
        return {**headers, **extra} if extra else headers

    def cookie(self, url: str) -> str | None:
        if self._cookies is None or urls.origin(url) not in self._origins:
            return None
        from urllib.request import Request  # noqa: PLC0415 - takes long to import, for those without cookies

        request = Request(url)  # noqa: S310 - never opened, only asked for its cookies
        self._cookies.add_cookie_header(request)
        return request.get_header("Cookie")


def has_login(chosen: Http) -> bool:
    """Whether requests to the start hosts carry credentials or cookies."""
    fields = {text.partition(":")[0].strip().lower() for text in chosen.header}
    fields |= {text.partition(" ")[2].partition(":")[0].lower() for text in chosen.header_for}
    given = chosen.auth_env or chosen.cookie_file or chosen.client_cert
    return bool(given or fields & {"authorization", "cookie"})


def anonymous(chosen: Http) -> Http:
    """The settings without credentials, for requests to others than the site."""
    return replace(
        chosen, header=(), header_for=(), auth_env=None, cookie_file=None, client_cert=None, client_key=None
    )


def fitting_cookies(path: str, hosts: Iterable[str]) -> int:
    """How many cookies of the file are for one of the hosts, and not expired. Raises `ConfigError`."""
    names = [host.strip("[]").lower() for host in hosts]
    return sum(
        not cookie.is_expired() and any(_is_for(cookie.domain.lower(), name) for name in names)
        for cookie in _cookies(path)
    )


def _is_for(domain: str, host: str) -> bool:
    return host == domain.lstrip(".") or (domain.startswith(".") and host.endswith(domain))


def _header(text: str, flag: str = "--header") -> tuple[str, str]:
    name, colon, value = text.partition(":")
    if not colon or not name or not set(name) <= _TOKEN:
        shown = repr(name.strip()) if colon else MASK  # a line without a header name may be a secret
        raise ConfigError(f"{flag}: {shown} must have the form 'Name: value'.")
    if name.lower() == "user-agent":
        raise ConfigError(f"{flag}: {name!r} cannot be set here; --user-agent sets that.")
    if name.lower() in _OURS:
        raise ConfigError(f"{flag}: {name!r} cannot be set; the crawler sets it itself.")
    return name.lower(), value.strip()


def _authorization(variable: str, environ: Mapping[str, str]) -> str:
    secret = environ.get(variable, "").strip()
    if not secret:
        raise ConfigError(f"--auth-env: the variable {variable} is not set.")
    if not secret.isprintable():
        raise ConfigError(f"--auth-env: the variable {variable} contains control characters.")
    if not secret.isascii() and ":" not in secret:
        raise ConfigError(
            f"--auth-env: the variable {variable} contains characters that are not allowed in a token."
        )
    return _written(secret.removeprefix("Authorization:").strip())


def _written(secret: str) -> str:
    """The Authorization header for `Bearer x` (any scheme, unchanged), `user:password` or a bare token.

    A user name may contain a space, unless its first word is the name of a scheme.
    """
    scheme, blank, rest = secret.partition(" ")
    if blank and ":" not in scheme and (scheme.lower() in _SCHEMES or ":" not in rest):
        return f"{scheme} {rest.strip()}"
    if ":" in secret:
        return "Basic " + base64.b64encode(secret.encode()).decode()
    return "Bearer " + secret


def _wrong_with_cookies(path: str) -> str:
    first = Path(path).read_bytes()[:200].partition(b"\n")[0]
    if not re.match(rb"#( Netscape)? HTTP Cookie File", first):
        return "is not a Netscape cookie file: its first line must be `# Netscape HTTP Cookie File`"
    return "is not a Netscape cookie file: each line needs seven fields with tabs between"


def _cookies(path: str) -> "MozillaCookieJar":
    from http.cookiejar import LoadError, MozillaCookieJar  # noqa: PLC0415 - as above

    jar = MozillaCookieJar(path)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of a wrong line a traceback is printed, with its values
            jar.load(ignore_discard=True, ignore_expires=True)
    except OSError as error:
        if isinstance(error, LoadError):  # its text shows a line of the file
            raise ConfigError(f"--cookie-file: {path} {_wrong_with_cookies(path)}.") from None
        raise ConfigError(f"--cookie-file: {path} cannot be read ({error.strerror}).") from error
    except ValueError:  # not text, or not a number where one is expected
        raise ConfigError(f"--cookie-file: {path} {_wrong_with_cookies(path)}.") from None
    for cookie in jar:
        # Browsers and curl write 0 for a session cookie.
        if cookie.expires is not None and cookie.expires <= 0:
            cookie.expires, cookie.discard = None, True
    return jar
