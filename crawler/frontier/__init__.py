"""Frontiers: the one durable record per URL. `sqlite` is embedded, a file or `:memory:`."""

from crawler.frontier.sqlite import SqliteFrontier

__all__ = ["SqliteFrontier"]
