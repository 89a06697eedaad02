"""A small website that comes along: `pages` declares it, `site` serves it on loopback. Our tests declare theirs alike."""

from crawler.cli.demo.pages import demo_site
from crawler.cli.demo.site import Site

__all__ = ["Site", "demo_site"]
