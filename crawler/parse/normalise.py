"""The URL normaliser: links as written become `Url`s, one spelling for each page.

By the URL Standard, then RFC 3986 6.2.2; tracking parameters and session ids are removed. Frequent links are
cached.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote_plus

import ada_url

if TYPE_CHECKING:
    from crawler.parse.publish_base import PublishBase
from crawler.parse.late import late
from crawler.parse.url import (
    LONGEST_CACHED_LINK,
    PATH_LINES,
    PLAIN_FOLDER,
    PLAIN_LINK,
    Url,
    is_plain,
    join,
    origin,
    path_start,
)

CACHED: Final = 6_000_000  # bytes of cached links, with what a dict needs for each
ENTRY: Final = 200  # bytes of a cached link beside its characters
EVERYWHERE: Final = 5_000  # cached links that begin at the root: menus are the same in all folders of a site
# Links resolved at a time: with a long base, those of one page would take gigabytes.
LINKS_AT_ONCE: Final = 500
NOWHERE: Final = Url("")  # in caches, for a link that is no http(s) URL
_ROOTED: Final = ("/", "http://", "https://")
# Links that may depend on the page and not only on its folder: an empty path, a query, and `http:` without
# slashes.
_PAGES_OWN: Final = late(r"[?#\x00-\x20]|[^/?#]*[\t\n\r]|https?:(?!//)|$", re.IGNORECASE)

# Escapes, and characters that RFC 3986 (and so sitemaps.org) escapes and the URL Standard does not.
_RESPELLED = late(r"%[0-9A-Fa-f]{2}|[%|^\\`{}[\]]")
_UNRESERVED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")

TRACKING = frozenset({
    "utm_*", "gclid", "gclsrc", "dclid", "gbraid", "wbraid", "gad_source", "fbclid", "msclkid", "mc_cid",
    "mc_eid", "_ga", "_gl", "yclid", "ysclid", "igshid", "twclid", "ttclid", "li_fat_id", "srsltid", "epik",
    "mkt_tok", "vero_id", "oly_anon_id", "oly_enc_id", "rb_clickid", "wickedid", "s_cid", "_hsenc", "_hsmi",
    "__hssc", "__hstc", "__hsfp", "hsctatracking", "_openstat",
})  # fmt: skip
"""Query parameters that identify a campaign or a click. A name that ends with `*` is a prefix."""

# Session ids: unambiguous names, and ambiguous ones, which count only if the value looks like a session id.
SESSIONS = frozenset({"phpsessid", "jsessionid", "oscsid", "zenid", "cftoken"})
MAYBE_SESSIONS = frozenset({"sid", "sess", "session", "sessid", "sessionid", "session_id", "cfid"})
SESSION_VALUE = late(r"(?=[^&]*\d)(?=[^&]*[A-Za-z])[\w.~-]{8,}|\w{16,}", re.ASCII)
FORUM_SESSION = late(r"s=[0-9a-f]{32}", re.IGNORECASE)
PATH_SESSION = late(r";(jsessionid|phpsessid|sessionid|session_id|sid)=[^/?;]*", re.IGNORECASE)


class Normaliser:
    """Turns the text of a link into a `Url`; None if it is not a valid http(s) URL.

    Beyond the standard it removes the fragment, credentials, an empty query, the query parameters named in
    `strip` (`*` at the end makes a prefix) and session ids in query and path; it writes percent-escapes in
    capitals and decodes those of unreserved characters (RFC 3986 6.2.2). Path case, slashes and the order of
    parameters stay.
    """

    def __init__(
        self,
        strip: Iterable[str] = TRACKING,
        keep: Iterable[str] = (),
        *,
        drop_query: bool = False,
        sessions: Callable[[str, str], None] | None = lambda *_: None,
        base: "PublishBase | None" = None,
    ) -> None:
        """`sessions` is called for each session id removed, with its name and the URL. With None they stay.

        `base`: URLs below it are mapped to those of the crawled copy.
        """
        names = {name.lower() for name in strip}
        self._names = frozenset(n for n in names if not n.endswith("*"))
        self._prefixes = tuple(n[:-1] for n in names if n.endswith("*"))
        self._keep = frozenset(name.lower() for name in keep)
        self._drop_query = drop_query
        self._sessions = sessions
        self._base = base
        self._folders: dict[str, _FolderResolver] = {}
        self._weight = 0  # bytes of the links cached in these folders
        self._everywhere: dict[tuple[str, str], Url] = {}

    def __call__(self, text: str, base: str | None = None) -> Url | None:
        """The URL of `text`, relative to `base` (an absolute URL)."""
        url = self.literal(text, base)
        return self._base.crawled(url) if url and self._base else url

    def canonical(self, text: str, base: str | None = None) -> Url | None:
        """The URL of a canonical: as above, but the scheme and `www.` make a difference."""
        url = self.literal(text, base)
        return self._base.crawled(url, exactly=True) if url and self._base else url

    def literal(self, text: str, base: str | None = None) -> Url | None:
        """The URL of `text` without the mapping of `--publish-base`."""
        if is_plain(text):
            return Url(text)
        href = join(base, text)
        if href is None or not href.startswith(("http://", "https://")):
            return None
        if "@" in href:
            href = _without_credentials(href)
        href = href.partition("#")[0]
        if _RESPELLED.search(href):
            start = path_start(href)  # an IPv6 address keeps its brackets
            href = href[:start] + _RESPELLED.sub(_respell, href[start:])
        path, mark, query = href.partition("?")
        if ";" in path and self._sessions and (found := PATH_SESSION.search(path, path_start(path))):
            self._sessions(found[1].lower(), href)
            bare = path[: found.start()] + PATH_SESSION.sub("", path[found.start() :])
            path = join(None, bare) or bare  # `/.;sid=1` is a dot segment now
        if not mark or self._drop_query:
            return Url(path)
        query = self._strip(query, href)
        return Url(f"{path}?{query}") if query else Url(path)

    def chunks(self, texts: Sequence[str], base: str) -> Iterator[list[Url]]:
        """The URLs of the links of one page, in order, `LINKS_AT_ONCE` links at a time. Cached by folder."""
        folder = self._folder(base)
        for at in range(0, len(texts), LINKS_AT_ONCE):
            part = texts[at : at + LINKS_AT_ONCE]
            urls = list(map(folder.cached.get, part))
            if None in urls:
                new = [text for text, url in zip(part, urls, strict=True) if url is None]
                found = self._uncached(new, base, folder)
                urls = [found[text] if url is None else url for text, url in zip(part, urls, strict=True)]
            yield list(filter(None, urls))

    def _uncached(self, texts: Sequence[str], base: str, folder: "_FolderResolver") -> dict[str, Url]:
        """The URLs of links: of all paths at once, then of each other link."""
        found = folder.paths(texts)
        if self._base:
            found = {text: self._base.crawled(url) for text, url in found.items()}
        self._cache(found, folder)
        for text in texts:
            if text not in found:
                rooted = text.startswith(_ROOTED)
                url = self._rooted(text, base, folder) if rooted else self._plain(text, base, folder)
                found[text] = url
                if not _PAGES_OWN.match(text):
                    self._cache({text: url}, folder)
        return found

    def _cache(self, found: Mapping[str, Url], folder: "_FolderResolver") -> None:
        """Caches what links mean in a folder, unless one is long."""
        if not found or folder.weight >= CACHED // 4:
            return
        lengths = list(map(len, chain(found, found.values())))
        if max(lengths) <= LONGEST_CACHED_LINK:
            weight = sum(lengths) + ENTRY * len(found)
            folder.cached.update(found)
            folder.weight += weight
            self._weight += weight

    def _plain(self, text: str, base: str, folder: "_FolderResolver") -> Url:
        url = folder.plain(text)
        if url is None:
            return self(text, base) or NOWHERE
        return self._base.crawled(url) if self._base else url

    def _rooted(self, text: str, base: str, folder: "_FolderResolver") -> Url:
        """A link that means the same in every folder of its site, also one to another host."""
        url = self._everywhere.get((folder.site, text))
        if url is None:
            url = self._plain(text, base, folder)
            if len(self._everywhere) < EVERYWHERE and _is_short(text, url) and folder.site:
                self._everywhere[folder.site, text] = url
        return url

    def _folder(self, base: str) -> "_FolderResolver":
        path = base.partition("?")[0].partition("#")[0].rpartition("/")[0] + "/"
        folder = self._folders.pop(path, None) or _FolderResolver(path)
        if not path.startswith("http"):
            return _FolderResolver(path)
        self._folders[path] = folder  # least recently used first
        while len(self._folders) > 1 and self._weight + ENTRY * len(self._folders) > CACHED:
            self._weight -= self._folders.pop(next(iter(self._folders))).weight
        return folder

    def _strip(self, query: str, href: str) -> str:
        kept = [part for part in query.split("&") if not self._is_stripped(part, href)]
        return query if len(kept) == query.count("&") + 1 else "&".join(kept)

    def _is_stripped(self, part: str, href: str) -> bool:
        name, _, value = part.partition("=")
        name = name.lower()
        if "%" in name or "+" in name:
            name = unquote_plus(name)
        if name in self._keep:
            return False
        if name in self._names or name.startswith(self._prefixes):
            return True
        if self._sessions and (
            name in SESSIONS
            or name.startswith("aspsessionid")
            or (name in MAYBE_SESSIONS and SESSION_VALUE.fullmatch(value))
            or FORUM_SESSION.fullmatch(part)
        ):
            self._sessions(name, href)
            return True
        return False


class _FolderResolver:
    """Resolves links relative to one folder."""

    __slots__ = ("_levels", "cached", "site", "weight")

    def __init__(self, path: str) -> None:
        """`path`: absolute, with the slash at its end."""
        self.cached: dict[str, Url] = {}
        self.weight = 0  # bytes of `cached`
        self.site = ""  # scheme and host; empty if the path is not in its normal form
        self._levels: list[str] = []  # its parent folders from the root on, and itself
        if PLAIN_FOLDER.fullmatch(path) and join(None, path) == path:
            self.site = origin(path)
            ends = [at for at in range(len(self.site), len(path)) if path[at] == "/"]
            self._levels = [path[: end + 1] for end in ends]

    def paths(self, texts: Sequence[str]) -> dict[str, Url]:
        """The URLs of links that are a path in normal form, found by one search in all texts."""
        if not self.site:
            return {}
        here = self._levels[-1]
        found: list[str] = PATH_LINES.findall("\n".join(texts))
        return {text: Url((self.site if text[0] == "/" else here) + text) for text in found}

    def plain(self, text: str) -> Url | None:
        """The URL of a link simple enough to be joined without Ada: plain characters, slashes and leading
        `../`.

        None for every other link. A test compares these with Ada's results.
        """
        found = PLAIN_LINK.fullmatch(text)
        if found is None or not self.site:
            return None
        site, ups, path = found.groups()
        if site is not None:
            return Url(text) if site == self.site else None
        if path[:1] == "/":
            return None if ups else Url(self.site + path)
        up = len(ups) // 3
        return Url(self._levels[-1 - up if up < len(self._levels) else 0] + path) if path or ups else None


def _is_short(text: str, url: Url) -> bool:
    return len(text) <= LONGEST_CACHED_LINK and len(url) <= LONGEST_CACHED_LINK


def _without_credentials(href: str) -> str:
    url = ada_url.URL(href)
    url.username = url.password = ""
    return url.href


def _respell(match: re.Match[str]) -> str:
    """Escapes in capitals, and unreserved characters unescaped (RFC 3986 6.2.2)."""
    if len(match[0]) == 1:
        return f"%{ord(match[0]):02X}"
    char = chr(int(match[0][1:], 16))
    return char if char in _UNRESERVED else match[0].upper()
