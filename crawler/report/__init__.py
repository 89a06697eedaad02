"""Reports on a site, statistics of a crawl, log lines, and text that is safe to print."""
