"""The reply to a request: a complete response, or the reason why there is none; and robots.txt (RFC 9309)."""

from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet
from typing import TypeAlias

from msgspec import Struct, field

from crawler.model.reasons import Cause, Why
from crawler.model.rendering import Rendering


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


class Headers:
    """Header fields of a response: names ignore case, repeated fields stay separate (RFC 9110 5.2, 5.3)."""

    __slots__ = ("_fields",)

    def __init__(self, fields: Iterable[tuple[str, str]] = ()) -> None:
        self._fields: dict[str, list[str]] = {}
        for name, value in fields:
            self._fields.setdefault(name.lower(), []).append(value)

    def get(self, name: str) -> str | None:
        """The first field of that (lower-case) name."""
        values = self._fields.get(name)
        return values[0] if values else None

    def all(self, name: str) -> list[str]:
        """Every field of that (lower-case) name, in order."""
        return self._fields.get(name, [])

    def has_any(self, names: AbstractSet[str]) -> bool:
        """Whether there is a field with one of these (lower-case) names."""
        return not names.isdisjoint(self._fields)

    def __iter__(self) -> Iterator[tuple[str, str]]:
        """Name and value pairs."""
        return ((name, value) for name, values in self._fields.items() for value in values)


class Response(Struct, frozen=True):
    """A complete response, with any status."""

    status: int
    headers: Headers = field(default_factory=Headers)
    body: bytes = b""  # decoded
    took: int | None = None  # milliseconds from the request to the last byte that was read
    rendering: Rendering | None = None  # of a page whose scripts are to be run, or were


class Broken(Struct, frozen=True):
    """No complete response."""

    cause: Cause
    detail: str = ""
    transient: bool = False  # worth another try


Reply: TypeAlias = Response | Broken
