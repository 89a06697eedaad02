"""Recipes: patterns for sites that a known system makes, by name (`--recipe wordpress`).

Each is a file in the folder `recipes`. Its patterns count beside those of --no-list and --exclude; how a site
is recognised by its first page is in the file, too.
"""

import glob
import re
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from crawler.parse.late import late
from crawler.settings.values import compile_pattern

NAMES: Final = ("wordpress", "mediawiki", "dokuwiki", "hugo", "sphinx", "drupal", "shopify", "ghost")
_META: Final = late(rb"<meta\s[^<>]{0,500}>")
_NAMED: Final = late(rb"""\sname\s*=\s*["']?generator\b""")
# What a path and query contains that some recipe does not list: one look, before any recipe is read.
UNLISTED: Final = late(
    r"/(?:tags?|author|categor|series|taxonomy|collections|blogs|_modules|comment-page|(?:page/?)?[0-9]|genindex"
    r"|py-modindex|search|print)|:|[?&](?:cat|m|author|tag|year|c?page)"
)


class Recipe(Struct, frozen=True):
    """The patterns of one system."""

    name: str
    system: str  # for people
    generator: str  # regular expression, for the content of <meta name="generator">
    marks: tuple[str, ...]  # any of them in the HTML shows the system, too; in lower case
    no_list: tuple[str, ...]
    exclude: tuple[str, ...]

    def at(self, starts: Iterable[str]) -> "Recipe":
        """The recipe of a site that starts at these paths: what counts at the root also counts in their
        folders.
        """
        folders = {path.partition("?")[0].rpartition("/")[0] for path in starts} - {""}
        no_list, exclude = ((*own, *_moved(own, sorted(folders))) for own in (self.no_list, self.exclude))
        return replace(self, no_list=no_list, exclude=exclude)

    def is_of(self, page: bytes) -> bool:
        """Whether the system made this page. `page`: HTML in lower case."""
        named = re.compile(rf"""content\s*=\s*["']?\s*({self.generator})\b""".encode())
        tags = (tag[0] for tag in _META.finditer(page) if _NAMED.search(tag[0]))
        return any(named.search(tag) for tag in tags) or any(mark.encode() in page for mark in self.marks)

    def count_unlisted(self, targets: Iterable[str]) -> int:
        """How many of these paths and queries it does not list."""
        every = left = list(targets)
        for text in self.no_list:
            pattern = compile_pattern(text)
            found = pattern.search if text.startswith("re:") else pattern.match  # a glob has to begin there
            left = [target for target in left if not found(target)]
        return len(every) - len(left)

    def pattern_of(self, target: str) -> str | None:
        """The first of its patterns that a path and query match, with the name of its setting."""
        flagged = [("--no-list", one) for one in self.no_list] + [("--exclude", one) for one in self.exclude]
        return next((f"{flag} {one}" for flag, one in flagged if compile_pattern(one).search(target)), None)


def _moved(patterns: Iterable[str], folders: Iterable[str]) -> Iterator[str]:
    """The patterns that begin at the root, in each folder."""
    for folder in folders:
        for pattern in patterns:
            if pattern.startswith("re:^"):
                yield f"re:^{re.escape(folder)}{pattern[4:]}"
            elif pattern.startswith("/"):
                yield glob.escape(folder) + pattern


@cache
def recipe_of(name: str) -> Recipe:
    """The recipe of that name."""
    # Both take long to load, and most runs have no recipe.
    import tomllib  # noqa: PLC0415
    from importlib.resources import files  # noqa: PLC0415

    read = tomllib.loads(files(__package__).joinpath("recipes", f"{name}.toml").read_text(encoding="utf-8"))
    lists = {key.replace("-", "_"): tuple(read[key]) for key in ("marks", "no-list", "exclude")}
    return Recipe(name, read["system"], read["generator"], **lists)


def recognised(page: bytes) -> Recipe | None:
    """The recipe for the system that made a page; None if it is not known."""
    lower = page.lower()
    return next((one for one in map(recipe_of, NAMES) if one.is_of(lower)), None)
