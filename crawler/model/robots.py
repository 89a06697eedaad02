"""The robots.txt of an origin (RFC 9309), and whether it allows a URL."""

from msgspec import Struct

from crawler.model.reasons import Cause, Why


class RobotsFile(Struct, frozen=True):
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

    @property
    def is_silent(self) -> bool:
        """Whether nothing answers, though the host has an address."""
        return self.detail.startswith((Cause.CONNECT.says, Cause.TIMEOUT.says))


class Permit(Struct, frozen=True):
    """Whether robots.txt allows a URL, and the line that decides."""

    allowed: bool
    why: Why | None = None
    line: str = ""
