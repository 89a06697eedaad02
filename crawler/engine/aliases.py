"""Host aliases: `www.` and bare, http and https, are one site if the alias redirects to it.

An alias found in a link or a seed is checked once per run, before URLs on it are checked against the scope,
so that the scope does not depend on the order of discovery. If it redirects each page to the same page of the
site, links to it are rewritten to the site (`Scope.ours`) without fetching them; otherwise it is another
site.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from hashlib import blake2b
from typing import Final

import anyio
from msgspec import Struct, field

from crawler.engine.robots import Access
from crawler.model.log import log
from crawler.model.note import ALIASES
from crawler.model.reasons import Why
from crawler.model.reply import Broken
from crawler.parse.url import Url, origin, target
from crawler.ports import Request, Runs
from crawler.rules.candidates import Candidates
from crawler.rules.redirects import target_of

NOWHERE: Final = ""  # redirects to no other origin
MAY_PASS: Final = 500  # statuses from 500, and 429, are temporary: the redirect of the alias stays unknown


class Aliases(Struct, eq=False):
    """The aliases of the site that this crawl has checked."""

    runs: Runs
    access: Access
    candidates: Candidates
    # As in `model.note.ALIASES`.
    _checked: dict[str, str] = field(default_factory=dict)
    # Origins that may be aliases.
    _possible: frozenset[str] = frozenset()
    # URL prefixes of the aliases that are not checked yet.
    _open: tuple[str, ...] = ()
    _checking: defaultdict[str, anyio.Lock] = field(default_factory=lambda: defaultdict(anyio.Lock))

    async def recall(self) -> None:
        """Restores what this run found out before it was interrupted."""
        checked = await self.runs.recall(ALIASES)
        self._checked = dict(checked)
        self.renew()

    def renew(self) -> None:
        """Updates the scope after the start URLs changed or an alias was checked."""
        scope = self.candidates.scope.with_aliases({})
        self._possible = scope.possible_aliases()
        ends = {site: self._end(site) for site in sorted(self._possible)}
        here = {
            site: same
            for site, (end, same) in ends.items()
            if end not in self._possible and end != NOWHERE and scope.on_site(Url(end + "/"))
        }
        self._open = tuple(site + "/" for site, (end, _) in ends.items() if end in self._possible)
        self.candidates.map_aliases(here)

    async def check(self, urls: Iterable[Url]) -> None:
        """Checks those origins of `urls` that may be aliases of the site and have not been checked yet."""
        if not self._open:
            return
        for url in urls:
            while url.startswith(self._open):
                site, _ = self._end(origin(url))
                async with self._checking[site]:
                    if site not in self._checked:
                        await self.recall()  # another member may have checked it
                    if site not in self._checked:
                        await self._ask(site)

    def _end(self, site: str) -> tuple[str, str]:
        """The origin where an alias redirects, possibly through others: an unchecked alias, the site, or
        another one.

        The second value is the same origin if every redirect keeps the path, else "".
        """
        end, by_page, seen = site, True, set[str]()
        while end in self._possible and end in self._checked:
            if end in seen or self._checked[end] == NOWHERE:
                return NOWHERE, ""
            seen.add(end)
            to = self._checked[end]
            end, by_page = origin(to), by_page and to == origin(to)
        return end, end if by_page else ""

    async def _ask(self, site: str) -> None:
        folder = self.candidates.scope.folder_on(site)
        name = blake2b(folder.encode(), digest_size=8).hexdigest()
        probe = Url(f"{site}{folder}no-such-page-{name}")
        to = await self.redirect(probe)
        if to is None:
            # A temporary failure: use what was known at the last publication.
            known = await self.runs.recall(ALIASES, "published")
            to = Url(known.get(site, NOWHERE))
        elif to and target(to) == target(probe):
            to = Url(origin(to))
        else:
            to = await self.redirect(Url(site + "/")) or Url(NOWHERE)
        end = NOWHERE if to == NOWHERE or origin(to) == site else to

        def with_ours(known: Mapping[str, str]) -> Mapping[str, str]:
            """If another member checked it meanwhile, its answer counts for all."""
            return dict(sorted(({site: str(end)} | dict(known)).items()))

        checked: Mapping[str, str] = await self.runs.amend(ALIASES, with_ours)
        self._checked = dict(checked)
        self.renew()
        log.info("host alias checked", alias=site, redirects_to=self._checked[site])

    async def redirect(self, url: Url) -> Url | None:
        """The redirect target of a page, or `NOWHERE`; None after a temporary failure."""
        permit = await self.access.permit(url)
        if not permit.allowed:
            return None if permit.why is Why.ROBOTS_DOWN else Url(NOWHERE)
        reply = await self.access.fetch(Request(url, wants_body=lambda *_: False))
        if isinstance(reply, Broken) or reply.status >= MAY_PASS or reply.status == 429:
            return None
        return target_of(url, reply) or Url(NOWHERE)
