"""Texts that are shown in turn on several pages: advertisements, quotations, tips of the day.

An edit seldom writes what another page has just lost. Where small changes of single pages, in places that had
changed before, do so again and again, such pages show texts in turn: small changes of them are no edits, and
those before were none. Then a text that the page itself had lost is one of these, too. The version of a
product, on many pages, leaves them all, and comes to none. Pure.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from crawler.model.survey import NewBlock, Turns
from crawler.rules.noise import MOST_RUNS, LastChange, new_and_gone

LEAST_TURNS: Final = 3  # changes in the last runs that brought a text in turn
ONE_TURN: Final = 4  # of all in such places, one in so many: digests may be the same by chance
MOST_TEXTS: Final = 256  # and pages, that are remembered
_AGAIN: Final = frozenset({LastChange.AGAIN, LastChange.REPEATED})


def after(before: Turns, found: Iterable[NewBlock]) -> Turns:
    """What is known after a run. Once known, it stays until no such text came again in the last runs."""
    gone, pages = dict(before.gone), dict.fromkeys(before.pages)
    changes = [(one, *new_and_gone(one.new)) for one in _small(found)]
    moved = [
        one.page
        for one, new, _ in changes
        if new in gone and (before.is_known or (gone[new] != one.page and one.change in _AGAIN))
    ]
    again = sum(one.change in _AGAIN for one, _, _ in changes)
    for one, _, old in changes:
        gone.pop(old, None)
        gone[old] = one.page
    runs = (*before.runs, (again, len(moved)))[-MOST_RUNS:]
    of_all, in_turn = map(sum, zip(*runs, strict=True))
    is_proven = in_turn >= LEAST_TURNS and ONE_TURN * in_turn >= of_all
    is_known = is_proven or (before.is_known and in_turn > 0)
    for page in moved if is_known else ():
        pages.pop(page, None)
        pages[page] = None
    return Turns(tuple(gone.items())[-MOST_TEXTS:], runs, tuple(pages)[-MOST_TEXTS:], is_known)


def doubtful(known: Turns, before: Turns, found: Iterable[NewBlock]) -> Mapping[str, bool]:
    """The changes of this run that are no edits, and whether each is the first known of its page: then what
    dated the page before was none either.
    """
    pages, earlier = (set(some.pages if some.is_known else ()) for some in (known, before))
    return {one.new: one.page not in earlier for one in _small(found) if one.page in pages}


def _small(found: Iterable[NewBlock]) -> Sequence[NewBlock]:
    """Changes of one page alone, in place."""
    return [one for one in found if one.pages == 1 and one.change != LastChange.NEW]
