"""Which canonicals are ignored, as by search engines: several different ones, those that fail, and those that
lead back. Pure.

A canonical that is honoured unlists the page that names it, so it must lead to a page. One on another site,
or that is not listed for a reason of its own, is honoured all the same: that is what the site says. The pages
of a circle of canonicals ignore each other; a page that only leads into the circle does not.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from msgspec import Struct

from crawler.model.facts import Facts, Validators
from crawler.model.outcome import says
from crawler.parse.url import Url

SEVERAL: Final = "of several canonical URLs none counts"
LEADS_BACK: Final = "leads back to this page"
ENDLESS: Final = "its redirects have no end"


def agreed(named: Iterable[Url]) -> tuple[Url | None, str]:
    """The canonical of a page that names these; if they differ, none, and a detail with the first two."""
    one: Url | None = None
    for name in named:
        if one not in {None, name}:
            return None, f"{one}, {name}: {SEVERAL}"
        one = name
    return one, ""


def read_again(facts: Facts) -> Facts:
    """Those of a page that is read in full each time: no fact shows canonicals that differ, and neither does
    the outcome if another rule unlists the page.
    """
    seen = facts.rendering and facts.rendering._replace(inputs=None)
    return facts._replace(validators=Validators(), rendering=seen)


class Naming(Struct, frozen=True):
    """A page that is not listed because it names another URL as canonical."""

    id: int
    url: str
    target: str


class End(Struct, frozen=True):
    """What became of a URL that was named, or that a redirect led to, and is not listed."""

    outcome: str  # its code
    to: str = ""  # where a redirect leads


def ignored(pages: Iterable[Naming], ends: Mapping[str, End]) -> Mapping[int, str]:
    """The pages whose canonical is ignored, each with the reason.

    `pages`: all whose target is in `ends`; `ends`: by URL, what is neither there nor here is honoured. The
    order of both does not matter.
    """
    pages = list(pages)
    reached = {page.url: _reached(page.target, ends) for page in pages}
    circles = _circles(reached)
    found: dict[int, str] = {}
    for page in pages:
        to = reached[page.url]
        if to is None:
            found[page.id] = ENDLESS
        elif page.url in circles:
            found[page.id] = LEADS_BACK
        elif (end := ends.get(to)) and end.outcome.startswith("failed:"):
            found[page.id] = says(end.outcome)
    return found


def _reached(url: str, ends: Mapping[str, End]) -> str | None:
    """Where the redirects of a URL end; None: nowhere."""
    seen = set[str]()
    while (end := ends.get(url)) and end.outcome == "moved":
        if url in seen:
            return None
        seen.add(url)
        url = end.to
    return url


def _circles(leads: Mapping[str, str | None]) -> set[str]:
    """The URLs from which one comes back to them."""
    found, done = set[str](), set[str]()
    for start in leads:
        path: dict[str, int] = {}
        at: str | None = start
        while at is not None and at not in done and at not in path:
            path[at] = len(path)
            at = leads.get(at)
        if at is not None and at in path:
            found.update(url for url, place in path.items() if place >= path[at])
        done.update(path)
    return found
