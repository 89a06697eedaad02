"""Texts of a template that are rolled out over several nights: banners, footers, parts of menus.

An edit has words of its own. Where the last change of several pages was the same one, whenever each of them
had it, the text is that of a template: such changes are no edits, nor are later ones in which nothing else
comes or goes, and pages that were dated by it before have no date. Pure.
"""

from collections.abc import Container, Iterable, Sequence
from typing import Final

from crawler.model.survey import Evidence, NewBlock
from crawler.rules.noise import is_large, texts

LEAST_PAGES: Final = 3  # that changed in the same way, in a small part
SHARE: Final = 30  # or one in so many, if that is more
LEAST_OF_LARGE: Final = 10  # the same of a large part, such as the menu of a week in several restaurants
SHARE_OF_LARGE: Final = 5
MOST_TEXTS: Final = 32  # digests that are remembered: an edit may have one of them by chance


def of_template(evidence: Evidence, found: Iterable[NewBlock], known: Container[int]) -> list[NewBlock]:
    """The changes that several pages share, in this run and in those before, and those of known texts."""
    small = max(LEAST_PAGES, evidence.known // SHARE)
    large = max(LEAST_OF_LARGE, evidence.known // SHARE_OF_LARGE + 1)
    return [
        one
        for one in found
        if one.pages + one.before >= (large if is_large(one.new) else small) or _is_known(one, known)
    ]


def pages(found: Iterable[NewBlock]) -> int:
    """How many pages changed so in this run. A single text may be one that is shown in turn."""
    return sum(one.pages for one in found if one.pages + one.before >= LEAST_PAGES)


def after(before: Sequence[int], found: Iterable[NewBlock]) -> tuple[int, ...]:
    """The texts of templates that are known after a run. `found`: `of_template`."""
    known = dict.fromkeys(before)
    for text in (text for one in found if one.pages + one.before > 1 for text in texts(one.new) if text):
        known.pop(text, None)
        known[text] = None
    return tuple(known)[-MOST_TEXTS:]


def rolled(found: Iterable[NewBlock], known: Container[int]) -> list[NewBlock]:
    """Of these, those that nobody knew: they dated pages before."""
    return [one for one in found if one.before and not _is_known(one, known)]


def _is_known(one: NewBlock, known: Container[int]) -> bool:
    """Whether a change brings or removes texts of a template alone, or puts another text in their place."""
    new, gone = texts(one.new)
    return gone in known or (gone == 0 and new in known)
