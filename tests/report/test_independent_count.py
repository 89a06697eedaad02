"""The figures of a report, beside a count of our own over the links of small random sites, for some nights."""

import json
import random
from collections import Counter, defaultdict, deque
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest

from crawler import Ending, Settings, open_job
from crawler.app import report as reports
from crawler.report.forms import as_json
from crawler.settings.sections import Guard, Output, Pace, Scope, State

SITE = "http://127.0.0.1"
WORDS = [f"word{number}" for number in range(400)]
KINDS = ["page"] * 9 + ["redirect"] * 5 + ["404"] * 3 + ["410", "403", "418", "noindex", "noindex"]
CODES = {
    "404": "broken-link",
    "410": "broken-link",
    "403": "restricted",
    "418": "client-error",
    "": "redirect-loop",
}
FAILING = {*CODES.values()}
COUNTED = FAILING | {"noindex-linked", "redirect-chain", "redirect-linked", "orphan", "sitemap-stale"}


class Answer(NamedTuple):
    """What a path answers."""

    kind: str
    links: Sequence[tuple[str, bool]] = ()  # each with whether it is nofollow
    text: str = ""
    to: str = ""  # of a redirect


class Made(NamedTuple):
    """A site on one night."""

    answers: Mapping[str, Answer]
    named: frozenset[str]  # in its sitemap

    def reply(self, request: httpx.Request) -> httpx.Response:
        path = request.url.path
        if path == "/robots.txt":
            return httpx.Response(200, text=f"User-agent: *\nDisallow:\nSitemap: {SITE}/old.xml\n")
        if path == "/old.xml":
            entries = "".join(f"<url><loc>{SITE}{one}</loc></url>" for one in sorted(self.named))
            text = f'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{entries}</urlset>'
            return httpx.Response(200, text=text, headers={"Content-Type": "application/xml"})
        answer = self.answers.get(path, Answer("404"))
        if answer.kind == "redirect":
            return httpx.Response(301, headers={"Location": SITE + answer.to})
        if answer.kind.isdigit():
            return httpx.Response(int(answer.kind), html=f"<title>Error</title><p>{path}")
        meta = "<meta name=robots content=noindex>" if answer.kind == "noindex" else ""
        links = "".join(
            f'<p><a href="{to}"{" rel=nofollow" if nofollow else ""}>{to}</a>'
            for to, nofollow in answer.links
        )
        title = f"<title>{path} {answer.text[:30]}</title>"
        return httpx.Response(
            200, html=f"<html lang=en>{meta}{title}<main><p>{answer.text}</p>{links}</main>"
        )


def made(chance: random.Random, before: Made | None = None) -> Made:
    """A site, or another night of one, on which a quarter of it is another."""
    paths = (
        list(before.answers)
        if before
        else ["/", *(f"/{'abc'[n % 3]}/{n}" for n in range(chance.randrange(3, 25)))]
    )
    answers = {}
    for path in paths:
        kind = "page" if path == "/" else chance.choice(KINDS)
        links = [(chance.choice(paths), chance.random() < 0.1) for _ in range(chance.randrange(1, 6))]
        answer = Answer(kind, links, " ".join(chance.choices(WORDS, k=60)), chance.choice(paths))
        answers[path] = before.answers[path] if before and chance.random() < 0.75 else answer
    return Made(answers, frozenset(path for path in paths if chance.random() < 0.4))


class Count:
    """What the report of a site must say."""

    def __init__(self, site: Made) -> None:
        self.site, self.linking = site, defaultdict[str, set[str]](set)
        self.clicks = self._walk(["/"])
        self.seen = self._walk(["/", *site.named])
        for path in self.seen:
            if site.answers[path].kind in {"page", "noindex"}:
                for to, _ in site.answers[path].links:
                    self.linking[to] |= {path} - {to}
        self.redirects = {
            path: site.answers[path].to for path in self.seen if site.answers[path].kind == "redirect"
        }
        self.findings = defaultdict[str, dict[str, int]](dict)  # links, by code and path
        for path in self.seen:
            for code in self._codes(path):
                self.findings[code][path] = 0 if code == "sitemap-stale" else len(self.linking[path])

    def _walk(self, starts: Sequence[str]) -> Mapping[str, int]:
        """The fewest clicks to what is found from there; a redirect is none."""
        far, queue = dict.fromkeys(starts, 0), deque(starts)
        while queue:
            path = queue.popleft()
            answer = self.site.answers[path]
            edges = [(to, 1) for to, nofollow in answer.links if not nofollow]
            if answer.kind not in {"page", "noindex"}:
                edges = [(answer.to, 0)] if answer.kind == "redirect" else []
            for to, cost in edges:
                if far[path] + cost < far.get(to, 99):
                    far[to] = far[path] + cost
                    queue.append(to)
        return far

    def _codes(self, path: str) -> set[str]:
        kind, is_linked = self.site.answers[path].kind, bool(self.linking[path])
        is_named = path in self.site.named and path != "/"
        found = {"sitemap-stale"} if is_named and kind != "page" else set[str]()
        is_first = path not in self.redirects.values()
        if kind == "page":
            return found | ({"orphan"} if is_named and not is_linked and is_first else set())
        if kind == "noindex":
            return found | ({"noindex-linked"} if is_linked else set())
        if kind != "redirect":
            return found | ({CODES[kind]} if is_linked or is_named else set())
        hops, end, is_cycle = self._hops(path)
        if end in CODES:
            return found | ({CODES[end]} if is_linked or is_named or is_first or is_cycle else set())
        chain = {"redirect-chain"} if len(hops) > 1 and is_first else set[str]()
        return found | chain | ({"redirect-linked"} if is_linked else set())

    def _hops(self, path: str) -> tuple[Sequence[str], str, bool]:
        """Where a redirect leads, what answers in the end (nothing: there is none), and whether several URLs lead
        to each other.
        """
        hops = [path]
        while hops[-1] in self.redirects:
            hops.append(self.redirects[hops[-1]])
            if hops[-1] in hops[:-1]:
                return hops[1:], "", hops[-1] != hops[-2]
        return hops[1:], self.site.answers[hops[-1]].kind, False

    def pages(self, code: str) -> Mapping[str, int]:
        """To how many URLs with a finding each page links."""
        return Counter(page for path in self.findings[code] for page in self.linking[path])


async def reported(site: Made, folder: Path) -> Mapping[str, Any]:
    """The report after a night, without the origin in URLs."""
    chosen = Settings(
        scope=Scope(start=(f"{SITE}/",)),
        pace=Pace(rate=0),
        output=Output(output=str(folder / "out")),
        state=State(state=str(folder / "state.db")),
        guard=Guard(force=True, keep_failing=0.0),
    )
    async with open_job(chosen, transport=httpx.MockTransport(site.reply)) as job:
        assert await job.crawl() is Ending.COMPLETE
        await job.publish()
        report = await reports.build_report(
            job.frontier, await reports.read_known(job.frontier, chosen), most=0
        )
    told: Mapping[str, Any] = json.loads(as_json.text_of(report).replace(f"{SITE}/", "/"))
    return told


@pytest.mark.slow
@pytest.mark.anyio
@pytest.mark.usefixtures("hurried", "impatient")
@pytest.mark.parametrize("seed", range(6))
async def test_figures_are_those_of_a_count_of_our_own(seed: int, tmp_path: Path) -> None:
    chance = random.Random(seed)
    site, before = made(chance), None
    for _ in range(4):
        told, count = await reported(site, tmp_path), Count(site)
        found = {one["code"]: one for one in told["findings"]}
        listed = [path for path in count.seen if site.answers[path].kind == "page"]
        clicks = Counter(count.clicks[path] for path in listed if path in count.clicks)
        assert {one["clicks"]: one["urls"] for one in told["clicks"]} == clicks
        assert told["unreachable"] == len(listed) - clicks.total()
        for code in COUNTED:
            items = found[code]["items"] if code in found else []
            assert {item["url"]: item["links"] for item in items} == count.findings[code], code
            if code in FAILING | {"redirect-linked"} and items:
                assert {one["page"]: one["items"] for one in found[code]["by_page"]} == count.pages(code)
                assert found[code]["pages"] == len(count.pages(code))
            if before:
                new, had = {item["url"] for item in items if item["new"]}, before.findings[code].keys()
                assert new == count.findings[code].keys() - had, code
                failing = {path for other in FAILING for path in count.findings[other]}
                mended: Sequence[str] = next(
                    (one["items"] for one in told["mended"] if one["code"] == code), []
                )
                assert set(mended) == had - count.findings[code].keys() - failing, code
        site, before = made(chance, site), count
