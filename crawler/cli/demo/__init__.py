"""The built-in websites of the demo: declared in `pages` and `faults`, served on loopback by `site`."""

from crawler.cli.demo.faults import faults_site
from crawler.cli.demo.pages import demo_site
from crawler.cli.demo.site import Site

__all__ = ["Site", "demo_site", "faults_site"]
