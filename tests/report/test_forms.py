"""The forms of a report: their content for a site with all findings, and that nothing of a hostile site takes effect in them."""

import csv
import hashlib
import io
import itertools
import json
import os
import re
import shutil
import subprocess
from base64 import b64encode
from collections import Counter
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from types import ModuleType
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from selectolax.lexbor import LexborHTMLParser

from crawler.fetch.render import chromium
from crawler.model.rows import HostRow
from crawler.model.survey import Knowledge
from crawler.report import actions
from crawler.report.advice import ADVICE
from crawler.report.builder import ReportBuilder
from crawler.report.catalogue import Code
from crawler.report.findings import Findings
from crawler.report.forms import as_csv, as_html, as_json, as_markdown, as_text, svg
from crawler.report.report import Finding, Item, Known, SiteReport
from tests.report.made import AWAY, HOSTILE, SITE, START, MadeState, hostile, planted

ROOT = Path(__file__).parents[2]
SCHEMA = json.loads((ROOT / "docs/use/report.schema.json").read_text())
STATES: dict[str, Callable[[], MadeState]] = {
    "planted": planted,
    "first": lambda: planted(run=1),
    "unfinished": lambda: planted(status="crawling"),
    "hostile": hostile,
    "empty": MadeState,
}
UNSEEN = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2066-\u2069]")
VOID = {"meta", "link", "br", "input", "img", "hr"}


@pytest.fixture(params=STATES, scope="module")
def report(request: pytest.FixtureRequest) -> SiteReport:
    return STATES[request.param]().report()


@pytest.fixture(scope="module")
def markup(report: SiteReport) -> str:
    """The report in HTML."""
    return as_html.text_of(report)


def checked(text: str) -> Any:
    """A report in JSON, checked against its schema and against rules that a schema cannot express."""
    said = json.loads(text)
    jsonschema.validate(said, SCHEMA, cls=jsonschema.Draft202012Validator)
    balance = said["balance"]
    assert balance["discovered"] == balance["open"] + sum(balance["outcomes"].values())
    for finding in said["findings"]:
        assert finding["count"] == len(finding["items"]) + finding["more"]
        assert finding["new"] >= sum(item["new"] for item in finding["items"])
    return said


# -- JSON, CSV, Markdown, text --------------------------------------------------------------------------------


def test_the_line_for_robots_txt_can_be_copied() -> None:
    line = f"Sitemap: {SITE}/sitemap.xml.gz"
    for form in (as_text, as_markdown, as_html, as_json):
        assert line in form.text_of(planted().report())
    assert line in table(planted().report())


def test_json_conforms_to_schema(report: SiteReport) -> None:
    text = as_json.text_of(report)
    checked(text)
    assert text.isascii()
    assert "s3cr3t" not in text


@pytest.mark.parametrize(
    ("run", "status", "differences"),
    [
        (1, "concluded", [3, 1, 20]),  # of the publication, from the files that were there
        (1, "crawling", [None, None, None]),
        (1, "refused", [None, None, None]),
        (2, "concluded", [1, 0, 0]),
        (2, "crawling", [1, None, None]),
    ],
)
def test_json_says_what_the_sitemap_gained(run: int, status: str, differences: list[int | None]) -> None:
    state = MadeState(run=run, status=status)
    state.page("/", seed=START, was="listed" if run > 1 else None)
    state.page("/new")
    sitemap = checked(as_json.text_of(state.report()))["sitemap"]
    assert [sitemap[name] for name in ("added", "removed", "changed")] == differences


def test_schema_has_every_code_and_key() -> None:
    finding = SCHEMA["properties"]["findings"]["items"]["properties"]
    assert finding["code"]["enum"] == [code.value for code in Code]
    assert set(SCHEMA["required"]) == set(json.loads(as_json.text_of(planted().report())))


def table(report: SiteReport) -> str:
    """The rows of a report as CSV, for the pages that it shows."""
    rows = [
        as_csv.item_line(finding.code, item, item.url, source)
        for finding in report.findings
        for item in finding.items
        for source in item.sources or ("",)
    ]
    return "".join([as_csv.line(as_csv.FIELDS), *rows])


def test_csv_has_a_row_for_each_source() -> None:
    rows = list(csv.DictReader(io.StringIO(table(planted().report()))))
    gone = [row for row in rows if row["url"] == f"{SITE}/gone" and row["code"] == "broken-link"]
    assert [row["source"].rpartition("/")[2] for row in gone] == ["candle", "paper", "storm"]
    assert {row["links"] for row in gone} == {"3"}


def test_csv_cells_are_never_formulas(report: SiteReport) -> None:
    cells = [cell for row in csv.reader(io.StringIO(table(report))) for cell in row]
    assert not [cell for cell in cells if cell.startswith(("=", "+", "-", "@", "\t", "\r"))]


@given(st.text())
def test_csv_cell_round_trip(text: str) -> None:
    [[cell]] = csv.reader(io.StringIO(as_csv.line([text or "x"]), newline=""))
    assert not cell.startswith(tuple("=+-@\t\r\n\uff1d\uff0b\uff0d\uff20"))
    assert not re.search("[\0-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", cell)


def test_csv_keeps_joiners_and_escapes_what_turns_text() -> None:
    assert as_csv.cell("\u0645\u06cc\u200c\u0631\u0648\u062f") == "\u0645\u06cc\u200c\u0631\u0648\u062f"
    assert as_csv.cell("photo\u202egnp.exe\x1b[31m\0") == r"photo\u202egnp.exe\x1b[31m\x00"


@given(st.lists(st.none() | st.integers() | st.floats() | st.text(st.sampled_from('ab",; \r\n')), min_size=1))
def test_csv_line_is_that_of_the_standard_library(cells: list[Any]) -> None:
    out = io.StringIO()
    csv.writer(out).writerow([as_csv.cell(one) if isinstance(one, str) else one for one in cells])
    assert as_csv.line(cells) == out.getvalue()


@pytest.mark.parametrize("form", [as_text, as_markdown], ids=["text", "markdown"])
def test_text_and_markdown_escape_invisible_characters(form: ModuleType, report: SiteReport) -> None:
    text = form.text_of(report)
    assert not UNSEEN.search(text)
    assert "s3cr3t" not in text


def test_links_with_nofollow_to_other_sites_are_elsewhere() -> None:
    """Comments of a blog link to thousands: they are no pages of the site that are not listed."""
    state = MadeState()
    state.page("/", links=["/in"], nofollow=[f"{AWAY}/{number}" for number in range(40)], seed=START)
    for number in range(40):
        state.page(f"{AWAY}/{number}", "unlisted:nofollow", status=None)
    blog = "https://blog.shop.example"  # belongs to the site, as it was asked for pages
    state.more = {"hosts": [HostRow(SITE, 2, 0.0), HostRow(blog, 1, 0.0)]}
    for url in ("/in", f"{blog}/in"):
        state.page(url, "unlisted:nofollow", status=None)
    state.page(f"{AWAY}/off", "unlisted:offsite", status=None)
    report = state.report()
    assert "1 listed · 2 unlisted · 1 on other sites · 40 more by nofollow" in as_text.text_of(report)
    html = as_html.text_of(report)
    assert "Not listed: 2<" in html
    assert "1 listed of 3 known URLs of the site" in html
    assert "the bar leaves out the 41 on other sites" in html


def test_text_answers_common_questions() -> None:
    text = as_text.text_of(planted().report())
    assert text.startswith(f"{SITE}/  run 3, 2026-11-18 11:06 UTC, complete\n")
    assert "15 listed · 4 unlisted · 3 moved · 7 failed · 2 on other sites · sitemap +1 -6 ~2" in text
    assert (
        "4 URLs on other sites: 1 answers, 1 broken, 0 unknown; 2 left to the next run (max-external)" in text
    )
    assert "error    broken-link        2 URLs (1 new), 18 links on 15 pages\n" in text
    assert "  404  /legal.html  linked from 15 pages, nearly all: the template\n" in text
    assert "linked from 3 pages: /lanterns/candle, /lanterns/paper, and 1 more\n" in text
    assert "  /shop → /store → /lanterns/\n" in text
    assert "Published: 15 URLs.\n" in text
    assert "mended   broken-link        1 URL: /lost\nmended   redirect-linked    1 URL: /about\n" in text
    assert "- mended: `broken-link`, 1 URL: `/lost`\n" in as_markdown.text_of(planted().report())
    assert "  Correct or remove the link to /legal.html from the template: mends 15 of 18 links\n" in text


def test_hosts_are_named_and_not_by_a_path() -> None:
    report = planted().report()
    assert f"  {SITE}  most pages carry" in as_text.text_of(report)
    assert f"- `{SITE}`, `most pages carry" in as_markdown.text_of(report)


@pytest.mark.parametrize(
    ("status", "sitemap", "tile"),
    [
        ("concluded", "sitemap +1 -0 ~0", "1 added, 0 removed"),
        ("refused", "sitemap unchanged", "unchanged"),
    ],
)
def test_what_changed_is_said_by_severity_and_as_published(status: str, sitemap: str, tile: str) -> None:
    state = MadeState(2, status=status, found={"broken-link": ["/lost"]})
    state.page("/", links=["/lost", "/gone", "/undated"], seed=START, was="listed")
    state.page("/lost", "failed:not-found", status=404, was="failed:not-found")
    state.page("/gone", "failed:not-found", status=404)
    state.page("/undated", lastmod=None)
    report = replace(state.report(), known=refused(state.known()) if status == "refused" else state.known())
    assert f" · {sitemap} · 1 error and 1 info new\n" in as_text.text_of(report)
    tiles = LexborHTMLParser(as_html.text_of(report)).css(".tiles div")
    assert [one.text(separator=" ") for one in tiles][1:] == [
        "Errors 2 1 new, 0 mended",
        "Warnings 0 0 new, 0 mended",
        f"Sitemap since run 1 {tile}" + (" 0 dates changed" if status == "concluded" else ""),
    ]


@pytest.mark.parametrize("form", [as_text, as_markdown, as_html], ids=["text", "markdown", "html"])
def test_a_partial_run_says_so(form: ModuleType) -> None:
    report = planted().report()
    partial = replace(report, known=replace(report.known, partial=Knowledge(15, 9, 0.9, 2.0, 0, 30.0)))
    words = "A limit ended this run after 9 of 15 listed pages: the others are as earlier runs found them."
    ages = "The last visits were less than a day ago on average, 2.0 days at most."
    assert f"{words} {ages}" in form.text_of(partial)
    assert words not in form.text_of(report)
    assert checked(as_json.text_of(partial))["run"]["partial"]


def test_a_column_does_not_repeat_its_heading() -> None:
    cells = LexborHTMLParser(as_html.text_of(planted().report())).css("#t-orphan tbody .phone")
    assert [cell.text() for cell in cells] == ["named by "] * 2


def test_settings_are_shown_as_they_were_given() -> None:
    report = planted().report()
    known = replace(report.known, settings=[("start", f"{SITE}/")])
    assert f"<td>{SITE}/</td>" in as_html.text_of(replace(report, known=known))


def refused(known: Known, reason: str = "Too few.") -> Known:
    """What is known of a run that the guard refused to publish."""
    runs = [*known.runs[:-1], replace(known.runs[-1], refused=reason)]
    return replace(known, run=runs[-1], runs=runs)


def not_published(reason: str) -> SiteReport:
    """The report of a run that the guard refused to publish."""
    state = MadeState(3, status="refused")
    state.page("/", seed=START, was="listed")
    known = refused(state.known(), reason)
    return ReportBuilder(known, Findings.of(known)).report({})


@pytest.mark.parametrize(
    ("refused", "shown"),
    [
        ("Of 1,200 pages (40% (404, 410)), 3 failed.", "Of 1,200 pages (40% (404, 410)), 3 failed."),
        ("or --max-shrink 100% does, and --force.", "or `--max-shrink` 100% does, and `--force`."),
        (
            "12 (such as https://evil.example/@you, /a_b_c): #1.",
            "12 (such as `https://evil.example/@you`, `/a_b_c`): `#1`.",
        ),
        ("(WWW.evil.example) www.x <b> *x* `a` [a](b) a|b", "(`WWW.evil.example`) `www.x` `<b>` `*x*` "),
        ("``` ( (“ ! &amp;", "```` ``` ```` ( (`“` `!` `&amp`;"),
    ],
)
def test_markdown_has_the_refusal_as_plain_text(refused: str, shown: str) -> None:
    text = as_markdown.text_of(not_published(refused))
    assert f"\n**Not published.** {shown}" in text
    assert "NOT PUBLISHED" not in text


@pytest.mark.parametrize("form", [as_text, as_markdown, as_html], ids=["text", "markdown", "html"])
def test_a_refused_run_says_what_is_published_and_why(form: ModuleType) -> None:
    reason = "Only 1 URL would be listed: " + "the last publication had 22 of them, " * 8 + "so it stays."
    text = form.text_of(not_published(reason))
    assert reason in text
    assert "Nothing was found" not in text
    assert "22" in text.replace(reason, ""), "URLs that stand published"


def test_unfinished_run_is_marked_as_such() -> None:
    report = planted(status="crawling").report()
    assert "these are the findings so far" in as_text.text_of(report)
    assert "these are the findings so far" in as_markdown.text_of(report)
    assert "these are the findings so far" in as_html.text_of(report)


@pytest.mark.parametrize("text", ["a`b", "``", "`", "|", "", "a|b`` `c", "<b>", "*x*"])
def test_markdown_code_span_quotes_any_text(text: str) -> None:
    span = as_markdown.code(text)
    fence = re.match("`+", span)
    assert fence
    inner = span[len(fence[0]) : -len(fence[0])]
    assert fence[0] not in re.findall("`+", inner)
    assert "|" not in span


@pytest.mark.parametrize("links", [0, 2])
@pytest.mark.parametrize("name", ["/@mention", "https://evil.example/", "/a: @mention", "/`@mention`"])
def test_markdown_has_pages_that_link_in_code_spans(name: str, links: int) -> None:
    item = Item(SITE + "/x", sources=(name,), links=links)
    words = as_text.linked(item, SITE, Code.BROKEN_LINK, as_markdown.code)
    name = as_markdown.code(name)
    assert words == (f"linked from 2 pages: {name}, and 1 more" if links else f"named by {name}")


def test_markdown_has_advice_as_plain_text() -> None:
    text = as_markdown.text_of(planted().report())
    assert "1. Correct or remove the link to `/legal.html` from the template: mends 15 of 18 links\n" in text


@pytest.mark.parametrize(
    "said", ["@mention", "https://evil.example/", "`", "``@a`", "**x**", f"{SITE}/x", ".", "(“"]
)
def test_markdown_has_text_of_links_in_code_spans(said: str) -> None:
    items = [
        Item(f"{SITE}/{name}", links=30, site_wide=True, text=said, place="nav", detail=f"{SITE}/x{name}")
        for name in ("x", "@y", "index.html", "")
    ]
    for what in (Code.BROKEN_LINK, Code.REDIRECT_LINKED, Code.SERVER_ERROR, Code.BROKEN_IMAGE):
        for action in actions.actions(
            replace(planted().report(), findings=[Finding(what, 4, items=items, links=120)])
        ):
            text = as_markdown._action(action.text, action.quoted, SITE)
            own = re.sub(r"(`+)(?!`).*?(?<!`)\1(?!`)", "", text)
            assert text.count(as_markdown.code(f"“{said}”")) >= 1, text
            assert not re.search(r"[@*/`“]|evil", own), text


def test_advice_has_nothing_that_markdown_reads_as_markup() -> None:
    for finding in Code:
        said = f"{finding.heading}: {ADVICE[finding].split('. ')[0]}"
        assert not re.search(r"[\\*_\[\]<>|&#~@]|://", said), said
        assert "`" not in ADVICE[finding]


def test_markdown_fits_into_a_comment() -> None:
    state = MadeState()
    for number in range(600):
        state.page("/" + "x" * 600 + f"{number}", "failed:dns", detail="y" * 900)
        state.page("/" + "z" * 600 + f"{number}", "failed:not-found", links=[f"/{number}"], title="t")
    assert len(as_markdown.text_of(state.report())) < as_markdown.ROOM


# -- HTML, without a browser ------------------------------------------------------------------------------------


class Outline(HTMLParser):
    """Elements, attributes, and whether every element that is opened is closed in order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: Counter[str] = Counter()
        self.attributes: set[tuple[str, str]] = set()
        self.links: list[str] = []
        self.open: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements[tag] += 1
        self.attributes |= {(tag, name) for name, _ in attrs}
        self.links += [value or "" for name, value in attrs if name in {"href", "src"}]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements[tag] += 1
        self.attributes |= {(tag, name) for name, _ in attrs}

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_html_has_the_elements_of_its_template_and_no_others(markup: str) -> None:
    page = Outline(markup)
    assert page.open == []
    template = as_html._file("page.html.j2")
    own = set(re.findall(r"<([a-z][a-z0-9]*)", template)) | {
        "g",
        "circle",
        "polyline",
        "text",
        "rect",
        "svg",
        "title",
    }
    assert set(page.elements) <= own
    assert (page.elements["script"], page.elements["style"], page.elements["h1"]) == (1, 1, 1)
    assert page.elements["img"] == page.elements["link"] == page.elements["iframe"] == 0
    assert not [
        name for _, name in page.attributes if name.startswith("on") or name in {"style", "src", "action"}
    ]


def test_html_loads_no_external_resource(markup: str) -> None:
    text = markup
    for link in Outline(text).links:
        assert link.startswith(("http://", "https://", "#")), link
    assert "@import" not in text
    assert "url(" not in text.partition("<body>")[0]


def test_html_parses_to_the_same_tree_by_the_standard(markup: str) -> None:
    tree = LexborHTMLParser(markup)
    outline = Outline(markup)
    for name in ("table", "tr", "td", "section", "h2", "h3", "details", "script", "a"):
        assert len(tree.css(name)) == outline.elements[name], name
    ids = [node.attributes["id"] for node in tree.css("[id]")]
    assert len(ids) == len(set(ids))
    targets = {(node.attributes["href"] or "")[1:] for node in tree.css("a[href^='#']")}
    assert targets <= set(ids)


def test_content_security_policy_allows_own_style_and_script() -> None:
    text = as_html.text_of(planted().report())
    tree = LexborHTMLParser(text)
    [policy] = [node.attributes["content"] for node in tree.css("meta[http-equiv='Content-Security-Policy']")]
    assert policy
    assert policy.startswith("default-src 'none'; ")
    for name in ("style", "script"):
        inner = text.partition(f"<{name}>")[2].partition(f"</{name}>")[0]
        digest = b64encode(hashlib.sha256(inner.encode()).digest()).decode()
        assert f"{name}-src 'sha256-{digest}'" in policy
    assert "unsafe" not in policy


def test_html_breaks_no_option_in_two() -> None:
    refused = (
        "Of 9 pages, 5 left (<b>), and --max-verdict-change is 20%; /a--not-this (--force publishes it)."
    )
    text = as_html.text_of(not_published(refused))
    option = '<span class="option">{}</span>'.format
    banner = text.partition("Not published.</strong> ")[2].partition("</p>")[0]
    assert banner == refused.replace("<b>", "&lt;b&gt;").replace(
        "--max-verdict-change", option("--max-verdict-change")
    ).replace("--force", option("--force"))
    known = replace(planted().known(), state_words="--state '<b>.db'")
    text = as_html.text_of(replace(planted().report(most=1), known=known))
    words = f"sitemap-crawler list findings {option('--only')} broken-link {option('--state')} &#39;&lt;b&gt;.db&#39;"
    assert f"the first 1 of 2; all: <code>{words}</code>" in text


def test_html_escapes_invisible_characters_and_masks_secrets() -> None:
    text = as_html.text_of(hostile().report())
    assert not UNSEEN.search(text)
    assert "s3cr3t" not in text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text
    for path in HOSTILE[:3]:
        assert path not in text


def test_html_is_noindex_and_tables_have_captions_and_headers() -> None:
    tree = LexborHTMLParser(as_html.text_of(planted().report()))
    names = {node.attributes["name"]: node.attributes["content"] for node in tree.css("meta[name]")}
    assert (names["robots"], names["referrer"]) == ("noindex", "no-referrer")
    assert all(node.attributes.get("scope") for node in tree.css("th"))
    assert all(node.css_first("caption") for node in tree.css("table"))
    assert all("noreferrer" in (node.attributes["rel"] or "") for node in tree.css("a[href^='http']"))
    assert all(
        node.attributes.get("role") == "img" or node.attributes.get("aria-hidden") for node in tree.css("svg")
    )
    headings = [int((node.tag or "h9")[1]) for node in tree.css("h1, h2, h3")]
    assert headings[0] == 1
    assert all(later - earlier <= 1 for earlier, later in itertools.pairwise(headings))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("code", "heads", "first"),
    [
        ("broken-link", ["URL", "Answer", "Linked from"], ["/legal.html", "404"]),
        ("orphan", ["URL", "Answer", "Named by"], ["/dated", "200"]),
        ("sitemap-stale", ["URL", "Answer", "What", "Named by"], ["/red", "200"]),
        (
            "canonical-broken",
            ["URL", "Answer", "Canonical"],
            ["/red", "200", "canonical /gone: it is not found"],
        ),
        ("noindex-canonical", ["URL", "Answer", "Canonical"], ["/thanks", "200"]),
        ("noindex-for-bot", ["URL", "Answer", "Crawler"], ["/about", "200"]),
        ("blocked-file", ["File", "By", "On"], ["/p.js"]),
        ("lastmod-lies", ["Host", "What"], ["https://shop.example"]),
        ("trap", ["Example", "What"], ["/events/2031/05"]),
        ("mended:-broken-links", ["URL", "Now"], ["/lost", "no longer linked"]),
    ],
)
def test_columns_of_html_say_what_they_show(code: str, heads: list[str], first: list[str]) -> None:
    tree = LexborHTMLParser(as_html.text_of(planted().report()))
    (table,) = tree.css(f'table[id="t-{code}"]')
    assert [head.text() for head in table.css("th")] == heads
    row = [cell.text().removesuffix(" new").strip() for cell in table.css("tbody tr")[0].css("td")]
    assert row[: len(first)] == first


def test_html_with_long_urls_stays_small() -> None:
    state = MadeState()
    longs = [f"/{'l' * 1_900}{number}" for number in range(120)]
    for number, path in enumerate(longs):
        state.page(path, "failed:not-found", status=404, links=longs[number : number + 9], seed=None)
        state.page(f"/{path[1:-1]}-{number}", links=longs[:9], title="t" * 900, content="c", lastmod=None)
    for number in range(120):
        state.page(f"/m{'m' * 1_900}{number}", "moved", redirect=longs[number])
    assert len(as_html.text_of(state.report())) < as_html.LARGEST


def test_the_script_is_small() -> None:
    assert len(as_html._file("filter.js")) < 2_000


def luminance(colour: str) -> float:
    digits = colour[1:] if len(colour) == 7 else "".join(2 * digit for digit in colour[1:])
    parts = [int(digits[place : place + 2], 16) / 255 for place in (0, 2, 4)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    darker, lighter = sorted((luminance(one), luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
def test_colours_have_sufficient_contrast(scheme: int) -> None:
    block = re.findall(r":root \{(.*?)\}", as_html._file("style.css"), re.DOTALL)[scheme]
    colours = dict(re.findall(r"--([a-z]+): (#[0-9a-f]+);", block))
    for name in ("fg", "muted", "link", "bad", "warn"):
        assert contrast(colours[name], colours["bg"]) >= 4.5, name
    for name in ("link", "warn", "muted", "moved", "bad", "good"):
        assert contrast(colours["on"], colours[name]) >= 4.5, name


# -- charts -------------------------------------------------------------------------------------------------------

SHARES = st.lists(st.integers(1, 1_000_000), min_size=1, max_size=60).map(
    lambda values: sorted(values, reverse=True)
)


@given(SHARES)
def test_treemap_areas_are_proportional(values: list[int]) -> None:
    room = svg.Box(0, 0, 960, 320)
    boxes = svg.squarified(values, room)
    whole = sum(values)
    for value, box in zip(values, boxes, strict=True):
        assert box.width * box.height == pytest.approx(960 * 320 * value / whole, rel=1e-3, abs=1e-3)
        assert box.x >= -1e-6
        assert box.y >= -1e-6
        assert box.x + box.width <= 960 + 1e-3
        assert box.y + box.height <= 320 + 1e-3


@given(st.lists(st.one_of(st.none(), st.integers(0, 10**9)), max_size=30), st.text(max_size=20))
def test_charts_are_well_formed_for_any_values(values: list[int | None], label: str) -> None:
    parts = [svg.ChartPart(label, value or 0, "k-listed", label) for value in values]
    for chart in (
        svg.line(values, label),
        svg.stacked(parts, label),
        svg.treemap(parts, label),
    ):
        outline = Outline(chart)
        assert outline.open == []
        assert set(outline.elements) <= {"svg", "title", "g", "rect", "text", "polyline", "circle"}
        assert not [name for _, name in outline.attributes if name == "style" or name.startswith("on")]


# -- HTML, in a browser -------------------------------------------------------------------------------------------

CHROMIUM = next(filter(None, map(shutil.which, chromium.NAMES)), None)
QUIET = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--virtual-time-budget=2000",
)
in_a_browser = [
    pytest.mark.slow,
    pytest.mark.skipif(
        CHROMIUM is None and os.environ.get("CI") != "true",
        reason="needs Debian's chromium, which .ci/run installs",
    ),
]


def browsed(path: Path, *flags: str) -> subprocess.CompletedProcess[str]:
    assert CHROMIUM, "chromium is not installed"
    profile = f"--user-data-dir={path.parent / 'profile'}"
    words = [CHROMIUM, *QUIET, profile, "--enable-logging=stderr", *flags, path.as_uri()]
    return subprocess.run(words, capture_output=True, text=True, check=True, timeout=120)


@pytest.mark.parametrize("name", ["planted", "hostile"])
class TestInABrowser:
    pytestmark = in_a_browser

    def test_no_script_of_the_site_runs_and_policy_refuses_nothing(self, name: str, tmp_path: Path) -> None:
        file = tmp_path / "report.html"
        file.write_text(as_html.text_of(STATES[name]().report()))
        done = browsed(file, "--dump-dom")
        assert "CONSOLE" not in done.stderr
        assert f"<title>{SITE}: report of run" in done.stdout


@pytest.mark.slow
@in_a_browser[1]
def test_filters_work_in_a_browser(tmp_path: Path) -> None:
    state = planted()
    for number in range(20):
        state.page(
            f"/lost-{number}", "failed:not-found", status=404, links=[f"/lost-{number - 1}"], seed=None
        )
    state.page("/", links=[f"/lost-{number}" for number in range(20)])
    text = as_html.text_of(state.report())
    driver = 'const b=document.querySelector("input[data-for=t-broken-link]");b.value="lost-7";b.dispatchEvent(new Event("input"));'
    digest = b64encode(hashlib.sha256(driver.encode()).digest()).decode()
    text = text.replace("script-src ", f"script-src 'sha256-{digest}' ").replace(
        "</body>", f"<script>{driver}</script></body>"
    )
    file = tmp_path / "report.html"
    file.write_text(text)
    tree = LexborHTMLParser(browsed(file, "--dump-dom").stdout)
    rows = tree.css("#t-broken-link tbody tr")
    shown = [row for row in rows if "hidden" not in row.attributes]
    assert 0 < len(shown) < len(rows) == 22
    assert all("lost-7" in row.text() for row in shown)


def test_the_document_explains_every_code() -> None:
    text = (ROOT / "docs/use/report.md").read_text()
    parts = re.split(r"^### ", text, flags=re.MULTILINE)[1:]
    assert [part.splitlines()[0] for part in parts] == [code.value for code in Code]
    assert all(len(part) > 100 for part in parts)
    for part in text.split("\n## ")[1:]:
        severity = part.splitlines()[0].lower().removesuffix("s")
        codes = [code.value for code in Code if code.severity.value == severity]
        assert re.findall(r"^### (.+)", part, re.MULTILINE) == codes


def test_folders_are_those_of_the_site() -> None:
    """Of 490 links with nofollow to another site, nobody asked whether they belong to this one."""
    state = MadeState(1)
    state.page("/", links=["/a/b"], seed=START)
    state.page("/a/b")
    state.page("/a/hidden", "unlisted:nofollow", status=None)
    for number in range(20):
        state.page(f"{AWAY}/{number}", "unlisted:nofollow", status=None)
    assert [(folder.name, folder.urls) for folder in state.report().folders] == [("/a/", 2), ("/", 1)]


def test_many_changes_are_folded_before_the_errors() -> None:
    state = MadeState(2)
    for number in range(21):
        state.page(f"/{number}", "failed:not-found", status=404, detail="404", was="listed")
    state.page("/new", was=None)
    text = as_html.text_of(state.report())
    assert '<details class="change">\n<summary><h3>No longer listed: 21</h3>' in text
    assert '<details class="change" open>\n<summary><h3>Listed now: 1</h3>' in text
    assert "<td>not found (404, 410)</td>" in text


def test_one_folder_needs_no_section() -> None:
    state = MadeState(1)
    state.page("/", links=["/a"], seed=START)
    state.page("/a")
    assert 'id="folders"' not in as_html.text_of(state.report())
    state.page("/b/c")
    assert 'id="folders"' in as_html.text_of(state.report())
