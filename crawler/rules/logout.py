"""Recognises logout and login URLs by their names. Pure.

A crawl with a login must not follow a logout link: afterwards it would get only the pages for anonymous
visitors.
"""

from collections.abc import Iterator
from itertools import pairwise
from typing import Final
from urllib.parse import unquote_plus

from crawler.parse.late import late
from crawler.parse.url import target

_OUT: Final = frozenset({
    "logout", "logoff", "signout", "signoff", "abmelden", "deconnexion", "cerrarsesion", "uitloggen",
    "wyloguj",
})  # fmt: skip
_IN: Final = frozenset({"login", "logon", "signin", "anmelden", "connexion", "sso"})
_SESSION: Final = frozenset({"session", "sessions", "usersession", "usersessions"})
_ENDED: Final = frozenset({"destroy", "delete", "end", "close"})
_WORD: Final = late(r"[a-z]+")  # what is left of `log-out.php`, once - and _ are gone
# As in `Special:UserLogout`.
_BEFORE: Final = ("user", "admin", "do", "account", "member", "customer", "wp", "auth", "j")
_LONGEST: Final = 60  # characters of a path segment, parameter name or value that is compared


def ends_session(url: str) -> bool:
    """Whether a URL is a logout link, by a path segment, or the name or value of a parameter."""
    names = [name for part in _parts(url) for name in _names(part)]
    if any(name in _OUT for name in names):
        return True
    return any(first in _SESSION and then in _ENDED for first, then in pairwise(names))


def names_login(url: str) -> bool:
    """Whether a URL is a login page, by its name."""
    return any(name in _IN for part in _parts(url) for name in _names(part))


def _parts(url: str) -> Iterator[str]:
    path, _, query = target(url).partition("?")
    yield from path.split("/")
    for parameter in query.split("&") if query else ():
        yield from parameter.split("=", 1)


def _names(part: str) -> Iterator[str]:
    """The names to compare: `userlogout`, `logout` for `Special%3AUserLogout`; `logout` for `log_out.php`."""
    if not 0 < len(part) <= _LONGEST:
        return
    text = unquote_plus(part).lower().rpartition(":")[2].replace("-", "").replace("_", "").lstrip("/")
    found = _WORD.match(text)
    if found and text[found.end() :][:1] in {"", ".", ";"}:
        yield found[0]
        for prefix in _BEFORE:
            if found[0].startswith(prefix):
                yield found[0][len(prefix) :]
