"""Runs the scripts of a page in a browser (`--render`), behind the `Fetcher` seam.

`renderer` is the fetcher: it passes every other request on, and renders a page in a `tab` of a `browser`,
which `chromium` finds and starts. The browser has no network of its own: `policy` decides about each request
of a page, and `resources` answers it through the fetcher of the crawl. No other package knows that there is a
browser.
"""
