"""Which pages need their scripts to be run, by their HTML alone; and which of these are not rendered after
all. Pure.

The rule looks at one page at a time, so that neither the order in which pages arrive nor the number of
processes can change what is rendered. A page whose HTML says noindex or names another page as canonical is
not rendered: as at Google, scripts cannot take that back (Google Search Central, "Understand the JavaScript
SEO basics").
"""

from crawler.model.facts import Obstacle
from crawler.model.outcome import Listed, Moved, Outcome, Unlisted
from crawler.model.reasons import Why
from crawler.model.rendering import Needs, PageSummary, Rendering, Skipped
from crawler.model.reply import Response
from crawler.parse.html import ParsedPage

_SKIPPED = {Why.NOINDEX: Skipped.NOINDEX, Why.CANONICAL: Skipped.CANONICAL}


def needs(reply: Response, page: ParsedPage, obstacle: Obstacle | None, mode: str) -> Needs | None:
    """Why the page needs its scripts, or is rendered in any case; None if neither. `mode`: auto or always."""
    if reply.rendering is not None:
        return reply.rendering.needs
    if obstacle is Obstacle.SHELL:
        return Needs.SHELL
    if page.mount:
        return Needs.MOUNT
    if page.noscript:
        return Needs.NOSCRIPT
    return Needs.ALWAYS if mode == "always" else None


def recorded(reply: Response, needs: Needs, summary: PageSummary, outcome: Outcome) -> Rendering:
    """What is stored of such a page. `summary`: what was seen of it now, before or after its scripts ran."""
    if reply.rendering is not None:
        return reply.rendering._replace(after=summary)
    return Rendering(needs, summary, skipped=_skipped(outcome))


def _skipped(outcome: Outcome) -> Skipped | None:
    match outcome:
        case Listed():
            return None
        case Moved():
            return Skipped.MOVED
        case Unlisted(why):
            return _SKIPPED.get(why, Skipped.TYPE)
    return None
