"""What a crawl says while it runs and when it is done: statistics, log lines, text that is safe to print."""
