"""The robots.txt of an origin (RFC 9309), and whether it allows a URL."""

from dataclasses import dataclass
from typing import NamedTuple

from crawler.model.reasons import Why


@dataclass(frozen=True, slots=True)
class RobotsFile:
    """The result of fetching /robots.txt (RFC 9309 2.3.1)."""

    # "rules": they are in `text` · "none": all allowed · "down", "unreachable": nothing is allowed
    status: str
    text: bytes = b""
    detail: str = ""
    fetched: float = 0.0  # seconds since the epoch

    @property
    def failed(self) -> bool:
        """Whether it could not be read."""
        return self.status in {"down", "unreachable"}


class Permit(NamedTuple):
    """Whether robots.txt allows a URL, and the line that decides."""

    allowed: bool
    why: Why | None = None
    line: str = ""
