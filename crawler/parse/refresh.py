"""The `content` of a meta refresh: delay and URL (HTML Standard 4.2.5.3, declarative refresh)."""

import re
from typing import Final

from crawler.parse.late import late

ASCII_WHITESPACE: Final = "\t\n\x0c\r "
_REFRESH: Final = late(r"(\d*)([\d.]*)", re.ASCII)
_REFRESH_URL: Final = late(r"[uU][rR][lL][\t\n\x0c\r ]*=[\t\n\x0c\r ]*")


def parse_refresh(content: str) -> tuple[float, str] | None:
    """Seconds and URL of a refresh; the URL is empty for the page itself."""
    text = content.lstrip(ASCII_WHITESPACE)
    match = _REFRESH.match(text)
    digits = match[1] if match else ""
    if not digits and not text.startswith("."):
        return None
    rest = text[match.end() :] if match else text
    if rest and rest[0] not in ";," + ASCII_WHITESPACE:
        return None
    rest = rest.lstrip(ASCII_WHITESPACE)
    rest = rest[1:].lstrip(ASCII_WHITESPACE) if rest[:1] in (";", ",") else rest
    return float((digits or "0")[:15]), _refresh_url(rest)


def _refresh_url(rest: str) -> str:
    prefix = _REFRESH_URL.match(rest)
    text = rest[prefix.end() :] if prefix else rest
    quote = text[:1]
    if quote in {'"', "'"}:
        return text[1:].partition(quote)[0]
    return text
