"""All settings: frozen sections, one for each part of the program, each field declared once.

A field has its help, its unit and its parser; the flags, TOML keys, environment variables, `config`, the
example file and the reference page are generated from it. `settings.load` combines file, environment and
flags.
"""

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from crawler.errors import ConfigError
from crawler.model.protocol import MAX_BYTES, MAX_ENTRIES
from crawler.model.reasons import TRAPS
from crawler.settings import tables
from crawler.settings.after_run import External, Report, Submit
from crawler.settings.object_url import OUTPUT, STATE
from crawler.settings.option import SHARED, Section, Setting, option
from crawler.settings.recipe import NAMES as RECIPES
from crawler.settings.values import (
    ABSENT,
    AGE,
    BYTES,
    CACHE_CONTROL,
    CHOICE,
    COMMAND,
    COUNT,
    DURATION,
    FILE_MODE,
    HOST,
    HOST_HEADER,
    INTERVAL,
    LIST,
    MEDIA_TYPE,
    NETWORK,
    NUMBER,
    PATTERN,
    SECONDS,
    SHARE,
    SWITCH,
    TEXT,
    TIMEOUT,
    VARIABLE,
    WEB_ADDRESS,
)

HTML: Final = "html"  # the format of a sitemap with pages for people beside it
USER_AGENT = "sitemap-crawler"
RULES = ("noindex", "canonical", "x-robots-tag", "nofollow", "duplicate", "logout")


@dataclass(**SHARED)
class Scope(Section):
    """Which URLs belong to the site."""

    start: tuple[str, ...] = option((), "URLs to start from", LIST(TEXT), flag=False)
    scope: str = option(
        "host",
        "what belongs to the site: the start URL's host, its folder (path), its subdomains, or its whole "
        "domain",
        CHOICE("host", "path", "subdomains", "domain"),
    )
    allow_host: tuple[str, ...] = option((), "also crawl and list this host", LIST(HOST, ","))
    include: tuple[str, ...] = option(
        (), "crawl only URLs that match: a glob on path and query, or re:REGEX", LIST(PATTERN)
    )
    exclude: tuple[str, ...] = option((), "do not crawl URLs that match", LIST(PATTERN))
    no_fetch: tuple[str, ...] = option((), "list URLs that match without fetching them", LIST(PATTERN))
    no_list: tuple[str, ...] = option((), "crawl URLs that match, but do not list them", LIST(PATTERN))
    recipe: tuple[str, ...] = option(
        (),
        "leave out what a known system makes besides its pages: archives, lists, histories; "
        "config --recipe NAME shows its patterns",
        LIST(CHOICE(*RECIPES), ","),
    )
    max_depth: int | None = option(
        None, "maximum number of links between a start URL and a page; no limit if absent", ABSENT(COUNT(0))
    )
    max_hosts: int = option(
        1_000,
        "crawl at most this many hosts; with --scope subdomains or domain, names may be endless",
        COUNT(1),
    )
    max_pages: int | None = option(
        None,
        "stop after this many fetched pages (exit 7); of a published site, the others stay as they are",
        ABSENT(COUNT(1)),
    )
    max_time: float | None = option(
        None, "stop after this time (exit 7); of a published site, the rest stays as it is", ABSENT(DURATION)
    )
    budget: int | None = option(
        None,
        "visit this many pages: of a published site new ones, and those likely to have changed",
        ABSENT(COUNT(1)),
    )
    max_age: float = option(
        2_592_000.0, "with a limit, the longest that a page of a published site goes unvisited", AGE
    )
    allow_trap: tuple[str, ...] = option(
        (), "crawl URLs even if they look like this kind of crawler trap", LIST(CHOICE(*TRAPS), ",")
    )
    input: tuple[str, ...] = option((), "add URLs from a file, one per line; - reads stdin", LIST(TEXT), "-i")
    seed_sitemaps: str = option(
        "auto",
        "add URLs from sitemaps: auto (in robots.txt, else /sitemap.xml and the like), a URL, a file, or off",
        TEXT,
    )
    list_only: bool = option(
        False, "fetch only the URLs given (start URLs, --input, sitemaps); follow no links", SWITCH
    )


@dataclass(**SHARED)
class Urls(Section):
    """URL normalisation."""

    strip_param: tuple[str, ...] = option(
        (), "query parameter to remove, in addition to the tracking parameters (* ends a prefix)", LIST(TEXT)
    )
    keep_param: tuple[str, ...] = option((), "tracking parameter to keep", LIST(TEXT))
    drop_query: bool = option(False, "remove the query from every URL", SWITCH)


@dataclass(**SHARED)
class Pace(Section):
    """Politeness and concurrency."""

    concurrency: int = option(16, "maximum number of requests in flight", COUNT(1, 1_000))
    processes: int = option(
        1,
        "number of processes that fetch and parse pages, at most half of --concurrency; 1: no worker "
        "processes",
        COUNT(1),
    )
    rate: float = option(5.0, "maximum requests per second to one host; 0: no limit", NUMBER(0, 100_000))
    max_wait: float = option(600.0, "longest Retry-After or Crawl-delay to wait for", SECONDS)
    every: float | None = option(
        None,
        "repeat the crawl at this interval until terminated; for containers without a scheduler",
        ABSENT(INTERVAL),
    )
    ignore_robots: bool = option(
        False, "crawl URLs that robots.txt disallows; use only on your own site", SWITCH
    )


@dataclass(**SHARED)
class Http(Section):
    """HTTP requests."""

    user_agent: str = option(
        f"{USER_AGENT} (+https://github.com/sitemap-crawler/sitemap-crawler)",
        "User-Agent header; its first word is the product token matched in robots.txt",
        TEXT,
    )
    timeout: float = option(20.0, "longest time to connect, or to wait for more data", TIMEOUT)
    total_timeout: float = option(60.0, "longest time for one page in total, with retries", TIMEOUT)
    retries: int = option(3, "retries after a temporary failure", COUNT(0))
    max_body: int = option(10_000_000, "maximum size of a page after decompression", BYTES(1))
    max_redirects: int = option(10, "maximum number of redirects to follow in a row", COUNT(0))
    header: tuple[str, ...] = option(
        (), "header to send to the start hosts, 'Name: value'", LIST(TEXT), "-H", secret=True
    )
    auth_env: str | None = option(
        None,
        "environment variable with user:password or a bearer token for the start hosts",
        ABSENT(VARIABLE),
    )
    header_for: tuple[str, ...] = option(
        (), "header to send to this host only, which need not be a start host", LIST(HOST_HEADER), secret=True
    )
    cookie_file: str | None = option(None, "Netscape cookie file for the start hosts", ABSENT(TEXT))
    client_cert: str | None = option(
        None, "client certificate for the start hosts (PEM, may contain the key)", ABSENT(TEXT)
    )
    client_key: str | None = option(
        None, "private key of --client-cert, without a passphrase, if it is in another file", ABSENT(TEXT)
    )
    proxy: str | None = option(
        None, "proxy URL, or env to use the standard variables (HTTPS_PROXY …)", ABSENT(TEXT)
    )
    ca_file: str | None = option(None, "file of CA certificates to trust (PEM)", ABSENT(TEXT))
    insecure: bool = option(False, "do not verify certificates; use only on your own site", SWITCH)
    transport: str = option(
        "own",
        "HTTP client that sends the requests: own, or httpx, which a mock of httpx sees and which uses a "
        "connection once",
        CHOICE("own", "httpx"),
    )
    http2: bool = option(False, "use HTTP/2 if the server supports it (needs the http2 extra)", SWITCH)
    allow_address: tuple[str, ...] = option(
        (), "allow requests to this private network (CIDR, optionally with :port)", LIST(NETWORK, ",")
    )


@dataclass(**SHARED)
class Verdicts(Section):
    """Which pages are listed."""

    no_rule: tuple[str, ...] = option((), "rule to switch off", LIST(CHOICE(*RULES), ","))
    types: tuple[str, ...] = option(
        ("html",), "content types to list: html, pdf, or a media type", LIST(MEDIA_TYPE("html", "pdf"), ",")
    )
    bots: tuple[str, ...] = option(("googlebot",), "crawlers whose noindex counts", LIST(TEXT, ","))


@dataclass(**SHARED)
class Render(Section):
    """Pages whose content is made by scripts."""

    render: str = option(
        "off",
        "run the scripts of pages in a browser: off, auto (pages that show nothing without them), or always "
        "(needs the render extra)",
        CHOICE("off", "auto", "always"),
    )
    browser: str | None = option(
        None, "path of the Chromium browser to use; the one of the system if absent", ABSENT(TEXT)
    )


@dataclass(**SHARED)
class Dates(Section):
    """The dates and other attributes of an entry."""

    lastmod: str = option(
        "auto",
        "where lastmod comes from (auto: the most reliable source of each page)",
        CHOICE("auto", "header", "page", "none"),
    )
    lastmod_ignore: tuple[str, ...] = option(
        (), "parts of a page whose changes are no change of it: a CSS selector, as in .visitors", LIST(TEXT)
    )
    changefreq: str | None = option(
        None,
        "changefreq to write for every URL (search engines ignore it)",
        ABSENT(tables.CHANGEFREQ, "none"),
    )
    priority: float | None = option(
        None, "priority to write for every URL (search engines ignore it)", ABSENT(tables.PRIORITY, "none")
    )
    hreflang: bool = option(
        False,
        "write and report on the language versions that pages name (hreflang) and that name them in return",
        SWITCH,
    )
    images: bool = option(
        False,
        "write and list the images that pages show, without those on a large share of the pages",
        SWITCH,
    )


@dataclass(**SHARED)
class Rules(Section):
    """What applies to pages whose URL matches a pattern."""

    rule: tuple[tables.PageRule, ...] = option(
        (),
        "rules for pages by pattern; the first one that matches a page applies",
        tables.PAGE_RULES,
        flag=False,
    )


@dataclass(**SHARED)
class Split(Section):
    """How the sitemap is split."""

    section: tuple[tables.SitemapSection, ...] = option(
        (),
        "sections of the site with files of their own; the first one that matches a page has it",
        tables.SITEMAP_SECTIONS,
        flag=False,
    )


@dataclass(**SHARED)
class Output(Section):
    """The sitemap files."""

    output: str = option(
        "./sitemaps",
        "folder for the sitemap files, or s3://BUCKET/PREFIX, gs://… or az://… (needs the cloud extra); - "
        "writes a single sitemap to stdout",
        OUTPUT,
        "-o",
    )
    publish_base: str | None = option(
        None,
        "base URL the sitemap is for, when a copy of the site is crawled (staging, localhost): written into "
        "the sitemap, and recognised in links",
        ABSENT(WEB_ADDRESS),
    )
    format: str = option(
        "xml",
        "format of the sitemap files (html: xml, with pages for people beside it); in other commands, of "
        "what they print",
        CHOICE("xml", "txt", "jsonl", HTML),
    )
    gzip: bool = option(True, "compress the files", SWITCH)
    file_mode: str = option(
        "0644", "permissions of the files, regardless of the umask; new folders get matching ones", FILE_MODE
    )
    stylesheet: bool = option(
        False, "show the sitemap as a table in browsers, with a CSS file beside it; needs --no-gzip", SWITCH
    )
    publish_command: str | None = option(
        None,
        "command to run after files changed, to copy them elsewhere; it finds their names in SITEMAP_… "
        "variables",
        ABSENT(COMMAND),
        secret=True,
    )
    publish_timeout: float = option(
        600.0, "longest time for --publish-command, and for all requests to an object store", TIMEOUT
    )
    cache_control: str | None = option(
        None, "Cache-Control of the files in an object store", ABSENT(CACHE_CONTROL)
    )
    max_urls: int = option(MAX_ENTRIES, "maximum number of URLs in one file", COUNT(1, MAX_ENTRIES))
    max_bytes: int = option(
        MAX_BYTES, "maximum size of one file before compression", BYTES(10_000, MAX_BYTES)
    )

    @property
    def form(self) -> str:
        """The format of the sitemap itself: xml, txt or jsonl."""
        return "xml" if self.format == HTML else self.format

    @property
    def is_stdout(self) -> bool:
        return self.output == "-"


@dataclass(**SHARED)
class Guard(Section):
    """Conditions for replacing the published sitemap."""

    min_urls: int | None = option(
        None,
        "refuse to publish fewer URLs than this; 1 also publishes a first crawl that looks incomplete",
        ABSENT(COUNT(1)),
    )
    max_shrink: float = option(
        0.2,
        "refuse to publish when more than this share of the URLs is gone, compared with the largest of the "
        "last 7 publications",
        SHARE,
    )
    max_removed: float = option(
        0.5,
        "refuse to publish when more than this share of the published URLs would leave, and are not "
        "redirected",
        SHARE,
    )
    max_failed: float = option(
        0.2,
        "refuse to publish when more than this share of the fetched pages failed, and others that had "
        "answered do not answer any more",
        SHARE,
    )
    max_verdict_change: float = option(
        0.2,
        "refuse to publish when more than this share of the published pages became noindex, canonical "
        "elsewhere, empty or alike",
        SHARE,
    )
    keep_failing: float = option(
        604_800.0,
        "how long a published page that fails temporarily stays listed; 0: not at all",
        AGE,
    )
    allow_partial: bool = option(False, "publish the pages found by an unfinished crawl", SWITCH)
    force: bool = option(
        False, "publish even if the guard refuses, except over the sitemap of another site", SWITCH
    )
    dry_run: bool = option(
        False, "do everything except write the sitemap; the state and reports are written", SWITCH
    )


@dataclass(**SHARED)
class State(Section):
    """The state between runs."""

    state: str | None = option(
        None,
        "state file, :memory:, postgresql://USER@HOST/DATABASE#NAME, or s3://, gs://, az://BUCKET/NAME.db; "
        ".sitemap-crawler/HOST.db if absent",
        ABSENT(STATE),
    )
    run: str | None = option(
        None,
        "name of this run: members with the same name share it, and do not repeat it when it is over "
        "(PostgreSQL only)",
        ABSENT(TEXT),
    )
    fresh: bool = option(False, "delete the state and start over", SWITCH)
    keep_runs: int = option(10, "forget a URL that was not found for this many runs", COUNT(1))
    site: tuple[str, ...] = ()  # no setting: words that name this [[site]], and so its state, to a command


@dataclass(**SHARED)
class Log(Section):
    """The log."""

    log_format: str = option("text", "format of the log on stderr", CHOICE("text", "json"))
    quiet: bool = option(False, "log errors only", SWITCH, "-q")
    verbose: bool = option(False, "log every page", SWITCH, "-v")


@dataclass(**SHARED)
class Settings(Section):
    """All settings: loaded by `load.resolve`, or made by a library user and parsed by `load.checked`."""

    scope: Scope = Scope()
    urls: Urls = Urls()
    pace: Pace = Pace()
    http: Http = Http()
    verdicts: Verdicts = Verdicts()
    render: Render = Render()
    dates: Dates = Dates()
    rules: Rules = Rules()
    split: Split = Split()
    output: Output = Output()
    guard: Guard = Guard()
    submit: Submit = Submit()
    external: External = External()
    report: Report = Report()
    state: State = State()
    log: Log = Log()

    def _check(self) -> None:
        for item in dataclasses.fields(self):
            if not isinstance(getattr(self, item.name), wanted := type(item.default)):
                raise ConfigError(f"Settings.{item.name}: must be a {wanted.__name__} (crawler.settings).")


DEFAULTS: Final = Settings()


def keys() -> Iterator[Setting]:
    """All settings, in the order of the reference."""
    for part in dataclasses.fields(Settings):
        for item in dataclasses.fields(getattr(DEFAULTS, part.name)):
            if item.metadata:
                yield Setting(part.name, item.name, item.metadata["option"], item.default)
