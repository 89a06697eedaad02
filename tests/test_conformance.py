"""The open half of the public suites, and the runner that the other half goes through."""

import json
import re
from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest

from crawler.fetch.address_guard import AddressGuard
from crawler.fetch.exchange import HttpFetcher
from crawler.fetch.request_headers import RequestIdentity
from crawler.model.facts import Validators
from crawler.model.reply import Response
from crawler.parse.url import Url
from crawler.ports import Request
from crawler.settings.sections import Http
from tests.conformance.__main__ import Score, main
from tests.conformance.cases import TOPICS, read
from tests.server import Origin, http, serving

DATA = Path(__file__).parent / "data"
DOCUMENT = Path(__file__).parent.parent / "docs/dev/conformance.md"


@pytest.fixture(scope="module")
def score() -> Score:
    whole = Score()
    for case in read(DATA):
        whole.run(case)
    return whole


@pytest.mark.parametrize("topic", [topic for topic in TOPICS if topic not in {"robots_real", "html_links"}])
def test_all_normative_cases_pass(score: Score, topic: str) -> None:
    failures = [
        (case.given.get("id"), fault)
        for case, fault in score.failures
        if case.normative and case.topic == topic
    ]
    assert failures == []
    assert score.total[topic, True] > 0


@pytest.mark.parametrize("client", ["own", "httpx"])
@pytest.mark.anyio
async def test_conditional_requests_are_on_the_wire_as_the_cases_say(client: str) -> None:
    """What `conditions` says is what each client sends, in every case of both kinds."""
    given = [case.given for case in read(DATA) if case.topic == "conditional" and case.normative]
    for stored in given:
        wanted = {name.lower(): value for name, value in stored["must_send"]}
        validators = Validators(wanted.get("if-none-match"), wanted.get("if-modified-since"))
        site = Origin("a", "127.0.0.1")
        site.put("/", http("", "304 Not Modified"))
        with serving(site):
            chosen = Http(transport=client)
            guard = AddressGuard([site.url()])
            async with HttpFetcher(chosen, guard, RequestIdentity(chosen, ())) as fetcher:
                reply = await fetcher.fetch(Request(Url(site.url()), validators))
        assert isinstance(reply, Response)
        assert wanted.items() <= site.log[0].headers.items()


def test_the_document_has_the_figures_and_every_difference(score: Score) -> None:
    text = DOCUMENT.read_text()
    for topic in TOPICS:
        if total := score.total[topic, True]:
            assert f"| {topic} | {total:,} of {total:,} |" in text
        if total := score.total[topic, False]:
            assert re.search(rf"\| {topic} .*\| {score.failed[topic, False]} of {total} \|", text), topic


def run(folder: Path, *words: str) -> int:
    return main([str(folder), *words])


def case(topic: str, kind: str, **given: Any) -> dict[str, Any]:
    return {"id": "x", "topic": topic, "kind": kind, "normative": True, **given}


GOOD = case("srcset", "first_candidate", srcset="a 1x", first_url="a")
BAD = case("srcset", "first_candidate", srcset="a 1x", first_url="b")
CRASH = case("srcset", "first_candidate", first_url="b")
UNKNOWN = case("srcset", "third_candidate", srcset="a 1x")
STRANGE = case("tea", "leaves")
REAL = case(
    "robots_real", "file", robots_b64=b64encode(b"User-agent: *\nDisallow: /*a*a*a*a*a*a*b\n" * 900).decode()
)


def test_flat_files_named_by_topic_are_read_like_folders(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "srcset.json").write_text(json.dumps({"cases": [GOOD]}))
    (tmp_path / "robots_real.jsonl").write_text(json.dumps(REAL) + "\n" + json.dumps(REAL) + "\n")
    (tmp_path / "NOTICE.md").write_text("words")
    assert run(tmp_path) == 0
    assert capsys.readouterr().out.splitlines() == ["robots_real 2/2", "srcset 1/1"]


@pytest.mark.parametrize("bad", [BAD, CRASH, UNKNOWN, STRANGE])
def test_wrong_results_crashes_and_unknown_kinds_are_failures(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], bad: dict[str, Any]
) -> None:
    (tmp_path / "cases.json").write_text(json.dumps([bad, GOOD]))
    assert run(tmp_path, "--failures") == 1
    out = capsys.readouterr().out
    assert "FAILED" in out
    assert "srcset 1/" in out


def test_differences_between_projects_are_listed_separately(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "cases.json").write_text(json.dumps([BAD | {"normative": False}, GOOD]))
    assert run(tmp_path) == 0
    assert "not normative: srcset 1 differences of 1" in capsys.readouterr().out


def test_topics_can_be_chosen(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "cases.json").write_text(json.dumps([BAD, REAL]))
    assert run(tmp_path, "--topic", "robots_real") == 0
    assert run(tmp_path, "--topic", "srcset", "robots_real") == 1
    assert run(tmp_path, "--topic", "robots") == 2
    assert "no cases of these topics" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["{", "3", "[3]"])
def test_a_file_without_cases_is_reported(
    tmp_path: Path, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "robots.json").write_text(text)
    assert run(tmp_path) == 2
    assert "robots.json" in capsys.readouterr().err
