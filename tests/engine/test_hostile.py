"""Whole crawls of the hostile sites in `tests/hostile`: they neither stop, bloat nor mislead the crawler, nor aim it at others."""

import gzip
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final

import lxml.etree
import pytest

from crawler.app import compose
from crawler.app.job import open_job
from crawler.engine.crawl import Ending
from crawler.errors import CrawlerError
from crawler.model.survey import Balance
from crawler.model.trap import Trap
from crawler.ports import reads
from crawler.rules import traps
from crawler.workers.sandbox import Sandbox
from tests.engine.test_crawl import closest, settings
from tests.hostile import sites
from tests.server import Origin, Talk, http, page, serving
from tests.waiting import until

OFFSITE, SECRET = Origin("offsite", "127.0.99.1"), Origin("secret", "127.0.99.2")
NAMESPACE = "{http://www.sitemaps.org/schemas/sitemap/0.9}"


@dataclass
class Result:
    ending: Ending | None = None
    balance: Balance = field(default_factory=lambda: Balance(0, {}))
    dates: dict[str, str] = field(default_factory=dict)
    traps: list[Trap] = field(default_factory=list)
    refused: CrawlerError | None = None


CLIENT: Final = {"name": "own"}
STALLING: Final = ("/nested", "/attributes", "/mutated", "/options")  # pages that stall the parser


@pytest.fixture(params=["own", "httpx"], autouse=True)
def client(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The client of the crawls of this test: our connections, or httpx's own."""
    monkeypatch.setitem(CLIENT, "name", request.param)


async def crawl(here: Origin, folder: Path, **chosen: object) -> Result:
    """One whole crawl, with only its own address allowed."""
    given = settings(
        f"http://{here.address}:{here.port}",
        folder,
        # Most of what some of these sites serve fails on purpose.
        transport=CLIENT["name"],
        **({"allow_address": (f"{here.address}/32",), "retries": 3, "max_failed": 1.0} | chosen),
    )
    result = Result()
    async with open_job(given) as job:
        try:
            result.ending = await job.crawl()
            await job.publish()
        except CrawlerError as error:
            result.refused = error
        result.balance = await job.frontier.read(reads.RunBalance())
        result.traps = list(await job.frontier.read(reads.TrapsOfRun()))
    for file in sorted((folder / "out").glob("sitemap*.xml.gz")):
        for entry in lxml.etree.fromstring(gzip.decompress(file.read_bytes())).iter(f"{NAMESPACE}url"):
            loc, date = entry.findtext(f"{NAMESPACE}loc"), entry.findtext(f"{NAMESPACE}lastmod")
            assert loc
            assert loc not in result.dates, "listed twice"
            result.dates[loc] = date or ""
    return result


def judge(here: Origin, result: Result) -> list[str]:
    """The differences from the expectations of the site."""
    wrong: list[str] = []
    asked = here.counts()
    listed = {
        url.removeprefix(f"http://{here.address}:{here.port}"): date for url, date in result.dates.items()
    }
    for path, right in here.expect.items():
        if right.listed is not None and right.listed is not (path in listed):
            wrong.append(f"{path} is {'' if path in listed else 'not '}listed")
        if right.asked is not None and right.asked is not bool(asked[path]):
            wrong.append(f"{path} was asked for {asked[path]} times")
        if right.most is not None and asked[path] > right.most:
            wrong.append(f"{path} was asked for {asked[path]} times, more than {right.most}")
        if right.lastmod is not None and listed.get(path, "") != right.lastmod:
            wrong.append(f"{path} has the date {listed.get(path)}")
    for name, within, most in here.bounds:
        count = sum(number for path, number in asked.items() if within(path))
        if count > most:
            wrong.append(f"{name}: {count} requests, more than {most}")
    expected = [within for _, within, _ in here.bounds]
    wrong += [
        f"{path[:80]} is listed unexpectedly"
        for path in listed
        if path not in here.expect and not any(within(path) for within in expected)
    ]
    if here.log and here.log[0].path != "/robots.txt":
        wrong.append("robots.txt was not the first request")
    if any(one.method not in {"GET", "HEAD"} for one in here.log):
        wrong.append("something else than GET was sent")
    if any(len(one.headers.get("cookie", "")) > 8_000 for one in here.log):
        wrong.append("cookies were kept")
    wrong += [
        f"contact with {canary.name}: {canary.log[0].path}" for canary in (OFFSITE, SECRET) if canary.log
    ]
    return wrong


@contextmanager
def web(*origins: Origin) -> Iterator[None]:
    for canary in (OFFSITE, SECRET):
        canary.log.clear()
    with serving(*origins, OFFSITE, SECRET):
        yield


def place(origin: Origin) -> str:
    """The address of a canary; the port is filled in by `aimed` once all are served."""
    return f"{origin.address}:PORT"


def aimed(here: Origin) -> None:
    """Fill in the port in responses that name other origins."""
    for path, answer in here.answers.items():
        if isinstance(answer, bytes) and b"PORT" in answer:
            head, _, body = answer.replace(b"PORT", str(here.port).encode()).partition(b"\r\n\r\n")
            head = re.sub(rb"Content-Length: \d+", b"Content-Length: %d" % len(body), head)
            here.answers[path] = head + b"\r\n\r\n" + body


async def check(here: Origin, folder: Path, **chosen: object) -> Result:
    with web(here):
        aimed(here)
        result = await crawl(here, folder, **chosen)
        assert result.refused is None
        assert result.balance.balanced
        assert judge(here, result) == []
    return result


pytestmark = [pytest.mark.anyio, pytest.mark.slow, pytest.mark.usefixtures("impatient")]
# Where a reader of bodies decides, or the rules over many pages: none knows which client a page came from.
one_client = pytest.mark.parametrize("client", ["own"], indirect=True)


@one_client
async def test_crawler_traps_are_bounded_and_reported(tmp_path: Path) -> None:
    here = sites.crawler_traps()
    result = await check(here, tmp_path)
    kinds = {trap.kind for trap in result.traps}
    assert {"calendar", "path", "query"} <= kinds
    deepest = max((url for url in result.dates), key=len)
    assert not re.search(r"(/[^/]+)(?:.*\1(?=/|$)){5}", deepest)


@one_client
async def test_allow_trap_crawls_the_trap(tmp_path: Path) -> None:
    here = sites.crawler_traps()
    with web(here):
        result = await crawl(here, tmp_path, allow_trap=("path",), include=("re:^/a/",), max_pages=60)
    assert sum(path.startswith("/a/") for path in here.counts()) > 30
    assert result.ending is Ending.LIMIT


@one_client
async def test_known_session_ids_are_stripped_and_reported(tmp_path: Path) -> None:
    result = await check(sites.sessions(), tmp_path)
    assert {trap.pattern for trap in result.traps} >= {"phpsessid=…", "jsessionid=…", "sid=…"}


@one_client
async def test_session_ids_of_unknown_name_are_bounded(tmp_path: Path) -> None:
    here = sites.nameless_sessions()
    result = await check(here, tmp_path)
    assert [trap.pattern for trap in result.traps] == [here.url("/shop?basket=…")]
    assert len(result.dates) <= 4, "copies of a page are not listed"


@one_client
async def test_facets_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(traps, "REQUESTS", 300)  # what is granted is used up: for each item nine more
    result = await check(sites.facets(), tmp_path)
    assert [trap.kind for trap in result.traps] == ["repeats"]


@one_client
async def test_soft_404_pages_are_unlisted(tmp_path: Path) -> None:
    result = await check(sites.soft_404(), tmp_path)
    assert [trap.kind for trap in result.traps] == ["soft-404"]
    assert result.balance.outcomes["unlisted:soft-404"] == 30


@one_client
@pytest.mark.parametrize("kind", ["shell", "honest", "forbidden"])
async def test_identical_pages_are_listed_but_not_one_for_all(kind: str, tmp_path: Path) -> None:
    """One body for every address, a site with a real 404 status, and one whose robots.txt forbids to ask."""
    here = Origin(kind, "127.0.31.1")
    said = "the same on every page"
    shell = http(f"<title>{said}</title><p>{said}</p>")
    links = [f"/p/{number}" for number in range(20)]
    for link in links:
        here.put(link, shell, listed=kind != "shell")
    hidden = "".join(f'<a href="{link}"></a>' for link in links)
    home = f"<title>{said}</title><p>{said}</p>{hidden}" if kind == "shell" else page(*links)
    here.put("/", http(home), listed=True)
    if kind == "forbidden":
        here.put(
            "/robots.txt",
            http(
                "User-agent: *\nDisallow: /*-no-such\nDisallow: /p/9876\nDisallow: /p/8765",
                Content_Type="text/plain",
            ),
        )
    if kind != "honest":
        here.others = lambda path: None if path == "/robots.txt" else shell
    result = await check(here, tmp_path)
    outcomes = {"listed": 1, "unlisted:soft-404": 20} if kind == "shell" else {"listed": 21}
    assert result.balance.outcomes == outcomes
    if kind == "forbidden":
        assert not [asked.path for asked in here.log if "no-such-page" in asked.path]


async def test_redirects_offsite_and_to_private_are_not_followed(tmp_path: Path) -> None:
    await check(sites.redirects(place(OFFSITE), place(SECRET)), tmp_path)


async def test_noindex_canonical_and_robots_tags_decide_listing(tmp_path: Path) -> None:
    await check(sites.indexing(place(OFFSITE)), tmp_path)


async def test_status_codes(tmp_path: Path) -> None:
    await check(sites.statuses(), tmp_path)


async def test_content_codings_and_decompression_bombs(tmp_path: Path) -> None:
    await check(sites.codings(), tmp_path)


async def test_message_framing(tmp_path: Path) -> None:
    await check(sites.framing(), tmp_path)


async def test_interim_answers_without_end_are_given_up(tmp_path: Path) -> None:
    await check(sites.processing(), tmp_path, total_timeout=5.0)


async def test_slow_responses_time_out(tmp_path: Path) -> None:
    result = await check(sites.slow(), tmp_path, timeout=3.0, total_timeout=5.0)
    assert result.balance.outcomes["failed:timeout"] == 4
    assert result.balance.outcomes["failed:too-large"] == 1


async def test_large_pages_are_bounded(tmp_path: Path) -> None:
    with web(here := sites.large()):
        aimed(here)
        result = await crawl(here, tmp_path, max_body=5_000_000, exclude=("/l/*", *STALLING))
    assert result.balance.outcomes["failed:too-large"] == 2
    assert any(trap.kind == "links" for trap in result.traps)


@one_client
async def test_pathological_html_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`benchmarks/stall.py` measures how long the event loop is blocked."""
    monkeypatch.setattr(compose, "Sandbox", partial(Sandbox, deadline=1.0))
    exclude = ("/l/*", "/links", "/endless", "/hundred")  # bounded by their size: the test before
    result = await check(sites.large(), tmp_path, max_body=5_000_000, exclude=exclude)
    assert result.balance.outcomes["failed:parse"] >= 2


@one_client
async def test_hostile_markup(tmp_path: Path) -> None:
    await check(sites.markup(place(OFFSITE)), tmp_path)


@one_client
async def test_hostile_dates(tmp_path: Path) -> None:
    await check(sites.dates(), tmp_path)


RULES = b"User-agent: *\nDisallow: /private/\n"


@one_client
@pytest.mark.parametrize(
    ("name", "status", "body", "allowed"),
    [
        ("404", "404 x", b"Disallow: /", True),
        ("400", "400 x", b"", True),
        ("401", "401 x", b"", True),
        ("403", "403 x", b"", True),
        ("410", "410 x", b"", True),
        ("204", "204 x", b"", True),
        ("empty", "200 OK", b"", True),
        ("html", "200 OK", b"<!doctype html><title>Hello</title><p>Disallow: /", True),
        ("500", "500 x", b"", False),
        ("503", "503 x", b"", False),
    ],
)
async def test_status_of_robots_txt_decides_access(
    name: str, status: str, body: bytes, allowed: bool, tmp_path: Path
) -> None:
    here = sites.robots(20, http(body, status, Content_Type="text/plain"), allowed=allowed, name=name)
    with web(here):
        result = await crawl(here, tmp_path, retries=0)
        assert judge(here, result) == []


@one_client
@pytest.mark.parametrize(
    "body",
    [
        b"\xef\xbb\xbf" + RULES,
        RULES.replace(b"\n", b"\r"),
        RULES.replace(b"\n", b"\r\n"),
        RULES.rstrip(),
        b"\xff\xfe\x00 junk\n" + RULES,
        RULES + b"Disallow: /" + b"x" * 1_000_000,
        RULES + b"#" * 20_000_000,
        RULES + b"".join(b"Disallow: /w%d*x*y\n" % number for number in range(15_000)),
        RULES + b"Disallow: /" + b"*a" * 2_000 + b"$\n",
        b"User-agent: other\nUser-agent: SITEMAP-Crawler\nDisallow: /private/\n\nUser-agent: *\nDisallow: /\n",
        b"User-agent: sitemap\nDisallow: /\nUser-agent: *\nDisallow: /%70rivate/ # x\nUnknown: x\n",
    ],
)
async def test_robots_txt_rules_apply_in_every_encoding_and_size(body: bytes, tmp_path: Path) -> None:
    here = sites.robots(21, http(body, Content_Type="text/x"), allowed=True, name="forms")
    here.expect["/private/x"].asked = False
    await check(here, tmp_path)


@pytest.mark.parametrize("kind", ["closed", "silent", "endless", "cut"])
async def test_unreachable_robots_txt_disallows_all(kind: str, tmp_path: Path) -> None:
    answers = {
        "closed": lambda talk: talk.reset(),
        "silent": lambda talk: talk.hold(),
        "endless": lambda talk: talk.drip(b"HTTP/1.1 200 OK\r\n\r\nAllow: /\r\n"),
        "cut": lambda talk: (talk.say(http(b"x", Content_Length="999")), talk.raw.close()),
    }
    here = sites.robots(22, answers[kind], allowed=False, name=kind)
    with web(here):
        result = await crawl(here, tmp_path, timeout=0.3, total_timeout=0.6, retries=1)
        assert judge(here, result) == []


@pytest.mark.parametrize(("hops", "secret"), [(5, False), (1, True)])
async def test_robots_txt_redirects_are_followed_but_not_to_private(
    hops: int, secret: bool, tmp_path: Path
) -> None:
    here = sites.robots(23, b"", allowed=None, name="moving")
    for hop in range(hops):
        here.put(f"/hop{hop}", http("", "302 x", Location=f"/hop{hop + 1}"))
    here.put(f"/hop{hops}", http(RULES, Content_Type="text/plain"))
    first = f"http://{place(SECRET)}/robots.txt" if secret else "/hop1"
    here.put("/robots.txt", http("", "301 x", Location=first))
    here.expect["/private/x"].asked = None if secret else False
    with web(here):
        aimed(here)
        result = await crawl(here, tmp_path, retries=0)
        assert judge(here, result) == []


@one_client
async def test_hostile_sitemaps_are_bounded(tmp_path: Path) -> None:
    here = sites.sitemaps(place(OFFSITE), place(SECRET))
    await check(here, tmp_path)
    assert sum(path.startswith("/deep/") for path in here.counts()) < 20


async def test_control_characters_of_a_site_never_reach_log_or_output(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    here = sites.shouting()
    with web(here):
        result = await crawl(here, tmp_path)
    assert {url.removeprefix(here.url("")) for url in result.dates} >= {
        path for path, right in here.expect.items() if right.listed
    }
    shown = caplog.text + "".join(result.dates) + "".join(map(str, result.traps))
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f\u202e]", shown.replace("\n", ""))


async def test_rate_and_concurrency_limits_are_kept(tmp_path: Path, turns: list[float]) -> None:
    here = sites.indexing(place(OFFSITE))
    with web(here):
        await crawl(here, tmp_path, rate=5.0, concurrency=3, max_pages=12)
    assert len(here.log) >= 13
    assert max(asked.in_flight for asked in here.log) <= 3
    assert len(turns) == len(here.log)
    assert closest(turns) >= 0.9 / 5


def late(in_flight: int) -> Callable[[Talk], None]:
    """Answers that wait until so many requests are in flight, and then for one more, which must not come."""
    reached = threading.Event()

    def answer(talk: Talk) -> None:
        if talk.asked.in_flight >= in_flight:
            reached.set()
        assert reached.wait(600)
        talk.hold(0.03)
        talk.say(http(page(text=talk.asked.path)))

    return answer


async def test_requests_in_flight_reach_and_never_exceed_concurrency(tmp_path: Path) -> None:
    here, answer = Origin("busy", "127.0.30.1"), late(3)
    for number in range(30):
        here.put(f"/{number}", answer, listed=True)
    await check(sites.finish(here), tmp_path, concurrency=3)
    assert max(asked.in_flight for asked in here.log) == 3


async def test_failing_host_ends_run_which_can_be_resumed(tmp_path: Path) -> None:
    here = sites.failing()
    with web(here):
        first = await crawl(here, tmp_path, state=str(tmp_path / "state.db"), retries=0)
        assert first.ending is Ending.FAILING
        assert len(here.log) < 200
        here.well = True  # type: ignore[attr-defined]
        second = await crawl(here, tmp_path, state=str(tmp_path / "state.db"), retries=0)
        assert second.ending is Ending.COMPLETE
        assert judge(here, second) == []


def test_server_threads_are_joined() -> None:
    before = threading.active_count()
    with serving(Origin("x", "127.0.98.1")):
        pass
    until(lambda: threading.active_count() <= before)
