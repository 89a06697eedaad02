"""Soft 404s, which can be recognised only when all pages are known. For dates, see `dating`.

The engine runs it at the end of a complete crawl, before the run is marked as complete. It changes outcomes
in the frontier and fetches a few more pages at most.
"""

from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final

from crawler.engine.finish.answers import Ask, SiteAnswers
from crawler.model.facts import Facts, Obstacle
from crawler.model.reasons import Why
from crawler.model.rendering import Needs
from crawler.model.survey import WithContent
from crawler.parse import fingerprint
from crawler.parse import url as urls
from crawler.parse.url import Url
from crawler.ports import Record, reads
from crawler.rules import nonexistent_pages, soft_404
from crawler.rules.judge import Judge
from crawler.rules.traps import Traps, days_of

LEAST_SAME: Final = 3  # listed pages with the same content, from which on a soft 404 is suspected
MOST_NAMED: Final = 40  # pages whose title names an error, that are looked into
MOST_READ: Final = 40  # pages of a list that are read again
BESIDE: Final = 3  # folders beside one that are asked
MOST_SEEN: Final = 2_000  # pages among which these are looked for, about
DAYS: Final = 5  # of a calendar that are asked, the first and last ones, unless one of them is empty


async def answers_of(
    pages: Record, judge: Judge, starts: Sequence[Url], ask: Ask, render: Ask | None = None
) -> SiteAnswers:
    """What the site will answer. If a start page needs scripts to show anything, others may, too."""
    records = [await pages.read(reads.RecordOf(url)) for url in starts]
    home = [record.facts for record in records if record and record.facts]
    shells = {version for it in home if it.obstacle is Obstacle.SHELL for version in _versions(it)}
    return SiteAnswers(judge, ask, shells, render=render)


async def unlist(pages: Record, traps: Traps, starts: Sequence[Url], answers: SiteAnswers) -> set[str]:
    """Unlists pages with the same content as the site's response for a nonexistent page.

    Returns the calendars that have such pages.

    A nonexistent page is requested only where several pages have the same content: of the origin, of the
    folder of each, or of its query. The page that the site shows in place of what is missing stays: a
    start page, that of the folder, that without a query. Where pages were rendered, so is the answer;
    otherwise nothing that needs scripts is unlisted.
    """
    lists = list[tuple[SiteAnswers, nonexistent_pages.Place, Url, frozenset[str]]]()
    plain, empty = answers, set[str]()
    for group in await pages.read(reads.SameContentGroups(LEAST_SAME)):
        done = list[str]()
        for example, place in nonexistent_pages.places_of(await pages.read(reads.PagesWithContent(group))):
            if example.startswith(tuple(done)):
                continue
            answers = plain.like(await _facts(pages, example))
            same = await answers.at(place)
            if group.content not in same:
                continue
            done.append(place.prefix)
            empty.update(filter(None, [days_of(example)] if place.is_dated else ()))
            why, detail = Why.SOFT_404, place.asked[0]
            spared = [*starts, *soft_404.shown_instead(place.prefix), *answers.front_pages(place)]
            # The page of the path, which ignores the query; the last page of a list, shown for any higher
            # number; or that of a folder, where what follows means nothing: each of them once.
            is_bare = bool(place.bare and same & await answers.to(place.bare))
            is_list = not is_bare and await answers.lead_on(place, starts)
            if is_list:
                lists.append((answers, place, example, same))
            if is_bare or is_list or await _is_page_of_place(pages, answers, place, same):
                why, detail = Why.DUPLICATE, example
                spared.append(example)
            else:
                traps.report("soft-404", f"{group.count:,} pages of {group.origin}", example)
            for content in same:
                found = WithContent(group.origin, content, place.prefix, tuple(spared))
                await pages.withdraw(found, why, detail)
    for found_list in lists:
        await _keep_first(pages, *found_list)
    return empty


async def unlist_named_errors(
    pages: Record, traps: Traps, starts: Sequence[Url], answers: SiteAnswers
) -> None:
    """Unlists pages, however few, whose title names an error, where nonexistent ones show the same."""
    found = await pages.read(reads.NamedErrors(MOST_NAMED))
    for url in sorted(set(found).difference(starts)):
        near = answers.like(await _facts(pages, url))
        for place in nonexistent_pages.places(url):
            same = await near.at(place)
            if (
                same
                and not same.isdisjoint(await near.to(url))
                and url not in soft_404.shown_instead(place.prefix)
            ):
                traps.report("soft-404", "a page whose title names an error", url)
                await pages.withdraw([url], Why.SOFT_404, place.asked[0])
                break


async def unlist_redirected(pages: Record, starts: Sequence[Url], shown: Mapping[str, Url]) -> None:
    """Unlists pages to which only redirects lead, as from all nonexistent pages: by origin, one of these."""
    for site, to in shown.items():
        path, found = to.partition("?")[0], list[Url]()
        async for entries in pages.stream(reads.ListedEntries(path, f"{path}{reads.ABOVE_ALL}")):
            found += [entry.url for entry in entries if entry.url.partition("?")[0] == path]
            if len(found) >= MOST_SEEN:
                break
        spared = {*starts, Url(f"{site}/")}
        known = [(url, await pages.read(reads.RecordOf(url))) for url in found if url not in spared]
        only = [url for url, record in known if record and record.visit.hops and record.seed is None]
        await pages.withdraw(only, Why.SOFT_404, nonexistent_pages.at_origin(site)[0])


async def led_by_scripts(
    pages: Record, starts: Sequence[Url], target_of: Callable[[Url], Awaitable[Url | None]]
) -> Mapping[str, Url]:
    """Where scripts lead from nonexistent pages, by origin, if they make its start page.

    Asked only if some page has moved.
    """
    found = dict[str, Url]()
    has_moved = (await pages.read(reads.RunBalance())).outcomes.get("moved")
    for start in starts if has_moved else ():
        facts, site = await _facts(pages, start), urls.origin(start)
        if site not in found and facts and facts.rendering and facts.rendering.needs is Needs.SHELL:
            first, second = [await target_of(url) for url in nonexistent_pages.at_origin(site)[:2]]
            is_same = first and second and first.partition("?")[0] == second.partition("?")[0]
            if first and is_same and first not in starts:
                found[site] = first
    return found


async def _is_page_of_place(
    pages: Record, answers: SiteAnswers, place: nonexistent_pages.Place, same: frozenset[str]
) -> bool:
    """Whether a folder shows its own page for anything, as others beside it do, such as /product/17/lamp.

    Beside a folder of errors, there are none like it, or these show the same; a search has a page of its own
    without what is searched for. Queries of a path are alike.
    """
    if place.is_dated or (above := nonexistent_pages.above(place.prefix)) is None:
        return False
    for url in [url for url in dict.fromkeys(soft_404.shown_instead(place.prefix)) if url[-1] != "?"]:
        shown = await answers.to(url)
        if shown and shown.isdisjoint(same):
            return False
    for prefix, page in (await _beside(pages, place.prefix, above)).items():
        facts = await _facts(pages, page)
        own = frozenset(_versions(facts)) if facts else frozenset()
        for other in nonexistent_pages.places(page):
            shown = await answers.at(other) if other.prefix == prefix else same
            if not own.isdisjoint(shown) and same.isdisjoint(shown):
                return True
    return False


async def _beside(pages: Record, place: str, above: str) -> Mapping[str, Url]:
    """Some folders or paths beside one, each with a listed page: those after it, then the first ones."""
    found = dict[str, Url]()
    for first in (f"{place}{reads.ABOVE_ALL}", above):
        seen = 0
        async for entries in pages.stream(reads.ListedEntries(first, f"{above}{reads.ABOVE_ALL}")):
            for entry in entries:
                other = nonexistent_pages.around(entry.url)
                if other != place and other[-1] == place[-1] and nonexistent_pages.above(other) == above:
                    found.setdefault(other, entry.url)
            seen += len(entries)
            if len(found) >= BESIDE or seen >= MOST_SEEN:
                break
    return dict([*found.items()][:BESIDE])


async def _keep_first(
    pages: Record, answers: SiteAnswers, place: nonexistent_pages.Place, example: Url, same: frozenset[str]
) -> None:
    """Lists the first page of a list that shows what its nonexistent pages do.

    Where it shows its number, or another page has a word that is its own number, that shows only if it is
    read like these. Such others are unlisted.
    """
    listed = list[Url]()
    async for entries in pages.stream(reads.ListedEntries(place.prefix, f"{place.prefix}{reads.ABOVE_ALL}")):
        listed += [entry.url for entry in entries]
    listed.sort(key=lambda url: (len(url), url))
    near = [url for url in listed[:MOST_READ] if url != example]
    read = [url for url in near if not same.isdisjoint((await answers.read(url, place.asked))[0])]
    # The example itself may be unlisted by now, as one of a list above this place.
    alike = [url for url in listed if url in {example, *read}]
    await pages.withdraw(alike[1:], Why.DUPLICATE, alike[0] if alike else example)


async def unlist_empty_days(pages: Record, answers: SiteAnswers, known: Iterable[str]) -> None:
    """Unlists the days of a calendar that say the same 400 years later, when nothing is planned. `known`:
    calendars of which some others were unlisted.

    Where each day says something else then, the site may ignore the date, and not be a calendar.
    """
    query = reads.DoubtfulPlaces(dict.fromkeys(known), only_dated=True)
    for place, found in (await pages.read(query)).items():
        urls = found.pages
        empty, times = dict[Url, tuple[Url, frozenset[str]]](), Counter[str]()
        contents = set[str | None]()
        days = nonexistent_pages.from_both_ends(urls) if soft_404.is_calendar(place) else ()
        for number, url in enumerate(days):
            later = nonexistent_pages.centuries_later(url)
            if later is None or (number >= DAYS and not empty):
                break
            facts = await _facts(pages, url)
            if not (shown := await answers.like(facts).to(later)):
                break
            times.update(shown)
            if facts and not shown.isdisjoint(_versions(facts)):
                empty[url] = later, shown
                contents.add(facts.content)
        least = 1 if len(urls) == 1 or soft_404.is_sure_calendar(place, urls, len(contents)) else 2
        for url, (later, shown) in empty.items():
            if any(times[text] >= least for text in shown):
                await pages.withdraw([url], Why.SOFT_404, later)


async def _facts(pages: Record, url: Url) -> Facts | None:
    record = await pages.read(reads.RecordOf(url))
    return record.facts if record else None


def _versions(facts: Facts) -> Iterator[str | None]:
    """What is compared of a page: its content, with and without what repeats its address, and its bytes."""
    yield from (facts.content, facts.echoing, f"{fingerprint.BYTES}{facts.digest}")
