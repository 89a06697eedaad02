"""Words that reports and the command line share: counts with their noun, sizes, moments, and URLs as people read them."""

from datetime import UTC, datetime
from typing import Final

from crawler.parse.url import origin

UNITS: Final = ("kB", "MB", "GB", "TB")


def counted(number: int, one: str, many: str = "") -> str:
    """`1 URL`, `1,170 URLs`; `many`: the plural, if it is not formed with s."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def size(count: int) -> str:
    """A number of bytes for people, in powers of ten: `14.2 kB`."""
    if count < 1_000:
        return f"{count} B"
    amount, unit = count / 1_000, UNITS[0]
    for larger in UNITS[1:]:
        if amount < 999.95:
            break
        amount, unit = amount / 1_000, larger
    return f"{amount:.1f} {unit}"


def minute(seconds: float) -> str:
    """A moment (seconds since the epoch) to the minute: `2026-11-21 23:49 UTC`."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M UTC")


def iso(seconds: float | None) -> str | None:
    """A moment (seconds since the epoch) in ISO 8601 format, UTC."""
    if seconds is None:
        return None
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def short(url: str, site: str) -> str:
    """The path alone for URLs of the origin `site`, the whole URL otherwise."""
    return url[len(site) :] if url.startswith(f"{site}/") else url


def shortened(text: str, site: str) -> str:
    """A sentence in which `short` is applied to every URL at the beginning of a word."""
    return " ".join(short(word, site) for word in text.split(" "))


def folders_of(url: str, site: str) -> tuple[str, str]:
    """The first folder of a URL, and its first two: `/docs/`, `/docs/api/`; a top-level page is in `/`."""
    home = origin(url)
    path = url[len(home) :].partition("?")[0]
    first, slash, rest = path[1:].partition("/")
    here = "" if home == site else home
    one = f"{here}/{first}/" if slash else f"{here}/"
    second, slash, _ = rest.partition("/")
    return one, f"{one}{second}/" if slash else one
