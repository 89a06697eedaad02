"""Writes entries as sitemap files, split by the limits of the protocol."""
