"""What an origin's robots.txt said (RFC 9309), and what it allows."""

from dataclasses import dataclass
from typing import NamedTuple

from crawler.model.reasons import Why


@dataclass(frozen=True, slots=True)
class RobotsFile:
    """What an origin said when asked for /robots.txt (RFC 9309 2.3.1)."""

    status: (
        str  # "rules": text holds them · "none": all allowed · "down", "unreachable": nothing may be asked
    )
    text: bytes = b""
    detail: str = ""
    fetched: float = 0.0  # seconds since the epoch

    @property
    def failed(self) -> bool:
        """Whether it could not be read."""
        return self.status in {"down", "unreachable"}


class Permit(NamedTuple):
    """Whether robots.txt lets us ask for a URL, and the line that says so."""

    allowed: bool
    why: Why | None = None
    line: str = ""
