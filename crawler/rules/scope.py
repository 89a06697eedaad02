"""Which URLs belong to the site: by host, folder or domain, and the patterns of --include, --exclude and
`[[rule]]`.

Pure. Whether robots.txt allows a URL is decided in `engine.robots`.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Final, Self

from msgspec import Struct, field
from msgspec.structs import replace

from crawler.model.protocol import MAX_LOC
from crawler.model.reasons import Why
from crawler.parse import url as urls
from crawler.parse.url import LONGEST_URL, Url
from crawler.rules.logout import ends_session
from crawler.rules.page_rules import PageRules
from crawler.settings import sections
from crawler.settings.recipe import recipe_of
from crawler.settings.values import compile_pattern

Patterns = tuple[re.Pattern[str], ...]
NO_RULES: Final = PageRules()


class SiteScope(Struct, frozen=True):
    """Made by `of`; `admitting` returns a wider one after a start URL redirected to another host."""

    starts: tuple[Url, ...]
    ends: tuple[Url, ...]  # the same, each where it redirected to
    reach: str  # host, path, subdomains or domain
    origins: frozenset[str]  # of the start URLs and of their redirect targets
    hosts: frozenset[str]  # host and explicit port of --allow-host, under http and https
    names: frozenset[str]  # host names or registrable domains whose subdomains belong to the site
    folders: tuple[str, ...]
    aliases: Mapping[str, str] = field(default_factory=dict)  # see `with_aliases`
    mapped: tuple[str, ...] = ()  # prefixes of URLs that are read as URLs of another origin
    list_only: bool = False
    max_depth: int | None = None
    include: Patterns = field(default=())
    exclude: Patterns = field(default=())
    no_list: Patterns = field(default=())
    no_fetch: Patterns = field(default=())
    rules: PageRules = field(default=NO_RULES)
    logged_in: bool = False

    @classmethod
    def of(
        cls,
        starts: Sequence[Url],
        chosen: sections.Scope,
        rules: PageRules = NO_RULES,
        *,
        logged_in: bool = False,
    ) -> Self:
        """The scope that the settings describe. `logged_in`: logout links are filtered."""
        recipes = [recipe_of(name).at(map(urls.target, starts)) for name in chosen.recipe]
        name_of = urls.registrable if chosen.scope == "domain" else _without_www
        return cls(
            starts=tuple(starts),
            ends=tuple(starts),
            reach=chosen.scope,
            origins=frozenset(map(urls.origin, starts)),
            hosts=frozenset(host.lower() for host in chosen.allow_host),
            names=frozenset(name_of(urls.host(url)) for url in starts),
            folders=tuple(_folder(url) for url in starts),
            list_only=chosen.list_only,
            max_depth=0 if chosen.list_only else chosen.max_depth,
            include=_compile(chosen.include),
            exclude=_compile((*chosen.exclude, *(one for recipe in recipes for one in recipe.exclude))),
            no_list=_compile((*chosen.no_list, *(one for recipe in recipes for one in recipe.no_list))),
            no_fetch=_compile(chosen.no_fetch),
            rules=rules,
            logged_in=logged_in,
        )

    def admitting(self, start: Url, to: Url) -> Self:
        """The scope after a start URL redirected: only now `www.` or another scheme is the same site."""
        ends = tuple(to if end == start else end for end in self.ends)
        if _without_www(urls.host(start)) != _without_www(urls.host(to)):
            return replace(self, ends=ends) if self.on_site(to) else self
        folders = (*self.folders, _folder(to))
        return replace(self, ends=ends, origins=self.origins | {urls.origin(to)}, folders=folders)

    def possible_aliases(self) -> frozenset[str]:
        """The origins that may be aliases of the site, and that no start URL ended at."""
        others = {"http", "https"} - self.schemes
        named = {f"{scheme}://{host}" for scheme in others for host in self.hosts}
        aliases = {alias for site in self.origins for alias in aliases_of(Url(site))}
        return frozenset(named | aliases | self.origins) - set(map(urls.origin, self.ends))

    def with_aliases(self, aliases: Mapping[str, str]) -> Self:
        """The scope in which these origins belong to the site.

        By origin: as which origin of the site its URLs are read, if it redirects page by page; else an empty
        text.
        """
        if aliases == self.aliases:
            return self
        return replace(self, aliases=aliases, mapped=tuple(f"{site}/" for site, to in aliases.items() if to))

    def ours(self, url: Url) -> Url:
        """What a link to an alias of the site leads to."""
        if not url.startswith(self.mapped):
            return url
        site = urls.origin(url)
        return Url(self.aliases[site] + url[len(site) :])

    def folder_on(self, site: str) -> str:
        """The folder of the start URL that an alias may stand for."""
        same = _without_www(urls.host(site))
        return next((_folder(url) for url in self.starts if _without_www(urls.host(url)) == same), "/")

    @property
    def schemes(self) -> frozenset[str]:
        """Those under which pages are listed."""
        return frozenset(url.partition(":")[0] for url in self.ends)

    def on_site(self, url: Url) -> bool:
        """Whether the URL is on a host of the site, in whatever folder."""
        return (bool(self.aliases) and urls.origin(url) in self.aliases) or self._is_own(url)

    def _is_own(self, url: Url) -> bool:
        """The same, aliases apart."""
        if urls.origin(url) in self.origins or (self.hosts and urls.netloc(url) in self.hosts):
            return True
        if self.reach in {"host", "path"}:
            return False
        name = urls.host(url)
        if self.reach == "subdomains":
            return any(name == known or name.endswith("." + known) for known in self.names)
        return urls.registrable(name) in self.names

    def belongs(self, url: Url) -> bool:
        """Whether the URL is part of the site: on its hosts and in its folders."""
        return self.on_site(url) and (self.reach != "path" or urls.target(url).startswith(self.folders))

    def filtered(self, url: Url, depth: int) -> Why | None:
        """Why a discovered URL is not visited; None if it is."""
        if len(url) > LONGEST_URL:
            return Why.TOO_LONG
        if not self.belongs(url):
            return Why.EXCLUDED if self.on_site(url) else Why.OFFSITE
        if self._excluded(url):
            return Why.EXCLUDED
        if self.logged_in and ends_session(url):
            return Why.LOGOUT
        if self.max_depth is not None and depth > self.max_depth:
            return Why.NOT_NAMED if self.list_only else Why.DEPTH
        return None

    def unlisted(self, url: Url) -> Why | None:
        """Why an indexable page is not listed; None if it is."""
        if self._excluded(url):  # a start URL is visited even if --include does not match it
            return Why.EXCLUDED
        if self.no_list and _matches(self.no_list, url):
            return Why.NO_LIST
        if self.rules and not self.rules.lists(url):
            return Why.NO_LIST
        if url.partition(":")[0] not in self.schemes:
            return Why.SCHEME
        if self.aliases and not self._is_own(url):
            return Why.OFFSITE  # an alias redirects here; what it shows itself is not ours
        return Why.TOO_LONG if len(url) > MAX_LOC else None

    def unfetched(self, url: Url) -> bool:
        """Whether a URL is listed without fetching it (`--no-fetch`)."""
        return bool(self.no_fetch) and _matches(self.no_fetch, url)

    def _excluded(self, url: Url) -> bool:
        if self.include and not _matches(self.include, url):
            return True
        return bool(self.exclude) and _matches(self.exclude, url)


def aliases_of(url: Url) -> list[str]:
    """The origins under which the same site may answer: with and without `www.`, http and https, at the same
    port.

    An IP address is one name only.
    """
    name = urls.host(url)
    port = urls.netloc(url).removeprefix(name)
    names = [name]
    if not name.startswith("[") and not name.rpartition(".")[2].isdigit():
        names.append(_without_www(name) if name.startswith("www.") else f"www.{name}")
    sites = [f"{scheme}://{each}{port}" for each in names for scheme in ("http", "https")]
    return [site for site in sites if site != urls.origin(url)]


def _compile(patterns: Sequence[str]) -> Patterns:
    return tuple(compile_pattern(text) for text in patterns)


def _matches(patterns: Patterns, url: Url) -> bool:
    target = urls.target(url)
    return any(pattern.search(target) for pattern in patterns)


def _without_www(name: str) -> str:
    return name.removeprefix("www.")


def _folder(url: Url) -> str:
    path = urls.target(url).partition("?")[0]
    return path[: path.rindex("/") + 1]
