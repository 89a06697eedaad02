"""Synthetic states: the rows that a frontier would return, built from a short description of the pages."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from crawler.model import rendering
from crawler.model.external import ExternalCheck, ExternalCounts, ExternalRow
from crawler.model.reasons import Cause, SeedKind
from crawler.model.rendering import Needs, PageSummary, Rendering
from crawler.model.rows import EdgeRow, HostRow, LinksRow, PageRow, PublicationRow, RunRow
from crawler.model.seed import Seed
from crawler.model.survey import Balance, VanishedPage, VanishedPages
from crawler.model.trap import Trap
from crawler.parse.url import Url
from crawler.report.builder import ITEMS, ReportBuilder
from crawler.report.catalogue import COMPARED, Code
from crawler.report.findings import Findings
from crawler.report.history import packed
from crawler.report.report import Finding, Item, Known, SiteReport

SITE = "https://shop.example"
AWAY = "https://elsewhere.example"
OLD_SITEMAP = Seed(SeedKind.SITEMAP, f"{SITE}/old-sitemap.xml")
INPUT = Seed(SeedKind.INPUT, "urls.txt")
START = Seed(SeedKind.START)
NIGHT = 1_795_000_000.0  # seconds since the epoch
DAY = 86_400


@dataclass
class MadeState:
    """Pages by path, each with an id. The target of a link to an unknown path is added as an open page."""

    run: int = 1
    site: str = SITE
    status: str = "concluded"
    pages: dict[str, PageRow] = field(default_factory=dict)
    edges: dict[str, EdgeRow] = field(default_factory=dict)
    more: dict[str, Any] = field(default_factory=dict)  # of `Known`
    faults: dict[int, list[tuple[Code, str]]] = field(default_factory=dict)  # faults, by page
    files: Sequence[Finding] = ()
    found: Mapping[str, Sequence[str]] | None = None  # paths by code: the findings of the run before

    def url(self, path: str) -> Url:
        return Url(path if "://" in path else self.site + path)

    def id(self, path: str) -> int:
        url = self.url(path)
        if url not in self.pages:
            self.pages[url] = PageRow(len(self.pages) + 1, url, self.run, "")
        return self.pages[url].id

    def page(
        self,
        path: str,
        outcome: str = "listed",
        *,
        links: Iterable[str] = (),
        nofollow: Iterable[str] = (),
        redirect: str = "",
        canonical: str = "",
        **more: Any,
    ) -> None:
        """Add a URL with its links. `more`: fields of its row."""
        number, url = self.id(path), self.url(path)
        status = {"listed": 200, "unlisted": 200, "moved": 301}.get(outcome.partition(":")[0])
        detail = self.url(redirect or canonical) if redirect or canonical else ""
        known: dict[str, Any] = {
            "run": self.run,
            "status": status,
            "detail": detail,
            "lastmod": int(NIGHT) - 9 * DAY,
        }
        known |= {"source": "header", "was_lastmod": int(NIGHT) - 9 * DAY} | more
        if outcome != "listed":
            known |= {"lastmod": None, "source": None}
        if redirect:
            known["redirect"] = self.id(redirect)
        self.pages[url] = PageRow(number, url, outcome=outcome, **known)
        ids = [self.id(link) for link in links] + [-self.id(link) for link in nofollow]
        self.edges[url] = EdgeRow(
            number, url, ids, self.id(redirect) if redirect else 0, self.id(canonical) if canonical else 0
        )

    # -- what a frontier answers ------------------------------------------------------------------------------

    def in_order(self) -> list[PageRow]:
        return [self.pages[url] for url in sorted(self.pages)]

    def leading(self) -> Iterator[EdgeRow]:
        return (self.edges[url] for url in sorted(self.edges) if self.pages[url].run == self.run)

    def links_of(self, ids: Iterable[int]) -> Mapping[int, LinksRow]:
        by_id = {edges.id: edges for edges in self.edges.values()}
        return {
            number: LinksRow(by_id[number].links, by_id[number].redirect) for number in ids if number in by_id
        }

    def urls(self, ids: Iterable[int]) -> Mapping[int, str]:
        by_id = {page.id: page.url for page in self.pages.values()}
        return {number: by_id[number] for number in ids}

    def balance(self) -> Balance:
        mine = [page for page in self.pages.values() if page.run == self.run]
        outcomes: dict[str, int] = {}
        for page in mine:
            if page.outcome:
                outcomes[page.outcome] = outcomes.get(page.outcome, 0) + 1
        dates = {page.lastmod for page in mine if page.outcome == "listed"}
        date = dates.pop() if len(dates) == 1 else None
        return Balance(len(mine), outcomes, sum(not page.outcome for page in mine), date=date)

    def runs(self) -> Sequence[RunRow]:
        before = [
            RunRow(
                number, NIGHT - (self.run - number) * DAY, "concluded", 40 + number, NIGHT - (self.run - number) * DAY + 90,
                0, 80.0 + 3 * number, 60, 900_000, {"listed": 20 + number, "failed:not-found": 5 - number % 3},
                PublicationRow(20 + number, 1, 4_000, 1, 0, 2),
            )
            for number in range(1, self.run)
        ]  # fmt: skip
        balance = self.balance()
        published = PublicationRow(balance.listed, 1, 4_213, 3, 1, 20) if self.status == "concluded" else None
        mine = RunRow(
            self.run,
            NIGHT,
            self.status,
            balance.discovered,
            NIGHT + 92,
            0,
            92.4,
            61,
            912_000,
            balance.outcomes,
            published,
        )
        return [*before, mine]

    def known(self) -> Known:
        runs = self.runs()
        found = self.found or {}
        before = {
            code.value: packed({self.id(path) for path in found.get(code.value, ())}) for code in COMPARED
        }
        return Known(
            self.site, runs[-1], self.balance(), runs=runs, program="sitemap-crawler 0.1.0",
            before=None if self.found is None else before, **self.more,
        )  # fmt: skip

    def report(self, most: int = ITEMS) -> SiteReport:
        """Make the passes over all rows, in the order of the program."""
        known = self.known()
        builder = ReportBuilder(known, Findings.of(known), most=most)
        for page in self.in_order():
            builder.findings.add_page(page)
            builder.add_page(page)
        builder.findings.close()
        for edges in self.leading():
            builder.findings.link(edges)
        builder.findings.faults.update(self.faults)
        builder.findings.files = self.files
        clicks = builder.clicks()
        while due := clicks.take():
            clicks.add(self.links_of(due))
        builder.add_clicks(clicks)
        for page in self.in_order():
            builder.pick(page)
        return builder.report(self.urls(builder.wanted()))


FOUND = {
    "broken-link": ["/legal.html", "/lost"],
    "unreachable": ["/slow"],
    "canonical-broken": ["/red"],
    "sitemap-stale": ["/red"],
    "noindex-canonical": ["/thanks"],
    "redirect-chain": ["/shop"],
    "redirect-linked": ["/shop", "/about"],
    "orphan": ["/dated", "/workshop"],
    "robots-linked": ["/basket"],
    "noindex-linked": ["/thanks"],
    **{code.value: ["/lanterns/storm"] for code in Code if code.value.startswith("hreflang-")},
    "images-cut": ["/lanterns/ship"],
}


def planted(run: int = 3, status: str = "concluded") -> MadeState:
    """A shop with one of each finding, and what is new in all but its first run."""
    state = MadeState(run, status=status, found=FOUND if run > 1 else None)
    lanterns = [
        f"/lanterns/{name}"
        for name in ("storm", "candle", "paper", "railway", "ship", "solar", "garden", "miner")
    ]
    common = ["/", "/lanterns/", "/legal.html"]
    state.page(
        "/",
        links=["/lanterns/", "/about", "/shop", "/legal.html"],
        seed=START,
        title="Lanterns",
        was="listed",
    )
    state.page(
        "/lanterns/",
        links=[*lanterns, *common],
        title="All lanterns",
        was="listed",
        depth=1,
        took=80,
        bytes=9_000,
    )
    for place, path in enumerate(lanterns):
        title, content = f"Lantern {place}", f"text {place}"
        state.page(
            path, links=[*common, "/gone"] if place < 3 else common, title=title, content=content, was="listed", depth=2,
            took=30 + place, bytes=12_000 + 700 * place,
        )  # fmt: skip
    state.faults[state.id("/lanterns/storm")] = [
        (code, f"de {SITE}/de/: for the test") for code in Code if code.value.startswith("hreflang-")
    ]
    state.faults[state.id("/lanterns/ship")] = [
        (Code.IMAGES_CUT, "1,204 images"),
    ]
    ship = Item(f"{SITE}/ship.jpg", 404, "", 1, [f"{SITE}/lanterns/ship"], text="A ship", place="main")
    state.files = [
        Finding(Code.BROKEN_IMAGE, 1, 0, 1, 1, [ship]),
        Finding(
            Code.BROKEN_SCRIPT, 1, 1, 9, 9, [Item(f"{SITE}/shop.js", 404, "", 9, [f"{SITE}/"], new=run > 1)]
        ),
        Finding(Code.BROKEN_STYLE, 1, 0, 1, 1, [Item(f"{AWAY}/a.css", None, "timed out", 1, [f"{SITE}/"])]),
        Finding(Code.BLOCKED_FILE, 1, 0, 1, 1, [Item(f"{SITE}/p.js", None, "Disallow: /p", 1, [f"{SITE}/"])]),
    ]
    twins: dict[str, Any] = {"title": "The same", "content": "same text", "was": "listed", "depth": 2}
    state.page("/twin-1", links=[*common, "/twin-2"], **twins)
    state.page("/twin-2", links=common, **twins)
    state.page(
        "/about",
        links=[
            *common,
            "/twin-1",
            "/basket",
            "/thanks",
            "/old-name",
            "/down",
            "/slow",
            "/odd",
            "/members",
            f"{AWAY}/gone",
            f"{AWAY}/fine",
        ],
        was=None,
        depth=1,
        title="The same",
        content="another text",
        detail=f"{SITE}/gone: not found",
        barred="bingbot",
        rendering=rendering.written(Rendering(Needs.SHELL, PageSummary(0), PageSummary(7), hash_routes=2)),
    )
    state.page("/legal.html", "failed:not-found", status=404, was="failed:not-found", depth=1)
    state.page("/gone", "failed:not-found", status=404, was="listed", depth=3)
    state.page("/odd", "failed:client-error", status=418, detail="418", was="listed", depth=2)
    state.page("/members", "failed:client-error", status=405, detail="405", was="listed", depth=2)
    state.page("/down", "failed:server-error", status=503, detail="503", was="listed", depth=2)
    state.page("/slow", "failed:timeout", detail="no answer in 30 s", was="failed:timeout", depth=2)
    state.page("/loop", "failed:redirect-loop", status=302, detail="/loop", seed=INPUT)
    state.page("/shop", "moved", redirect="/store", was="moved", depth=1)
    state.page("/store", "moved", redirect="/lanterns/", was="moved", depth=1)
    state.page("/old-name", "moved", redirect="/about", was="listed", depth=2)
    state.page("/red", "unlisted:canonical", canonical="/gone", seed=OLD_SITEMAP, was="unlisted:canonical")
    state.page("/blue", "unlisted:canonical", canonical="/old-name", seed=INPUT)
    state.page("/thanks", "unlisted:noindex", canonical="/about", detail="", was="unlisted:noindex", depth=2)
    state.page(
        "/basket", "unlisted:robots", status=None, detail="Disallow: /basket", was="unlisted:robots", depth=2
    )
    gone = ExternalRow("broken:not-found", 404, f"redirects to {AWAY}/404", NIGHT, run, "ok")
    state.page(f"{AWAY}/gone", "unlisted:offsite", status=None, external=gone, was="unlisted:offsite")
    fine = ExternalRow("ok", 200, "", NIGHT, run, "ok")
    state.page(f"{AWAY}/fine", "unlisted:offsite", status=None, external=fine, was="unlisted:offsite")
    hung = rendering.written(Rendering(Needs.PATTERN, PageSummary(30), failed=Cause.TIMEOUT))
    state.page(
        "/workshop", links=common, seed=OLD_SITEMAP, was="listed", lastmod=None, source=None, rendering=hung
    )
    state.page("/closed", "listed", run=run - 1)
    state.page("/lost", "failed:not-found", run=run - 1, status=404)
    state.page("/dated", links=common, was="listed", was_lastmod=None, seed=INPUT)
    state.more = {
        "traps": [Trap("calendar", "/events/*", f"{SITE}/events/2031/05")],
        "vanished": VanishedPages(1, [VanishedPage(Url(f"{SITE}/spring"), "listed")]),
        "unreliable": {SITE: "most pages carry the time of the request"},
        "robots_line": f"Sitemap: {SITE}/sitemap.xml.gz",
        "robots_names": False,
        "check": ExternalCheck(run, NIGHT, True, 2, "max-external"),
        "external": ExternalCounts({"ok": 1, "broken:not-found": 1}, 2),
        "settings": [("rate", "2")],
        "hosts": [
            HostRow(SITE, 40, 0.5, "rules"),
            HostRow("https://cdn.example", 2, 0.0, "down", "HTTP 503"),
        ],
    }
    return state


HOSTILE = (
    "/<script>alert(1)</script>", '/a"onmouseover=alert(1) x="', "/x'><img src=x onerror=alert(1)>", "/{{7*7}}{% raw %}",
    "/\u202egpj.exe", "/zero\u200bwidth", "/`code`|table|", "/%3Cb%3E", "/=cmd|' /C calc'!A0", "/]]>--></style></title>",
    "/" + "long" * 500, "/a?token=s3cr3t-value",
)  # fmt: skip
TITLES = (
    '=HYPERLINK("http://evil.example")', "</title><script>alert(2)</script>", "\x1b[31mred\x1b[0m\r\nnew line", "\u202eevil",
    "+1+1", "@SUM(A1)", "-2+3", "\tx", "{{ config }}", "javascript:alert(3)",
)  # fmt: skip


def hostile() -> MadeState:
    """A site whose URLs and titles attack whatever displays them."""
    state = MadeState(2)
    state.page("/", links=HOSTILE, seed=START, was="listed")
    for place, path in enumerate(HOSTILE):
        title = TITLES[place % len(TITLES)]
        state.page(path, "failed:not-found", status=404, detail=title, was="listed")
        for twin in range(2):
            state.page(f"{path}&{twin}", title=title, content=title, links=[path], detail=title)
    state.page("/js", "moved", links=["/robots"], detail="javascript:alert(4)")
    state.page("/robots", "unlisted:robots", detail="Disallow: /<b>\x1b[2J")
    state.page("/to-js", links=["/js"], canonical="javascript://%0aalert(5)")
    state.page(
        "javascript:alert(6)//x/y",
        "failed:dns",
        links=["/js"],
        seed=Seed(SeedKind.SITEMAP, "javascript:alert(7)"),
    )
    state.more = {
        "traps": [Trap("query", "/<i>*?", TITLES[1])],
        "unreliable": {SITE: TITLES[1]},
        "settings": [("header", "***")],
        "hosts": [HostRow("https://x\u202e.example", 2, 0.0, "down", TITLES[1])],
    }
    return state
