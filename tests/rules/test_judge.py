"""The verdict on a URL: one table for each status, header and element."""

from datetime import UTC, datetime
from urllib.parse import urljoin

import pytest

from crawler.model.facts import Facts, Validators
from crawler.model.outcome import Failed, Later, Listed, Moved, Outcome, Unlisted
from crawler.model.reasons import Cause, Why
from crawler.model.reply import Broken, Headers, Response
from crawler.model.settlement import Verdict
from crawler.model.visit import Lease, Links, Prior, Visit
from crawler.parse.normalise import Normaliser
from crawler.parse.page_links import MAX_LINK_BYTES
from crawler.parse.parsed_page import ParsedPage
from crawler.parse.url import Url
from crawler.rules.canonicals import SEVERAL
from crawler.rules.judge import Judge, JudgeRules

NOW = datetime(2026, 11, 21, tzinfo=UTC)
SITE = "https://example.com"
URL = Url(SITE + "/dir/page")


def judged(
    status: int = 200,
    html: str | bytes = "<p>text",
    headers: dict[str, str] | list[tuple[str, str]] | None = None,
    *,
    visit: Visit | None = None,
    attempt: int = 1,
    prior: Prior | None = None,
    **rules: object,
) -> Verdict:
    judge = Judge(JudgeRules("sitemap-crawler", Normaliser(), **rules))  # type: ignore[arg-type]
    fields = list(headers.items()) if isinstance(headers, dict) else headers or []
    if not any(name.lower() == "content-type" for name, _ in fields):
        fields.append(("Content-Type", "text/html; charset=utf-8"))
    body = html.encode() if isinstance(html, str) else html
    lease = Lease(1, 1, visit or Visit(URL), attempt, prior=prior)
    return judge(lease, Response(status, Headers(fields), body), NOW)


def head(markup: str) -> str:
    return f"<!doctype html><head><title>t</title>{markup}</head><body>text"


def test_facts_of_page_for_reports() -> None:
    markup = "<!doctype html><title> A \n title\x01 &amp; \N{GRINNING FACE} </title><p>text<svg><title>no</title></svg>"
    body = markup.encode()
    facts = judged(html=body).facts
    assert facts
    assert (facts.title, facts.type, facts.bytes) == ("A title & \N{GRINNING FACE}", "text/html", len(body))
    pdf = judged(headers={"Content-Type": "application/pdf"}).facts
    assert pdf
    assert (pdf.title, pdf.type, pdf.bytes) == (None, "application/pdf", None), "its body is not read"
    lease = Lease(1, 1, Visit(URL))
    took = Judge(JudgeRules("x", Normaliser()))(lease, Response(200, body=b"<p>text", took=7), NOW).facts
    assert took and took.took == 7  # noqa: PT018 - for mypy
    known = Prior(Listed(), facts)
    assert judged(304, prior=known).facts == facts, "a 304 keeps them"


@pytest.mark.parametrize(
    ("markup", "canonical", "named"),
    [
        (head(""), None, ()),
        (head("<link rel=canonical href=/dir/page>"), None, ()),
        (head("<link rel=canonical href=/a>"), "/a", ("/a",)),
        (head("<link rel=canonical href=/a>") + "<a href=/a>", "/a", ()),
        (head("<link rel=canonical href=/a>") + "<a rel=nofollow href=/a>", "/a", ("/a",)),
        (head("<meta name=robots content=noindex><link rel=canonical href=/a>"), "/a", ("/a",)),
        (head("<meta http-equiv=refresh content='0;url=/r'>"), None, ("/r",)),
        (
            head("<meta http-equiv=refresh content='0;url=/r'><link rel=canonical href=/a>"),
            "/a",
            ("/a", "/r"),
        ),
    ],
)
def test_canonical_is_not_counted_as_link(markup: str, canonical: str | None, named: tuple[str, ...]) -> None:
    verdict = judged(html=markup)
    assert verdict.facts
    assert verdict.facts.canonical == (canonical and SITE + canonical)
    assert verdict.named == tuple(SITE + path for path in named)
    assert set(verdict.named) <= set(verdict.links.urls), "it is visited all the same"


@pytest.mark.parametrize(
    ("markup", "named"),
    [
        ("<link rel=alternate hreflang=de href=/de>", ["/de"]),
        ("<link rel=alternate href=/de><body><a href=/de>", []),
        ("<link rel=next href=/2><body><iframe src=/2></iframe>", []),
        ("<link rel=prev href=./2><body><a href=/dir/2>", []),
        ('<link rel=alternate href=/de><link rel="alternate nofollow" href=/fr>', ["/de"]),
        ("<link rel=alternate href=/x><link rel=canonical href=/x>", ["/x"]),
        ("<meta name=robots content=nofollow><link rel=alternate href=/x>", ["/x"]),
        ('<meta http-equiv=refresh content="0;url=/r"><link rel=alternate href=/x>', ["/r", "/x"]),
        ("<link rel=alternate href=/page>", []),
        ("<link rel=alternate href=/x><body><a rel=nofollow href=/x>", ["/x"]),
        ("<meta name=robots content=nofollow><link rel=alternate href=/x><body><a href=/x>", []),
    ],
)  # fmt: skip
def test_nobody_can_click_a_link_element(markup: str, named: list[str]) -> None:
    verdict = judged(html=head(markup), visit=Visit(Url(f"{SITE}/dir/page")))
    assert [url.removeprefix(SITE) for url in verdict.named if not url.endswith("/page")] == named
    assert set(verdict.named) <= set(verdict.links.urls), "it is visited all the same"


@pytest.mark.parametrize(("off", "named", "avoided"), [((), ("/x",), ("/x",)), (("nofollow",), (), ())])
def test_link_with_nofollow_is_one_beside_a_link_element(
    off: tuple[str, ...], named: tuple[str, ...], avoided: tuple[str, ...]
) -> None:
    markup = head("<link rel=alternate href=/x><body><a rel=nofollow href=/x>")
    verdict = judged(html=markup, off=frozenset(off))
    assert verdict.named == tuple(SITE + path for path in named)
    assert verdict.links == Links((Url(f"{SITE}/x"),), tuple(Url(SITE + path) for path in avoided))


@pytest.mark.parametrize(
    ("status", "outcome"),
    [
        (200, Listed()),
        (203, Listed()),
        (204, Unlisted(Why.EMPTY, "204")),
        (206, Failed(Cause.STATUS, "206")),
        (304, Failed(Cause.STATUS, "304")),
        (300, Failed(Cause.STATUS, "300")),
        (400, Failed(Cause.CLIENT_ERROR, "400")),
        (401, Failed(Cause.FORBIDDEN, "401")),
        (403, Failed(Cause.FORBIDDEN, "403")),
        (404, Failed(Cause.NOT_FOUND, "404")),
        (410, Failed(Cause.NOT_FOUND, "410")),
        (418, Failed(Cause.CLIENT_ERROR, "418")),
        (429, Failed(Cause.RATE_LIMITED, "429")),
        (500, Failed(Cause.SERVER_ERROR, "500")),
        (503, Failed(Cause.SERVER_ERROR, "503")),
        (999, Failed(Cause.STATUS, "999")),
    ],
)
def test_every_status_has_one_outcome(status: int, outcome: Outcome) -> None:
    assert judged(status).outcome == outcome


def test_a_broken_reply_fails_with_its_cause() -> None:
    judge = Judge(JudgeRules("x", Normaliser()))
    verdict = judge(Lease(1, 1, Visit(URL)), Broken(Cause.TLS, "expired"), NOW)
    assert verdict == Verdict(Failed(Cause.TLS, "expired"))


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize(
    ("location", "to"),
    [
        ("/new", SITE + "/new"),
        ("other?x#frag", SITE + "/dir/other?x"),
        ("//other.com/é x", "https://other.com/%C3%A9%20x"),
        ("HTTPS://EXAMPLE.com/", SITE + "/"),
    ],
)
def test_the_target_of_a_redirect_is_a_visit_of_its_own(status: int, location: str, to: str) -> None:
    verdict = judged(status, headers={"Location": location})
    assert verdict.outcome == Moved(Url(to))
    assert verdict.links == Links((Url(to),))


@pytest.mark.parametrize(
    "location", ["javascript:alert(1)", "file:///etc/passwd", "http://", "http://[x", ""]
)
def test_a_redirect_without_a_valid_target_fails(location: str) -> None:
    outcome = judged(301, headers={"Location": location}).outcome
    assert isinstance(outcome, Failed)
    assert outcome.cause is Cause.REDIRECT


def test_a_redirect_without_location_fails() -> None:
    assert judged(302).outcome == Failed(Cause.REDIRECT, "no Location")


def test_redirect_to_itself_is_loop_even_when_fragment_differs() -> None:
    assert judged(301, headers={"Location": "page#x"}).outcome == Failed(Cause.REDIRECT_LOOP, "page#x")


def test_consecutive_redirects_are_limited() -> None:
    last = judged(301, headers={"Location": "/next"}, visit=Visit(URL, hops=9))
    over = judged(301, headers={"Location": "/next"}, visit=Visit(URL, hops=10))
    assert last.outcome == Moved(Url(SITE + "/next"))
    assert over.outcome == Failed(Cause.REDIRECTS, SITE + "/next")
    assert over.links == Links()


@pytest.mark.parametrize(
    ("wait", "attempt", "outcome"),
    [
        ("60", 1, Later(NOW.timestamp() + 60, Cause.RATE_LIMITED, "503")),
        ("60", 3, Later(NOW.timestamp() + 60, Cause.RATE_LIMITED, "503")),
        ("60", 4, Failed(Cause.SERVER_ERROR, "503")),
        ("Sat, 21 Nov 2026 00:02:00 GMT", 1, Later(NOW.timestamp() + 120, Cause.RATE_LIMITED, "503")),
        ("601", 1, Failed(Cause.RATE_LIMITED, "503, Retry-After 601 s")),
        ("1" + "0" * 20, 1, Failed(Cause.RATE_LIMITED, "503, Retry-After 10000000000000000000 s")),
        ("-1", 1, Failed(Cause.SERVER_ERROR, "503")),
        ("1", 1, Failed(Cause.SERVER_ERROR, "503")),  # a short one was waited for by the task
    ],
)
def test_after_long_retry_after_url_is_tried_later_a_few_times(
    wait: str, attempt: int, outcome: Outcome
) -> None:
    assert judged(503, headers={"Retry-After": wait}, attempt=attempt).outcome == outcome


@pytest.mark.parametrize(
    ("headers", "body", "outcome"),
    [
        ({"Content-Type": "application/xhtml+xml"}, b"<html/>", Listed()),
        ({"Content-Type": "TEXT/HTML"}, b"<p>", Listed()),
        ({"Content-Type": "text/plain"}, b"<p>", Unlisted(Why.TYPE, "text/plain")),
        ({"Content-Type": "image/png"}, b"", Unlisted(Why.TYPE, "image/png")),
        ({"Content-Type": ""}, b"  <!DOCTYPE html><p>", Listed()),
        ({"Content-Type": "nonsense"}, b"\x89PNG", Unlisted(Why.TYPE, "application/octet-stream")),
        ({"Content-Type": "text/html"}, b" \n ", Unlisted(Why.EMPTY)),
        ({"Content-Type": "text/html"}, b"%PDF-1.7", Unlisted(Why.TYPE, "a PDF that is called HTML")),
    ],
)
def test_the_content_type_decides_what_is_a_page(
    headers: dict[str, str], body: bytes, outcome: Outcome
) -> None:
    assert judged(html=body, headers=headers).outcome == outcome


def test_other_types_can_be_listed_and_their_headers_count() -> None:
    types = frozenset({"application/pdf"})
    pdf = {"Content-Type": "application/pdf"}
    assert judged(headers=pdf, types=types).outcome == Listed()
    hidden = judged(headers=pdf | {"X-Robots-Tag": "noindex"}, types=types)
    assert hidden.outcome == Unlisted(Why.NOINDEX)
    copy = judged(headers=pdf | {"Link": '</a>; rel="canonical"'}, types=types)
    page = judged(html=b"<a href=/a>", types=types)
    assert page.outcome == Unlisted(Why.TYPE, "text/html"), "and no others"
    assert page.links.followed, "which lead on all the same"
    other = Url(SITE + "/a")
    facts = Facts(200, type="application/pdf", canonical=other)
    assert copy == Verdict(Unlisted(Why.CANONICAL, other), facts, Links((other,)), named=(other,))


@pytest.mark.parametrize(
    ("markup", "listed"),
    [
        ('<meta name="robots" content="noindex">', False),
        ('<META NAME="ROBOTS" CONTENT="NOINDEX, follow">', False),
        ('<meta name="robots" content="none">', False),
        ('<meta name="sitemap-crawler" content="noindex">', False),
        ('<meta name="googlebot" content="noindex">', True),
        ('<meta name="robots" content="index"><meta name="robots" content="noindex">', False),
        ('<meta name="robots" content="noindexing">', True),
        ('<!-- <meta name="robots" content="noindex"> -->', True),
        ('<meta name="description" content="noindex">', True),
    ],
)
def test_meta_robots(markup: str, listed: bool) -> None:
    assert judged(html=head(markup)).outcome == (Listed() if listed else Unlisted(Why.NOINDEX))


@pytest.mark.parametrize(
    ("values", "listed"),
    [
        (["noindex"], False),
        (["nofollow", "noindex"], False),
        (["Sitemap-Crawler: noindex"], False),
        (["otherbot: noindex"], True),
        (["unavailable_after: 25 Jun 2030 15:00:00 PST"], True),
        (["unavailable_after: 25 Jun 2030 15:00:00 PST, noindex"], False),
        (["junk"], True),
    ],
)
def test_x_robots_tag(values: list[str], listed: bool) -> None:
    verdict = judged(headers=[("X-Robots-Tag", value) for value in values])
    assert verdict.outcome == (Listed() if listed else Unlisted(Why.NOINDEX))


BOTS = frozenset({"googlebot"})


@pytest.mark.parametrize(
    ("fields", "markup", "outcome", "barred"),
    [
        (["googlebot: noindex"], "", Unlisted(Why.NOINDEX, "for googlebot"), None),
        (
            ["otherbot: noindex", "nofollow", "Googlebot: noindex"],
            "",
            Unlisted(Why.NOINDEX, "for googlebot"),
            None,
        ),
        ([], '<meta name="googlebot" content="none">', Unlisted(Why.NOINDEX, "for googlebot"), None),
        (["noindex"], '<meta name="googlebot" content="noindex">', Unlisted(Why.NOINDEX), None),
        (["unavailable_after: 2020-01-01"], "", Unlisted(Why.NOINDEX, "unavailable after 2020-01-01"), None),
        (["bingbot: noindex"], '<meta name="Slurp" content="noindex">', Listed(), "bingbot, slurp"),
        (["otherbot: noindex"], "", Listed(), None),
    ],
)
def test_noindex_for_one_search_engine(
    fields: list[str], markup: str, outcome: Outcome, barred: str | None
) -> None:
    given = [("X-Robots-Tag", field) for field in fields]
    verdict = judged(html=head(markup), headers=given, bots=BOTS)
    assert verdict.facts is not None
    assert (verdict.outcome, verdict.facts.barred) == (outcome, barred)
    off = judged(html=head(markup), headers=given, bots=BOTS, off=frozenset({"noindex"}))
    assert (off.outcome, off.facts and off.facts.barred) == (Listed(), None)


def test_a_page_that_will_not_stay_is_listed_until_then() -> None:
    field = [("X-Robots-Tag", "googlebot: unavailable_after: 2036-01-01")]
    verdict = judged(headers=field, bots=BOTS)
    assert (verdict.outcome, verdict.facts and verdict.facts.until) == (
        Listed(),
        datetime(2036, 1, 1, tzinfo=UTC),
    )


@pytest.mark.parametrize(
    ("markup", "canonical"),
    [
        ('<link rel="canonical" href="/dir/page">', None),
        ('<link rel="canonical" href="page#top">', None),
        ('<link rel="canonical" href="/dir/page?utm_source=x">', None),
        ('<link rel="CANONICAL" href="/other">', SITE + "/other"),
        ('<link rel="alternate canonical" href="/other">', SITE + "/other"),
        ('<link rel="canonical" href="https://other.com/">', "https://other.com/"),
        ('<link rel="canonical" href="/a"><link rel="canonical" href="/a#x">', SITE + "/a"),
        ('<link rel="canonical" href="javascript:x">', None),
        ('<link rel="canonical" href="http://[">', None),
        ('<link rel="canonical">', None),
        ('<!-- <link rel="canonical" href="/other"> -->', None),
    ],
)
def test_canonical(markup: str, canonical: str | None) -> None:
    verdict = judged(html=head(markup))
    assert verdict.outcome == (Unlisted(Why.CANONICAL, canonical) if canonical else Listed())
    assert (Url(canonical or "") in verdict.links.followed) is (canonical is not None)


def test_a_canonical_in_the_body_is_ignored() -> None:
    assert judged(html='<body><p>x</p><link rel="canonical" href="/other">').outcome == Listed()


def test_a_canonical_header_counts_and_must_agree_with_the_page() -> None:
    link = {"Link": '<https://example.com/x?a="b,c">; title="a, b"; rel="canonical"'}
    target = SITE + "/x?a=%22b,c%22"
    assert judged(headers=link).outcome == Unlisted(Why.CANONICAL, target)
    both = judged(html=head('<link rel="canonical" href="/y">'), headers=link)
    assert both.outcome == Listed(None, f"{SITE}/y, {target}: {SEVERAL}"), "two that differ are no answer"
    assert both.facts
    assert (both.facts.canonical, both.named) == (None, ())


@pytest.mark.parametrize(
    ("canonicals", "detail"),
    [
        (["/a", "/b"], f"{SITE}/a, {SITE}/b: {SEVERAL}"),
        (["/dir/page", "/b"], f"{SITE}/dir/page, {SITE}/b: {SEVERAL}"),
        (["/a", "/b", "/a", "/c"], f"{SITE}/a, {SITE}/b: {SEVERAL}"),
        (["/a", "/a#x"], ""),
    ],
)
def test_several_canonicals_are_ignored_and_said(canonicals: list[str], detail: str) -> None:
    markup = "".join(f"<link rel=canonical href={href}>" for href in canonicals)
    assert getattr(judged(html=head(markup)).outcome, "detail", "") in {detail, f"{SITE}/a"}
    assert isinstance(judged(html=head(markup)).outcome, Listed) is bool(detail)
    assert judged(html=head(markup), off=frozenset({"canonical"})).outcome == Listed()


def test_a_page_with_several_canonicals_is_read_again() -> None:
    """A 304 would forget them if another rule had unlisted the page."""
    several = '<link rel="canonical" href="/a"><link rel="canonical" href="/b">'
    for markup, known in ((several, Validators()), ("", Validators('"e"'))):
        facts = judged(html=head(markup), headers={"ETag": '"e"'}).facts
        assert facts
        assert facts.validators == known


def test_a_canonical_header_is_not_relative_to_the_base() -> None:
    verdict = judged(html=head('<base href="/elsewhere/">'), headers={"Link": "<c>; rel=canonical"})
    assert verdict.outcome == Unlisted(Why.CANONICAL, SITE + "/dir/c")


@pytest.mark.parametrize(
    ("markup", "outcome"),
    [
        ('<meta http-equiv="refresh" content="0; url=/new">', Moved(Url(SITE + "/new"))),
        ("<meta http-equiv=Refresh content=\"0;URL='/new'\">", Moved(Url(SITE + "/new"))),
        ('<meta http-equiv="refresh" content="5; url=/new">', Listed()),
        ('<meta http-equiv="refresh" content="0">', Listed()),
        ('<meta http-equiv="refresh" content="0; url=page">', Listed()),
        ('<meta http-equiv="refresh" content="-1; url=/new">', Listed()),
    ],
)
def test_an_immediate_refresh_is_a_redirect(markup: str, outcome: Outcome) -> None:
    verdict = judged(html=head(markup))
    assert verdict.outcome == outcome
    assert (Url(SITE + "/new") in verdict.links.followed) is ("/new" in markup and "-1" not in markup)


def test_refreshes_and_redirects_share_a_limit() -> None:
    """A refresh that leads on to another one for ever would keep its depth, so that no other limit ended it."""
    last, over = (
        judged(html=head("<meta http-equiv=refresh content='0; url=/new'>"), visit=Visit(URL, hops=hops))
        for hops in (9, 10)
    )
    assert last.outcome == Moved(Url(SITE + "/new"))
    assert over.outcome == Failed(Cause.REDIRECTS, SITE + "/new")
    assert over.links == Links()
    assert over.facts == Facts(200), "no validators: the next run reads where it leads"
    later = judged(html=head("<meta http-equiv=refresh content='5; url=/new'>"), visit=Visit(URL, hops=10))
    assert later.outcome == Listed(), "no redirect"


def links_of(verdict: Verdict) -> dict[str, bool]:
    sides = zip(verdict.links, (False, True), strict=True)
    return {link.removeprefix(SITE): nofollow for side, nofollow in sides for link in side}


def test_links_and_what_is_nofollow() -> None:
    html = '<a href=/a>a</a><a href=/b rel="x NoFollow">b</a><a href=/a rel=nofollow>a</a><area href=c><a href="">me</a>'
    assert links_of(judged(html=html)) == {"/a": False, "/dir/c": False, "/b": True}
    page = head('<meta name=robots content=nofollow><link rel=canonical href="/k">') + html
    assert links_of(judged(html=page)) == {"/k": False, "/a": True, "/b": True, "/dir/c": True}
    tag = judged(html=html, headers={"X-Robots-Tag": "none"})
    assert tag.outcome == Unlisted(Why.NOINDEX)
    assert set(links_of(tag).values()) == {True}


def test_links_of_a_noindex_page_are_still_followed() -> None:
    page = head("<meta name=robots content=noindex>") + "<a href=/a>"
    assert links_of(judged(html=page)) == {"/a": False}


def test_link_headers_are_links_too() -> None:
    verdict = judged(
        headers=[("Link", '</2>; rel="next", </s.css>; rel=stylesheet'), ("Link", "</de>; rel=alternate")]
    )
    assert links_of(verdict) == {"/2": False, "/de": False}


@pytest.mark.parametrize(
    ("rule", "html", "headers"),
    [
        ("noindex", head("<meta name=robots content=noindex>"), {}),
        ("canonical", head("<link rel=canonical href=/other>"), {}),
        ("x-robots-tag", "<p>x", {"X-Robots-Tag": "noindex"}),
    ],
)
def test_a_rule_can_be_switched_off(rule: str, html: str, headers: dict[str, str]) -> None:
    assert isinstance(judged(html=html, headers=dict(headers)).outcome, Unlisted)
    assert judged(html=html, headers=dict(headers), off=frozenset({rule})).outcome == Listed()


def test_nofollow_can_be_switched_off() -> None:
    verdict = judged(html="<a href=/b rel=nofollow>b", off=frozenset({"nofollow"}))
    assert links_of(verdict) == {"/b": False}


def test_the_facts_of_a_page_are_kept_unchanged() -> None:
    headers = {"ETag": 'W/"x y"', "Last-Modified": "Fri, 20 Nov 2026 10:00:00 GMT"}
    verdict = judged(headers=dict(headers))
    assert verdict.facts is not None
    assert verdict.facts.validators == Validators('W/"x y"', "Fri, 20 Nov 2026 10:00:00 GMT")
    assert verdict.facts.lastmod is not None
    assert verdict.outcome == Listed(verdict.facts.lastmod)
    assert judged(headers=dict(headers), date_sources=()).outcome == Listed()


def test_not_modified_repeats_the_previous_verdict() -> None:
    known = Prior(Unlisted(Why.NOINDEX), Facts(200, Validators('"e"')))
    verdict = judged(304, html=b"", prior=known)
    assert (verdict.outcome, verdict.facts, verdict.unchanged) == (known.outcome, known.facts, True)


def test_not_modified_repeats_that_canonicals_are_ignored() -> None:
    known = Prior(Listed(None, f"/a, /b: {SEVERAL}"), Facts(200, Validators('"e"')))
    assert judged(304, html=b"", prior=known).outcome == known.outcome


def test_not_modified_forgets_the_previous_scope() -> None:
    known = Prior(Unlisted(Why.NO_LIST), Facts(200, Validators('"e"')))
    assert judged(304, html=b"", prior=known).outcome == Listed()


@pytest.mark.parametrize(
    ("status", "content_type", "wanted"),
    [
        (200, "text/html", True),
        (200, "application/xhtml+xml; charset=x", True),
        (200, None, True),
        (200, "image/png", False),
        (200, "application/pdf", False),
        (404, "text/html", False),
        (301, "text/html", False),
    ],
)
def test_only_bodies_of_possible_pages_are_read(status: int, content_type: str | None, wanted: bool) -> None:
    headers = Headers([("content-type", content_type)] if content_type else [])
    assert Judge(JudgeRules("x", Normaliser())).wants_body(status, headers) is wanted


def test_a_parsed_page_is_not_parsed_again() -> None:
    judge = Judge(JudgeRules("x", Normaliser()))
    reply = Response(200, Headers([("content-type", "text/html; charset=gbk")]), b"<a href=/here>")
    markup = judge.markup(Lease(1, 1, Visit(URL)), reply, NOW)
    assert markup
    assert (markup.body, markup.url, markup.charset) == (reply.body, URL, "gbk")
    verdict = judge(Lease(1, 1, Visit(URL)), reply, NOW, ParsedPage(URL, ("/there",)))
    assert list(verdict.links.urls) == [urljoin(URL, "/there")]


@pytest.mark.parametrize(
    ("status", "kind", "body"),
    [
        (404, "text/html", b"<p>"),
        (200, "text/plain", b"<p>"),
        (200, "text/html", b" "),
        (200, "text/html", b"%PDF-"),
    ],
)
def test_only_html_pages_are_parsed(status: int, kind: str, body: bytes) -> None:
    judge = Judge(JudgeRules("x", Normaliser()))
    lease = Lease(1, 1, Visit(URL))
    assert judge.markup(lease, Response(status, Headers([("content-type", kind)]), body), NOW) is None
    assert judge.markup(lease, Broken(Cause.TLS), NOW) is None


# -- bytes of links ----------------------------------------------------------------------------------------

LONG = "/" + "b" * 8_000 + "/"


def weight(verdict: Verdict) -> int:
    return sum(map(len, verdict.links.urls))


def test_bytes_of_links_are_limited_and_reported() -> None:
    short = "".join(f"<a href={number}>" for number in range(5_000))
    rel = "".join(f"<a rel=nofollow href=n{number}>" for number in range(5_000))
    seen = judged(html=f"<base href={LONG}>{short}{rel}")
    assert seen.truncated
    assert 3_900_000 < weight(seen) <= MAX_LINK_BYTES
    assert seen.links.followed[0] == f"{SITE}{LONG}0", "the first ones count"
    plain = judged(html=short + rel)
    assert not plain.truncated
    assert plain.links.total == 10_000


def test_repeated_links_do_not_count_against_the_limit() -> None:
    seen = judged(html=f"<base href={LONG}>" + "".join(f"<a href=./x/{'../x/' * n}>" for n in range(1_000)))
    assert (seen.links.total, seen.truncated) == (1, False)


def test_links_in_header_fields_count_too() -> None:
    fields = [("Link", f"<{number}>; rel=next") for number in range(900)]
    seen = judged(headers=fields, visit=Visit(Url(SITE + LONG)))
    assert seen.truncated
    assert weight(seen) <= MAX_LINK_BYTES


def test_links_relative_to_a_too_long_base_are_dropped() -> None:
    seen = judged(html=f"<base href=/{'b' * 1_000_000}/><a href=x><a href=y><a href=https://example.com/z>")
    assert list(seen.links.urls) == [SITE + "/z"]
    assert seen.truncated


def test_a_refresh_counts_even_if_the_limit_of_links_is_reached() -> None:
    links = "".join(f"<a href={number}>" for number in range(5_000))
    refresh = "<meta http-equiv=refresh content='0;url=/there'>"
    seen = judged(html=f"<base href={LONG}>{refresh}{links}")
    assert seen.outcome == Moved(Url(SITE + "/there"))
    assert SITE + "/there" in seen.links.followed


def test_canonicals_and_validators_are_limited_in_length() -> None:
    long = "/" + "c" * 9_000
    assert judged(html=head(f"<link rel=canonical href={long}>")).outcome == Listed()
    assert judged(html=head(f"<meta http-equiv=refresh content='0;url={long}'>")).outcome == Listed()
    many = "".join(f"<link rel=canonical href=/{number}>" for number in range(50_000))
    assert judged(html=head(many)).outcome == Listed(None, f"{SITE}/0, {SITE}/1: {SEVERAL}")
    validators = judged(headers={"ETag": '"' + "e" * 9_000 + '"', "Last-Modified": "x" * 9_000}).facts
    assert validators
    assert not validators.validators
