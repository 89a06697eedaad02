"""Pages that are asked for outside the queue."""

from typing import Any
from unittest.mock import AsyncMock, Mock

import pytest

from crawler.engine.site import CrawledSite
from crawler.model.reasons import Cause
from crawler.model.reply import Broken, Headers, Reply, Response
from crawler.parse.url import Url

pytestmark = pytest.mark.anyio
PAGE = Response(200, Headers(()), b"<p>Here")
LOST = Broken(Cause.CONNECT, "reset", transient=True)


@pytest.mark.parametrize(
    ("replies", "asked"),
    [
        ([PAGE], 1),
        ([LOST, PAGE], 2),
        ([LOST, LOST], 2),
        ([Broken(Cause.TIMEOUT, "30 s", transient=True)], 1),
        ([Broken(Cause.WALL, "a wall")], 1),
    ],
)
async def test_a_question_that_a_connection_lost_is_asked_again(replies: list[Reply], asked: int) -> None:
    access: Any = Mock(
        permit=AsyncMock(return_value=Mock(allowed=True)), fetch=AsyncMock(side_effect=replies)
    )
    site: Any = Mock(questions_left=None, access=access, judge=Mock(wants_body=None))
    assert await CrawledSite.fetch(site, Url("https://www.example.com/no-such-page")) == replies[-1]
    assert access.fetch.await_count == asked
