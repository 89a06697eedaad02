"""Which requests the scripts of rendered pages may make: what robots.txt of any origin allows, as for pages.

With a login, requests that would end its session are not made either.
"""

from typing import TYPE_CHECKING

from crawler.app.resume import avoids_logout
from crawler.engine.robots import Access
from crawler.model.reasons import Why
from crawler.model.robots import Permit
from crawler.parse.url import Url
from crawler.rules.logout import ends_session
from crawler.settings.sections import Settings

if TYPE_CHECKING:
    from crawler.fetch.render.resources import Permission


def permission(settings: Settings, access: Access) -> "Permission":
    """What `access` permits, and the settings."""
    is_logged_in = avoids_logout(settings)

    async def permit(url: Url) -> Permit:
        if is_logged_in and ends_session(url):
            return Permit(allowed=False, why=Why.LOGOUT)
        return await access.permit(url)

    return permit
