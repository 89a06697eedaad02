"""Sitemap files: `write` makes them, `read` takes URLs out of those that others made."""
