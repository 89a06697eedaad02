"""What is told of a crawl: counters while it works (`tally`), lines in a log (`lines`)."""
