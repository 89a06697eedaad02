"""The rows of `list links`: the links of each page, with what they lead to.

There may be a hundred for each URL, and most lead where others do. So what all rows of a target have in
common is formatted once, and remembered for many targets by id, 250 bytes each.
"""

from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from itertools import chain
from typing import Any, Final, NamedTuple, Self

from msgspec import Struct

from crawler.app import report as reports
from crawler.cli.typed_url import url_in_state
from crawler.errors import ConfigError
from crawler.model.rows import EdgeRow, PageRow, TargetRow
from crawler.parse.url import Url
from crawler.ports import Frontier, Reads, reads
from crawler.report.catalogue import Code
from crawler.report.findings import Findings
from crawler.report.inbound_links import LONGEST_CHAIN
from crawler.report.report import Known
from crawler.settings.sections import Settings

FIELDS: Final = (
    "source", "target", "kind", "nofollow", "outcome", "status", "external", "final_url", "final_status",
    "text", "place",
)  # fmt: skip
GAP, CELL, ROW = "\0", "\1", "\2"  # are in no cell
KINDS: Final = ("link", "head", "redirect", "canonical")
BATCH: Final = 20_000  # links whose targets are looked up together
WRITTEN: Final = 100  # pages whose links are written together: larger texts are memory anew each time
REMEMBERED: Final = 400_000  # targets

Spell = Callable[[Any], str]


class Filter(Struct, frozen=True):
    """The filter of --only: outcome codes or kinds of outcomes, and codes of findings."""

    outcomes: tuple[str, ...] = ()
    codes: frozenset[Code] = frozenset()

    def __bool__(self) -> bool:
        return bool(self.outcomes or self.codes)

    def admits(self, page: PageRow, found: Findings | None) -> bool:
        """Whether a page is to be shown. `found`: None if no code is about pages themselves."""
        outcome = page.outcome or "open"
        if any(outcome == name or outcome.startswith(f"{name}:") for name in self.outcomes):
            return True
        return found is not None and any(one.code in self.codes for one in found.found(page))


class LinkFilter(Struct, frozen=True):
    """Which links to show."""

    only: Filter
    all_kinds: bool = False  # also redirects and canonicals
    to: str | None = None  # a URL as typed
    from_: str | None = None


class RowForm(NamedTuple):
    """How a row is written: its cells, and what stands before, between and after them."""

    spell: Spell
    gaps: Sequence[str]
    between: str  # rows

    @classmethod
    def of(cls, spell: Spell, joined: Callable[[Sequence[str]], str], between: str) -> Self:
        """`joined`: the cells of `FIELDS`, as they are spelt, as a row."""
        return cls(spell, joined([CELL] * len(FIELDS)).split(CELL), between)

    def written(self, name: str, *cells: Any) -> str:
        """The cells from this field on, and what stands before each."""
        gaps = self.gaps[FIELDS.index(name) :]
        return "".join([f"{gap}{self.spell(cell)}" for gap, cell in zip(gaps, cells, strict=False)])


class _Links(NamedTuple):
    """Links of a page, of one kind."""

    source: EdgeRow
    kind: str
    ids: Sequence[int]  # of their targets; negative: nofollow


async def spelt_links(
    rows: Frontier, settings: Settings, known: Known, links: LinkFilter, form: RowForm
) -> AsyncIterator[Sequence[str]]:
    """The rows as they are written, in batches: in a text, one or more."""
    wanted = await _wanted(rows, known, links.only) if links.only else None
    target = await _known_url(rows, settings, links.to, "--to") if links.to else None
    number = await rows.read(reads.NumberOf(target)) if target else 0
    page = await _known_url(rows, settings, links.from_, "--from") if links.from_ else None

    def is_shown(to: int) -> bool:
        if number and abs(to) != number:
            return False
        return wanted is None or (abs(to) < len(wanted) and wanted[abs(to)] > 0)

    targets = _Targets(rows, form)
    async for chunk in rows.stream(reads.Edges(page, f"{page} ") if page else reads.Edges()):
        every: Iterable[_Links] = chain.from_iterable(
            _of(edges, all_kinds=links.all_kinds) for edges in chunk
        )
        if number or wanted is not None:
            every = (one._replace(ids=[*filter(is_shown, one.ids)]) for one in every)
        for batch in _batches(every):
            spelt = await _spelt(rows, batch, targets, form)
            for place in range(0, len(spelt), WRITTEN):
                yield spelt[place : place + WRITTEN]


def _of(edges: EdgeRow, *, all_kinds: bool) -> Iterator[_Links]:
    link, head, *others = KINDS
    yield _Links(edges, link, edges.links)
    yield _Links(edges, head, edges.head)
    if all_kinds:
        for kind, to in zip(others, (edges.redirect, edges.canonical), strict=True):
            if to:
                yield _Links(edges, kind, [to])


def _batches(every: Iterable[_Links]) -> Iterator[Sequence[_Links]]:
    batch, count = list[_Links](), 0
    for links in every:
        if links.ids:
            batch.append(links)
            count += len(links.ids)
        if count >= BATCH:
            yield batch
            batch, count = [], 0
    yield batch


async def _spelt(rows: Reads, batch: Sequence[_Links], targets: "_Targets", form: RowForm) -> Sequence[str]:
    leads = await targets.of(batch)
    anchors = await reports.anchors_of(rows, list({links.source.id: None for links in batch}))
    with_text = {page for page, _ in anchors}
    first, before_target, last = form.gaps[0], form.gaps[FIELDS.index("target")], form.gaps[-1]
    kinds = {kind: [form.written("kind", kind, avoid) for avoid in (False, True)] for kind in KINDS}
    spelt: list[str] = []
    for source, kind, ids in batch:
        begin, (follow, avoid) = f"{first}{form.spell(source.url)}{before_target}", kinds[kind]
        if source.id not in with_text and follow == targets.follow and min(ids) > 0:  # as nearly always
            if known := [*filter(None, map(leads.__getitem__, ids))]:
                spelt.append(begin + f"{form.between}{begin}".join(known))
            continue
        for to in ids:
            if leads[abs(to)]:
                said = anchors.get((source.id, abs(to))) if kind in KINDS[:2] else None
                says = form.written("text", said.text or None, said.landmark or None) + last if said else None
                spelt.append(f"{begin}{targets.other(abs(to), follow if to > 0 else avoid, says)}")
    return spelt


async def _known_url(rows: Frontier, settings: Settings, text: str, flag: str) -> Url:
    """A URL as typed. Raises `ConfigError` if the state does not know it."""
    url = await url_in_state(rows, settings, text)
    if not await rows.read(reads.NumberOf(url)):
        raise ConfigError(f"{flag}: the state does not know {url}.")
    return url


async def _wanted(rows: Reads, known: Known, only: Filter) -> bytearray:
    """Whether to show links to a URL, by its id."""
    found = await reports.findings_of(rows, known) if only.codes else None
    wanted = bytearray(1024)
    every = reports.each(rows.stream(reads.Pages()))
    async for page in reports.pages_of(rows, found) if found and not only.outcomes else every:
        if page.run == known.run.number and only.admits(page, found):
            if page.id >= len(wanted):
                wanted.extend(bytes(max(len(wanted), page.id + 1 - len(wanted))))
            wanted[page.id] = 1
    return wanted


class _Targets:
    """What links lead to, by id, of which some are remembered: many pages link to the same.

    As text from the target to the end of the row, of a link that is followed, and of which nothing is said.
    """

    def __init__(self, rows: Reads, form: RowForm) -> None:
        self._rows, self._spell = rows, form.spell
        self._known, self._lengths, self._count = list[str | None](), list[int](), 0  # lengths: of the URLs
        self.follow = form.written("kind", KINDS[0], False)
        self._end = form.written("text", None, None) + form.gaps[-1]
        # Few differ, so that all targets share them.
        gap = form.gaps[FIELDS.index("final_url")]
        self._answer = lru_cache(1_000)(lambda *cells: form.written("outcome", *cells) + gap)
        self._status = lru_cache(1_000)(partial(form.written, "final_status"))

    async def of(self, batch: Sequence[_Links]) -> Sequence[str | None]:
        """The targets of these links, by id, and others."""
        ids = set(map(abs, set(chain.from_iterable(links.ids for links in batch))))
        more = max(ids, default=0) + 1 - len(self._known)
        self._known += [None] * more
        self._lengths += [0] * more
        missing = [number for number in ids if self._known[number] is None]
        if self._count + len(missing) > REMEMBERED:
            self._known, self._count, missing = [None] * len(self._known), 0, list(ids)
        if missing:
            found = await self._rows.read(reads.TargetsOf(sorted(missing)))
            ends = await _ends(self._rows, found)
            for number, target in found.items():
                self._add(number, target, ends.get(number) if target.redirect else target)
            self._count += len(found)
        return self._known

    def other(self, number: int, kind: str, says: str | None) -> str:
        """The target as it is written for another kind of link, or if something is said."""
        lead, length = self._known[number] or "", self._lengths[number]
        rest = lead[length + len(self.follow) : -len(self._end)]
        return f"{lead[:length]}{kind}{rest}{self._end if says is None else says}"

    def _add(self, number: int, target: TargetRow, end: TargetRow | None) -> None:
        url = self._spell(target.url)
        final = url if end is target else self._spell(end.url if end else None)
        answer = self._answer(target.outcome or "open", target.status, target.external)
        status = self._status(end.status if end else None)
        self._known[number] = f"{url}{self.follow}{answer}{final}{status}{self._end}"
        self._lengths[number] = len(url)


async def _ends(rows: Reads, targets: Mapping[int, TargetRow]) -> Mapping[int, TargetRow]:
    """Where the redirects of each target that redirects end; none for those without an end."""
    known = dict(targets)
    for _ in range(LONGEST_CHAIN):
        due = {target.redirect for target in known.values() if target.redirect} - known.keys()
        if not due:
            break
        known |= await rows.read(reads.TargetsOf(sorted(due)))
    ends: dict[int, TargetRow] = {}
    for number, target in targets.items():
        if not target.redirect:
            continue
        at: TargetRow | None = target
        for _ in range(LONGEST_CHAIN):
            if at is None or not at.redirect:
                break
            at = known.get(at.redirect)
        if at is not None and not at.redirect:
            ends[number] = at
    return ends
