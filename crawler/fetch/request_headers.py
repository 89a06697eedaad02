"""Request headers: the User-Agent for every host; custom headers, credentials and cookies for the start hosts only.

Headers for the start hosts are never sent to another host after a redirect, and their values never appear in the state,
logs or reports.
"""

import base64
import os
from collections.abc import Iterable, Mapping
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
    "accept-encoding", "connection", "content-length", "host", "if-modified-since", "if-none-match", "keep-alive",
    "proxy-authorization", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade",
})  # fmt: skip


class Identity:
    """The request headers for a URL."""

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

    def headers(self, url: str) -> dict[str, str]:
        """All headers of a request for `url`."""
        cookie = self.cookie(url)
        return {**self.of_origin(urls.origin(url)), **({"cookie": cookie} if cookie else {})}

    def of_origin(self, origin: str) -> Mapping[str, str]:
        """The headers of every request to `origin`."""
        return self._own if origin in self._origins else self._common

    def cookie(self, url: str) -> str | None:
        """The Cookie header for `url`."""
        if self._cookies is None or urls.origin(url) not in self._origins:
            return None
        from urllib.request import Request  # noqa: PLC0415 - takes long to import, for those without cookies

        request = Request(url)  # noqa: S310 - never opened, only asked for its cookies
        self._cookies.add_cookie_header(request)
        return request.get_header("Cookie")


def has_login(chosen: Http) -> bool:
    """Whether requests to the start hosts carry credentials or cookies."""
    fields = {text.partition(":")[0].strip().lower() for text in chosen.header}
    return bool(chosen.auth_env or chosen.cookie_file or fields & {"authorization", "cookie"})


def _header(text: str) -> tuple[str, str]:
    name, colon, value = text.partition(":")
    if not colon or not name or not set(name) <= _TOKEN:
        shown = repr(name.strip()) if colon else MASK  # a line without a header name may be a secret
        raise ConfigError(f"--header: {shown} needs the form 'Name: value'.")
    if name.lower() == "user-agent":
        raise ConfigError(f"--header: {name!r} cannot be set here; --user-agent sets that.")
    if name.lower() in _OURS:
        raise ConfigError(f"--header: {name!r} cannot be set; the crawler sets it itself.")
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
    """The value of the Authorization header for `Bearer x` (any scheme, unchanged), `user:password` or a bare token.

    A user name may contain a space, unless its first word is the name of a scheme.
    """
    scheme, blank, rest = secret.partition(" ")
    if blank and ":" not in scheme and (scheme.lower() in _SCHEMES or ":" not in rest):
        return f"{scheme} {rest.strip()}"
    if ":" in secret:
        return "Basic " + base64.b64encode(secret.encode()).decode()
    return "Bearer " + secret


def _cookies(path: str) -> "MozillaCookieJar":
    from http.cookiejar import LoadError, MozillaCookieJar  # noqa: PLC0415 - as above

    jar = MozillaCookieJar(path)
    try:
        jar.load(ignore_discard=True, ignore_expires=True)
    except (OSError, LoadError) as error:
        raise ConfigError(f"--cookie-file: {path} cannot be read as a Netscape cookie file.") from error
    for cookie in jar:
        if (
            cookie.expires is not None and cookie.expires <= 0
        ):  # browsers and curl write 0 for a session cookie
            cookie.expires, cookie.discard = None, True
    return jar
