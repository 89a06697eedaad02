"""The composition root: settings become objects, objects become a crawl. Only here are concrete classes named."""
