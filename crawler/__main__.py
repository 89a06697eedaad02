"""`python -m crawler`: the same as the command `sitemap-crawler`."""

from crawler.cli import main

main()
