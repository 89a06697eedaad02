"""Chooses the dates at the end of a complete crawl, over all pages: which headers and which changes are
reliable.

The rules are in `rules.lastmod`, the data in the frontier. Later runs use the conclusions
only if this run is published: a refused or abandoned run changes no dates.
"""

import logging
from collections.abc import Sequence

from crawler.model.note import BUILDS, DATE_NOTES, UNRELIABLE
from crawler.model.reasons import Source
from crawler.model.survey import Doubts
from crawler.ports import History, reads
from crawler.rules import lastmod

log = logging.getLogger("crawler.engine.finish.dating")


async def date(history: History, sources: Sequence[Source]) -> None:
    """Chooses the date of every page, and stores which sources are unreliable and why."""
    evidence, found, of_sitemaps = await history.read(
        reads.DateEvidence(lastmod.BUILD_SECONDS, lastmod.OLDER_THAN_BUILD)
    )
    before = await history.recall(UNRELIABLE, published=True)
    by_build = {build.origin: why for build in found if (why := lastmod.why_build(build))}
    unreliable = by_build | {
        it.origin: why for it in evidence if (why := lastmod.why_unreliable(it, before.get(it.origin)))
    }
    is_anew = await history.read(reads.IsReadAnew())
    changes = {
        it.origin: why for it in evidence if (why := lastmod.unusable_changes(it, is_read_anew=is_anew))
    }
    by_origin = {it.origin: it for it in evidence}
    sitemaps = {
        build.origin: why
        for build in of_sitemaps
        if (why := lastmod.why_sitemap(build, by_origin[build.origin]))
    }
    linking = tuple(it.origin for it in evidence if it.origin not in changes and lastmod.is_navigation(it))
    windows = lastmod.remembered_builds(
        await history.recall(BUILDS, published=True), [build for build in found if build.origin in by_build]
    )
    notes = [
        note for build in found if build.origin not in unreliable and (note := lastmod.build_note(build))
    ]
    notes = notes if Source.HEADER in sources else []
    notes += [
        f"content changes on {origin} are not used as dates in this run: {why}"
        for origin, why in changes.items()
    ]
    if Source.SITEMAP in sources:
        notes += [f"dates in the sitemap of {origin} are not used: {why}" for origin, why in sitemaps.items()]
    for origin, why in unreliable.items():
        log.warning("Last-Modified is not trusted", extra={"fields": {"origin": origin, "because": why}})
    for note in notes:
        log.warning(note, extra={"event": "note on dates", "fields": {"note": note}})
    await history.date(
        sources, Doubts(tuple(unreliable), tuple(changes), _listed(windows), linking, tuple(sitemaps))
    )
    await history.remember(UNRELIABLE, unreliable)
    await history.remember(BUILDS, windows)
    await history.remember(DATE_NOTES, notes)


def _listed(windows: lastmod.BuildWindows) -> tuple[tuple[str, int, int], ...]:
    return tuple((origin, first, last) for origin, some in windows.items() for first, last in some)
