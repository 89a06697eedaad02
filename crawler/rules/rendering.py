"""Which pages need their scripts to be run, and which of these are not rendered after all. Pure.

A page that shows nothing without scripts is rendered at once. Of the others, samples are: the first page of
each kind, chosen when nothing else is to be visited, so that neither the order in which pages arrive nor the
number of processes changes what is rendered. If scripts showed more there, or led to a page that was not
found without them, all pages of its kind are. A page whose HTML says noindex or names another page as
canonical is not rendered: as at Google, scripts cannot take that back (Google Search Central, "Understand the
JavaScript SEO basics").
"""

from collections import Counter
from hashlib import blake2b
from itertools import islice
from typing import TYPE_CHECKING, Final

from crawler.model.facts import Facts, Obstacle
from crawler.model.outcome import Listed, Moved, Outcome, Unlisted
from crawler.model.reasons import Why
from crawler.model.rendering import MOST_MADE, Needs, PageSummary, Rendering, Skipped
from crawler.model.reply import Response
from crawler.model.survey import ScriptedKinds
from crawler.model.visit import Lease, Links
from crawler.parse import url as urls
from crawler.parse.url import Url

if TYPE_CHECKING:  # commands that only read a state load no parser
    from crawler.parse.parsed_page import ParsedPage

LAST: Final = Url("~")  # after all URLs
MOST_FAILING: Final = 3  # samples of a kind whose rendering fails before it counts as decided
KIND: Final = 12  # characters of the name of a kind
SHELL_TEXT: Final = 200  # characters; a page with less text and no links needs scripts

_SKIPPED = {Why.NOINDEX: Skipped.NOINDEX, Why.CANONICAL: Skipped.CANONICAL}


def kinds(url: Url, page: "ParsedPage", links: int) -> str | None:
    """The names of two kinds of the page, one after the other; None if it runs no scripts.

    Pages of the first look the same to a reader: of one shell at all addresses. Those of the second are in
    one folder of the site. Both run the same scripts.
    """
    if page.scripts is None:
        return None
    site = urls.origin(url)
    folder, mark, _ = url.partition("?")[0].removeprefix(f"{site}/").partition("/")
    alike = f"{site} {page.scripts} {page.length} {links}"
    return _name(alike) + _name(f"{site} {page.scripts} /{folder if mark else ''}")


def _name(text: str) -> str:
    return blake2b(text.encode(), digest_size=KIND // 2).hexdigest()


def decided(known: ScriptedKinds) -> tuple[frozenset[str], list[Url]]:
    """The kinds of which all pages are rendered, and the pages that are samples of others.

    The first page of a kind, by URL, decides, or the next if its rendering failed; kinds with many pages come
    first.
    """
    seen, failed = dict[str, tuple[Url, Rendering]](), Counter[str]()
    for url, of, sample in known.samples:
        for kind in (of[:KIND], of[KIND:]):
            failed[kind] += sample.is_due
            if not sample.is_due or failed[kind] == MOST_FAILING:
                seen.setdefault(kind, (url, sample))
    undecided = {one.kind: one.first for one in known.plain if one.first < seen.get(one.kind, (LAST,))[0]}
    more = (kind for kind, (_, it) in seen.items() if it.shows_more or not known.new.isdisjoint(it.made))
    proven = (kind for kind in more if kind not in undecided)
    return frozenset(proven), list(dict.fromkeys(undecided.values()))


def needs(lease: Lease, reply: Response, facts: Facts, mode: str) -> Needs | None:
    """Why the page needs its scripts, or is rendered in any case; None if neither. `mode`: auto or always."""
    if reply.rendering is not None:
        return reply.rendering.needs
    if facts.obstacle is Obstacle.SHELL:
        return Needs.SHELL
    if mode == "always":
        return Needs.ALWAYS
    return _by_samples(lease, facts.scripts or "")


def _by_samples(lease: Lease, of: str) -> Needs | None:
    chosen = lease.scripted
    if chosen and lease.visit.url in chosen.samples:
        return Needs.SAMPLE
    if chosen and not chosen.kinds.isdisjoint((of[:KIND], of[KIND:])):
        return Needs.PATTERN
    # As in the last run, before anything is chosen in this one.
    then = lease.prior.facts.rendering if of and lease.prior else None
    return then.needs if then and (then.needs_scripts or then.needs is Needs.SAMPLE) else None


def made(url: Url, before: Links, after: Links) -> tuple[Url, ...]:
    """The first links to its own host that only its scripts made."""
    plain, here = {url, *before.urls}, f"{urls.origin(url)}/"
    return tuple(islice((to for to in after.followed if to.startswith(here) and to not in plain), MOST_MADE))


def can_be_read(lease: Lease, due: Rendering) -> bool:
    """Whether the page is judged by its HTML if it cannot be rendered, as that is its own.

    Of pages that look the same without scripts, all would be duplicates.
    """
    if due.needs in (Needs.SAMPLE, Needs.SHELL) or due.before.text < SHELL_TEXT:
        return due.needs is Needs.SAMPLE
    if due.needs is Needs.ALWAYS:
        return True
    return lease.scripted is not None and due.kinds[:KIND] not in lease.scripted.kinds


def recorded(
    reply: Response, needs: Needs, summary: PageSummary, outcome: Outcome, kinds: str | None
) -> Rendering:
    """What is stored of such a page. `summary`: what was seen of it now, before or after its scripts ran."""
    if reply.rendering is not None:
        return reply.rendering._replace(after=summary)
    return Rendering(needs, summary, skipped=_skipped(outcome), kinds=kinds or "")


def _skipped(outcome: Outcome) -> Skipped | None:
    match outcome:
        case Listed():
            return None
        case Moved():
            return Skipped.MOVED
        case Unlisted(why):
            return _SKIPPED.get(why, Skipped.TYPE)
    return None
