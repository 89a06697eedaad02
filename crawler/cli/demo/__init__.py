"""The built-in website of the demo: declared in `pages`, served on loopback by `site`."""

from crawler.cli.demo.pages import demo_site
from crawler.cli.demo.site import Site

__all__ = ["Site", "demo_site"]
