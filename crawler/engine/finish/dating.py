"""Chooses the dates at the end of a complete crawl, over all pages: which headers and which changes are
reliable.

The rules are in `rules.lastmod`, the data in the frontier. Later runs use the conclusions
only if this run is published: a refused or abandoned run changes no dates.
"""

from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeVar

from crawler.engine.together import together
from crawler.model.log import log
from crawler.model.note import BUILDS, DATE_NOTES, RESTLESS, STATED_FIRST, STATED_SINCE, UNRELIABLE
from crawler.model.reasons import Source
from crawler.model.survey import Build, DatesSeen, Doubts, Evidence, NewBlock, Restless
from crawler.ports import History, reads
from crawler.rules import lastmod, rolled_out, shown_in_turn
from crawler.rules.noise import WAY, LastChange
from crawler.rules.record import DAY

T = TypeVar("T")


async def date(history: History, sources: Sequence[Source]) -> None:
    """Chooses the date of every page, and stores which sources are unreliable and why."""
    evidence = reads.DateEvidence(lastmod.BUILD_SECONDS, lastmod.OLDER_THAN_BUILD)
    (found, is_read_anew), recalled = await together(
        together(history.read(evidence), history.read(reads.IsReadAnew())),
        together(
            history.recall(UNRELIABLE, "published"),
            history.recall(BUILDS, "published"),
            history.recall(STATED_SINCE, "published"),
            history.recall(STATED_FIRST, "published"),
            history.recall(RESTLESS, "published"),
        ),
    )
    known = _Known._make(recalled)
    site = _SiteDates(found, known, is_read_anew=is_read_anew)
    notes = list(site.notes(sources))
    for origin, why in site.unreliable.items():
        log.warning("Last-Modified is not trusted", origin=origin, because=why)
    for note in notes:
        log.warning(note, event="note on dates", note=note)
    await history.date(sources, site.doubts())
    await together(
        history.remember(UNRELIABLE, _unseen(known.unreliable, found) | site.unreliable),
        history.remember(BUILDS, site.builds),
        history.remember(STATED_SINCE, site.stated_since),
        history.remember(STATED_FIRST, site.stated_first),
        history.remember(RESTLESS, _unseen(known.restless, found) | site.texts.restless),
        history.remember(DATE_NOTES, notes),
    )


class _Known(NamedTuple):
    """What the last published run concluded, by origin: the notes of that name."""

    unreliable: Mapping[str, str]
    builds: lastmod.BuildWindows
    stated_since: Mapping[str, tuple[int, int]]
    stated_first: Mapping[str, tuple[int, int]]
    restless: Mapping[str, Restless]


class _Texts:
    """What changed in the texts of each origin, and what its texts do again and again."""

    def __init__(self, found: DatesSeen, known_before: Mapping[str, Restless]) -> None:
        self._before = {it.origin: known_before.get(it.origin) or Restless() for it in found.origins}
        self.changes = defaultdict[str, list[NewBlock]](list)
        for one in found.blocks:
            self.changes[one.origin].append(one)
        self.blocks = {
            it.origin: rolled_out.of_template(it, self.changes[it.origin], self._before[it.origin].templates)
            for it in found.origins
        }
        self.shared = {origin: rolled_out.pages(some) for origin, some in self.blocks.items()}
        self.restless = {
            it.origin: lastmod.restless(
                self._before[it.origin],
                it,
                self.shared[it.origin],
                self.changes[it.origin],
                rolled_out.after(self._before[it.origin].templates, self.blocks[it.origin]),
            )
            for it in found.origins
        }

    def runs(self, origin: str) -> int:
        """How many runs are known of it, before this one."""
        return len(self._before[origin].runs)

    def again(self, it: Evidence) -> int:
        """Pages that changed where texts of the origin are known to change: that dates none of them."""
        repeated = sum(one.pages for one in self.changes[it.origin] if one.change == LastChange.REPEATED)
        return it.again + repeated if self._before[it.origin].last else 0

    def turning(self) -> Iterator[tuple[str, str, bool]]:
        """Texts that are shown in turn; see `shown_in_turn.doubtful`."""
        for origin, known in self.restless.items():
            before = self._before[origin].turns
            doubtful = shown_in_turn.doubtful(known.turns, before, self.changes[origin])
            yield from ((origin, *one) for one in doubtful.items())

    def rolled(self) -> Iterator[tuple[str, str, int]]:
        """Changes of a template that dated pages before they were known as such, and since when."""
        for origin, known in self.restless.items():
            for one in rolled_out.rolled(self.blocks[origin], self._before[origin].templates):
                yield origin, one.new[:WAY], known.runs[0][0]


class _SiteDates:
    """What all pages of a site say of its dates: a reason by origin for what is not used."""

    def __init__(self, found: DatesSeen, known: _Known, *, is_read_anew: bool) -> None:
        self._found, self.texts = found, _Texts(found, known.restless)
        self._origins = {it.origin: it for it in found.origins}
        shared, runs = self.texts.shared, self.texts.runs
        self.changing = _whys(
            (
                name,
                lastmod.unusable_changes(
                    it, shared[name] + self.texts.again(it), runs=runs(name), is_read_anew=is_read_anew
                ),
            )
            for name, it in self._origins.items()
        )
        by_build = _whys((build.origin, lastmod.why_build(build)) for build in found.headers)
        self.unreliable = by_build | _whys(
            (name, lastmod.why_unreliable(it, known.unreliable.get(name)))
            for name, it in self._origins.items()
        )
        stated = {build.origin: build for build in found.stated}
        self.stated = _whys(
            (name, lastmod.why_stated(it, stated.get(name))) for name, it in self._origins.items()
        )
        self.sitemaps = _whys(
            (it.origin, lastmod.why_sitemap(it, self._origins[it.origin])) for it in found.sitemaps
        )
        self.builds = lastmod.remembered_builds(
            known.builds,
            [build for build in found.headers if build.origin in by_build or self._is_at_once(build)]
            + [build for build in found.sitemaps if self._is_first_build(build)],
        )
        self.stated_first = dict(known.stated_first) | {
            build.origin: (build.first, build.last)
            for build in found.stated
            if not runs(build.origin) and lastmod.is_first_build(build, DAY, DAY)
        }
        self.stated_since = _stated_since(known.stated_since, found.origins, self.changing)

    def _is_at_once(self, build: Build) -> bool:
        """Whether the headers of a build are distrusted, though the origin's others are not."""
        is_change = build.origin in self.changing and lastmod.is_of_change(build, self._origins[build.origin])
        return is_change or lastmod.is_built_lately(build) or self._is_first_build(build)

    def _is_first_build(self, build: Build) -> bool:
        """Whether many dates are those of a build, in the first run, unless pages state the same."""
        is_stated = 2 * build.agreeing > build.within
        return not self.texts.runs(build.origin) and not is_stated and lastmod.is_first_build(build)

    def notes(self, sources: Sequence[Source]) -> Iterator[str]:
        """What a user should know of the dates, for the `sources` that are used."""
        if Source.HEADER in sources:
            trusted = (build for build in self._found.headers if build.origin not in self.unreliable)
            yield from filter(None, map(lastmod.build_note, trusted))
        for origin, why in self.changing.items():
            yield f"content changes on {origin} are not used as dates in this run: {why}"
        for origin, known in self.texts.restless.items():
            if known.last:
                yield f"text on {origin} that changes again and again in its place is not used as dates"
        if Source.SITEMAP in sources:
            for origin, why in self.sitemaps.items():
                yield f"dates in the sitemap of {origin} are not used: {why}"
        if Source.PAGE in sources:
            for origin, why in self.stated.items():
                yield f"dates that pages of {origin} state are not used: {why}"

    def doubts(self) -> Doubts:
        """What is not used, as the frontier takes it."""
        origins, texts = self._found.origins, self.texts
        return Doubts(
            unreliable=tuple(self.unreliable),
            changing=tuple(self.changing),
            builds=tuple((origin, *window) for origin, some in self.builds.items() for window in some),
            linking=tuple(
                it.origin for it in origins if it.origin not in self.changing and lastmod.is_navigation(it)
            ),
            sitemaps=tuple(self.sitemaps),
            stated=tuple(self.stated),
            stated_first=tuple((origin, *window) for origin, window in self.stated_first.items()),
            stale=tuple(origin for origin, counts in self.stated_since.items() if lastmod.is_stale(*counts)),
            noisy=tuple(it.origin for it in origins if lastmod.is_noisy(it, texts.changes[it.origin])),
            unseen=tuple(it.origin for it in origins if 2 * (it.noisy + texts.shared[it.origin]) > it.known),
            restless=tuple(
                (origin, known.first, known.last) for origin, known in texts.restless.items() if known.last
            ),
            everywhere=tuple(
                it.origin for it in origins if lastmod.is_everywhere(texts.restless[it.origin], it)
            ),
            blocks=tuple((one.origin, one.new[:WAY]) for some in texts.blocks.values() for one in some),
            rolled=tuple(texts.rolled()),
            turning=tuple(texts.turning()),
        )


def _unseen(before: Mapping[str, T], found: DatesSeen) -> dict[str, T]:
    """What is known of origins of which no page is listed in this run, such as in an outage."""
    seen = {it.origin for it in found.origins}
    return {origin: known for origin, known in before.items() if origin not in seen}


def _whys(found: Iterable[tuple[str, str | None]]) -> dict[str, str]:
    """By origin: the reason, where there is one."""
    return {origin: why for origin, why in found if why}


def _stated_since(
    before: Mapping[str, tuple[int, int]], found: Iterable[Evidence], changing: Container[str]
) -> dict[str, tuple[int, int]]:
    """The counts of edits with and without a new stated date, with those of this run."""
    counts = dict(before)
    for it in found:
        if it.origin not in changing and it.stale + it.followed:
            stale, followed = counts.get(it.origin, (0, 0))
            counts[it.origin] = stale + it.stale, followed + it.followed
    return counts
