"""The language versions of a page (`hreflang`): what pages state about each other, and what of it goes into
the sitemap.

A page names its versions; search engines ignore a version that does not name the page in return (Google,
localized versions). Nothing is guessed: a cluster is not completed, and a wrong code is not repaired. Pure.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Final, NamedTuple

from crawler.model.facts import LONGEST_ALTERNATES, LONGEST_LANGUAGE_CODE, Version
from crawler.model.outcome import says
from crawler.parse import languages
from crawler.parse.url import Url

MOST_ALTERNATES: Final = 500  # versions of one page that are kept
OFFSITE: Final = "unlisted:offsite"

# Codes of findings, in `report.catalogue`.
NO_RETURN: Final = "hreflang-no-return"
BAD_CODE: Final = "hreflang-code"
TARGET: Final = "hreflang-target"
CONFLICT: Final = "hreflang-conflict"
NO_SELF: Final = "hreflang-no-self"


def written(stated: Iterable[tuple[str, Url]]) -> str | None:
    """Codes and URLs as they are stored: a line for each, valid codes in their usual spelling."""
    lines: dict[str, None] = {}
    size = 0
    for code, url in stated:
        line = f"{languages.canonical(code) or _plain(code)} {url}"
        size += len(line) + 1
        if len(lines) >= MOST_ALTERNATES or size > LONGEST_ALTERNATES:
            break
        lines[line] = None
    return "\n".join(lines) or None


def read(text: str | None) -> list[tuple[str, Url]]:
    """The inverse of `written`."""
    lines = (line.partition(" ") for line in text.split("\n")) if text else ()
    return [(code, Url(url)) for code, _, url in lines]


def _plain(code: str) -> str:
    """An invalid code as visible ASCII."""
    return "".join(char if "!" <= char <= "~" else "?" for char in code[:LONGEST_LANGUAGE_CODE]) or "?"


class NamedVersion(NamedTuple):
    """A version that a page names. `fault`: code of a finding; empty if it goes into the sitemap."""

    code: str
    url: Url
    verdict: str
    fault: str = ""


class Cluster(NamedTuple):
    """The versions of a page."""

    members: list[NamedVersion]
    links: tuple[tuple[str, Url], ...]  # what goes into the sitemap, by code
    names_itself: bool


def valid(text: str | None) -> dict[str, Url]:
    """The URLs by valid code, without codes that have several."""
    found: dict[str, set[Url]] = {}
    for code, url in read(text):
        if languages.canonical(code):
            found.setdefault(code, set()).add(url)
    return {code: next(iter(urls)) for code, urls in found.items() if len(urls) == 1}


def cluster(page: Version, others: Mapping[Url, Version], is_listed: Callable[[Version], bool]) -> Cluster:
    """What becomes of each version that a page names. `others`: those of them that the run knows."""
    sure = valid(page.alternates)
    members = []
    for code, url in read(page.alternates):
        verdict, fault = _of_code(code, sure) or _of_page(page, url, others.get(url), is_listed)
        members.append(NamedVersion(code, url, verdict, fault))
    links = {member.code: member.url for member in members if not member.fault}
    names_itself = not members or page.url in sure.values()
    if not names_itself and (own := _own_code(page, links, others)) and own not in sure:
        links[own] = page.url
        members.append(NamedVersion(own, page.url, "added, as the others name it"))
    if set(links.values()) <= {page.url}:
        links = {}
    return Cluster(
        members, tuple(sorted(links.items(), key=lambda link: languages.order(link[0]))), names_itself
    )


def _of_code(code: str, sure: Mapping[str, Url]) -> tuple[str, str] | None:
    """The verdict and fault of a code that cannot be used."""
    if not languages.canonical(code):
        return f"invalid code: {languages.hint(code)}", BAD_CODE
    return None if code in sure else ("this code has several URLs", CONFLICT)


def _of_page(
    page: Version, url: Url, other: Version | None, is_listed: Callable[[Version], bool]
) -> tuple[str, str]:
    """The verdict and fault of a page that is named as a version. `other`: what the run knows of it."""
    if url == page.url:
        return "the page itself", ""
    if other is None or other.outcome == OFFSITE:
        return "on another site, not verified", ""
    if not is_listed(other):
        return f"not listed: {says(other.outcome)}", TARGET
    if page.url not in valid(other.alternates).values():
        return "does not name this page", NO_RETURN
    return "names this page, too", ""


def _own_code(page: Version, links: Mapping[str, Url], others: Mapping[Url, Version]) -> str | None:
    """The code that all verified versions use for the page; `x-default` is for none in particular."""
    codes = {
        code
        for url in links.values()
        if (other := others.get(url)) and other.outcome != OFFSITE
        for code, to in valid(other.alternates).items()
        if to == page.url and code != languages.X_DEFAULT
    }
    return codes.pop() if len(codes) == 1 else None


def faults(found: Cluster) -> list[tuple[str, str]]:
    """The findings about a page: code and detail. Each code once."""
    details: dict[str, list[str]] = {}
    for member in found.members:
        if member.fault:
            details.setdefault(member.fault, []).append(f"{member.code} {member.url}: {member.verdict}")
    named = [(code, _few(texts)) for code, texts in details.items()]
    return named if found.names_itself else [*named, (NO_SELF, "")]


def _few(texts: list[str]) -> str:
    return texts[0] if len(texts) == 1 else f"{texts[0]} (and {len(texts) - 1} more)"
