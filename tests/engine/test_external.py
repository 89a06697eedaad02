"""How other sites are asked: pace, robots.txt, redirects, hosts that do not answer. A fake network and a fake clock."""

import functools
import itertools
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence

import anyio
import pytest

from crawler.engine import external
from crawler.engine.external import ExternalLinks
from crawler.model.external import CheckedLink, DueLink
from crawler.model.reasons import Cause
from crawler.model.reply import Broken, Headers, Reply, Response
from crawler.parse import url as urls
from crawler.parse.url import Url
from crawler.ports import Request

pytestmark = pytest.mark.anyio

Answer = Reply | Callable[[Request], Reply]
LOST = Broken(Cause.DNS, "no such name")


def response(status: int = 200, **headers: str) -> Response:
    return Response(status, Headers(headers.items()))


def moved(to: str) -> Response:
    return response(302, location=to)


class Net:
    """Answers by URL, at once unless `takes` says otherwise; everything else is there, robots.txt is not."""

    def __init__(self, *links: str, takes: float = 0.0, answers: Mapping[str, Answer] | None = None) -> None:
        self.answers: dict[str, Answer] = dict(answers or {})
        self.links, self.takes, self.now = links, takes, 1_000.0
        self.log: list[tuple[float, str, str]] = []  # when, method, URL
        self.stored: list[Sequence[CheckedLink]] = []
        self.in_flight = self.most_in_flight = 0
        self.check = ExternalLinks(
            self, "sitemap-crawler", self.store, lambda: self.now, lambda: self.now, self.sleep
        )

    async def sleep(self, seconds: float) -> None:
        until = self.now + seconds
        await anyio.lowlevel.checkpoint()
        self.now = max(self.now, until)

    async def fetch(self, request: Request) -> Reply:
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        self.log.append((self.now, "HEAD" if request.head else "GET", request.url))
        await self.sleep(self.takes)
        self.in_flight -= 1
        answer = self.answers.get(request.url) or self.answers.get(urls.origin(request.url))
        if answer is None:
            return response(404 if request.url.endswith("/robots.txt") else 200)
        return answer(request) if callable(answer) else answer

    async def store(self, answers: Sequence[CheckedLink]) -> None:
        self.stored.append(answers)

    async def ask(self) -> dict[str, str]:
        """The code by URL."""
        due = [DueLink(number, Url(url)) for number, url in enumerate(self.links)]
        await self.check.ask(due)
        return {self.links[answer.id]: answer.code for answers in self.stored for answer in answers}

    def times(self, host: str) -> list[float]:
        return [at for at, _, url in self.log if urls.host(Url(url)) == host]


def delays(times: list[float]) -> list[float]:
    return [later - earlier for earlier, later in itertools.pairwise(times)]


@pytest.mark.parametrize("concurrency", [1, 16])
async def test_requests_to_host_are_spaced_under_all_its_origins(concurrency: int) -> None:
    links = [f"{scheme}://a.example/{n}" for n in range(5) for scheme in ("http", "https")]
    net = Net(*links, "http://b.example/1", answers={"http://a.example/1": response(403)})
    net.check.concurrency = concurrency
    assert Counter((await net.ask()).values()) == {"ok": 10, "unknown:refused": 1}
    assert len(net.times("a.example")) == 2 + 10 + 1, "robots.txt of both, and a GET after the 403"
    assert min(delays(net.times("a.example"))) >= 1.0
    assert len(net.times("b.example")) == 2


async def test_names_of_one_address_share_its_pace() -> None:
    """All names of one server, also those that redirects lead to; another server is not delayed."""
    names = [f"http://n{n}.example/{page}" for n in range(30) for page in "ab"]
    net = Net(*names, "http://other.example/", takes=0.1, answers={names[0]: moved("http://also.example/")})

    async def find(url: Url) -> str | None:
        return "192.0.2.2 80" if "other" in url else "192.0.2.1 80"

    net.check.find = find
    assert Counter((await net.ask()).values()) == {"ok": 61}
    at = sorted(at for at, _, url in net.log if "other" not in url)
    assert len(at) == 30 + 60 + 2, "robots.txt of each name, and of where the redirect leads"
    assert min(delays(at)) >= 1.0
    assert net.times("other.example")[-1] <= 1_005.0


async def test_links_left_as_hosts_share_an_address_say_so() -> None:
    """Many sites redirect to one server at the same time; none of them is slow."""
    names = [f"http://n{n}.example/" for n in range(60)]
    answers = {name: moved(f"http://cdn.example/{name[8:]}") for name in names}
    net = Net("http://cdn.example/", *names, answers=answers)
    net.check.concurrency, waiting, all_wait = 60, 0, anyio.Event()

    async def fetch(request: Request, real: Callable[[Request], Awaitable[Reply]] = net.fetch) -> Reply:
        nonlocal waiting
        if request.url in names:
            waiting += 1
            if waiting == len(names):
                all_wait.set()
            await all_wait.wait()
        return await real(request)

    async def sleep(seconds: float, real: Callable[[float], Awaitable[None]] = net.sleep) -> None:
        for _ in range(500 if seconds > 0 else 0):  # all others come to where they wait
            await anyio.lowlevel.checkpoint()
        await real(seconds)

    net.fetch, net.check.sleep = fetch, sleep  # type: ignore[method-assign]
    asked = await net.ask()
    assert 10 < len(asked) < 61
    assert net.check.left == {external.SHARED: 61 - len(asked)}


async def test_hosts_take_turns_and_requests_in_flight_are_bounded() -> None:
    links = [f"http://{host}.example/{n}" for host in "abcdefgh" for n in range(3)]
    net = Net(*links, takes=0.2)
    net.check.concurrency = 3
    assert len(await net.ask()) == 24
    assert net.most_in_flight == 3


async def test_few_hosts_are_contacted_for_the_first_time_at_once() -> None:
    """A name that waits for a free thread of the event loop must not count as a host that does not answer."""
    net = Net(*(f"http://h{n}.example/" for n in range(40)), takes=0.2)
    meeting = most = 0

    async def fetch(request: Request, real: Callable[[Request], Awaitable[Reply]] = net.fetch) -> Reply:
        nonlocal meeting, most
        is_first = request.url.endswith("/robots.txt")
        meeting += is_first
        most = max(most, meeting)
        reply = await real(request)
        meeting -= is_first
        return reply

    net.fetch = fetch  # type: ignore[method-assign]
    assert len(await net.ask()) == 40
    assert most == external.MAX_FIRST_CONTACTS


async def test_crawl_delay_of_host_is_obeyed_and_long_one_leaves_rest() -> None:
    slow = Response(200, Headers(), b"User-agent: *\nCrawl-delay: 5\n")
    never = Response(200, Headers(), b"User-agent: *\nCrawl-delay: 3600\n")
    links = [f"http://{host}.example/{n}" for host in "ab" for n in range(3)]
    net = Net(*links, answers={"http://a.example/robots.txt": slow, "http://b.example/robots.txt": never})
    found = await net.ask()
    assert [url for url in found if "b.example" in url] == ["http://b.example/0"]
    assert delays(net.times("a.example"))[1:] == [5.0, 5.0]
    assert net.check.checked == 4
    assert net.check.left == {external.DELAYED: 2}
    assert net.now < 1_000 + 60


async def test_host_that_waits_for_its_turn_keeps_no_other_waiting() -> None:
    slow = Response(200, Headers(), b"User-agent: *\nCrawl-delay: 9\n")
    net = Net("http://a.example/0", "http://a.example/1", *(f"http://b.example/{n}" for n in range(5)))
    net.check.concurrency = 1
    others = anyio.Event()

    async def sleep(seconds: float, real: Callable[[float], Awaitable[None]] = net.sleep) -> None:
        if seconds > 2:
            await others.wait()
        await real(seconds)

    def last(_: Request) -> Reply:
        others.set()
        return response()

    net.check.sleep = sleep
    net.answers |= {"http://a.example/robots.txt": slow, "http://b.example/4": last}
    assert set((await net.ask()).values()) == {"ok"}
    assert [url for _, _, url in net.log][-1] == "http://a.example/1"


async def test_slow_host_is_left_after_its_share_of_time() -> None:
    net = Net(*(f"http://a.example/{n}" for n in range(100)), takes=14.0)
    await net.ask()
    assert net.check.checked < 12
    assert net.check.left == {external.SLOW: 100 - net.check.checked}
    assert net.now < 1_000 + external.HOST_SECONDS + 60


async def test_robots_txt_is_read_once_for_all_redirects_to_its_host() -> None:
    links = [f"http://{host}.example/" for host in "abcd"]
    net = Net(
        *links, answers={f"http://{host}.example": moved(f"http://t.example/{host}") for host in "abcd"}
    )
    net.answers |= {f"{url}robots.txt": response(404) for url in links}
    assert set((await net.ask()).values()) == {"ok"}
    assert [url for _, _, url in net.log].count("http://t.example/robots.txt") == 1
    assert min(delays(net.times("t.example"))) >= 1.0


async def test_redirects_are_bounded_and_loops_are_broken() -> None:
    chain: dict[str, Answer] = {f"http://a.example/{n}": moved(f"/{n + 1}") for n in range(20)}
    net = Net("http://a.example/0", "http://a.example/x", "http://a.example/8", "http://a.example/nowhere")
    net.answers |= chain | {
        "http://a.example/x": moved("/y"), "http://a.example/y": moved("/x"), "http://a.example/nowhere": moved("http://[bad"),
    }  # fmt: skip
    net.check.max_redirects = 12
    assert await net.ask() == {
        "http://a.example/0": "broken:redirects",
        "http://a.example/x": "broken:redirect-loop",
        "http://a.example/8": "ok",
        "http://a.example/nowhere": "broken:redirect",
    }
    [detail] = [one.detail for answers in net.stored for one in answers if one.id == 1]
    assert detail == "redirects to http://a.example/y"


async def test_unresolved_name_is_asked_once_for_all_its_links() -> None:
    net = Net(*(f"http://gone.example/{n}" for n in range(50)), "http://a.example/")
    net.answers["http://gone.example"] = LOST
    found = await net.ask()
    assert Counter(found.values()) == {"broken:dns": 50, "ok": 1}
    assert len(net.times("gone.example")) == 1


async def test_host_that_could_be_reached_at_the_second_try_is_asked() -> None:
    tries = iter([Broken(Cause.TIMEOUT, transient=True)])
    net = Net("http://a.example/")
    net.answers["http://a.example/robots.txt"] = lambda _: next(tries, response(404))
    assert set((await net.ask()).values()) == {"ok"}


async def test_refusal_of_head_counts_more_than_silence_to_get() -> None:
    def answer(request: Request) -> Reply:
        return response(403) if request.head else Broken(Cause.TIMEOUT, transient=True)

    net = Net("http://a.example/1")
    net.answers["http://a.example/1"] = answer
    assert set((await net.ask()).values()) == {"unknown:refused"}


@pytest.mark.parametrize(("hosts", "offline"), [(external.ALONE - 1, False), (external.ALONE, True)])
async def test_no_link_is_called_broken_when_no_host_answers_at_all(hosts: int, offline: bool) -> None:
    links = [f"http://h{n}.example/{m}" for n in range(hosts) for m in range(60)]
    net = Net(*links, answers={f"http://h{n}.example": LOST for n in range(hosts)})
    found = await net.ask()
    assert net.check.is_offline == offline
    assert set(found.values()) == (set() if offline else {"broken:dns"})
    assert net.check.checked == (0 if offline else len(links))


async def test_a_firewall_is_an_answer_and_breaks_no_link() -> None:
    hosts = range(external.ALONE)
    walled = Broken(Cause.WALL, "Cloudflare (cf-mitigated), status 403")
    net = Net(
        *(f"http://h{n}.example/{m}" for n in hosts for m in range(5)),
        answers={f"http://h{n}.example/{m}": walled for n in hosts for m in range(5)},
    )
    assert set((await net.ask()).values()) == {"unknown:wall", "unknown:refused"}, "given up after three"
    assert not net.check.is_offline


async def test_answers_so_far_are_stored_when_the_check_is_cancelled() -> None:
    net = Net(*(f"http://{host}.example/" for host in "abc"))
    with anyio.CancelScope() as scope:
        answer = functools.partial(_cancel, scope)
        net.answers["http://c.example/"] = answer
        net.check.concurrency = 1
        await net.ask()
    stored = [one.id for answers in net.stored for one in answers]
    assert stored[:2] == [0, 1]


def _cancel(scope: anyio.CancelScope, _: Request) -> Reply:
    scope.cancel()
    return response()


async def test_answers_are_stored_as_they_come() -> None:
    net = Net(*(f"http://h{n}.example/" for n in range(250)))
    await net.ask()
    assert sum(map(len, net.stored)) == 250
    assert len(net.stored) >= 3


async def test_failing_store_ends_the_check_with_its_error() -> None:
    net = Net("http://a.example/")

    async def fail(_: Sequence[CheckedLink]) -> None:
        raise OSError("disk full")

    net.check.store = fail
    with pytest.raises(OSError, match="disk full"):
        await net.ask()


async def test_long_texts_of_a_host_are_cut() -> None:
    net = Net("http://a.example/", answers={"http://a.example/": moved("http://b.example/" + "x" * 3_000)})
    net.answers["http://b.example"] = response(404)
    await net.ask()
    [answer] = net.stored[0]
    assert len(answer.detail) == external.LONGEST_DETAIL
