"""The embedded frontier: one SQLite file, or `:memory:`."""

from crawler.frontier.sqlite.frontier import SqliteFrontier

__all__ = ["SqliteFrontier"]
