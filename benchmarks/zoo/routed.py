"""Calendars of other families behind one script: the path of a page is the route in a query."""

import re
from dataclasses import replace

from benchmarks.zoo import calendars, oddities
from benchmarks.zoo.site import MISSING, Reply, Request, Site

SCRIPT = "/index.php?r="
NAMES = ("diary-days", "plan-weeks", "german-weeks", "day-views")


def routed(site: Site) -> Site:
    """A site whose paths have no query."""

    def outer(path: str) -> str:
        return path if path == "/" else SCRIPT + path[1:]

    def answer(asked: Request) -> Reply:
        if asked.target != "/" and not asked.target.startswith(SCRIPT):
            return MISSING
        reply = site.reply(Request("/" + asked.target.removeprefix(SCRIPT).removeprefix("/")))
        return replace(
            reply, body=re.sub(r'href="(/[^"]*)"', lambda to: f'href="{outer(to[1])}"', reply.body)
        )

    pages = tuple(map(outer, site.pages))
    return replace(
        site, name=f"{site.name}-route", answer=answer, pages=pages, about=f"{site.about}, by route"
    )


SITES = tuple(routed(site) for site in (*calendars.SITES, *oddities.SITES) if site.name in NAMES)
