"""No more hosts than --max-hosts: names of one server may be endless."""

from collections.abc import Callable

import pytest

from crawler.frontier.sqlite.frontier import SqliteFrontier
from crawler.model.visit import Visit
from crawler.parse.url import Url
from crawler.ports import Frontier, reads
from tests.postgres import new_state

pytestmark = pytest.mark.anyio


def on_postgres() -> Frontier:
    from crawler.frontier.postgres.frontier import PostgresFrontier  # noqa: PLC0415 - the driver is an extra

    return PostgresFrontier(new_state(), max_hosts=3)


BACKENDS: dict[str, Callable[[], Frontier]] = {
    "sqlite": lambda: SqliteFrontier(":memory:", max_hosts=3),
    "postgres": on_postgres,
}


@pytest.mark.parametrize("backend", BACKENDS)
async def test_urls_on_further_hosts_are_known_and_not_fetched(backend: str) -> None:
    frontier = BACKENDS[backend]()
    try:
        await frontier.begin("x")
        for number in range(6):
            hosts = [f"http://{name}.example/{number}" for name in "abcde"]
            await frontier.add([Visit(Url(url)) for url in hosts])
        balance = await frontier.read(reads.RunBalance())
        assert (balance.open, balance.outcomes) == (18, {"unlisted:hosts": 12})
        assert balance.balanced
        leased = {lease.visit.url.split("/")[2] for lease in (await frontier.lease(50)).leases}
        assert leased == {"a.example", "b.example", "c.example"}
    finally:
        await frontier.close()
