"""The composition root: from settings to a crawl. Only here are concrete classes named."""
