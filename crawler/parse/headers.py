"""Parses header fields: Content-Type, also where it is sniffed, and Link; X-Robots-Tag: see `robots_meta`.

What a link means for a page is decided by `judge`. Total: malformed parts are ignored.
"""

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Final

from msgspec import Struct

from crawler.parse.late import late

LINKS: Final = 1_000  # read from the Link fields of one response
LONGEST_FIELD_READ: Final = 65_536  # characters of a field that are read

_WORD: Final = r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+"
_ESSENCE: Final = re.compile(rf"[\t\n\r ]*({_WORD})/({_WORD})[\t\n\r ]*(?:;|\Z)")
_QUOTED: Final = late(r'"((?:[^"\\]|\\.)*)("?)', re.DOTALL)
_LINK: Final = late(r"<([^<>]*)>")
_PARAM: Final = late(rf"\s*;\s*({_WORD})\s*(?:=\s*(?:\"((?:[^\"\\]|\\.)*)\"|([^\s;,\"]*)))?", re.DOTALL)
_HTML_STARTS: Final = (
    b"<!doctype html", b"<html", b"<head", b"<script", b"<iframe", b"<h1", b"<div", b"<font", b"<table",
    b"<a", b"<style", b"<title", b"<b", b"<body", b"<br", b"<p", b"<!--",
)  # fmt: skip
_SNIFFED: Final = 512  # bytes that the standard sniffs (MIME Sniffing, 7.1)


@lru_cache(64)  # a site sends few different values
def content_type(value: str | None) -> tuple[str | None, str | None]:
    """The media type in lower case, and the charset (MIME Sniffing Standard, "parse a MIME type")."""
    value = (value or "")[:LONGEST_FIELD_READ]
    match = _ESSENCE.match(value)
    if match is None:
        return None, None
    essence = f"{match[1]}/{match[2]}".lower()
    return essence, _charset(value[match.end() :]) if value[match.end() - 1 : match.end()] == ";" else None


def _charset(rest: str) -> str | None:
    """The first charset parameter; a quoted value may hold a semicolon."""
    at = 0
    while at < len(rest):
        end = min((i for i in (rest.find(";", at), rest.find("=", at)) if i >= 0), default=len(rest))
        name = rest[at:end].lstrip("\t\n\r ").lower()
        if rest[end : end + 1] != "=":
            at = end + 1
            continue
        value, at = _value(rest, end + 1)
        if (
            name == "charset"
            and value is not None
            and all(c == "\t" or (" " <= c <= "\xff" and c != "\x7f") for c in value)
        ):
            return value
    return None


def _value(rest: str, at: int) -> tuple[str | None, int]:
    """A parameter's value, and where the next parameter begins. None for an empty unquoted value."""
    if rest[at : at + 1] == '"' and (match := _QUOTED.match(rest, at)):
        value = re.sub(r"\\(.)", r"\1", match[1], flags=re.DOTALL)
        if not match[2] and value.endswith("\\") and not match[1].endswith("\\\\"):
            value = match[1]
        end = rest.find(";", match.end())
        return value, len(rest) if end < 0 else end + 1
    end = rest.find(";", at)
    end = len(rest) if end < 0 else end
    return rest[at:end].rstrip("\t\n\r ") or None, end + 1


class HeaderLink(Struct, frozen=True):
    """One link of a Link field: `target` as written, `rels` in lower case."""

    target: str
    rels: frozenset[str]
    hreflangs: tuple[str, ...] = ()  # as written


def links(values: Iterable[str]) -> list[HeaderLink]:
    """The links of all Link fields (RFC 8288 3), several in a field, each with one relation or more."""
    found: list[HeaderLink] = []
    for value in values:
        for link in _links(value[:LONGEST_FIELD_READ]):
            found.append(link)
            if len(found) >= LINKS:
                return found
    return found


def _links(value: str) -> Iterator[HeaderLink]:
    at = 0
    while match := _LINK.search(value, at):
        at, rels = match.end(), None
        elsewhere = False
        hreflangs: list[str] = []
        while param := _PARAM.match(value, at):
            at, name = param.end(), param[1].lower()
            if name == "rel" and rels is None:  # only the first counts (RFC 8288 3.3)
                rels = re.sub(r"\\(.)", r"\1", param[2]) if param[2] is not None else param[3] or ""
            if name == "hreflang":  # may be given several times (RFC 8288 3.4.1)
                hreflangs.append(param[2] if param[2] is not None else param[3] or "")
            elsewhere = elsewhere or name == "anchor"  # the link is about another page than this one
        if not elsewhere:
            yield HeaderLink(match[1].strip(), frozenset((rels or "").lower().split()), tuple(hreflangs))
        at = _next_link(value, at)


def _next_link(value: str, at: int) -> int:
    """The position after the next comma outside quotes."""
    quoted = False
    while at < len(value):
        char = value[at]
        if char == "\\" and quoted:
            at += 1
        elif char == '"':
            quoted = not quoted
        elif char == "," and not quoted:
            return at + 1
        at += 1
    return at


def text_of(value: str) -> str:
    """A header value in UTF-8 if possible: servers send URLs in UTF-8, despite RFC 9110 5.5."""
    if value.isascii():
        return value
    try:
        return value.encode("latin-1").decode()
    except UnicodeError:
        return value


def looks_like_html(body: bytes) -> bool:
    """Whether the MIME Sniffing Standard (7.1) takes a response without a type for HTML."""
    return body[:_SNIFFED].lstrip(b"\t\n\x0c\r ").lower().startswith(_HTML_STARTS)
