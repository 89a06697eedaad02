"""Declarative shadow roots: `<template shadowrootmode>`, whose content a browser shows in place.

The parser takes it for a template, of which nothing is read. Here it becomes an element of no meaning, whose
name has as many letters; other templates stay. HTML Standard 13.2.6.4.4. Pure.
"""

from typing import Final

from crawler.parse.late import late

_NAME: Final = b"x-shadow"  # as long as "template"
# Comments and elements whose content is text, in which a tag is none; and templates.
_TOKEN: Final = late(
    rb"<!--|-->|<(?P<ends>/?)(?:(?P<raw>(?i:script|style|textarea|title|xmp|iframe|noembed|noframes))"
    rb"(?=[\t\n\x0c\r />])|(?i:template)(?P<rest>(?:[\t\n\x0c\r /][^<>]*+)?+)>)"
)
_OPENS: Final = late(
    rb"(?i)[\t\n\x0c\r /]shadowrootmode[\t\n\x0c\r ]*+=[\t\n\x0c\r ]*+[\"']?(?:open|closed)\b"
)


def opened(body: bytes) -> bytes:
    """The page with its shadow roots as elements."""
    if body.find(b"shadowrootmode") < 0:
        return body
    found, templates, text = bytearray(body), list[bool](), b""
    for token in _TOKEN.finditer(body):
        raw, ends = (token["raw"] or b"").lower(), bool(token["ends"])
        if text:
            text = b"" if token[0] == text or (ends and raw == text) else text
        elif token[0] == b"<!--":
            text = b"-->"
        elif raw:
            text = b"" if ends else raw
        elif token["rest"] is not None:
            if not ends:
                templates.append(_OPENS.search(token["rest"]) is not None)
            if templates and (templates.pop() if ends else templates[-1]):
                at = token.start() + 1 + ends
                found[at : at + len(_NAME)] = _NAME
    return bytes(found)
