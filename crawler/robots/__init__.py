"""robots.txt (RFC 9309): `parse` reads the rules and is pure, `Robots` asks origins for them and remembers."""

from crawler.robots.match import LIMIT, Decision, Rules, parse
from crawler.robots.permits import Robots

__all__ = ["LIMIT", "Decision", "Robots", "Rules", "parse"]
