"""What the site answers to questions at the end of a crawl."""

import pytest

from crawler.engine.finish.answers import SiteAnswers
from crawler.model.reply import Headers, Reply, Response
from crawler.parse.normalise import Normaliser
from crawler.parse.url import Url
from crawler.rules.judge import Judge, JudgeRules

HOME = "https://www.example.com"
URL = Url(f"{HOME}/list?by=nonsense")
PAGES = {"/list?by=nonsense": b"<p>lamps", "/list": b"<p>lamps", "/other": b"<p>desks"}


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("path", "risky", "expected"),
    [("/list", b"", True), ("/other", b"", False), ("/list", b"<div>" * 6_000, False)],
)
async def test_a_page_that_may_stall_the_parser_is_not_compared(
    path: str, risky: bytes, expected: bool
) -> None:
    async def ask(url: Url) -> Reply:
        body = PAGES[url.removeprefix(HOME)] + (b"" if url == URL else risky)
        return Response(200, Headers([("content-type", "text/html; charset=utf-8")]), body)

    answers = SiteAnswers(Judge(JudgeRules("sitemap-crawler", Normaliser())), ask, ())
    assert await answers.to(URL)
    assert await answers.shows_without_values(Url(f"{HOME}{path}"), URL) is expected
