"""The second website of the demo: a town's site with nearly all faults that a report can name.

`TRUTH` has the findings by code, as paths. Dates are fixed in the past: every run has the same result.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from crawler.cli.demo.site import Site

STORIES: Final = [f"/stories/{number:03}" for number in range(120)]
PLACES: Final = [f"/places/{number:03}" for number in range(100)]
IMPRINT: Final = "/legal/imprint-gone.html"  # in the footer of every page
MENU: Final = ("/", "/stories/", "/places/", "/faults/", "/stra%C3%9Fe/")
GONE: Final = [f"/faults/errors/gone-{number:02}" for number in range(24)]
RESTRICTED: Final = {f"/faults/members/{status}": status for status in (401, 403, 405, 451)}
CHAINS: Final = {name: hops for hops, name in enumerate(("two", "three", "four", "five"), 2)}
MOVED: Final = [f"/faults/moved/{number}" for number in range(5)]
TWINS: Final = [f"/faults/twins/{number}" for number in range(3)]
NAMESAKES: Final = [f"/faults/namesakes/{number}" for number in range(3)]
UNDATED: Final = [f"/faults/undated/{number}" for number in range(3)]
WORDS: Final = (
    "harbour", "lighthouse", "market", "ferry", "library", "mill", "chapel", "quay", "school", "theatre",
    "garden", "bridge",
)  # fmt: skip
FIRST: Final = datetime(2025, 3, 1, 9, 30, tzinfo=UTC)

TRUTH: Final[Mapping[str, Sequence[str]]] = {
    "broken-link": [*GONE, "/faults/errors/removed", "/faults/moved/to-nothing", IMPRINT],
    "server-error": ["/faults/down"],
    "unreachable": ["/faults/cut"],
    "redirect-loop": ["/faults/loop/a", "/faults/loop/b", "/faults/loop/itself"],
    "sitemap-stale": ["/faults/errors/removed", "/faults/private"],
    "client-error": ["/faults/teapot"],
    "canonical-chain": ["/faults/canonical/chain"],
    "noindex-canonical": ["/faults/canonical/both"],
    "canonical-conflict": ["/faults/canonical/lost", "/faults/canonical/two"],
    "noindex-for-bot": ["/faults/one-engine"],
    "redirect-chain": [f"/faults/chain/{name}-0" for name in CHAINS],
    "redirect-linked": [*(f"/faults/chain/{name}-0" for name in CHAINS), *MOVED],
    "orphan": ["/faults/lonely"],
    "duplicate-content": TWINS[:1],
    "duplicate-title": NAMESAKES[:1],
    "robots-line": ["/robots.txt"],
    "restricted": [*RESTRICTED],
    "robots-linked": ["/basket"],
    "noindex-linked": ["/faults/canonical/both", "/faults/private"],
    "no-lastmod": UNDATED,
}
"""The URLs of each finding, in any order; of a group, its first page."""


def faults_site() -> Site:
    """The town's site, ready to be served."""
    site = Site()
    site.robots("User-agent: *\nDisallow: /basket\nSitemap: {origin}/old-sitemap.xml\n")
    site.sitemap(
        "/old-sitemap.xml", ["/", "/faults/lonely", "/faults/errors/removed", "/faults/private", *PLACES[:5]]
    )
    _page(site, "/", "Tidewater", ["/basket"])
    _page(site, "/stra%C3%9Fe/", "Our streets")
    _page(site, "/stories/", "Stories", STORIES)
    _page(site, "/places/", "Places", PLACES)
    for paths, kind in ((STORIES, "Story"), (PLACES, "Place")):
        for number, path in enumerate(paths):
            words = f"the {WORDS[number % len(WORDS)]} and the {WORDS[number // len(WORDS)]}"
            _page(site, path, f"{kind} {number}: {words}", [paths[(number + 1) % len(paths)]])
    _page(site, "/faults/", "Faults", ["/faults/errors/", *_linked()])
    _page(site, "/faults/errors/", "Lost pages", [*GONE, "/faults/errors/removed"])
    _answers(site)
    _redirects(site)
    _verdicts(site)
    return site


def _page(site: Site, path: str, title: str, links: Sequence[str] = (), **more: Any) -> None:
    """A page of the town's template, with a date of its own."""
    body = more.pop("text", f"<p>{title}, as the town of Tidewater keeps it at {path}.</p>")
    menu = "".join(f'<li><a href="{link}">{link}</a>' for link in MENU)
    footer = f'<footer><a href="{IMPRINT}">Imprint</a></footer>'
    date = FIRST + timedelta(hours=13 * len(site.answers))
    more = {"lastmod": date, **more}
    site.page(path, title=title, links=links, text=f"<nav><ul>{menu}</ul></nav>{body}{footer}", **more)


def _linked() -> Iterator[str]:
    """What the page of faults links to."""
    yield from (
        *RESTRICTED,
        "/faults/teapot",
        "/faults/down",
        "/faults/cut",
        *MOVED,
        "/faults/moved/to-nothing",
    )
    yield from ("/faults/loop/a", "/faults/loop/b", "/faults/loop/itself")
    yield from (f"/faults/chain/{name}-0" for name in CHAINS)
    yield from (f"/faults/canonical/{name}" for name in ("chain", "both", "lost", "two"))
    yield from (*TWINS, *NAMESAKES, *UNDATED, "/faults/one-engine", "/faults/private")


def _answers(site: Site) -> None:
    site.raw("/faults/errors/removed", status=410)
    for path, status in RESTRICTED.items():
        site.raw(path, status=status)
    site.raw("/faults/teapot", status=418)
    site.raw("/faults/down", status=500)
    broken = [("Content-Type", "text/html"), ("Content-Encoding", "gzip")]
    site.raw("/faults/cut", body=b"this is no gzip", headers=broken)


def _redirects(site: Site) -> None:
    for number, path in enumerate(MOVED):
        site.redirect(path, PLACES[number])
    site.redirect("/faults/moved/to-nothing", "/faults/nothing")
    for name, hops in CHAINS.items():
        for hop in range(hops):
            last = hop == hops - 1
            site.redirect(
                f"/faults/chain/{name}-{hop}", "/places/" if last else f"/faults/chain/{name}-{hop + 1}"
            )
    site.redirect("/faults/loop/a", "/faults/loop/b")
    site.redirect("/faults/loop/b", "/faults/loop/a")
    site.redirect("/faults/loop/itself", "/faults/loop/itself")


def _verdicts(site: Site) -> None:
    _page(site, "/faults/canonical/chain", "Canonical is a redirect", canonical=MOVED[0])
    _page(site, "/faults/canonical/both", "Noindex and canonical", canonical="/places/", noindex=True)
    _page(site, "/faults/canonical/lost", "Canonical is lost", canonical=GONE[0])
    header = {"Link": '</stories/>; rel="canonical"'}
    _page(site, "/faults/canonical/two", "Two canonicals", canonical="/places/", headers=header)
    _page(site, "/faults/one-engine", "Not for Bing", headers={"X-Robots-Tag": "bingbot: noindex"})
    _page(site, "/faults/private", "Not for search engines", noindex=True)
    _page(site, "/faults/lonely", "Linked from nowhere")
    for path in TWINS:
        _page(site, path, "Twin", text="<p>Word for word the same as two other pages.</p>")
    for path in NAMESAKES:
        _page(site, path, "One title for three pages", text=f"<p>Page {path[-1]} of three.</p>")
    for path in UNDATED:
        _page(site, path, f"Without a date: {path[-1]}", lastmod=None)
