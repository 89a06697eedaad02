"""Retries: of which failures, how often, and after which backoff. Sleeping only records the seconds."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

import pytest

from crawler.fetch.retry import Retrying
from crawler.model.reasons import Cause
from crawler.model.reply import Broken, Headers, Reply, Response
from crawler.parse.url import Url
from crawler.ports import Request

pytestmark = [pytest.mark.anyio, pytest.mark.both_loops]

URL = Url("http://a.example/x")
GONE = Broken(Cause.TRUNCATED, transient=True)
NEVER = Broken(Cause.TLS, transient=False)
OK = Response(200)


def status(number: int, **fields: str) -> Response:
    return Response(number, Headers((name.replace("_", "-"), value) for name, value in fields.items()))


@dataclass
class World:
    """A clock, a pacer and a server that answers from a list."""

    replies: Sequence[Reply]
    seconds: float = 0.0  # that each exchange takes
    delay: float = 0.0
    now: float = 1_800_000_000.0
    pauses: list[float] = field(default_factory=list)
    slows: list[float] = field(default_factory=list)
    once: list[bool] = field(default_factory=list)
    throttles: list[float] = field(default_factory=list)
    repeated: list[tuple[str, str, int]] = field(default_factory=list)
    slots: int = 0
    asked: list[Request] = field(default_factory=list)

    async def fetch(self, request: Request) -> Reply:
        self.asked.append(request)
        self.now += self.seconds
        return self.replies[min(len(self.asked), len(self.replies)) - 1]

    async def slot(self, origin: str) -> float:
        assert origin == "http://a.example"
        self.slots += 1
        return self.now + self.delay

    async def slow(self, origin: str, until: float, *, once: bool = False) -> bool:
        assert origin == "http://a.example"
        self.slows.append(until - self.now)
        self.once.append(once)
        return True

    async def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.now += seconds

    async def turn(self, _: str, at: float) -> None:
        await self.sleep(at - self.now)

    async def ask(self, retries: int = 3, total: float = 60.0) -> Reply:
        door = Retrying(
            fetcher=self, pacer=self, retries=retries, total=total, clock=lambda: self.now, sleep=self.sleep,
            turn=self.turn, throttled=self.throttles.append,
            repeated=lambda *told: self.repeated.append(told),
        )  # fmt: skip
        return await door.fetch(Request(URL))


async def test_successful_response_is_not_retried() -> None:
    world = World([OK])
    assert await world.ask() is OK
    assert (len(world.asked), world.slots, world.pauses) == (1, 0, [])


@pytest.mark.parametrize("bad", [GONE, status(429), status(500), status(502), status(503), status(504)])
async def test_transient_failure_is_retried_until_success(bad: Reply) -> None:
    world = World([bad, bad, OK])
    assert await world.ask() is OK
    assert len(world.asked) == 3


@pytest.mark.parametrize("final", [NEVER, status(404), status(403), status(501), status(301), status(304)])
async def test_permanent_failure_is_not_retried(final: Reply) -> None:
    world = World([final, OK])
    assert await world.ask() is final
    assert len(world.asked) == 1


async def test_each_retry_is_told_with_its_reason() -> None:
    world = World([GONE, status(503), OK])
    await world.ask()
    assert world.repeated == [(URL, GONE.cause.says, 2), (URL, "status 503", 3)]


@pytest.mark.parametrize("retries", [0, 1, 3])
async def test_number_of_retries_is_limited(retries: int) -> None:
    world = World([GONE])
    assert await world.ask(retries) is GONE
    assert len(world.asked) == 1 + retries


async def test_backoff_grows_with_jitter_and_each_retry_books_a_slot() -> None:
    world = World([GONE], delay=0.2)
    await world.ask()
    backoffs, slots = world.pauses[::2], world.pauses[1::2]
    assert backoffs >= [0.5, 1.0, 2.0]
    assert all(low <= wait <= low + 0.5 for low, wait in zip([0.5, 1.0, 2.0], backoffs, strict=True))
    assert slots == pytest.approx([0.2] * 3)
    assert world.slots == 3


async def test_short_retry_after_is_waited_for() -> None:
    world = World([status(503, retry_after="4"), OK])
    assert await world.ask() is OK
    assert 4 <= world.pauses[0] <= 4.5


async def test_retry_after_as_date_is_waited_for() -> None:
    world = World([OK])
    date = datetime.fromtimestamp(world.now + 3, UTC).strftime("%a, %d %b %Y %H:%M:%S GMT")
    world.replies = [status(429, retry_after=date), OK]
    assert await world.ask() is OK
    assert 3 <= world.pauses[0] <= 3.5


async def test_long_retry_after_is_left_to_judge() -> None:
    reply = status(503, retry_after="120")
    world = World([reply])
    assert await world.ask() is reply
    assert len(world.asked) == 1


@pytest.mark.parametrize(("value", "pause"), [("2", 2.0), ("3600", 30.0), ("1" + "0" * 20, 0.0)])
async def test_overloaded_host_is_paused_for_bounded_time(value: str, pause: float) -> None:
    world = World([status(503, retry_after=value)])
    await world.ask(retries=0)
    assert world.slows == pytest.approx([pause])
    assert world.throttles == [pause], "the throttling is reported"


async def test_status_500_does_not_throttle_host() -> None:
    world = World([status(500)])
    await world.ask()
    assert world.slows == world.throttles == []


async def test_all_attempts_share_total_timeout() -> None:
    world = World([GONE], seconds=25.0)
    await world.ask(retries=9)
    assert [request.seconds for request in world.asked] == pytest.approx([60, 35, 10])


async def test_waiting_for_slot_does_not_count_towards_total_timeout() -> None:
    world = World([GONE], seconds=1.0, delay=100.0)
    await world.ask()
    assert [request.seconds for request in world.asked] == pytest.approx([60, 59, 58, 57])


async def test_second_timeout_is_not_retried() -> None:
    world = World([Broken(Cause.TIMEOUT, transient=True)], seconds=20.0)
    await world.ask(retries=9)
    assert len(world.asked) == 2


class Login(World):
    """A site whose /login answers 429; each exchange takes a second."""

    async def fetch(self, request: Request) -> Reply:
        self.asked.append(request)
        self.now += 1.0
        return status(429, retry_after="30") if "/login" in request.url else OK

    async def crawl(self, urls: Sequence[str], attempt: int = 1) -> list[int]:
        door = Retrying(
            fetcher=self, pacer=self, retries=3, total=60.0, clock=lambda: self.now, sleep=self.sleep,
            turn=self.turn,
        )  # fmt: skip
        replies = [await door.fetch(Request(Url(f"http://a.example{url}"), attempt=attempt)) for url in urls]
        return [reply.status for reply in replies if isinstance(reply, Response)]


async def test_links_to_a_login_pause_its_folder_and_not_the_host() -> None:
    world = Login([])
    urls = [f"/login?next={place // 2}" if place % 2 else f"/{place}" for place in range(40)]
    assert await world.crawl(urls) == [200, 429] * 20
    assert (world.slows, world.once) == ([30.0], [True])
    requested = sum("/login" in request.url for request in world.asked)
    assert requested <= 6  # the others wait with their folder
    asked_again = Login([])
    await asked_again.crawl(urls, attempt=3)
    assert len(asked_again.asked) == len(urls)  # no page is given up without a request


async def test_a_host_that_refuses_everywhere_waits_as_a_whole() -> None:
    world = World([status(429, retry_after="30")])
    door = Retrying(
        fetcher=world, pacer=world, retries=0, total=60.0, clock=lambda: world.now, sleep=world.sleep,
        turn=world.turn,
    )  # fmt: skip
    for number in range(10):
        await door.fetch(Request(Url(f"http://a.example/{number}/x")))
    assert len(world.slows) >= 5
    assert world.once == [True, *[False] * (len(world.once) - 1)]
