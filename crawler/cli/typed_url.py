"""A URL as people type it, looked up in a state: in full, as it was crawled or published, or as a path.

And what to type instead of a bare name that was taken for https.
"""

import shlex
from typing import Final

from crawler.app.publication import published_as
from crawler.app.settings_urls import normaliser, start_url
from crawler.cli.output import suggested
from crawler.errors import FrontierError
from crawler.parse.late import late
from crawler.parse.url import Url
from crawler.ports import Frontier, reads
from crawler.settings.sections import Settings

_LOCAL: Final = late(r"[^\s/.:]+(/.*)?")  # rather a path than a host


def is_path(text: str) -> bool:
    """Whether the text names a page of the site by its path, such as `/press/3`."""
    return text.startswith("/") and not text.startswith("//")


async def url_in_state(frontier: Frontier, settings: Settings, text: str) -> Url:
    """The URL as the state has it, if it does. Raises `ConfigError`, `FrontierError`."""
    base = await published_as(frontier, settings)
    if base is None:
        raise FrontierError("The state contains no URLs yet: crawl first.")
    normalise = normaliser(settings)
    url = start_url(base.site + text if is_path(text) else text, normalise)
    there = base.crawled(url, exactly=True)
    path = normalise(f"{base.site}/{text}") or url  # of `press/3`
    bare = (normalise(f"http://{text}") if "://" not in text else None) or url
    for known in (there, url, path, bare):
        if await frontier.read(reads.NumberOf(known)):
            return known
    return path if _LOCAL.fullmatch(text) else there


def over_http(command: str, text: str, url: Url) -> str:
    """The command to try if nothing answers at `url`, where the text has no scheme; may be empty."""
    if "://" in text or not url.startswith("https:"):
        return ""
    other = "http://" + text.lstrip("/")
    return f" For a site without https: {suggested(shlex.join([command, other]))}"
