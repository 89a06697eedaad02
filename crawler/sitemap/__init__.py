"""Sitemap files: reading, writing, validating, comparing and publishing them."""
