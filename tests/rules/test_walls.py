"""Which answers are those of a firewall: the table of evidence, and the pages that only look like it."""

import json
from pathlib import Path
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler.model.reply import Headers
from crawler.rules.walls import FIELDS, LONGEST, PAGES, wall_of

CASES: Final = Path(__file__).parents[1] / "data/html"
HTML: Final = ("content-type", "text/html; charset=utf-8")
ANUBIS: Final = (
    '<!doctype html><html lang="en"><head><title>Making sure you&#39;re not a bot!</title>'
    '<link rel="stylesheet" href="/.within.website/x/xess/xess.min.css?cachebuster=v1">'
    '<script id="anubis_version" type="application/json">"v1"</script></head><body><main>'
    '<h1>Making sure you&#39;re not a bot!</h1><img src="/.within.website/x/cmd/anubis/static/img/pensive.webp">'
    "<p>You are seeing this because the administrator of this website has set up Anubis.</p>"
    '<a href="https://anubis.techaro.lol">Anubis</a></main></body></html>'
)
CLOUDFLARE: Final = (
    "<html><head><title>Just a moment...</title><meta name=robots content=noindex,nofollow></head><body>"
    "<noscript>Enable JavaScript and cookies to continue</noscript>"
    "<script>(function(){window._cf_chl_opt = {cvId: '3'};var a = document.createElement('script');"
    "a.src = '/cdn-cgi/challenge-platform/h/b/orchestrate/chl_page/v1?ray=1';}());</script></body></html>"
)
IMPERVA: Final = (
    '<html style="height:100%"><head><META NAME="ROBOTS" CONTENT="NOINDEX, NOFOLLOW">'
    '<script src="/aignor-best-not-he-Crace" async></script></head><body style="margin:0px;height:100%">'
    '<iframe id="main-iframe" src="/_Incapsula_Resource?SWUDNSAI=31&xinfo=1&incident_id=2" frameborder=0>'
    "Request unsuccessful. Incapsula incident ID: 2-3</iframe></body></html>"
)
WALLS: Final = {
    ANUBIS: "Anubis",
    '<meta http-equiv="refresh" content="1; url=/.within.website/x/cmd/anubis/api/pass-challenge?id=1">': "Anubis",
    '<script id="anubis_challenge" type="application/json">{}</script>': "Anubis",
    CLOUDFLARE: "Cloudflare",
    IMPERVA: "Imperva",
    '<html><head><META NAME="robots" CONTENT="noindex"><script src="/_Incapsula_Resource?SWJIYLWA=5"></script>'
    "<body></body></html>": "Imperva",
    "<p id=cmsg>Please enable JS and disable any ad blocker</p><script>var dd={'rt':'c'}</script>"
    '<script src="https://ct.captcha-delivery.com/c.js"></script>': "DataDome",
    "<script>window._pxUuid = '1'; window._pxAppId = 'PX1';</script><div id='px-captcha'></div>": "HUMAN",
    "<script>window.KPSDK={};KPSDK.now=performance.now;</script><script src='/1/2/ips.js?x=1'></script>": "Kasada",
    "<title>Client Challenge</title><link href='/_fs-ch-1T1/assets/styles.css' rel=stylesheet>": "Fastly",
    "<title>Request Rejected</title><body>The requested URL was rejected. Please consult with your "
    "administrator.<br><br>Your support ID is: 123": "F5",
    "<HTML><HEAD><TITLE>Access Denied</TITLE></HEAD><BODY><H1>Access Denied</H1>You don't have permission to "
    'access "http&#58;&#47;&#47;x" on this server.<P>Reference&#32;&#35;18&#46;1</P></BODY>': "Akamai",
    '<meta http-equiv="refresh" content="0;/.well-known/sgcaptcha/?r=%2F&y=ipr:1"></meta>': "SiteGround",
    "<script src=/.well-known/.git.gammaspectra.live/git/go-away/cmd/go-away/challenge/x.js></script>": "go-away",
    "<script>window.gokuProps = {};</script><script src=https://a.token.awswaf.com/1/challenge.js></script>": "AWS WAF",
}
QUOTED: Final = "".join(f"<p>{wall.replace('&', '&amp;').replace('<', '&lt;')}</p>" for wall in WALLS)
SITES: Final = {
    "an article that quotes the markup": f"<title>Walls</title><h1>Walls</h1>{QUOTED}<a href=/>home</a>",
    "a short article": '<h1>Anubis</h1><pre>&lt;script src="/.within.website/x/cmd/anubis/main.mjs"></pre>',
    "code in a comment": f"<h1>A page</h1><!-- {ANUBIS} {CLOUDFLARE} --><p>Text</p>",
    "code in a text field": f"<h1>A page</h1><textarea>{ANUBIS}{CLOUDFLARE}</textarea>",
    "code in an attribute": "<h1>A</h1><div data-code=\"<script src='/.within.website/x/cmd/anubis/a.js'>\"></div>",
    "an article as data": "<h1>A</h1><script id=__NEXT_DATA__ type=application/json>"
    + json.dumps(CLOUDFLARE).replace("</", "<\\/") + "</script>",
    "an app with an article": "<script src=/a.js></script>" * 9 + "<script>f('window._cf_chl_opt = {}')</script>",
    "a description": '<meta name=description content="/.within.website/x/ and _cf_chl_opt, Turnstile">',
    "a link to it": '<a href="/.within.website/x/cmd/anubis/">status</a>',
    "Turnstile": '<form><div class="cf-turnstile"></div></form><script src="https://challenges.cloudflare.com/turnstile/v0/api.js"></script>',
    "reCAPTCHA": '<form><div class="g-recaptcha"></div></form><script src="https://www.google.com/recaptcha/api.js"></script>',
    "passed Cloudflare": "<h1>A</h1><script>window.__CF$cv$params={};a.src='/cdn-cgi/challenge-platform/scripts/jsd/main.js'</script>",
    "passed Imperva": '<title>A</title><h1>Shop</h1><script src="/_Incapsula_Resource?SWJIYLWA=719d"></script>',
    "an app behind Imperva": '<script src="/_Incapsula_Resource?SWJIYLWA=719d"></script><div id=root></div><script src=/app.js></script>',
    "passed DataDome": '<h1>A</h1><script src="https://js.datadome.co/tags.js"></script>',
    "passed HUMAN": "<h1>A</h1><script>window._pxAppId='PX1';</script><script src=/1/init.js></script>",
    "a question": "<h1>Help</h1>What does this mean: The requested URL was rejected. Your support ID is: 1",
    "much more than a wall": ANUBIS + "<p>And so on, with content of its own. </p>" * 60,
    "many links": ANUBIS + "<a href=/x>x</a>" * 20,
    "too long": ANUBIS + " " * LONGEST,
}  # fmt: skip


def seen(body: str, status: int = 200, *given: tuple[str, str]) -> str:
    return wall_of(status, Headers(given or (HTML,)), body.encode())


@pytest.mark.parametrize("status", [200, 202, 401, 403, 405, 406, 429, 468, 503])
@pytest.mark.parametrize("body", WALLS)
def test_the_page_of_a_firewall_is_recognised_with_any_status(body: str, status: int) -> None:
    assert seen(body, status).startswith(WALLS[body] + " (")


@pytest.mark.parametrize("body", WALLS)
@pytest.mark.parametrize("name", ["SCRIPT", "Script", "sCrIpT"])
def test_names_of_elements_are_recognised_in_any_case(body: str, name: str) -> None:
    shouted = body.replace("<script", f"<{name}").replace("</script", f"</{name}")
    assert seen(shouted).startswith(WALLS[body] + " (")


@pytest.mark.parametrize("status", [301, 302, 404, 410])
def test_redirects_and_what_is_not_found_are_answers_of_the_site(status: int) -> None:
    assert seen(ANUBIS, status) == ""


@pytest.mark.parametrize("what", SITES)
def test_page_that_embeds_or_describes_a_check_is_no_wall(what: str) -> None:
    assert seen(SITES[what]) == ""


def test_only_html_is_looked_at() -> None:
    assert seen(ANUBIS, 200, ("content-type", "text/plain")) == ""
    assert seen(ANUBIS, 200, ("server", "x")).startswith("Anubis")


@pytest.mark.parametrize(
    ("status", "name", "value", "wall"),
    [
        (403, "cf-mitigated", "challenge", "Cloudflare"),
        (202, "x-amzn-waf-action", "challenge", "AWS WAF"),
        (405, "x-amzn-waf-action", "captcha", "AWS WAF"),
        (429, "x-vercel-mitigated", "challenge", "Vercel"),
        (403, "X-Sucuri-Block", "BLKHKR", "Sucuri"),
        (202, "sg-captcha", "challenge", "SiteGround"),
        (403, "x-datadome", "protected", "DataDome"),
        (200, "x-datadome", "protected", ""),  # it let the request pass
        (404, "x-datadome", "protected", ""),
        (403, "server", "AkamaiGHost", "Akamai"),
        (503, "server", "AkamaiGHost", ""),
        (200, "x-kpsdk-ct", "1", ""),
        (429, "x-kpsdk-ct", "1", "Kasada"),
        (200, "set-cookie", "techaro.lol-anubis-cookie-verification=1; Path=/", "Anubis"),
        (200, "set-cookie", "datadome=1", ""),
        (302, "location", "https://validate.perfdrive.com/?ssa=1", "Radware"),
        (302, "location", "/login?from=https://validate.perfdrive.com/", ""),
        (403, "server", "cloudflare", ""),
        (200, "content-security-policy", "script-src challenges.cloudflare.com", ""),
    ],
)
def test_a_header_field_decides(status: int, name: str, value: str, wall: str) -> None:
    assert wall_of(status, Headers([(name, value), HTML])).partition(" (")[0] == wall


def test_cloudflares_page_for_errors_of_a_site_is_no_wall() -> None:
    body = '<div id="cf-error-details"><p>Cloudflare Ray ID: <strong>1</strong></p></div>'
    assert seen(body, 403) == "Cloudflare (cf-error-details)"
    assert seen(body, 522) == ""


def test_no_case_of_a_page_is_a_wall() -> None:
    for path in CASES.rglob("*.json*"):
        if path.suffix != ".gz":
            text = path.read_text()
            for line in text.splitlines():
                assert seen(line) == ""
            assert seen(json.dumps(text)) == ""


def test_every_mark_can_be_shown() -> None:
    assert all(mark.shown for mark in PAGES)
    assert all(field.name == field.name.lower() for field in FIELDS)


@given(st.binary(max_size=400), st.sampled_from([*map(str.encode, WALLS), b""]), st.integers(100, 999))
def test_any_answer_is_judged(noise: bytes, wall: bytes, status: int) -> None:
    wall_of(status, Headers([HTML]), noise + wall + noise)
