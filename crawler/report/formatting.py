"""Formats values for people, in reports, logs and commands: counts with their noun, sizes, times and URLs."""

import math
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import pairwise
from typing import Final

from crawler.model.outcome import says
from crawler.model.run import Wait
from crawler.parse.late import late
from crawler.parse.url import origin
from crawler.report.printable import printable

LONGEST_ORIGIN: Final = 60  # characters
SIZES: Final = ("kB", "MB", "GB", "TB")
_ESCAPES: Final = late(r"(?:%[89A-Fa-f][0-9A-Fa-f])+")  # of bytes beyond ASCII
DURATIONS: Final = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))

PLACES: Final = {
    "nav": "the navigation", "header": "the header", "main": "the main part", "footer": "the footer",
    "aside": "the sidebar", "head": "the head", "image": "an image",
}  # fmt: skip
"""Where a link stands on its page (`parse.anchors.Place`)."""


def said_words(text: str, place: str) -> str:
    """What a link says, and where it stands: `“Prices”, in the footer`; empty if nothing is known."""
    return ", ".join(filter(None, [text and f"“{text}”", place and f"in {PLACES[place]}"]))


def counted(number: int, one: str, many: str = "") -> str:
    """`1 URL`, `1,170 URLs`; `many`: the plural, if it is not formed with s."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def ages(mean: float, oldest: float) -> str:
    """How many days ago pages were visited last."""
    words = ("less than a day" if days < 1 else f"{days:,.1f} days" for days in (mean, oldest))
    return "last visits were {} ago on average, {} at most".format(*words)


def outcome_words(code: str) -> str:
    """The sentence for the code of an outcome; the code itself if it comes from a newer version."""
    try:
        return says(code)
    except ValueError:
        return printable(code)


def size(count: int) -> str:
    """A number of bytes for people, in powers of ten: `14.2 kB`."""
    if count < 1_000:
        return f"{count} B"
    amount, unit = count / 1_000, SIZES[0]
    for larger in SIZES[1:]:
        if amount < 999.95:
            break
        amount, unit = amount / 1_000, larger
    return f"{amount:.1f} {unit}"


def duration(seconds: float) -> str:
    """`12 s`, `4 min 5 s`, `1 h 12 min`, `2 d 3 h`: at most two units, none of them zero."""
    total = max(0, int(seconds))
    for (size, unit), (part, name) in pairwise(DURATIONS):
        if total >= size:
            rest = total % size // part
            return f"{total // size} {unit}" + (f" {rest} {name}" if rest else "")
    return f"{total} s"


def second(seconds: float) -> str:
    """A moment (seconds since the epoch) to the second: `2026-11-21 23:49:07 UTC`."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def clock(seconds: float) -> str:
    """The time of a moment (seconds since the epoch): `23:49:07 UTC`."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%H:%M:%S UTC")


def waiting_words(waits: Sequence[Wait]) -> str:
    """`waits for https://example.com until 23:49:07 UTC`, and for how many others."""
    first, others = waits[0], len(waits) - 1
    more = f" and {counted(others, 'more host')}" if others else ""
    return f"waits for {printable(first.origin, LONGEST_ORIGIN)}{more} until {clock(first.until)}"


def pace_words(delay: float) -> str:
    """`at most 5 requests/s`, `1 request every 2 s`, by the seconds between two requests; `unpaced`."""
    if not delay:
        return "unpaced"
    return f"at most {1 / delay:.3g} requests/s" if delay < 1 else f"1 request every {delay:.3g} s"


def least_words(seconds: float, word: str = "at least") -> str:
    """`at least 30 s`, rounded up to five seconds or to minutes."""
    step = 5 if seconds <= 60 else 60
    return f"{word} {duration(max(step, math.ceil(seconds / step) * step))}"


def minute(seconds: float) -> str:
    """A moment (seconds since the epoch) to the minute: `2026-11-21 23:49 UTC`."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M UTC")


def iso(at: float | datetime | None) -> str | None:
    """A moment (if a number: seconds since the epoch) in ISO 8601 format, UTC: as in all JSON."""
    if at is None:
        return None
    moment = at.astimezone(UTC) if isinstance(at, datetime) else datetime.fromtimestamp(at, UTC)
    return moment.isoformat(timespec="seconds").replace("+00:00", "Z")


def short(url: str, site: str) -> str:
    """The path alone for URLs of the origin `site`, the whole URL otherwise."""
    return url[len(site) :] if url.startswith(f"{site}/") else url


def readable(url: str) -> str:
    """A URL with the letters that its escapes stand for: `/straße` for `/stra%C3%9Fe`; not those of ASCII."""
    return _ESCAPES.sub(_unescaped, url) if "%" in url else url


def _unescaped(escapes: re.Match[str]) -> str:
    try:
        return bytes.fromhex(escapes[0].replace("%", "")).decode()
    except UnicodeDecodeError:
        return escapes[0]


def shortened(text: str, site: str) -> str:
    """A sentence in which `short` is applied to every URL that begins a word, also after a bracket."""
    return " ".join(_shortened(word, site) for word in text.split(" "))


def _shortened(word: str, site: str) -> str:
    if not word.startswith("("):
        return short(word, site)
    path = short(word[1:], site)
    return word if path.startswith("/)") else f"({path}"


def folders_of(url: str, site: str) -> tuple[str, str]:
    """The first folder of a URL, and its first two: `/docs/`, `/docs/api/`; a top-level page is in `/`."""
    home = origin(url)
    path = url[len(home) :].partition("?")[0]
    first, slash, rest = path[1:].partition("/")
    here = "" if home == site else home
    one = f"{here}/{first}/" if slash else f"{here}/"
    second, slash, _ = rest.partition("/")
    return one, f"{one}{second}/" if slash else one
