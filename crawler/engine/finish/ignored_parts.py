"""One page at several URLs, because the site ignores a part of its addresses (`rules.ignored_parts`).

The engine runs it at the end of a complete crawl, after the other rules: of pages with the same content at
unrelated addresses, only the site itself shows that they are one.
"""

from collections import Counter, defaultdict, deque
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet

from crawler.engine.finish.answers import PROBES, SiteAnswers
from crawler.engine.random_pages import RandomPages, list_once
from crawler.model.survey import RepeatedPage
from crawler.parse.extract import BYTES
from crawler.parse.url import Url
from crawler.ports import Record, reads
from crawler.rules import ignored_parts
from crawler.rules.content_digest import is_suspicious
from crawler.rules.ignored_parts import Pair, PartKind

MOST_BASES = 4  # pages without a part that a page is compared with


async def unlist(pages: Record, answers: SiteAnswers, starts: Sequence[Url], random: RandomPages) -> None:
    """Lists once each page of which the site ignores a part of the address."""
    found = _alike(await pages.read(reads.RepeatedPages()))
    by_url = {page.url: page for page in found}
    pairs = [*_pairs(found, by_url)]
    same = [pair async for pair in _naming(pairs, by_url, answers.fresh(PROBES // 2))]
    done = {pair.url for pair in same}
    kinds = ignored_parts.by_kind(pair for pair in pairs if pair.url not in done)
    same += [pair async for pair in _same(kinds, by_url, answers)]
    done = {pair.url for pair in same}
    same += [pair async for pair in random.same([page for page in found if page.url not in done])]
    await list_once(pages, same, starts)


def _alike(pages: Sequence[RepeatedPage]) -> Sequence[RepeatedPage]:
    """Those that share a title or a content with another one: no others may be the same, and most do not."""
    times = Counter(text for page in pages for text in {page.title, *page.contents})
    return [page for page in pages if any(times[text] > 1 for text in (page.title, *page.contents))]


def _pairs(pages: Sequence[RepeatedPage], known: Mapping[Url, RepeatedPage]) -> Iterator[Pair]:
    """Pages that may be the same: with the same content, or with an echo of their address in it."""
    firsts, alike = _firsts(pages), defaultdict[tuple[str | None, str], list[Url]](list)
    for page in pages:
        for shape in ignored_parts.with_one_folder_open(page.url):
            alike[page.title, shape].append(page.url)
    for page in pages:
        is_echoless = is_suspicious(page.url)
        shorter = [known[Url(base)] for base in ignored_parts.without_a_part(page.url) if base in known]
        bases = [base.url for base in shorter if base.is_like(page)][:1]
        if not bases:
            bases = sorted({firsts[page.origin, content] for content in page.contents} - {page.url})
        if not bases or is_echoless:
            # What repeats its address may have been left out of one of them only.
            titled = [base.url for base in shorter if base.title == page.title]
            if not is_echoless:
                near = (alike[page.title, shape] for shape in ignored_parts.with_one_folder_open(page.url))
                titled = sorted({*titled, *(min(urls, key=_rank) for urls in near if len(urls) > 1)})
            bases += titled[:MOST_BASES]
        for base in dict.fromkeys(bases):
            yield from ignored_parts.pairs(page.url, base)


def _firsts(pages: Iterable[RepeatedPage]) -> Mapping[tuple[str, str], Url]:
    """By origin and content: the page with the shortest address."""
    found = dict[tuple[str, str], Url]()
    for page in sorted(pages, key=lambda page: _rank(page.url)):
        for content in page.contents:
            found.setdefault((page.origin, content), page.url)
    return found


def _rank(url: Url) -> tuple[int, Url]:
    return len(url), url


async def _naming(
    pairs: Iterable[Pair], known: Mapping[Url, RepeatedPage], answers: SiteAnswers
) -> AsyncIterator[Pair]:
    """The pairs of which one page says what the other one does, and in addition only names a value.

    Examples of each kind are asked, and the others only if that holds for one of these.
    """
    unlike = (pair for pair in pairs if not known[pair.url].is_like(known[pair.base]))
    for some in ignored_parts.by_kind(pair for pair in unlike if pair.with_nonsense).values():
        asked = ignored_parts.examples(some)
        found = [pair for pair in asked if await _only_names(pair, known, answers)]
        left = [pair for pair in some if pair not in asked] if found else ()
        for pair in (*found, *[pair for pair in left if await _only_names(pair, known, answers)]):
            yield pair


async def _only_names(pair: Pair, known: Mapping[Url, RepeatedPage], answers: SiteAnswers) -> bool:
    """Whether the page says the same of a value that cannot exist, and nothing more than the other one."""
    question, base = pair.with_nonsense, known[pair.base].content
    if question is None or known[pair.url].content not in await answers.to(question):
        return False
    said = {base} if not base.startswith(BYTES) else (await answers.read(pair.base, [pair.base]))[0]
    if answers.without_values(question) in said:
        return True
    return "?" in pair.base and await answers.shows_without_values(pair.base, question)


async def _same(
    kinds: Mapping[PartKind, Sequence[Pair]], known: Mapping[Url, RepeatedPage], answers: SiteAnswers
) -> AsyncIterator[Pair]:
    """The pairs that are one page: of which the site ignores what differs, in all that was asked.

    Where it ignores that in few of the examples of a kind, smaller kinds are asked.
    """
    done, todo = set[Url](), deque(sorted(kinds.values(), key=len, reverse=True))
    while todo:
        left = [pair for pair in todo.popleft() if pair.url not in done]
        asked = ignored_parts.examples(left) if left else ()
        ignored = [pair for pair in asked if await _is_ignored(pair, known[pair.url].contents, answers)]
        if 4 * len(ignored) >= 3 * len(asked):
            ignored = left
        else:
            alike = [pair for pair in left if known[pair.url].is_like(known[pair.base])]
            todo.extend(ignored_parts.narrower([pair for pair in alike if pair not in asked]))
        async for pair in _without_others(ignored, known, answers):
            done.add(pair.url)
            yield pair


async def _without_others(
    pairs: Sequence[Pair], known: Mapping[Url, RepeatedPage], answers: SiteAnswers
) -> AsyncIterator[Pair]:
    """The pairs but those that the site itself shows to differ: asked now, the page without the part does not
    show what the other one does, even without what would repeat the address of that one.
    """
    for base, some in _by_base(pairs).items():
        unlike = [pair for pair in some if not known[pair.url].is_like(known[base])]
        shown = await answers.read(base, [pair.url for pair in unlike]) if unlike else ()
        others = {
            pair.url
            for pair, texts in zip(unlike, shown, strict=True)
            if known[pair.url].content not in texts and texts.isdisjoint(await answers.to(pair.url))
        }
        for pair in some:
            if pair.url not in others:
                yield pair


def _by_base(pairs: Iterable[Pair]) -> Mapping[Url, Sequence[Pair]]:
    found = defaultdict[Url, list[Pair]](list)
    for pair in pairs:
        found[pair.base].append(pair)
    return found


async def _is_ignored(pair: Pair, contents: AbstractSet[str], answers: SiteAnswers) -> bool:
    for question in pair.questions:
        if not contents.isdisjoint(await answers.to(question)):
            return True
    return False
