"""Chooses the dates at the end of a complete crawl, over all pages: which headers and which changes are
reliable.

The rules are in `rules.lastmod`, the data in the frontier. Later runs use the conclusions
only if this run is published: a refused or abandoned run changes no dates.
"""

import logging
from collections.abc import Container, Iterable, Mapping, Sequence

from crawler.model.note import BUILDS, DATE_NOTES, STATED_SINCE, UNRELIABLE
from crawler.model.reasons import Source
from crawler.model.survey import DateEvidence, Doubts, Evidence, NewBlock
from crawler.ports import History, reads
from crawler.rules import lastmod

log = logging.getLogger("crawler.engine.finish.dating")


async def date(history: History, sources: Sequence[Source]) -> None:
    """Chooses the date of every page, and stores which sources are unreliable and why."""
    found = await history.read(
        reads.DateEvidence(lastmod.BUILD_SECONDS, lastmod.OLDER_THAN_BUILD, lastmod.LEAST_COMPARED)
    )
    before = await history.recall(UNRELIABLE, published=True)
    is_anew = await history.read(reads.IsReadAnew())
    origins = {it.origin: it for it in found.origins}
    blocks = _blocks(found)
    shared = {origin: sum(block.pages for block in some) for origin, some in blocks.items()}
    changing = _whys(
        (it.origin, lastmod.unusable_changes(it, shared[it.origin], is_read_anew=is_anew))
        for it in found.origins
    )
    by_build = _whys((build.origin, lastmod.why_build(build)) for build in found.headers)
    at_once = [
        build
        for build in found.headers
        if lastmod.is_built_lately(build)
        or (build.origin in changing and lastmod.is_of_change(build, origins[build.origin]))
    ]
    unreliable = by_build | _whys(
        (it.origin, lastmod.why_unreliable(it, before.get(it.origin))) for it in found.origins
    )
    stated_builds = {build.origin: build for build in found.stated}
    stated = _whys((it.origin, lastmod.why_stated(it, stated_builds.get(it.origin))) for it in found.origins)
    sitemaps = _whys((it.origin, lastmod.why_sitemap(it, origins[it.origin])) for it in found.sitemaps)
    linking = tuple(it for it, seen in origins.items() if it not in changing and lastmod.is_navigation(seen))
    windows = lastmod.remembered_builds(
        await history.recall(BUILDS, published=True),
        [build for build in found.headers if build.origin in by_build or build in at_once],
    )
    since = _stated_since(await history.recall(STATED_SINCE, published=True), found.origins, changing)
    stale = tuple(origin for origin, counts in since.items() if lastmod.is_stale(*counts))
    trusted = [build for build in found.headers if build.origin not in unreliable]
    notes = [note for build in trusted if (note := lastmod.build_note(build))]
    notes = notes if Source.HEADER in sources else []
    notes += [
        f"content changes on {origin} are not used as dates in this run: {why}"
        for origin, why in changing.items()
    ]
    if Source.SITEMAP in sources:
        notes += [f"dates in the sitemap of {origin} are not used: {why}" for origin, why in sitemaps.items()]
    if Source.PAGE in sources:
        notes += [f"dates that pages of {origin} state are not used: {why}" for origin, why in stated.items()]
    for origin, why in unreliable.items():
        log.warning("Last-Modified is not trusted", extra={"fields": {"origin": origin, "because": why}})
    for note in notes:
        log.warning(note, extra={"event": "note on dates", "fields": {"note": note}})
    await history.date(
        sources,
        Doubts(
            unreliable=tuple(unreliable),
            changing=tuple(changing),
            builds=tuple((origin, *window) for origin, some in windows.items() for window in some),
            linking=linking,
            sitemaps=tuple(sitemaps),
            stated=tuple(stated),
            stale=stale,
            noisy=tuple(it.origin for it in found.origins if it.noisy >= lastmod.LEAST_COMPARED),
            unseen=tuple(it.origin for it in found.origins if 2 * (it.noisy + shared[it.origin]) > it.known),
            blocks=tuple((block.origin, block.new) for some in blocks.values() for block in some),
        ),
    )
    await history.remember(UNRELIABLE, unreliable)
    await history.remember(BUILDS, windows)
    await history.remember(STATED_SINCE, since)
    await history.remember(DATE_NOTES, notes)


def _whys(found: Iterable[tuple[str, str | None]]) -> dict[str, str]:
    """By origin: the reason, where there is one."""
    return {origin: why for origin, why in found if why}


def _blocks(found: DateEvidence) -> Mapping[str, Sequence[NewBlock]]:
    """By origin: the blocks that changed on many pages at once."""
    return {
        it.origin: lastmod.blocks_at_once(it, (one for one in found.blocks if one.origin == it.origin))
        for it in found.origins
    }


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
