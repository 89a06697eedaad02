"""Which requests the scripts of rendered pages may make: what robots.txt of any origin allows, as for pages.

With a login, requests that would end its session are not made either.
"""

from typing import TYPE_CHECKING

from crawler.app.resume import avoids_logout
from crawler.app.starts import product_token
from crawler.engine.robots import FirstContact, Robots
from crawler.model.reasons import Why
from crawler.model.robots import Permit
from crawler.parse.url import Url
from crawler.ports import Fetcher, Frontier, Politeness
from crawler.rules.logout import ends_session
from crawler.settings.sections import Settings

if TYPE_CHECKING:
    from crawler.fetch.render.resources import Permission


def permission(settings: Settings, frontier: Frontier, turn: Politeness, fetcher: Fetcher) -> "Permission":
    """Asks robots.txt with `fetcher`, or the state; `turn` waits for the slot of that request."""
    pace, agent = settings.pace, product_token(settings.http.user_agent)
    robots = Robots(agent, fetcher, frontier, now=frontier.clock, turn=turn, ignore=pace.ignore_robots)
    delay = 1 / pace.rate if pace.rate else 0.0
    contact = FirstContact(frontier, robots, turn, lambda _: None, delay=delay, max_wait=pace.max_wait)
    is_logged_in = avoids_logout(settings)

    async def permit(url: Url) -> Permit:
        if is_logged_in and ends_session(url):
            return Permit(allowed=False, why=Why.LOGOUT)
        return await contact.permit(url)

    return permit
