"""What a rendered page was made from: what is kept of it, and whether it is asked to be the same."""

from collections.abc import Mapping
from contextlib import nullcontext
from typing import Final

import anyio
import pytest

from crawler.fetch.render.inputs import DAYS, Inspector, Recorder, browser_digest, digest
from crawler.fetch.render.resources import Resources
from crawler.model import rendering
from crawler.model.reasons import Cause, Why
from crawler.model.rendering import LONGEST_INPUTS, MOST_INPUTS, Inputs, Needs, Rendering
from crawler.model.reply import Broken, Headers, Permit, Reply, Response
from crawler.parse.url import Url
from crawler.ports import Request

pytestmark = pytest.mark.anyio

PAGE: Final = Url("https://a.example/p")
API: Final = Url("https://a.example/api")
CHUNK: Final = Url("https://cdn.example/chunk.js")
DAY: Final = 20_000  # 2024-10-04
SENT: Final = {"accept": "*/*", "referer": PAGE}


def answer(body: bytes = b"x", status: int = 200, **headers: str) -> Response:
    return Response(
        status, Headers([(name.replace("_", "-"), value) for name, value in headers.items()]), body
    )


class Server:
    """Answers by URL; robots.txt forbids those that have none."""

    def __init__(self) -> None:
        self.answers: dict[Url, Reply] = {API: answer(b"data", etag='"1"'), CHUNK: answer(b"code")}
        self.log: list[Request] = []
        self.slots = 0

    async def fetch(self, request: Request) -> Reply:
        self.log.append(request)
        await anyio.lowlevel.checkpoint()
        reply = self.answers[request.url]
        if isinstance(reply, Response) and request.validators.etag == (reply.headers.get("etag") or ""):
            return Response(304, reply.headers)
        return reply

    async def permission(self, url: Url) -> Permit:
        return Permit(True) if url in self.answers else Permit(False, Why.ROBOTS, "Disallow: /")

    async def slot(self, _: str) -> None:
        self.slots += 1

    def resources(self) -> Resources:
        return Resources(self, self.permission, self.slot)

    async def recorded(
        self, *urls: Url, shell: Response | None = None, headers: Mapping[str, str] = SENT
    ) -> Inputs | None:
        recorder = Recorder(self.resources(), nullcontext, "b", DAY)
        for url in urls:
            await recorder.get(url, headers, keep=False)
        return recorder.inputs(PAGE, shell or answer())

    async def are_same(self, *known: Inputs | None, inspector: Inspector | None = None) -> bool:
        inspector = inspector or Inspector(self.resources(), "b")
        return all([one and await inspector.are_same(one, nullcontext) for one in known])


async def test_unchanged_answers_are_confirmed_at_their_slots() -> None:
    server = Server()
    known = await server.recorded(API, CHUNK)
    server.log, server.slots = [], 0
    assert await server.are_same(known)
    assert [(each.url, each.validators.etag, each.headers) for each in server.log] == [
        (API, '"1"', SENT),
        (CHUNK, None, SENT),
    ]
    assert server.slots == 2


@pytest.mark.parametrize(
    "now",
    [
        answer(b"other", etag='"2"'),
        answer(b"data", 404),
        answer(b"data", content_type="text/plain"),
        answer(b"data", x_total_count="7"),
        Broken(Cause.TIMEOUT),
    ],
)
async def test_any_difference_that_scripts_can_see_counts(now: Reply) -> None:
    server = Server()
    known = await server.recorded(CHUNK, API)
    server.answers[API] = now
    assert not await server.are_same(known)


async def test_what_no_script_reads_may_differ() -> None:
    server = Server()
    known = await server.recorded(API)
    server.answers[API] = answer(b"data", date="today", x_request_id="2", etag='"2"')
    assert await server.are_same(known)


async def test_failures_are_answers_and_robots_txt_is_asked() -> None:
    server = Server()
    server.answers[API] = Broken(Cause.DNS)
    forbidden = Url("https://b.example/closed")
    known = await server.recorded(API, forbidden)
    assert await server.are_same(known)
    assert {each.url for each in server.log} == {API}
    server.answers[forbidden] = answer()
    assert not await server.are_same(known)


async def test_a_shared_answer_is_asked_once_by_all_pages() -> None:
    server = Server()
    one = await server.recorded(API, CHUNK)
    other = await server.recorded(CHUNK, headers=SENT | {"referer": "https://a.example/q"})
    inspector = Inspector(server.resources(), "b")
    server.log = []
    async with anyio.create_task_group() as tasks:
        for known in (one, other, one, other):
            assert known
            tasks.start_soon(inspector.are_same, known, nullcontext)
    assert [each.url for each in server.log] == [API, CHUNK]
    server.answers[CHUNK] = answer(b"new")
    assert await server.are_same(one, other, inspector=inspector), "as it was when it was asked"
    assert await server.are_same(one, other) is False


async def test_first_difference_ends_the_questions() -> None:
    server = Server()
    known = await server.recorded(API, CHUNK)
    server.answers |= {API: answer(b"1"), CHUNK: answer(b"2")}
    server.log = []
    assert not await server.are_same(known)
    assert len(server.log) == 1


async def test_a_304_without_validators_confirms_nothing() -> None:
    server = Server()
    known = await server.recorded(CHUNK)
    server.answers[CHUNK] = Response(304)
    assert not await server.are_same(known)


async def test_what_is_kept_of_a_page_is_bounded() -> None:
    server = Server()
    many = [Url(f"{API}/{number}") for number in range(MOST_INPUTS + 1)]
    server.answers |= dict.fromkeys(many, answer())
    assert await server.recorded(*many[:-1])
    assert await server.recorded(*many) is None
    long = [Url(f"{one}{'x' * (LONGEST_INPUTS // 10)}") for one in many[:10]]
    server.answers |= dict.fromkeys(long, answer())
    assert await server.recorded(*long) is None


@pytest.mark.parametrize(
    "words",
    [
        *("day=2024-10-04", "2024-10-04/events", "d=20241004", "2024/10/04", "on=4%2E10.2024&04%2E10%2E2024"),
        *("from=2024-10-05", "until=2024-10-03", "t=1728000000", "t=1728000000123"),
    ],
)
async def test_a_page_that_asks_for_its_day_is_not_kept(words: str) -> None:
    server, url = Server(), Url(f"https://a.example/api?{words}")
    server.answers[url] = answer()
    assert await server.recorded(url) is None
    assert await server.recorded(API)


@pytest.mark.parametrize("words", ["day=2023-10-04", "id=1528000000", "id=17280000001", "v=172800000012"])
async def test_other_days_and_numbers_do_not_matter(words: str) -> None:
    server, url = Server(), Url(f"https://a.example/api?{words}")
    server.answers[url] = answer()
    assert await server.recorded(url)


@pytest.mark.parametrize(
    "sent",
    [{"authorization": "Bearer 5"}, {"x-api-key": "5"}, {"x-csrf-token": "5"}, {"x-day": "2024-10-04"}],
)
async def test_headers_with_secrets_or_the_day_are_not_stored(sent: dict[str, str]) -> None:
    server = Server()
    recorder = Recorder(server.resources(), nullcontext, "b", DAY)
    await recorder.get(API, {**SENT, **sent}, keep=False)
    assert recorder.inputs(PAGE, answer()) is None


async def test_a_page_whose_answer_changes_meanwhile_is_not_kept() -> None:
    server = Server()
    recorder = Recorder(server.resources(), nullcontext, "b", DAY)
    for body in (b"1", b"2"):
        server.answers[API] = answer(body)
        await recorder.get(API, SENT, keep=False)
    assert recorder.inputs(PAGE, answer()) is None


async def test_inputs_do_not_depend_on_the_order_of_answers() -> None:
    server = Server()
    known = await server.recorded(API, CHUNK)
    assert known == await server.recorded(CHUNK, API, CHUNK)
    stored = Rendering(Needs.SHELL, inputs=known)
    assert rendering.read(rendering.written(stored)) == stored


async def test_a_header_that_cannot_be_sent_is_not_stored() -> None:
    server = Server()
    assert await server.recorded(shell=answer(etag='"\x7f"')) is None
    assert await server.recorded(shell=answer(etag='"caf\xe9"'))


async def test_pages_of_another_browser_or_time_are_rendered_again() -> None:
    known = await Server().recorded(API)
    assert known
    inspector = Inspector(Server().resources(), "b")
    assert [inspector.may_count(known, DAY + days) for days in (-1, 0, DAYS - 1, DAYS)] == [
        False,
        True,
        True,
        False,
    ]
    assert not Inspector(Server().resources(), "c").may_count(known, DAY)
    assert browser_digest(__file__, 1) != browser_digest(__file__, 2)


async def test_a_stored_number_that_names_no_headers_is_harmless() -> None:
    server = Server()
    known = await server.recorded(API)
    assert known
    assert await server.are_same(known._replace(headers=()))


# -- what differs with each request -----------------------------------------------------------------------------

DATES = ("Thu, 26 Nov 2026 02:00:00 GMT", "Fri, 27 Nov 2026 02:00:07 GMT")
SECONDS = (1795658400, 1795744807)
ISO = ("2026-11-26T02:00:00", "2026-11-27T02:00:07")


def nightly(
    form: str, kind: str = "application/json", **values: tuple[object, object]
) -> tuple[Response, ...]:
    """The same answer of two nights."""
    return tuple(
        answer(
            (form % {name: each[night] for name, each in values.items()}).encode(),
            content_type=kind,
            date=DATES[night],
        )
        for night in (0, 1)
    )


@pytest.mark.parametrize(
    ("form", "values"),
    [
        ('{"time": %(t)d, "name": "Lamp"}', SECONDS),
        ('{"time": %(t)d.123456}', SECONDS),
        ('{"time": %(t)d457}', SECONDS),
        ('{"time": "%(t)sZ"}', ISO),
        ('{"time": "%(t)s.1234567+00:00"}', ISO),
        ('{"time": "%(t)s"}', (ISO[0].replace("T", " "), ISO[1].replace("T", " "))),
        ('{"time": "%(t)s"}', DATES),
        ('{"meta": {"requestId": "%(t)s"}}', ("5f3c9a2e-11", "77aa9a2e-12")),
        ('<meta name="csrf-token" content="%(t)s">', ("c2VjcmV0MQ==", "c2VjcmV0Mg==")),
        ('<script nonce="%(t)s">1</script><script nonce="%(t)s">2</script>', ("abcdef1234", "zyxwvu9876")),
    ],
)
def test_the_moment_of_an_answer_is_no_content(form: str, values: tuple[object, object]) -> None:
    kind = "text/html" if form.startswith("<") else "application/json"
    first, second = nightly(form, kind, t=values)
    assert first.body != second.body
    assert digest(first) == digest(second)
    first, second = nightly(form, "text/javascript", t=values)
    assert digest(first) != digest(second), "scripts are files"


@pytest.mark.parametrize(
    ("form", "values"),
    [
        ('{"edited": %(t)d}', (SECONDS[0], SECONDS[0])),  # just before the first night
        ('{"edited": "%(t)s+02:00"}', ISO),  # two hours before
        ('{"sold": %(t)d}', (SECONDS[0] - 61, SECONDS[1] - 61)),
        ('{"price": %(t)d}', (12, 13)),
        ('{"number": %(t)d99}', SECONDS),  # of twelve digits
        ('[{"requestId": "%(t)s"}, {"requestId": "REQ-00007"}]', ("REQ-00001", "REQ-00002")),
        ('{"id": "%(t)s"}', ("5f3c9a2e-11", "77aa9a2e-12")),
        ('{"views": %(t)d, "name": "Lamp"}', (1041, 1042)),
        ('{"names": %(t)s}', ('["Lamp", "Oven"]', '["Oven", "Lamp"]')),  # a list shows it
        ("{%(t)s}", ('"Lamp": 1, "Oven": 1', '"Oven": 1, "Lamp": 1')),  # as do the keys of an object
        ('{"day": "%(t)s"}', ("2026-11-26", "2026-11-27")),
        ('{"time": "%(t)s"}', ("2026-13-26T02:00:00", "2026-13-27T02:00:07")),
    ],
)
def test_what_differs_otherwise_is_content(form: str, values: tuple[object, object]) -> None:
    first, second = nightly(form, t=values)
    assert digest(first) != digest(second)


def test_the_nonce_of_a_policy_is_no_content() -> None:
    said = [answer(b"x", content_type="text/html", content_security_policy=f"script-src 'nonce-{each}'")
            for each in ("abcdef1234", "zyxwvu9876")]  # fmt: skip
    assert digest(said[0]) == digest(said[1])
    assert digest(said[0]) != digest(answer(b"x", content_type="text/html"))
