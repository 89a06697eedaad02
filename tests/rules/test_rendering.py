"""Which pages need their scripts to be run: hand-made pages, and what samples show. No browser."""

from datetime import UTC, datetime

import pytest

from crawler.model.facts import Facts
from crawler.model.rendering import LITTLE, MOST_MADE, Needs, PageSummary, Rendering
from crawler.model.reply import Headers, Response
from crawler.model.survey import PagesOfKind, ScriptedKinds
from crawler.model.visit import Lease, Links, ScriptedPages, Visit
from crawler.parse.normalise import Normaliser
from crawler.parse.url import Url
from crawler.rules import rendering as rules
from crawler.rules.judge import Judge, JudgeRules

URL = Url("https://a.example/x")
JUDGE = Judge(JudgeRules("sitemap-crawler", Normaliser(), render="auto"))
BUNDLE = "<script type=module src=/assets/index-4f3a.js></script>"
TEXT = "<p>The lantern was lit at dusk, and nobody in the village knew who had done it. " * 4
NAV = "<nav><a href=/>Home</a><a href=/lanterns>Lanterns</a><a href=/about>About</a></nav>"


def facts(markup: str, lease: Lease | None = None, before: Rendering | None = None) -> Facts:
    reply = Response(
        200,
        Headers([("content-type", "text/html; charset=utf-8")]),
        f"<!doctype html>{markup}".encode(),
        rendering=before,
    )
    found = JUDGE(lease or Lease(1, 1, Visit(URL)), reply, datetime(2026, 1, 1, tzinfo=UTC)).facts
    assert found
    return found


SHELLS = {
    "vue": f"<noscript><strong>We're sorry but this app needs JavaScript.</strong></noscript><div id=app></div>{BUNDLE}",
    "react": "<noscript>You need to enable JavaScript.</noscript><div id=root></div><script defer src=/main.js></script>",
    "angular": "<base href=/><app-root></app-root><script src=main.js type=module></script>",
    "svelte": "<div style='display: contents'><script>import('/_app/start.js')</script></div>",
    "nuxt without server": "<div id=__nuxt></div><script type=module src=/_nuxt/entry.js></script>",
    "next without server": "<div id=__next></div><script id=__NEXT_DATA__ type=application/json>{}</script>"
    "<script src=/_next/main.js defer></script>",
    "no mount": "<body><script src=/assets/vendor.js></script><script src=/assets/app.js></script>",
    "skeleton": f"<div id=app>Loading…{'<div class=bar></div>' * 40}</div>{BUNDLE}",
    "long noscript": f"<div id=app></div><noscript>{TEXT}</noscript>{BUNDLE}",
    "template": f"<div id=app></div><template>{TEXT}{NAV}</template>{BUNDLE}",
    "comment and style": f"<!-- {TEXT}{NAV} --><style>{'p { color: red } ' * 40}</style>{BUNDLE}",
    "cookie notice": f"<div id=app></div><p>We use cookies.</p><button>OK</button>{BUNDLE}",
    "links elsewhere": f"<div id=app></div><a href=https://b.example/>B</a><a href=mailto:a@b.example>Mail</a>{BUNDLE}",
    "link to itself": f"<div id=app></div><a href=#top>Top</a><a href=/x>Here</a>{BUNDLE}",
    "routes behind #": f"<div id=app></div><a href=#/about>About</a>{BUNDLE}",
    "buttons": f"<button onclick=\"location='/a'\">A</button><a href='javascript:go()'>B</a>{BUNDLE}",
    "honest short page that counts visits": "<h1>Closed</h1><p>Until Monday.</p><script src=/count.js></script>",
}
SAMPLED = {
    "next": f"<div id=__next>{NAV}{TEXT}</div><script id=__NEXT_DATA__ type=application/json>{{}}</script>"
    "<script src=/_next/main.js defer></script>",
    "nuxt": f"<div id=__nuxt>{NAV}{TEXT}</div><script>window.__NUXT__ = {{}}</script>",
    "link beside the mount": f"<div id=app></div><footer><a href=/imprint>Imprint</a></footer>{BUNDLE}",
    "links in noscript": f"<div id=app></div><noscript>{NAV}</noscript>{BUNDLE}",
    "cookie wall": f"<div id=app></div><div role=dialog>{TEXT * 2}</div>{BUNDLE}",
    "menu by script": f"<nav id=menu></nav>{TEXT}<script src=/menu.js></script>",
    "list by script": f"{NAV}<ul id=list></ul><script src=/list.js></script>",
    "frameset": "<script src=/old.js></script><frameset><frame src=/menu><frame src=/main></frameset>",
    "feed": f"<link rel=alternate type=application/rss+xml href=/feed><div id=app></div>{BUNDLE}",
    "no spaces": f"<div id=app>{'燈籠在黃昏時點亮。' * 30}</div>{BUNDLE}",
}
NEVER = {
    "honest short page": "<h1>Closed</h1><p>Until Monday.</p>",
    "empty page": "",
    "data": "<div id=app></div><script type=application/ld+json>{}</script>",
    "import map": "<div id=app></div><script type=importmap>{}</script>",
    "template in a script": f"<div id=app></div><script type=text/x-handlebars>{NAV}</script>",
}  # fmt: skip


@pytest.mark.parametrize("markup", SHELLS.values(), ids=SHELLS)
def test_page_that_shows_nothing_is_rendered_at_once(markup: str) -> None:
    seen = facts(markup).rendering
    assert seen
    assert (seen.needs, seen.is_due) == (Needs.SHELL, True)


@pytest.mark.parametrize("markup", SAMPLED.values(), ids=SAMPLED)
def test_page_that_shows_something_may_be_a_sample(markup: str) -> None:
    found = facts(markup)
    assert found.rendering is None
    assert found.scripts is not None


@pytest.mark.parametrize("markup", NEVER.values(), ids=NEVER)
def test_page_without_scripts_is_never_rendered(markup: str) -> None:
    found = facts(markup)
    assert (found.rendering, found.scripts) == (None, None)


LIST = "".join(f"<a href=/lanterns/{number}>Lantern {number}</a>" for number in range(10))
MENU = "".join(f"<a href=/guides/{number}>Guide {number}</a>" for number in range(40))
BANNER = "<div role=dialog>We use cookies. <a href=/privacy>More about them</a> <button>OK</button></div>"
SITE = f"{NAV}{TEXT}{BUNDLE}"


@pytest.mark.parametrize(
    ("before", "after", "shows_more"),
    [
        (SITE, SITE, False),  # hydrated
        (SITE, f"{SITE}{BANNER}", False),
        (SITE, f"{NAV}{BUNDLE}", False),  # scripts took the text away
        (SITE, f"{SITE}<p>{'y' * LITTLE}", False),
        (SITE, f"{SITE}{LIST}", True),
        (f"{SITE}{MENU}", f"{SITE}{MENU}{LIST}", True),
        (f"{SITE}{MENU}", f"{SITE}{MENU}{BANNER}", False),
        (f"{NAV}<ul id=list></ul>{BUNDLE}", f"{NAV}{LIST}{BUNDLE}", True),
        (f"<nav id=menu></nav>{TEXT}{BUNDLE}", f"{NAV}{TEXT}{BUNDLE}", True),
        (f"{NAV}<main>Loading…</main>{BUNDLE}", f"{NAV}{TEXT}{BUNDLE}", True),
        (f"<noscript>{NAV}</noscript>{BUNDLE}", f"{NAV}{TEXT}{BUNDLE}", True),
        (f"<div role=dialog>{TEXT}</div>{BUNDLE}", f"<div role=dialog>{TEXT}</div>{NAV}{BUNDLE}", True),
        (SITE, f"<meta name=robots content=noindex>{SITE}", True),
        (SITE, f"<link rel=canonical href=/y>{SITE}", True),
        (f"<link rel=canonical href=/x>{SITE}", SITE, False),
        (f"<meta name=robots content=nofollow>{SITE}", SITE, True),
    ],
)
def test_sample_shows_whether_scripts_matter(before: str, after: str, shows_more: bool) -> None:
    lease = Lease(1, 1, Visit(URL), scripted=ScriptedPages(frozenset({URL})))
    seen = facts(before, lease).rendering
    assert seen
    assert (seen.needs, seen.is_due) == (Needs.SAMPLE, True)
    rendered = facts(after, lease, seen).rendering
    assert rendered
    assert rendered.shows_more is shows_more


MORE, SAME = PageSummary(5, text=900), PageSummary(2, text=150)


@pytest.mark.parametrize(
    ("samples", "is_proven", "sample"),
    [
        ([None], False, "/p/8"),
        ([None, None], False, "/p/8"),
        ([None, None, None], False, None),  # its pages may take long, each
        ([None, MORE], True, None),
        ([None, SAME], False, None),
        ([None, None, None, MORE], False, None),
    ],
)
def test_sample_whose_rendering_fails_decides_nothing(
    samples: list[PageSummary | None], is_proven: bool, sample: str | None
) -> None:
    one, other = "a" * rules.KIND, "b" * rules.KIND
    before = PageSummary(2, text=100)
    known = [
        (Url(f"https://a.example/p/{number}"), one + other, Rendering(Needs.SAMPLE, before, after))
        for number, after in enumerate(samples)
    ]
    plain = [PagesOfKind(kind, 3, Url("https://a.example/p/8")) for kind in (one, other)]
    proven, asked = rules.decided(ScriptedKinds(plain, known))
    assert proven == (frozenset({one, other}) if is_proven else frozenset())
    assert asked == ([f"https://a.example{sample}"] if sample else [])


def test_links_that_only_scripts_made_are_kept() -> None:
    before = Links((Url("https://a.example/menu"),), (Url("https://a.example/avoided"),))
    more = [f"https://a.example/{path}" for path in ("x", "menu", "avoided", *map(str, range(20)))]
    found = rules.made(URL, before, Links((Url("https://b.example/"), *map(Url, more))))
    assert found == tuple(f"https://a.example/{number}" for number in range(MOST_MADE))
    assert rules.made(URL, before, before) == ()


@pytest.mark.parametrize("new", [True, False])
def test_a_sample_that_led_to_a_new_page_decides(new: bool) -> None:
    made = tuple(Url(f"https://a.example/item/{number}") for number in range(3))
    same = PageSummary(40, text=900)
    seen = Rendering(Needs.SAMPLE, same, same._replace(links=43), made=made)
    kinds = frozenset(("a" * rules.KIND, "b" * rules.KIND))
    plain = [PagesOfKind("b" * rules.KIND, 3, Url("https://a.example/y"))]
    known = ScriptedKinds(plain, [(URL, "".join(sorted(kinds)), seen)], frozenset(made[2:] if new else ()))
    assert rules.decided(known) == (kinds if new else frozenset(), [])
    last = seen._replace(needs=Needs.PATTERN)  # and is rendered again the next night
    assert (seen.needs_scripts, last.needs_scripts) == (False, True)
    assert not last._replace(made=()).needs_scripts
