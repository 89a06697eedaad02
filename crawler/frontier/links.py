"""What pages lead to: the rules that all backends share. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from crawler.model.outcome import Moved
from crawler.model.reasons import Why
from crawler.model.settlement import KnownUrl, LinkNumbers, Settlement
from crawler.model.visit import Visit
from crawler.parse.url import Url


class Added(NamedTuple):
    """The result of adding visits that were found."""

    new: int  # visits: without those that are filtered or held
    stored: int  # rows
    numbers: Mapping[Url, int]  # of all of them; negative: not `KnownUrl.settled`


class Older(Struct, frozen=True):
    """The row of a URL that an earlier run found last."""

    id: int
    run: int


class FoundBefore(Struct, frozen=True):
    """URLs that are known."""

    numbers: Mapping[Url, int]  # those of this run: their record numbers, as in `Added`
    older: Mapping[str, Older]
    ids: Sequence[int] = ()  # for the others, unless they are chosen when these are inserted


def deduplicated(found: Iterable[Visit]) -> list[Visit]:
    """Each URL once: the first visit, with the fewest redirects; but a followed link precedes nofollow."""
    visits: dict[Url, Visit] = {}
    for visit in found:
        known = visits.get(visit.url)
        if known is None or (known.filtered is Why.NOFOLLOW and visit.filtered is not Why.NOFOLLOW):
            visits[visit.url] = visit
        elif visit.hops < known.hops and visit.filtered is not Why.NOFOLLOW:
            visits[visit.url] = replace(known, hops=visit.hops)
    return list(visits.values())


def may_change_row(visit: Visit, number: int) -> bool:
    """Whether a visit may change a row; `number` is that of its URL, as in `Added`, or 0."""
    return number == 0 or (number < 0 and visit.filtered is not Why.NOFOLLOW)


def link_ids(settlement: Settlement, numbers: Mapping[Url, int]) -> tuple[Sequence[int], int]:
    """The links of a page as its row has them: numbers, negative for nofollow; and how many it only names.

    `numbers`: of all visits in `found`, as in `Added`.
    """
    found = [
        -abs(numbers[visit.url]) if visit.filtered is Why.NOFOLLOW else abs(numbers[visit.url])
        for visit in settlement.found
    ]
    ids = found if settlement.links is None else _packed(settlement.links, found)
    named, outcome = settlement.verdict.named, settlement.verdict.outcome
    target = numbers.get(outcome.to) if isinstance(outcome, Moved) else None
    if not named and not target:
        return ids, 0
    leading = dict[Url, int]()
    for visit, to in zip(settlement.found, found, strict=True):
        if visit.url in named and leading.get(visit.url, 0) <= 0:  # a link with nofollow may lead there, too
            leading[visit.url] = to
    first = [*leading.values()]
    rest = [number for number in ids if number not in first]
    if target:  # of a redirect: it comes first, even if a link on the page leads there
        first = [abs(target), *(number for number in first if number != abs(target))]
    return [*first, *rest], len(first)


def _packed(links: LinkNumbers, found: Sequence[int]) -> list[int]:
    following = iter(found)
    followed = [number or next(following) for number in links.followed] if found else list(links.followed)
    return followed + [-number or next(following) for number in links.avoided]


def settled_numbers(
    settlements: Sequence[Settlement], live: Iterable[int], numbers: Mapping[Url, int]
) -> list[KnownUrl | None]:
    """`Settled.known`; `live`: the ids of the leases that were closed."""
    closed = frozenset(live)
    return [
        KnownUrl(abs(number := numbers[visit.url]), number > 0) if settlement.lease.id in closed else None
        for settlement in settlements
        for visit in settlement.found
    ]
