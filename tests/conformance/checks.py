"""One check for each kind of case: what was expected, and what our code answers.

Each calls the functions that the crawl calls. A check that raises is a failure of the case.
"""

import time
from base64 import b64decode
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import urlsplit

from lxml import etree

from crawler.fetch.exchange import conditions
from crawler.model.facts import Entry, Validators
from crawler.model.reply import Headers, Response
from crawler.model.visit import Lease, Visit
from crawler.parse import dates, encoding, html, page_links, robots_meta, srcset
from crawler.parse import headers as fields
from crawler.parse import url as urls
from crawler.parse.normalise import Normaliser
from crawler.parse.refresh import parse_refresh
from crawler.parse.robots_txt import parse
from crawler.parse.url import Url
from crawler.ports import Request
from crawler.rules.indexing import Audience, indexing
from crawler.rules.judge import Judge, JudgeRules
from crawler.sitemap import read
from crawler.sitemap.write.writer import Style, Writer

Given = dict[str, Any]
Check = Callable[[Given], tuple[Any, Any]]
NOW = datetime(2026, 11, 21, tzinfo=UTC)
US = "sitemap-crawler"
BOUND = 10.0  # seconds of CPU for any robots.txt: hundreds of times what one takes, on any machine
normalise = Normaliser()
plain = Normaliser(strip=())


# -- robots.txt ------------------------------------------------------------------------------------------


def _target(url: str) -> str:
    """As the crawl asks: the path and query of the URL as it is fetched."""
    whole = url if "://" in url else "http://a.example" + (url if url.startswith("/") else f"/{url}")
    parts = urlsplit(whole)
    return (parts.path or "/") + (f"?{parts.query}" if "?" in whole else "")


def allowed(given: Given) -> tuple[Any, Any]:
    rules = parse(given["robots_txt"].encode("utf-8", "surrogatepass"), given["user_agent"])
    return given["allowed"], rules.permit(_target(given["url"])).allowed


def crawl_delay(given: Given) -> tuple[Any, Any]:
    return given["delay"], parse(given["robots_txt"].encode(), given["user_agent"]).delay


def robots_sitemaps(given: Given) -> tuple[Any, Any]:
    return given["sitemaps"], parse(given["robots_txt"].encode(), given.get("user_agent") or US).sitemaps


def robots_real(given: Given) -> tuple[Any, Any]:
    """A whole file of a real site: read and asked without an exception, in bounded time."""
    began = time.process_time()
    for agent in (US, "Googlebot", "*"):
        rules = parse(b64decode(given["robots_b64"]), agent)
        for path in ("/", "/a/b.html?c=d", "/" + "a" * 2_000, "/*$", "/search?q=" + "%20" * 500):
            rules.permit(path)
    return True, time.process_time() - began < BOUND


# -- URLs ------------------------------------------------------------------------------------------------


def _is_crawlable(href: str | None) -> bool:
    return href is not None and href.startswith(("http:", "https:"))


def whatwg(given: Given) -> tuple[Any, Any]:
    """Any http(s) result must be equal; any other result or failure must not become an http(s) URL."""
    expected = None if given.get("failure") else given.get("href")
    base = given.get("base")
    got = urls.join(None if base in {None, "", "about:blank"} else base, given["input"])
    if not _is_crawlable(expected) and not _is_crawlable(got):
        return None, None
    return expected, got


def host(given: Given) -> tuple[Any, Any]:
    """A host name to ASCII, as the URL parser does it."""
    got = urls.join(None, f"https://{given['input']}/x") if given["input"] else None
    return given["output"] or None, urls.host(got) if got else None


def query_percent_encoding(given: Given) -> tuple[Any, Any]:
    """A query is spelled in the encoding of the page it stands on."""
    got = {}
    for name in given["output"]:
        page = html.extract(
            html.PageSource(
                encoded(f"<a href='?{given['input']}'>", name), "https://a.example/", charset=name
            )
        )
        [href] = page.followed
        joined = urls.join("https://a.example/", href) or ""
        got[name] = joined.partition("?")[2]
    return given["output"], got


def encoded(markup: str, name: str) -> bytes:
    """The markup in an encoding; what that cannot hold stands there as a character reference."""
    return markup.encode("gb18030" if name == "gbk" else name, "xmlcharrefreplace")


def reference(given: Given) -> tuple[Any, Any]:
    """RFC 3986 5.4, which compares after 6.2: http(s) only."""
    expected = plain(given["href"])
    return expected, plain(given["input"], given["base"])


def pair(given: Given) -> tuple[Any, Any]:
    return plain(given["output"]) or given["output"], plain(given["input"])


# -- HTML ------------------------------------------------------------------------------------------------

LINKING = {"a": "href", "area": "href", "link": "href", "base": "href", "iframe": "src", "frame": "src"}
MATH_TEXT = {"mi", "mo", "mn", "ms", "mtext"}
SVG_HTML = {"foreignobject", "desc", "title"}
READ = {*LINKING, "meta"}  # elements whose attributes the crawl reads


def _namespace(node: Any) -> str:
    """Which of the three namespaces the standard puts an element into, told from its ancestors."""
    parent = node.parent
    outer = _namespace(parent) if parent is not None else "html"
    tag = str(node.tag).lower()
    own = tag if tag in {"svg", "math"} else "html"
    if outer == "html":
        return own
    above = str(parent.tag).lower()
    if outer == "svg":
        return own if above in SVG_HTML else "svg"
    if above in MATH_TEXT:
        return "math" if tag in {"mglyph", "malignmark"} else own
    if above == "annotation-xml":
        coding = (parent.attributes.get("encoding") or "").lower()
        if coding in {"text/html", "application/xhtml+xml"} or tag == "svg":
            return own
    return "math"


def start_tags(given: Given) -> tuple[Any, Any]:
    """The tree of elements, with the attributes that the crawl reads. The contents of a template are no document, so
    where one is, the links alone are compared.
    """
    tree = html.tree_of(given["html"].encode("utf-8", "surrogatepass"), "utf-8")
    nodes = [node for node in tree.root.traverse() if str(node.tag)[0] not in "-!"] if tree.root else []
    nodes = [node for node in nodes if _namespace(node) == "html"]
    got = [
        _element(str(node.tag), {name: value or "" for name, value in node.attributes.items()})
        for node in nodes
    ]
    expected = [_element(tag, had) for tag, had in given["elements"]]
    links = [
        [tag, LINKING[tag], had[LINKING[tag]]] for tag, had in got if tag in LINKING and LINKING[tag] in had
    ]
    if any(tag == "template" for tag, _ in expected):
        return given["links"], links
    return (given["links"], expected), (links, got)


def _element(tag: str, attributes: dict[str, str]) -> tuple[str, dict[str, str]]:
    return tag, attributes if tag in READ else {}


def href_value(given: Given) -> tuple[Any, Any]:
    tree = html.tree_of(given["html"].encode("utf-8", "surrogatepass"), "utf-8")
    return given["href"], tree.css("a")[0].attributes.get("href")


def links(given: Given) -> tuple[Any, Any]:
    page = html.extract(
        html.PageSource(b64decode(given["html_b64"]), given["url"], charset=given.get("charset"))
    )
    followed, avoided, *_ = page_links.resolve(page, plain)
    expected = {plain(link) for link in given["links"]} - {None}
    return sorted(expected), sorted({*followed, *avoided})


def html_sample(given: Given) -> tuple[Any, Any]:
    page_links.resolve(
        html.extract(html.PageSource(b64decode(given["html_b64"]), "https://a.example/")), plain
    )
    return None, None


def sniff(given: Given) -> tuple[Any, Any]:
    page = html.extract(
        html.PageSource(b64decode(given["html_b64"]), "https://a.example/", charset=given.get("charset"))
    )
    return _label(given["encoding"]), _label(page.encoding)


def _label(name: str | None) -> str | None:
    """One name for an encoding, however it is spelled."""
    return _standard(name) or (name or "").lower() or None


def _standard(label: str | None) -> str | None:
    """The encoding that a label of HTTP means, if the standard has it."""
    found = encoding.sniff(b"", label)
    return found.name if found.certain else None


def content_type(given: Given) -> tuple[Any, Any]:
    essence, charset = fields.content_type(given["header"])
    return [given["essence"], _label(given["encoding"])], [essence, _standard(charset)]


def base(given: Given) -> tuple[Any, Any]:
    page = html.extract(html.PageSource(given["html"].encode(), given["document_url"], charset="utf-8"))
    return given["base_url"], page.base


def refresh(given: Given) -> tuple[Any, Any]:
    """The URL is compared as the crawl uses it: joined with the base of its page."""
    page = html.extract(html.PageSource(given["html"].encode(), given["document_url"], charset="utf-8"))
    delay, target = page.refresh or (None, None)
    got = [None if delay is None else int(delay), urls.join(page.base, target) if target else None]
    if given["target"] is None:  # the page is not to be left
        return None, got[1] if got[1] != urls.join(given["document_url"], "") else None
    return [given["delay"], urls.join(given["document_url"], given["target"])], got


def refresh_content(given: Given) -> tuple[Any, Any]:
    """`url` null where there is a refresh: the document itself."""
    found = parse_refresh(given["content"])
    if not given["refreshes"]:
        # A refresh to something that is no URL is none: joining decides.
        joined = found and urls.join("https://a.example/", found[1])
        return None, joined if found and found[1] else found
    document = "https://a.example/dir/page"
    wanted = urls.join(document, given["url"]) if given["url"] else document
    return (
        [given["delay"], wanted],
        found and [int(found[0]), urls.join(document, found[1]) if found[1] else document],
    )


def x_robots_tag(given: Given) -> tuple[Any, Any]:
    headers = Headers([(name, value) for name, value in given["headers"]])
    agent = given.get("user_agent") or US
    rules = robots_meta.addressed(headers.all("x-robots-tag"))
    said = indexing(rules, Audience(agent.lower(), frozenset()), NOW)
    return given["value"], getattr(said.directives, given["field"])


def first_candidate(given: Given) -> tuple[Any, Any]:
    found = [candidate.url for candidate in srcset.candidates(given["srcset"])]
    return given["first_url"], found[0] if found else None


# -- HTTP ------------------------------------------------------------------------------------------------


def date(given: Given) -> tuple[Any, Any]:
    """A form that RFC 9110 does not name may be taken or left, but never for another instant."""
    got = dates.http_date(given["date"], NOW)
    epoch = None if got is None else int(got.timestamp())
    if given.get("form") == "other" and epoch is None:
        return None, None
    return given["epoch"], epoch


def expires(given: Given) -> tuple[Any, Any]:
    """What a cache may not trust we do not trust either."""
    got = dates.http_date(given["date"], NOW)
    return given["expected"], "cached" if got and got > NOW else "not_cached"


def header_links(given: Given) -> tuple[Any, Any]:
    found = fields.links([given["header"] or ""])
    return sorted(given["links"]), sorted([rel, link.target] for link in found for rel in link.rels)


def validators(given: Given) -> tuple[Any, Any]:
    """What is sent the next time, from what the judge keeps of this answer."""
    stored = [("Content-Type", "text/html"), *((name, value) for name, value in given["stored_headers"])]
    url = Url("https://a.example/")
    reply = Response(200, Headers(stored), b"<p>x")
    verdict = Judge(JudgeRules(US, normalise))(Lease(1, 1, Visit(url)), reply, NOW)
    kept = verdict.facts.validators if verdict.facts else Validators()
    sent = {(name.lower(), value) for name, value in conditions(Request(url, kept)).items()}
    wanted = {(name.lower(), value) for name, value in given["must_send"]}
    return sorted(wanted), sorted(wanted & sent)


# -- sitemaps --------------------------------------------------------------------------------------------


def _found(given: Given) -> tuple[list[read.Found], read.SitemapReading]:
    reading = read.read([b64decode(given["body_b64"])])
    return list(reading), reading


def entries(given: Given) -> tuple[Any, Any]:
    """An empty lastmod and none say the same."""
    found, _ = _found(given)
    wanted = [[loc, lastmod or None] for loc, lastmod in zip(given["locs"], given["lastmods"], strict=True)]
    return wanted, [[item.loc, item.lastmod] for item in found]


def parsed(given: Given) -> tuple[Any, Any]:
    found, reading = _found(given)
    at = given.get("url") or "https://a.example/sitemap.xml"
    kept = {(item.kind, plain(item.loc, at)) for item in found if plain(item.loc, at)}
    got = {
        "urls": sum(kind == "page" for kind, _ in kept),
        "sitemaps": sum(kind == "sitemap" for kind, _ in kept),
        "error": reading.malformed is not None,
    }
    return given["expect"], {name: got.get(name) for name in given["expect"]}


def sitemap_sample(given: Given) -> tuple[Any, Any]:
    _found(given)
    return None, None


SAMPLE = (
    Entry(Url("https://a.example/"), datetime(2024, 2, 29, 1, 2, 3, tzinfo=UTC)),
    Entry(Url("https://a.example/b?c=d&e='f'")),
)


def schema(given: Given) -> tuple[Any, Any]:
    """What we write is valid by the schema: a set, or an index where it is the schema of indexes."""
    text = given.get("schema") or given.get("xsd") or given.get("text") or b64decode(given["body_b64"])
    rules = etree.XMLSchema(etree.fromstring(text if isinstance(text, bytes) else text.encode()))
    with TemporaryDirectory() as name:
        writer = Writer(Path(name), "https://a.example", Style(gzip=False, max_urls=1))
        writer.add(SAMPLE)
        parts = writer.finish()
        trees = [etree.parse(Path(name) / part.name) for part in parts]
    valid = [rules.validate(tree) for tree in trees]
    return True, valid in ([True, True, False], [False, False, True])


CHECKS: dict[tuple[str, str], Check] = {
    ("robots", "allowed"): allowed,
    ("robots", "crawl_delay"): crawl_delay,
    ("robots", "sitemaps"): robots_sitemaps,
    ("url_parse", "whatwg"): whatwg,
    ("url_parse", "resolve"): whatwg,
    ("url_parse", "toascii"): host,
    ("url_parse", "idna"): host,
    ("url_parse", "query_percent_encoding"): query_percent_encoding,
    ("url_parse", "normal"): reference,
    ("url_parse", "abnormal"): reference,
    ("url_normalise", "pair"): pair,
    ("html_tree", "start_tags"): start_tags,
    ("html_tree", "href_value"): href_value,
    ("html_links", "page"): links,
    ("html_links", "sample"): html_sample,
    ("html_encoding", "sniff"): sniff,
    ("html_encoding", "content_type"): content_type,
    ("html_base_refresh", "base"): base,
    ("html_base_refresh", "refresh"): refresh,
    ("html_base_refresh", "refresh_content"): refresh_content,
    ("html_base_refresh", "x_robots_tag"): x_robots_tag,
    ("srcset", "first_candidate"): first_candidate,
    ("http_dates", "date"): date,
    ("http_dates", "expires"): expires,
    ("http_dates_made", "asctime"): date,
    ("http_dates_made", "imf-fixdate"): date,
    ("http_dates_made", "rfc850"): date,
    ("link_header", "links"): header_links,
    ("conditional", "sends_if_none_match"): validators,
    ("conditional", "sends_if_modified_since"): validators,
    ("sitemaps", "entries"): entries,
    ("sitemaps", "parse"): parsed,
    ("sitemaps", "sample"): sitemap_sample,
    ("xsd", "schema"): schema,
}


def check_for(topic: str, kind: str) -> Check:
    """The check of a kind. Raises `KeyError` for one that is not known."""
    return robots_real if topic == "robots_real" else CHECKS[topic, kind]
