"""What to do first: the findings as actions, each with the share of a finding that it mends.

An action is merged over all items that it mends: a link or an image in the template, a page with many faults,
a folder that holds most of the failing URLs. Pure.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from crawler.parse.late import late
from crawler.report.advice import ADVICE
from crawler.report.catalogue import FILES, GROUPED, NOUNS, Code, Severity
from crawler.report.formatting import PLACES, counted, said_words
from crawler.report.report import Finding, Item, SiteReport
from crawler.report.url_kind import LINK_CODES

MOST: Final = 20  # actions
LARGE: Final = 0.25  # a link, a page or a folder with this share of a finding,
FEWEST: Final = 3  # and at least so many of its URLs, is an action of its own,
COMMON: Final = 10  # or a link on so many pages
NEARLY_ALL: Final = 0.8  # of a finding: what is left needs no action of its own
SEVERITIES: Final = tuple(Severity)
PLACED: Final = LINK_CODES | (FILES - {Code.BLOCKED_FILE})
"""Findings whose URLs have a place on pages, where they are mended."""
# Not mended where the links are.
OF_THE_SERVER: Final = frozenset({Code.SERVER_ERROR, Code.UNREACHABLE, Code.REDIRECT_LOOP})
_SENTENCE: Final = late(r"(?<=\.) (?=[A-Z])")
_INDEX: Final = late(r"/(?:index|default)\.[^/?]*\Z")


class Action(Struct, frozen=True):
    """Something to do."""

    text: str
    mends: int
    of: int
    unit: str  # what is counted
    codes: Sequence[Code]
    page: str | None = None  # on which it is to be done
    target: str | None = None  # of the links, or the folder
    place: str | None = None  # of the links, on every page
    link: str | None = None  # what these say
    quoted: Sequence[str] = ()  # the parts of the text that come from the site

    @property
    def severity(self) -> Severity:
        """The severity of the worst finding that it mends."""
        return min((code.severity for code in self.codes), key=SEVERITIES.index)


def actions(report: SiteReport) -> Sequence[Action]:
    """At most `MOST`: errors, then warnings; of each, those that mend most first."""
    serious = [finding for finding in report.findings if finding.code.severity is not Severity.INFO]
    targets = _merged(one for finding in serious for one in _by_target(finding))
    places = list(_large(report, serious))
    restored = [_restored(finding) for finding in serious if _is_lost(finding)]
    found = [*targets, *places, *restored]
    for finding in serious:
        own = _common(finding)
        left = every = finding.count - len(own)
        links = finding.links - sum(item.links for item in own)
        large = [one for one in places if finding.code in one.codes]
        if left > 0 and not any(one.mends >= NEARLY_ALL * (links if one.page else left) for one in large):
            others = [item for item in finding.items if item not in own]
            alone = [item for item in others if not any(_mends(one, item) for one in large)]
            left -= len(others) - len(alone)
            if finding.more:  # so much at most, of items that are not all known here
                in_folders = sum(one.mends for one in large if not one.page)
                left = min([left, every - in_folders, *(links - one.mends for one in large if one.page)])
            left = min(left, every - sum(one.mends for one in restored if finding.code in one.codes))
            if left > 0:
                found.append(_rest(finding, left, alone))
    return sorted(found, key=lambda one: (SEVERITIES.index(one.severity), -one.mends, one.text))[:MOST]


def _mends(action: Action, item: Item) -> bool:
    """Whether what is done to a page or a folder mends all links to an item."""
    if action.page:
        return item.links == 1 and action.page in item.sources
    return _folder(item.url) == action.target


def _folder(url: str) -> str:
    return f"{url.partition('?')[0].rpartition('/')[0]}/"


def _common(finding: Finding) -> Sequence[Item]:
    """The items that are an action of their own: links or files on very many pages, as of a template."""
    return [
        item
        for item in (finding.items if finding.code in PLACED else ())
        if item.site_wide or (item.links >= COMMON and _is_large(item.links, finding.links))
    ]


def _by_target(finding: Finding) -> Iterator[Action]:
    """One change mends the links to an item, or its uses, on all pages."""
    is_file = finding.code in FILES
    for item in _common(finding):
        place = PLACES.get(item.place, "the template" if item.site_wide else "")
        pages = "" if item.site_wide else counted(item.links, "page")
        template = " of ".join(filter(None, (place, pages)))
        where = f"{'in' if place else 'on'} {template}"
        label = f" (“{item.text}”)" if item.text else ""
        text = f"Correct or remove the link to {item.url}{label} from {template}"
        if is_file:
            text = f"{finding.code.heading}: correct or put back {item.url}{label}, {where}"
        elif finding.code in OF_THE_SERVER:
            text = f"{finding.code.heading}: look into {item.url}, linked{label} {where}"
        elif finding.code is Code.REDIRECT_LINKED:
            text = f"Link to {item.detail} instead of {item.url}{label} {where}"
        yield Action(
            text,
            item.links,
            finding.links,
            "use" if is_file else "link",
            [finding.code],
            target=item.url,
            place=item.place or None,
            link=item.text or None,
            quoted=[item.url, f"“{item.text}”", item.detail if finding.code is Code.REDIRECT_LINKED else ""],
        )


def _merged(found: Iterator[Action]) -> Sequence[Action]:
    """Actions about the same target as one; those about a folder and its index page, too: it is one page."""
    by_target: dict[str | None, Action] = {}
    for action in found:
        known = by_target.setdefault(action.target, action)
        if known is not action:
            codes = [*known.codes, *action.codes]
            by_target[action.target] = replace(known, codes=codes)
    by_page: dict[tuple[str, ...], Action] = {}
    for action in by_target.values():
        page = _page(action.target or ""), *(code.value for code in action.codes)
        known = by_page.setdefault(page, action)
        if known is not action:
            text = f"{known.text}; also {action.text[0].lower()}{action.text[1:]}"
            quoted = [*known.quoted, *action.quoted]
            by_page[page] = replace(known, text=text, mends=known.mends + action.mends, quoted=quoted)
    return list(by_page.values())


def _page(url: str) -> str:
    """The URL, or that of the folder whose index page it is."""
    return _INDEX.sub("/", url)


def _large(report: SiteReport, findings: Sequence[Finding]) -> Iterator[Action]:
    """Folders with many URLs of a finding, and pages with many of its links; no folders if a page has all.

    Nor one most of whose URLs are mended by actions of their own, on that page, or on its index page.
    """
    for finding in findings:
        if finding.code not in PLACED:
            continue
        unit, count = "use" if finding.code in FILES else "link", finding.count
        wide = [item.links for item in finding.items if item.site_wide]  # nearly every page has these
        links = finding.links - sum(wide)
        mended = Counter(_folder(item.url) for item in _common(finding))
        by_page = () if finding.code in OF_THE_SERVER else finding.by_page[:1]
        for page, items in by_page:
            if _is_large(own := items - len(wide), links):
                text = f"{finding.code.heading}: correct those on {page}"
                action = Action(text, own, finding.links, unit, [finding.code], page=page, quoted=[page])
                yield action
                mended.update(_folder(item.url) for item in finding.items if _mends(action, item))
                mended |= Counter({_page(page): own})
        if any(items == count and items >= links for _, items in by_page):
            continue
        for folder, urls in report.failing_folders.get(finding.code, ()):
            if _is_large(own := urls - mended[folder], count):
                look = "correct the links to" if finding.code is Code.BROKEN_EXTERNAL else "look into"
                text = f"{finding.code.heading}: {look} {folder}, which holds {urls:,} of {count:,}"
                yield Action(text, own, count, "URL", [finding.code], target=folder, quoted=[folder])


def _is_lost(finding: Finding) -> bool:
    """Whether many of its URLs are pages that the sitemap listed before."""
    return finding.code is Code.BROKEN_LINK and _is_large(finding.lost, finding.count)


def _restored(finding: Finding) -> Action:
    pages = f"{finding.lost:,} pages that were listed before"
    text = f"{finding.code.heading}: put back or redirect {pages}, or remove the links to them"
    return Action(text, finding.lost, finding.count, "URL", [finding.code])


def _is_large(some: int, every: int) -> bool:
    return some >= max(FEWEST, LARGE * every)


def _rest(finding: Finding, count: int, items: Sequence[Item]) -> Action:
    """What is left of a finding beside its `_common` items: so many, the first of which are given."""
    advice = _SENTENCE.split(ADVICE[finding.code], maxsplit=1)[0].rstrip(".")
    unit = "group" if finding.code in GROUPED else NOUNS.get(finding.code, "URL")
    item = items[0] if count == len(items) == 1 else None
    only = item.url if item else None
    at = f" ({only})" if only else ""
    lines = {item.detail for item in finding.items}
    if finding.code is Code.BLOCKED_FILE and len(lines) == 1 and not finding.more:
        at = f" ({lines.pop()})"
    if item and item.said and (words := said_words(item.text, item.place)):
        linked = "" if finding.code in FILES else "linked "
        where = next(iter(item.said)) if item.links == 1 else counted(item.links, "page")
        at = f" ({only}, {linked}on {where}: {words})"
    if item and not item.links and item.sources and finding.code in LINK_CODES - OF_THE_SERVER:
        at = f" ({only}, named by {item.sources[0]})"
        advice = "correct the address there, or redirect it"
    text = f"{finding.code.heading}{at}: {advice[0].lower()}{advice[1:]}"
    return Action(text, count, finding.count, unit, [finding.code], target=only, quoted=[at[2:-1]])


def words(action: Action) -> str:
    """`mends 286 of 331 links`."""
    if action.of == 1:
        return f"mends 1 {action.unit}"
    if action.mends == action.of == 2:
        return f"mends both {action.unit}s"
    of = "all" if action.mends == action.of else f"{action.mends:,} of"
    return f"mends {of} {counted(action.of, action.unit)}"
