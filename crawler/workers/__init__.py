"""Worker processes: visits made elsewhere, by processes that may die."""

from crawler.workers.channel import Channel
from crawler.workers.team import Home, Team

__all__ = ["Channel", "Home", "Team"]
