"""Checks that a start URL led to a page, and explains the failure if none did."""

from crawler.errors import StartForbidden, StartUnreachable
from crawler.model.outcome import HTML, Failed, Listed, Moved, Unlisted
from crawler.model.reasons import Cause, Why
from crawler.model.url_record import UrlRecord
from crawler.parse.url import Url, netloc, origin
from crawler.ports import Hosts, Record

LOGIN = " A login is provided by --auth-env, --cookie-file or --client-cert; docs/use/how-to.md shows how."
NO_PAGE = frozenset({Why.ROBOTS, Why.ROBOTS_DOWN, Why.OFFSITE, Why.TYPE})


async def check(pages: Record, hosts: Hosts, starts: tuple[Url, ...]) -> None:
    """Raises `StartUnreachable` or `StartForbidden` if no start URL led to a page."""
    ends = [await _end_of(pages, url) for url in starts]
    if any(_is_page(record) for _, record in ends):
        return
    url, record = ends[0]
    end = record.outcome if record else None
    if isinstance(end, Unlisted) and end.why is Why.ROBOTS_DOWN:
        file = await hosts.robots(origin(url))
        if file and file.status == "unreachable":
            raise StartUnreachable(f"{url}: {file.detail}.")
    if isinstance(end, Unlisted) and end.why in {Why.ROBOTS, Why.ROBOTS_DOWN}:
        line = f" ({end.detail})" if end.detail else ""
        raise StartForbidden(f"{url}: {end.why.says}{line}. See the robots command, or --ignore-robots.")
    if isinstance(end, Unlisted) and end.why is Why.OFFSITE:
        raise StartUnreachable(
            f"{starts[0]} redirects to {url}, another site: start the crawl there, or add --allow-host {netloc(url)}."
        )
    reason = f"{end.cause.says}: {end.detail}" if isinstance(end, Failed) else "no page was received"
    advice = LOGIN if isinstance(end, Failed) and end.cause is Cause.FORBIDDEN else ""
    raise StartUnreachable(f"{url}: {reason.removesuffix(': ')}.{advice}")


async def _end_of(pages: Record, url: Url) -> tuple[Url, UrlRecord | None]:
    """Where the redirects of a start URL end."""
    for _ in range(100):
        record = await pages.record(url)
        if record is None or not isinstance(record.outcome, Moved):
            return url, record
        url = record.outcome.to
    return url, None


def _is_page(record: UrlRecord | None) -> bool:
    """Whether the site responded with a page, listed or not: its links can be followed."""
    if record is None or isinstance(record.outcome, Listed):
        return record is not None
    end = record.outcome
    if not isinstance(end, Unlisted) or record.facts is None:
        return False
    return end.why not in NO_PAGE or (end.why is Why.TYPE and end.detail in HTML)
