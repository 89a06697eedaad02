"""(lease, reply, now) -> verdict: interprets status codes, indexability rules and canonicals, in one place.

Pure: no socket, no clock, no state. Bodies are not kept beyond this point; outcome, facts and links are.
Whether a link belongs to the site is decided by `scope`; `Later` requests another try.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from itertools import chain
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from crawler.model.facts import LONGEST_HEADER, Facts, LabelledUrl, Lastmod, Obstacle, Validators
from crawler.model.outcome import HTML, Failed, Kept, Later, Listed, Moved, Outcome, Unlisted
from crawler.model.protocol import REDIRECTS
from crawler.model.reasons import Cause, Source, Why
from crawler.model.rendering import LONGEST_ROBOTS, PageSummary, Rendering
from crawler.model.reply import Broken, Headers, Reply, Response
from crawler.model.settlement import Verdict
from crawler.model.visit import Lease, Links, Prior
from crawler.parse import headers as fields
from crawler.parse import html, robots_meta
from crawler.parse import url as urls
from crawler.parse.extract import Extract
from crawler.parse.feeds import FEED_TYPES
from crawler.parse.html import PageSource
from crawler.parse.normalise import Normaliser
from crawler.parse.parsed_page import ParsedPage
from crawler.parse.robots_meta import Directives
from crawler.parse.url import Url
from crawler.ports.features import PageFeature, SeenPage
from crawler.rules import (
    canonicals,
    content_digest,
    duplicates,
    lastmod,
    noise,
    rendering,
    soft_404,
    throttle,
)
from crawler.rules.dated import first_date
from crawler.rules.indexing import NOTHING_SAID, Audience, Indexing, indexing
from crawler.rules.nonexistent_pages import at_origin, in_gap
from crawler.rules.reply_urls import ReplyUrls, usable
from crawler.rules.traps import days_of

LISTABLE_TYPES: Final = {"html": HTML, "pdf": frozenset({"application/pdf"})}
# Reasons that come from the scope or from other pages, not from the page itself.
SCOPED: Final = frozenset(
    {Why.EXCLUDED, Why.NO_LIST, Why.SCHEME, Why.TOO_LONG, Why.TRAP, Why.SOFT_404, Why.DUPLICATE}
)
PAGE_STATUSES: Final = frozenset({200, 203})  # 203: modified by a proxy (RFC 9110 15.3.4)

LOGIN_TEXT: Final = 1_000  # characters; a page with more text is more than a login form
LONGEST_TYPE: Final = 100  # characters that are kept of a media type

PDF: Final = b"%PDF-"


class JudgeRules(Struct, frozen=True):
    """The settings of the judge."""

    agent: str  # product token in lower case
    normalise: Normaliser
    types: frozenset[str] = HTML  # media types that are listed
    bots: frozenset[str] = frozenset()  # crawlers of search engines whose noindex counts, in lower case
    off: frozenset[str] = frozenset()  # rules switched off by --no-rule
    date_sources: tuple[Source, ...] = lastmod.DATE_SOURCES["auto"]  # sources of a date, most trusted first
    features: tuple[PageFeature, ...] = ()  # what else is read of a page
    max_redirects: int = 10
    retries: int = 3
    max_wait: float = 600.0  # seconds: the longest Retry-After that is honoured by waiting
    ignored: str = ""  # CSS selector of what is no content
    render: str = "off"  # auto: pages that need scripts are to be rendered; always: all


class Judge:
    """`judge(lease, reply, now)`."""

    def __init__(self, rules: JudgeRules) -> None:
        self._rules, self._urls = rules, ReplyUrls(rules.normalise, rules.off)
        features = chain.from_iterable(feature.extract for feature in rules.features)
        dates = {Extract.DATES} if Source.PAGE in rules.date_sources else set()
        scripts = {Extract.SCRIPTS} if rules.render != "off" else set()
        self._extract = frozenset({Extract.FINGERPRINT, *dates, *scripts, *features})

    @property
    def date_sources(self) -> tuple[Source, ...]:
        """Sources of a date, most trusted first."""
        return self._rules.date_sources

    @property
    def renders(self) -> bool:
        return self._rules.render != "off"

    @property
    def renders_samples(self) -> bool:
        """Whether which pages are rendered depends on samples."""
        return self._rules.render == "auto"

    def applies(self, rule: str) -> bool:
        """Whether a rule is in force, that is, not switched off by `--no-rule`."""
        return rule not in self._rules.off

    def wants_body(self, status: int, headers: Headers) -> bool:
        """Whether the body is needed: it may be HTML, or a feed."""
        essence = fields.content_type(headers.get("content-type"))[0]
        return status in PAGE_STATUSES and (essence is None or essence in HTML or essence in FEED_TYPES)

    def markup(self, lease: Lease, reply: Reply, now: datetime) -> PageSource | None:
        """The HTML of a reply and what to extract from it; None if the reply is not an HTML page."""
        if not isinstance(reply, Response) or reply.status not in PAGE_STATUSES or _is_blank(reply.body):
            return None
        essence, charset = _type(reply)
        if essence not in HTML or reply.body.startswith(PDF):
            return None
        url, prior = lease.visit.url, lease.prior.facts if lease.prior else None
        header, fresh = lastmod.with_age(reply.headers, now)
        is_dated = fresh is False and Source.HEADER in self._rules.date_sources
        suffices = content_digest.suffices(url, reply.body, prior, is_dated=is_dated)
        wanted = self._extract | ({Extract.BLOCKS} if lease.missing else set())
        if header is None and Source.HISTORY in self._rules.date_sources:
            wanted |= {Extract.PIECES}
        if suffices:
            wanted |= {Extract.SPARING}
        elif days_of(url) is not None:
            wanted |= {Extract.ECHOLESS, Extract.CALENDAR}
        elif reply.rendering or content_digest.is_suspicious(url) or (lease.missing and lease.missing.place):
            wanted |= {Extract.ECHOLESS}
        known, ignored = (prior and prior.content) or "", self._rules.ignored
        part, most = (in_gap(url, lease.missing.place), lease.missing.most) if lease.missing else ("", 0)
        return PageSource(
            reply.body, url, charset, wanted, ignored=ignored, known=known, part=part, most_blocks=most
        )

    def __call__(self, lease: Lease, reply: Reply, now: datetime, page: ParsedPage | None = None) -> Verdict:
        """The verdict on a reply. `page`: its parsed HTML, if already available."""
        if isinstance(reply, Broken):
            return Verdict(Failed(reply.cause, reply.detail))
        if reply.status in PAGE_STATUSES:
            return self._page(lease, reply, now, page)
        if reply.status == 304 and lease.prior and not isinstance(lease.prior.outcome, Failed | Kept):
            return unchanged(lease.prior)
        if reply.status in REDIRECTS:
            return self._redirect(lease, reply)
        return Verdict(self._refusal(lease, reply, now), Facts(reply.status))

    def _redirect(self, lease: Lease, reply: Response) -> Verdict:
        location = fields.text_of(reply.headers.get("location") or "")
        to = self._urls.target(location, lease.visit.url, lease.visit.url)
        facts, shown = Facts(reply.status), location or "no Location"
        wants = " with a cookie: see cookie-file" if reply.headers.get("set-cookie") else ""
        if to is None:
            return Verdict(Failed(Cause.REDIRECT, shown), facts)
        if to == lease.visit.url:
            return Verdict(Failed(Cause.REDIRECT_LOOP, f"{shown}{wants}"), facts)
        if lease.visit.hops >= self._rules.max_redirects:
            return Verdict(Failed(Cause.REDIRECTS, to), facts)
        return Verdict(Moved(to), facts, Links((to,)), named=(to,))

    def _refusal(self, lease: Lease, reply: Response, now: datetime) -> Outcome:
        status = reply.status
        wait = throttle.retry_after(reply.headers, now) if status in throttle.OVERLOADED else None
        if wait is not None and wait > throttle.QUICK:
            if wait > self._rules.max_wait:
                return Failed(Cause.RATE_LIMITED, f"{status}, Retry-After {wait:.0f} s")
            if lease.attempt <= self._rules.retries:
                return Later(now.timestamp() + wait, Cause.RATE_LIMITED, str(status))
        if status in {204, 205}:
            return Unlisted(Why.EMPTY, str(status))
        return Failed(_cause_of(status), str(status))

    def _page(self, lease: Lease, reply: Response, now: datetime, page: ParsedPage | None) -> Verdict:
        url, essence = lease.visit.url, _type(reply)[0]
        size = len(reply.body) if self.wants_body(reply.status, reply.headers) else None
        facts = _header_facts(reply, now, essence, size)
        if essence not in HTML:
            return self._document(url, reply, facts._replace(lastmod=self._lastmod(facts.header)), now)
        if _is_blank(reply.body):
            return Verdict(Unlisted(Why.EMPTY), facts)
        if reply.body.startswith(PDF):
            return Verdict(Unlisted(Why.TYPE, "a PDF that is called HTML"), facts)
        if page is None:
            markup = self.markup(lease, reply, now)
            page = markup.read() if markup else ParsedPage(url)
        stated = lastmod.from_page(page.dates, now) if page.dates else None
        prior = lease.prior.facts if lease.prior else Facts(200)
        pieces = () if stated and prior.content is None else page.pieces
        content, watched = noise.version(prior.content, prior.watched, page.content, pieces)
        # A page on which only noise changed is the page that it was.
        echoing = page.echoing if content == page.content else prior.echoing
        facts = facts._replace(
            digest=content_digest.of_bytes(reply.body),
            lastmod=self._lastmod(facts.header, stated),
            stated=stated,
            echoing=echoing,
            content=content,
            watched=watched,
            title=page.title,
        )
        verdict, missing = self._html(lease, reply, facts, page, now), lease.missing
        if missing and soft_404.is_missing(missing, page.said):
            why = Unlisted(Why.SOFT_404, at_origin(urls.origin(url))[0])
            return Verdict(why, facts._replace(lastmod=None), soft_404.known_links(verdict.links, missing))
        if missing and missing.place and missing.content and missing.content == page.content:
            return replace(verdict, links=soft_404.leading_on(url, verdict.links, missing))
        return verdict

    def _lastmod(self, header: datetime | None, stated: datetime | None = None) -> Lastmod | None:
        date = first_date(self._rules.date_sources, header, stated)
        return Lastmod(*date) if date else None

    def _document(self, url: Url, reply: Response, facts: Facts, now: datetime) -> Verdict:
        """The verdict on a document that is not HTML, by its header fields alone."""
        essence, _ = _type(reply)
        canonical, conflict = self._urls.canonical(self._urls.header_canonicals(url, reply))
        named = (canonical,) if canonical else ()
        said = self._indexing(reply, (), now)
        listed = self._urls.listed_by_feed(url, reply, essence)
        if said.directives.nofollow and "nofollow" not in self._rules.off:
            links = Links(named, tuple(to for to in listed if to not in named))
        else:
            links = Links(tuple(dict.fromkeys((*named, *listed))))
        facts = facts._replace(canonical=_other(url, canonical), until=said.until, barred=said.barred or None)
        facts = canonicals.read_again(facts) if conflict else facts
        if essence not in self._rules.types:
            outcome: Outcome = Unlisted(Why.TYPE, essence)
        else:
            outcome = self._indexable(url, said, canonical, Listed(facts.lastmod, conflict))
        features = self._features(SeenPage(url, reply, ParsedPage(url), Directives(), outcome))
        return Verdict(outcome, facts, links, named=named, features=features)

    def _html(self, lease: Lease, reply: Response, facts: Facts, page: ParsedPage, now: datetime) -> Verdict:
        rules, url = self._rules, lease.visit.url
        refresh = usable(self._urls.target(page.refresh[1], page.base, url)) if page.refresh else None
        moves = bool(refresh and refresh != url and page.refresh and page.refresh[0] == 0)
        if refresh and moves and lease.visit.hops >= rules.max_redirects:
            return Verdict(Failed(Cause.REDIRECTS, refresh), Facts(reply.status))
        said = self._indexing(reply, page.robots, now)
        on_page = (rules.normalise.canonical(href, page.base) for href in page.canonicals)
        canonical, conflict = self._urls.canonical([*on_page, *self._urls.header_canonicals(url, reply)])
        links, named, truncated = self._urls.links(url, reply, page, said.directives, [canonical, refresh])
        facts = facts._replace(
            unordered=duplicates.unordered(url, page.unordered, links.distinct),
            variant=self._urls.variant(url, reply),
            obstacle=self._obstacle(url, reply.rendering, page, said.directives, links),
            until=said.until,
            barred=said.barred or None,
            canonical=_other(url, canonical),
            scripts=reply.rendering.kinds if reply.rendering else rendering.kinds(url, page, links.total),
        )
        outcome: Outcome
        if refresh and moves:
            outcome = Moved(refresh)
        elif facts.type not in rules.types:
            outcome = Unlisted(Why.TYPE, facts.type or "")
        else:
            outcome = self._indexable(url, said, canonical, Listed(facts.lastmod, conflict))
        if rules.render != "off" and (needs := rendering.needs(lease, reply, facts, rules.render)):
            robots = self._robots_text(reply, page)
            summary = PageSummary(links.total, robots, facts.canonical, page.length or 0)
            seen = rendering.recorded(reply, needs, summary, outcome, facts.scripts)
            facts = facts._replace(rendering=seen)
        facts = canonicals.read_again(facts) if conflict else facts
        features = self._features(SeenPage(url, reply, page, said.directives, outcome))
        return Verdict(outcome, facts, links, truncated=truncated, named=named, features=features)

    def _robots_text(self, reply: Response, page: ParsedPage) -> str:
        """The directives as they are written, for the record of what scripts changed."""
        on_page = [content for name, content in page.robots if name in {"robots", self._rules.agent}]
        text = ", ".join([*on_page, *reply.headers.all("x-robots-tag")])
        return html.shown_title(text[:LONGEST_ROBOTS]) or ""

    def _obstacle(
        self, url: Url, rendered: Rendering | None, page: ParsedPage, directives: Directives, links: Links
    ) -> Obstacle | None:
        """Why the page may hide the site: a login form, only nofollow links, or an empty shell."""
        if page.password and page.length is not None and page.length < LOGIN_TEXT:
            return Obstacle.LOGIN
        here = f"{urls.origin(url)}/"  # most links begin so
        if any(link.startswith(here) for link in links.followed) or _lead_to_host(links.followed, url):
            return None
        avoids = directives.nofollow and "nofollow" not in self._rules.off
        avoids = avoids or _lead_to_host(links.avoided, url)
        if avoids:
            return Obstacle.NOFOLLOW
        is_short = page.length is not None and page.length < rendering.SHELL_TEXT
        if not (page.scripted and is_short):
            return None
        if rendered is None:
            return Obstacle.SHELL
        return Obstacle.HASH_ROUTES if rendered.hash_routes else Obstacle.EMPTY

    def _indexable(self, url: Url, said: Indexing, canonical: Url | None, listed: Listed) -> Outcome:
        if said.noindex is not None:
            return Unlisted(Why.NOINDEX, said.noindex)
        if canonical and canonical != url:
            return Unlisted(Why.CANONICAL, canonical)
        return listed

    def _indexing(self, reply: Response, on_page: Sequence[tuple[str, str]], now: datetime) -> Indexing:
        """What the header fields and the robots elements of a page say."""
        rules = self._rules
        values = [] if "x-robots-tag" in rules.off else reply.headers.all("x-robots-tag")
        rules_of_page = [*on_page, *robots_meta.addressed(values)]
        if not rules_of_page:
            return NOTHING_SAID
        said = indexing(rules_of_page, Audience(rules.agent, rules.bots), now)
        return Indexing(said.directives) if "noindex" in rules.off else said

    def _features(self, seen: SeenPage) -> Mapping[str, tuple[LabelledUrl, ...]]:
        """What the optional features read of a page."""
        return {feature.name: found for feature in self._rules.features if (found := feature.read(seen))}


def validators_of(headers: Headers) -> Validators:
    """The validators of a response that are short enough to be kept."""
    return Validators(_short(headers.get("etag")), _short(headers.get("last-modified")))


def _header_facts(reply: Response, now: datetime, essence: str, size: int | None) -> Facts:
    """What the header fields say of a page."""
    header, fresh = lastmod.with_age(reply.headers, now)
    kind, kept = essence[:LONGEST_TYPE], validators_of(reply.headers)
    return Facts(reply.status, kept, None, header, bool(fresh), type=kind, bytes=size, took=reply.took)


def unchanged(prior: Prior) -> Verdict:
    """The verdict on a 304."""
    watched = noise.unchanged(prior.facts.watched)
    facts = prior.facts if watched == prior.facts.watched else prior.facts._replace(watched=watched)
    return Verdict(_unscoped(prior), facts, unchanged=True)


def _unscoped(prior: Prior) -> Outcome:
    """The outcome of the last run before scope and other pages were looked at: these may have changed."""
    is_scoped = isinstance(prior.outcome, Unlisted) and prior.outcome.why in SCOPED
    outcome = Listed(prior.facts.lastmod) if is_scoped else prior.outcome
    if isinstance(outcome, Listed) and prior.facts.canonical:
        return Unlisted(Why.CANONICAL, prior.facts.canonical)
    return outcome


def _cause_of(status: int) -> Cause:
    match status:
        case 404 | 410:
            return Cause.NOT_FOUND
        case 401 | 403:
            return Cause.FORBIDDEN
        case 429:
            return Cause.RATE_LIMITED
        case 408:
            return Cause.TIMEOUT
    if 400 <= status < 500:
        return Cause.CLIENT_ERROR
    return Cause.SERVER_ERROR if 500 <= status < 600 else Cause.STATUS


def _lead_to_host(links: Iterable[Url], url: Url) -> bool:
    own, *others = (urls.host(one).removeprefix("www.") for one in (url, *links))
    return own in others


def _other(url: Url, canonical: Url | None) -> Url | None:
    """The canonical of a page, unless it is the page itself."""
    return canonical if canonical != url else None


def _short(value: str | None) -> str | None:
    """A validator, unless it is too long to be stored for each page."""
    return value if value and len(value) <= LONGEST_HEADER else None


def _is_blank(body: bytes) -> bool:
    return not body or body.isspace()


def _type(reply: Response) -> tuple[str, str | None]:
    """Media type and charset; sniffed if the response has no Content-Type."""
    essence, charset = fields.content_type(reply.headers.get("content-type"))
    if essence is None:
        return "text/html" if fields.looks_like_html(reply.body) else "application/octet-stream", charset
    return essence, charset
