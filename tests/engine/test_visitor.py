"""Where a page is read: here, in a thread, or in the sandbox."""

import math
import threading
from dataclasses import dataclass, field

import pytest
from msgspec.structs import replace

from crawler.engine.visitor import LocalVisitor
from crawler.model.facts import Validators
from crawler.model.outcome import Failed, Listed, code
from crawler.model.reasons import Cause
from crawler.model.reply import Broken, Headers, Reply, Response
from crawler.model.visit import Lease, Prior, ScriptedPages, Visit
from crawler.parse.html import PageSource
from crawler.parse.normalise import Normaliser
from crawler.parse.parsed_page import ParsedPage
from crawler.parse.url import Url
from crawler.ports import Request
from crawler.rules.judge import Judge, JudgeRules
from crawler.rules.rendering import KIND

URL = Url("https://www.example.com/a")


@dataclass
class Answers:
    """A fetcher that answers every request with one page."""

    body: bytes
    log: list[Request] = field(default_factory=list)

    async def fetch(self, request: Request) -> Reply:
        self.log.append(request)
        return Response(
            200, Headers([("content-type", "text/html; charset=utf-8"), ("etag", '"a"')]), self.body
        )


class Sandbox:
    """A reader that never has a page."""

    async def read(self, _: PageSource) -> ParsedPage | Broken:
        return Broken(Cause.PARSE)


@pytest.mark.parametrize(
    ("body", "place"),
    [
        (b"<p>short", "here"),
        (b"<p>long " * 2_000 + b"words and more " * 10_000, "thread"),
        (b"<div>" * 5_501, "sandbox"),
        (b"<p>" + b"x" * 1_000_001, "sandbox"),
    ],
)
async def test_where_a_page_is_read(body: bytes, place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    read = PageSource.read
    places: list[str] = []

    def noted(markup: PageSource) -> ParsedPage:
        places.append("here" if threading.current_thread() is threading.main_thread() else "thread")
        return read(markup)

    monkeypatch.setattr(PageSource, "read", noted)
    judge = Judge(JudgeRules("sitemap-crawler", Normaliser()))
    visitor = LocalVisitor(Answers(body), judge, Sandbox(), lambda: 1_790_000_000.0)
    result = await visitor.visit(Lease(1, 1, Visit(URL)))
    assert places == ([] if place == "sandbox" else [place])
    assert isinstance(result.verdict.outcome, Failed if place == "sandbox" else Listed)


async def test_both_requests_of_a_rendered_page_have_one_time_limit() -> None:
    answers = Answers(b"<div id=app></div><script src=/app.js></script>")
    for render, requests in (("always", 2), ("off", 1)):
        answers.log.clear()
        judge = Judge(JudgeRules("sitemap-crawler", Normaliser(), render=render))
        await LocalVisitor(answers, judge, Sandbox(), lambda: 1_790_000_000.0).visit(Lease(1, 1, Visit(URL)))
        limits = {request.until for request in answers.log}
        assert (len(answers.log), len(limits)) == (requests, 1)
        assert (limits == {math.inf}) == (render == "off")


@dataclass
class Hanging(Answers):
    """The scripts of its page never come to rest."""

    async def fetch(self, request: Request) -> Reply:
        reply = await super().fetch(request)
        return Broken(Cause.TIMEOUT) if request.shell else reply


NAV = b"<a href=/b>b</a><script src=/app.js></script>"
TEXT = b"<p>Words that can be read without any script at all. " * 10


@pytest.mark.parametrize(
    ("body", "chosen", "outcome"),
    [
        (NAV + b"<p>A page that can be read", "sample", "listed"),
        (b"<div id=app></div><script src=/app.js></script>", "sample", "failed:timeout"),
        (NAV + b"<p>A page of an application", "folder", "failed:timeout"),
        (NAV + TEXT, "folder", "listed"),
        (NAV + TEXT, "look", "failed:timeout"),  # all addresses show the same without scripts
    ],
)
async def test_readable_page_that_cannot_be_rendered_is_judged_by_html(
    body: bytes, chosen: str, outcome: str
) -> None:
    judge = Judge(JudgeRules("sitemap-crawler", Normaliser(), render="auto"))
    answers = Hanging(body)
    visitor = LocalVisitor(answers, judge, Sandbox(), lambda: 1_790_000_000.0)
    lease = Lease(1, 1, Visit(URL))
    facts = (await LocalVisitor(Answers(body), judge, Sandbox(), lambda: 0.0).visit(lease)).verdict.facts
    assert facts
    look, folder = (facts.scripts or "")[:KIND], (facts.scripts or "")[KIND:]
    kinds = {"sample": frozenset[str](), "folder": frozenset((folder,)), "look": frozenset((look, folder))}
    scripted = ScriptedPages(frozenset([URL] if chosen == "sample" else []), kinds[chosen])
    found = (await visitor.visit(replace(lease, scripted=scripted))).verdict
    assert code(found.outcome) == outcome
    if outcome == "listed":
        assert found.facts
        assert found.facts.rendering
        assert (found.facts.rendering.words, found.facts.rendering.failed) == ("not:failed", Cause.TIMEOUT)
        assert found.facts.validators.etag
        answers.log.clear()
        await visitor.visit(replace(lease, prior=Prior(found.outcome, found.facts)))
        assert answers.log[0].validators == Validators(), "the next night tries again"
