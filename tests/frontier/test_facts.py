"""Every fact of the model has a column, and survives storage in the state and transfer between processes."""

import json
import time
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final, get_type_hints

import msgspec
import pytest

from crawler.frontier.rows import FACT_COLUMNS
from crawler.frontier.sqlite.frontier import SqliteFrontier
from crawler.frontier.sqlite.state_file import open_state
from crawler.model.facts import Facts, Lastmod, Obstacle, Validators
from crawler.model.outcome import Listed
from crawler.model.reasons import Source
from crawler.model.rendering import Inputs, Needs, PageSummary, Rendering, Skipped, UsedAnswer
from crawler.model.reply import RobotsFile
from crawler.model.serialise import facts_of, plain_facts
from crawler.model.settlement import Settlement, Verdict, VisitResult
from crawler.model.visit import Lease, Visit
from crawler.parse.url import Url
from crawler.ports import reads
from crawler.workers import messages
from crawler.workers.messages import PageVisited, SentUrls

pytestmark = pytest.mark.anyio

URL: Final = Url("http://a.example/")
USED: Final = UsedAnswer(URL, "0a", '"1"', "yesterday")


def samples(hint: Any, number: int) -> Iterator[Any]:
    """Sample values of a type, different for each field."""
    moment = datetime(2024, 2, 29, 12, tzinfo=UTC) + timedelta(days=number)
    by_type: dict[Any, list[Any]] = {
        int: [200 + number],
        int | None: [number, 0, None],
        bool: [True, False],
        datetime | None: [moment, None],
        str | None: [f"text http://a.example/{number}", None],
        Url | None: [Url(f"http://a.example/{number}"), None],
        Obstacle | None: [*Obstacle, None],
        Rendering | None: [
            Rendering(Needs.SHELL, PageSummary(1, "noindex"), PageSummary(number, "", URL), None, 1, 2, 3, 4),
            Rendering(Needs.SAMPLE, skipped=Skipped.NOINDEX),
            Rendering(Needs.SHELL, inputs=Inputs(number, "b", USED, ((("accept", "*/*"),),), (USED, USED))),
            None,
        ],
        Lastmod | None: [*(Lastmod(moment, source) for source in Source), None],
        Validators: [Validators(f'"{number}"', f"changed {number}"), Validators(None, "b"), Validators()],
    }
    yield from by_type[hint]


def all_facts() -> Iterator[Facts]:
    """Facts with every field filled, then each field with each of its samples."""
    hints = get_type_hints(Facts)
    some = {name: list(samples(hints[name], number)) for number, name in enumerate(Facts._fields)}
    full = Facts(**{name: values[0] for name, values in some.items()})
    yield full
    for name, values in some.items():
        yield from (full._replace(**{name: value}) for value in values[1:])


ALL_FACTS: Final = list(all_facts())


@pytest.mark.parametrize("facts", ALL_FACTS)
def test_facts_round_trip_through_serialisation(facts: Facts) -> None:
    assert facts_of(json.loads(json.dumps(plain_facts(facts)))) == facts


@pytest.mark.parametrize("facts", ALL_FACTS)
def test_facts_round_trip_through_worker_messages(facts: Facts) -> None:
    result = VisitResult(Verdict(Listed(facts.lastmod), facts))
    said = msgspec.json.encode([PageVisited(1, messages.written(result, SentUrls()))])
    (message,) = messages.FROM_WORKER.decode(said)
    assert isinstance(message, PageVisited)
    assert messages.read(message.page, Lease(1, 1, Visit(URL)), messages.received_urls()) == result


async def test_facts_round_trip_through_state(tmp_path: Path) -> None:
    some = {Url(f"http://a.example/{number}"): facts for number, facts in enumerate(ALL_FACTS)}
    frontier = SqliteFrontier(str(tmp_path / "s.db"))
    for run in (1, 2):
        await frontier.begin("settings")
        await frontier.add([Visit(url) for url in some])
        await frontier.store_robots("http://a.example", RobotsFile("none", fetched=time.time()), 0.0)
        leases = (await frontier.lease(len(some))).leases
        if run == 2:
            assert {lease.visit.url: lease.prior and lease.prior.facts for lease in leases} == some
        settled = [
            Settlement(lease, Verdict(Listed(some[lease.visit.url].lastmod), some[lease.visit.url]))
            for lease in leases
        ]
        await frontier.settle(settled)
        await frontier.finish()
        await frontier.conclude()
    for url, facts in some.items():
        record = await frontier.read(reads.RecordOf(url))
        assert record
        assert record.facts == facts
    await frontier.close()


def test_every_fact_has_a_column() -> None:
    with closing(open_state(":memory:", read_only=False)) as db:
        columns = {row[1] for row in db.execute("PRAGMA table_info(page)")}
    assert set(FACT_COLUMNS) <= columns
