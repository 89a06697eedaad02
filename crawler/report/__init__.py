"""Statistics of a crawl, log lines, and text that is safe to print."""
