"""Small sites that several tests crawl."""

from crawler.cli.demo.site import Site


def star(*pages: str) -> Site:
    """A start page that links to these pages."""
    site = Site()
    site.page("/", links=pages)
    for path in pages:
        site.page(path)
    return site
