"""The website of the demo: a small lantern shop with the faults that real sites have.

It has an example of each kind of outcome in the summary. Dates are fixed in the past, so that every run has
the same result.
"""

from datetime import UTC, datetime, timedelta
from typing import Final

from crawler.cli.demo.site import Site

LANTERNS: Final = (
    ("storm", "Storm lantern", 2024, 11),
    ("candle", "Candle lantern", 2025, 1),
    ("paper", "Paper lantern", 2025, 3),
    ("railway", "Railway lantern", 2023, 6),
    ("ship", "Ship's lantern", 2024, 2),
    ("solar", "Solar lantern", 2025, 8),
    ("garden", "Garden lantern", 2025, 5),
    ("miner", "Miner's lamp", 2022, 9),
    ("magic", "Magic lantern", 2021, 12),
    ("signal", "Signal lantern", 2024, 7),
    ("camping", "Camping lantern", 2025, 6),
    ("wall", "Wall lantern", 2023, 3),
)
GUIDES: Final = (
    "trimming-a-wick", "choosing-a-mantle", "cleaning-soot", "storing-paraffin", "a-short-history",
)  # fmt: skip
LONG: Final = "Hand-made in a small workshop and tested by the sea. " * 6


def demo_site() -> Site:
    """The shop, ready to be served."""
    site = Site()
    _front(site)
    _shop(site)
    _guides(site)
    _faults(site)
    return site


def _front(site: Site) -> None:
    site.robots("User-agent: *\nDisallow: /basket\nDisallow: /*?sort=\nSitemap: {origin}/old-sitemap.xml\n")
    site.sitemap("/old-sitemap.xml", ["/", "/lanterns/", "/guides/", "/workshop", "/lanterns/tin"])
    site.page(
        "/",
        title="Lanterns & Co.",
        text=f"<p>{LONG}</p>",
        links=[
            "/lanterns/", "/guides/", "/about", "/contact", "/news?utm_source=front", "/basket", "/shop",
            "/catalogue.pdf", "https://partner.example/",
        ],
        lastmod=datetime(2025, 9, 1, 8, tzinfo=UTC),
    )  # fmt: skip
    site.page(
        "/about", title="About us", links=["/", "/team", "/press"], lastmod="Friday, 14-Mar-25 09:30:00 GMT"
    )
    site.page("/team", title="The team", lastmod="Wed Apr  2 10:00:00 2025")
    site.page("/contact", title="Contact", links=["/thanks"])
    site.page("/thanks", title="Thank you", noindex=True)
    site.page("/news", title="News", links=["/news?page=2"], lastmod=datetime(2025, 8, 20, tzinfo=UTC))
    site.page("/news?page=2", title="Older news", links=["/news"], lastmod=datetime(2024, 5, 2, tzinfo=UTC))
    site.page("/workshop", title="The workshop: linked from nowhere, found in the old sitemap")


def _shop(site: Site) -> None:
    pages = [f"/lanterns/{name}" for name, *_ in LANTERNS]
    sorted_ = ["/lanterns/?sort=price", "/lanterns/?view=grid"]
    site.page(
        "/lanterns/", title="All lanterns", links=[*pages, *sorted_], lastmod=datetime(2025, 8, 3, tzinfo=UTC)
    )
    site.page("/lanterns/?view=grid", title="All lanterns", canonical="/lanterns/", links=pages)
    for number, (name, title, year, month) in enumerate(LANTERNS):
        following = pages[(number + 1) % len(pages)]
        site.page(
            f"/lanterns/{name}",
            title=title,
            text=f"<p>{LONG}</p>",
            links=["/lanterns/", following, f"/lanterns/{name}?colour=red", f"/basket?add={name}"],
            canonical=f"/lanterns/{name}",
            lastmod=datetime(year, month, 5, 12, 30, tzinfo=UTC),
        )
        if number < 3:
            site.page(f"/lanterns/{name}?colour=red", title=f"{title}, red", canonical=f"/lanterns/{name}")
        else:
            site.redirect(f"/lanterns/{name}?colour=red", f"/lanterns/{name}", 302)


def _guides(site: Site) -> None:
    pages = [f"/guides/{name}" for name in GUIDES]
    site.page("/guides/", title="Guides", links=pages, lastmod=datetime(2025, 2, 11, tzinfo=UTC))
    for number, path in enumerate(pages):
        site.page(
            path,
            title=path.rpartition("/")[2].replace("-", " ").capitalize(),
            text=f"<p>{LONG}</p>",
            links=["/guides/", "/guides/missing"],
            nofollow=["/login"],
            lastmod=datetime(2024, 1, 9, tzinfo=UTC) + timedelta(days=31 * number),
        )


def _faults(site: Site) -> None:
    site.redirect("/shop", "/store")
    site.redirect("/store", "/lanterns/", 308)
    site.page("/login", title="Log in")
    site.page(
        "/press",
        title="Press",
        headers={"X-Robots-Tag": "noindex"},
        links=["/press/1", "/press/2", "/press/3"],
    )
    site.page("/press/1", title="A date in the future", lastmod="Fri, 01 Jan 2100 00:00:00 GMT")
    site.page("/press/2", title="A date that is none", lastmod="yesterday")
    site.page("/press/3", title="Broken", status=500)
    site.raw("/catalogue.pdf", body=b"%PDF-1.7 lanterns", headers={"Content-Type": "application/pdf"})
