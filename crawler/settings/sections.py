"""What a person can choose: frozen sections, one for each part of the program, each field declared once.

The field carries its help, its unit and how its text is read; the flags, the TOML keys, the environment names,
`config`, the example file and the reference page are all made from here. Nothing is opened or looked up in this
file; `settings.load` puts file, environment and flags together.
"""

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from crawler.model.protocol import MAX_BYTES, MAX_ENTRIES
from crawler.model.reasons import TRAPS
from crawler.settings.values import (
    ABSENT,
    BYTES,
    CHOICE,
    COUNT,
    DURATION,
    FILE_MODE,
    HOST,
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
    Kind,
    T,
)

USER_AGENT = "sitemap-crawler"
RULES = ("noindex", "canonical", "x-robots-tag", "nofollow", "duplicate")


@dataclass(frozen=True, slots=True)
class Option:
    """How one field is spelled and read, outside of Python."""

    help: str
    kind: Kind[Any]
    short: str | None = None
    flag: bool = True  # False: no flag of its own (the start URLs are arguments)
    secret: bool = False  # a value is shown nowhere


def option(
    default: T,
    text: str,
    kind: Kind[T],
    short: str | None = None,
    *,
    flag: bool = True,
    secret: bool = False,
) -> T:
    """A field of a section. Its kind, its default and its annotation must agree, or mypy refuses it."""
    return dataclasses.field(default=default, metadata={"option": Option(text, kind, short, flag, secret)})


@dataclass(frozen=True, slots=True)
class Scope:
    """Which URLs belong to the site."""

    start: tuple[str, ...] = option((), "URLs to start from", LIST(TEXT), flag=False)
    scope: str = option(
        "host",
        "what counts as the site: the host, the folder of the start URL, its subdomains, or its whole domain",
        CHOICE("host", "path", "subdomains", "domain"),
    )
    allow_host: tuple[str, ...] = option((), "another host that belongs to the site", LIST(HOST, ","))
    include: tuple[str, ...] = option(
        (), "crawl only what matches: a glob on path and query, or re:REGEX", LIST(PATTERN)
    )
    exclude: tuple[str, ...] = option((), "do not crawl what matches", LIST(PATTERN))
    no_fetch: tuple[str, ...] = option((), "list what matches without asking for it", LIST(PATTERN))
    no_list: tuple[str, ...] = option((), "crawl what matches, but do not list it", LIST(PATTERN))
    max_depth: int | None = option(
        None, "links to follow from the start; no limit if absent", ABSENT(COUNT(0))
    )
    max_pages: int | None = option(None, "pages to ask for, then stop (exit 7)", ABSENT(COUNT(1)))
    max_time: float | None = option(None, "how long to crawl, then stop (exit 7)", ABSENT(DURATION))
    allow_trap: tuple[str, ...] = option(
        (), "crawl URLs even if they look like this kind of crawler trap", LIST(CHOICE(*TRAPS), ",")
    )
    input: tuple[str, ...] = option((), "a file with one URL a line to add; - reads stdin", LIST(TEXT), "-i")
    seed_sitemaps: str = option(
        "auto", "sitemaps to take URLs from: those robots.txt names (auto), a URL, a file, or off", TEXT
    )
    list_only: bool = option(
        False, "ask only for what is named (start URLs, --input, sitemaps); follow no links", SWITCH
    )


@dataclass(frozen=True, slots=True)
class Urls:
    """When two spellings are one page."""

    strip_param: tuple[str, ...] = option(
        (), "a query parameter to drop, beside the tracking parameters (* ends a prefix)", LIST(TEXT)
    )
    keep_param: tuple[str, ...] = option((), "a tracking parameter to keep", LIST(TEXT))
    drop_query: bool = option(False, "drop every query", SWITCH)


@dataclass(frozen=True, slots=True)
class Pace:
    """How hard the site is asked."""

    concurrency: int = option(16, "requests in flight", COUNT(1, 1_000))
    processes: int = option(
        1, "processes that fetch and read pages, at most half of --concurrency; 1 is this one", COUNT(1)
    )
    rate: float = option(5.0, "requests a second to one host; 0 is unpaced", NUMBER(0, 100_000))
    max_wait: float = option(600.0, "the longest Retry-After or Crawl-delay to sit out", SECONDS)
    ignore_robots: bool = option(False, "crawl what robots.txt forbids: only on a site of your own", SWITCH)


@dataclass(frozen=True, slots=True)
class Http:
    """One exchange."""

    user_agent: str = option(
        f"{USER_AGENT} (+https://example.org/sitemap-crawler)",
        "the User-Agent header; its first word is the name looked for in robots.txt",
        TEXT,
    )
    timeout: float = option(20.0, "the longest silence", TIMEOUT)
    total_timeout: float = option(60.0, "the longest time for one page", TIMEOUT)
    retries: int = option(3, "further tries after a failure that may pass", COUNT(0))
    max_body: int = option(10_000_000, "the largest page, decoded", BYTES(1))
    max_redirects: int = option(10, "redirects in a row", COUNT(0))
    header: tuple[str, ...] = option(
        (), "a header for the start hosts, 'Name: value'", LIST(TEXT), "-H", secret=True
    )
    auth_env: str | None = option(
        None, "the variable that holds user:password or a bearer token for the start hosts", ABSENT(VARIABLE)
    )
    cookie_file: str | None = option(None, "a Netscape cookie file for the start hosts", ABSENT(TEXT))
    proxy: str | None = option(None, "a proxy URL, or env for the standard variables", ABSENT(TEXT))
    ca_file: str | None = option(None, "certificates to trust, in PEM", ABSENT(TEXT))
    insecure: bool = option(False, "do not check certificates: only on a site of your own", SWITCH)
    http2: bool = option(False, "speak HTTP/2 where the server does (needs the http2 extra)", SWITCH)
    allow_address: tuple[str, ...] = option(
        (), "a network (CIDR, or with :port) that may be asked though it is not public", LIST(NETWORK, ",")
    )


@dataclass(frozen=True, slots=True)
class Verdicts:
    """Which pages are listed."""

    no_rule: tuple[str, ...] = option((), "a rule to switch off", LIST(CHOICE(*RULES), ","))
    types: tuple[str, ...] = option(
        ("html",), "what is listed: html, pdf, or a media type", LIST(MEDIA_TYPE("html", "pdf"), ",")
    )


@dataclass(frozen=True, slots=True)
class Dates:
    """What is said of a page beside its URL."""

    lastmod: str = option(
        "auto",
        "where lastmod comes from (auto: what can be believed)",
        CHOICE("auto", "header", "page", "none"),
    )
    changefreq: str | None = option(
        None,
        "write this changefreq (search engines ignore it)",
        ABSENT(CHOICE("always", "hourly", "daily", "weekly", "monthly", "yearly", "never")),
    )
    priority: float | None = option(
        None, "write this priority (search engines ignore it)", ABSENT(NUMBER(0, 1))
    )


@dataclass(frozen=True, slots=True)
class Output:
    """The files."""

    output: str = option(
        "./sitemaps", "the folder for the sitemap; - writes one sitemap to stdout", TEXT, "-o"
    )
    publish_base: str | None = option(
        None,
        "where the site is published: its URLs there are read as those of the crawled copy, and written into the sitemap",
        ABSENT(WEB_ADDRESS),
    )
    format: str = option("xml", "the form of the sitemap", CHOICE("xml", "txt", "jsonl"))
    gzip: bool = option(True, "compress", SWITCH)
    file_mode: str = option(
        "0644", "who may read the files, whatever the umask; folders that are made allow the same", FILE_MODE
    )
    max_urls: int = option(MAX_ENTRIES, "URLs in one file", COUNT(1, MAX_ENTRIES))
    max_bytes: int = option(MAX_BYTES, "bytes of one file before compression", BYTES(10_000, MAX_BYTES))


@dataclass(frozen=True, slots=True)
class Guard:
    """What keeps a bad crawl from replacing a good sitemap."""

    min_urls: int | None = option(
        None,
        "refuse to publish fewer URLs; 1 on purpose publishes for the first time also what looks like no site",
        ABSENT(COUNT(1)),
    )
    max_shrink: float = option(
        0.2,
        "refuse to publish when this share of the URLs is gone, of the largest of the last 7 publications",
        SHARE,
    )
    max_failed: float = option(
        0.2, "refuse to publish when more than this share of the pages asked for failed", SHARE
    )
    max_verdict_change: float = option(
        0.2, "refuse to publish when more of the published pages than this share are noindex, canonical or empty now",
        SHARE,
    )  # fmt: skip
    keep_failing: float = option(
        604_800.0,
        "how long a published page that fails in a way that may pass stays listed; 0: not at all",
        DURATION,
    )
    allow_partial: bool = option(False, "publish what an unfinished crawl knows", SWITCH)
    force: bool = option(False, "publish although the guard refuses", SWITCH)
    dry_run: bool = option(False, "do everything but write the sitemap", SWITCH)


@dataclass(frozen=True, slots=True)
class State:
    """What is remembered."""

    state: str | None = option(
        None, "the state file, or :memory:; .sitemap-crawler/HOST.db if absent", ABSENT(TEXT)
    )
    fresh: bool = option(False, "forget the state and begin anew", SWITCH)
    keep_runs: int = option(10, "runs after which a URL that is no longer found is forgotten", COUNT(1))


@dataclass(frozen=True, slots=True)
class Log:
    """What is said while it works."""

    log_format: str = option("text", "the form of the log on stderr", CHOICE("text", "json"))
    quiet: bool = option(False, "say only what went wrong", SWITCH, "-q")
    verbose: bool = option(False, "say every page", SWITCH, "-v")


@dataclass(frozen=True, slots=True)
class Settings:
    """The whole tree. `settings.load.resolve` fills it; a library user constructs it, and `settings.load.checked` reads it."""

    scope: Scope = Scope()
    urls: Urls = Urls()
    pace: Pace = Pace()
    http: Http = Http()
    verdicts: Verdicts = Verdicts()
    dates: Dates = Dates()
    output: Output = Output()
    guard: Guard = Guard()
    state: State = State()
    log: Log = Log()


@dataclass(frozen=True, slots=True)
class Key:
    """One setting: its section, its Python name, how it is spelled elsewhere, and its default."""

    section: str
    field: str
    option: Option
    default: object

    @property
    def name(self) -> str:
        """As in a flag and in a TOML file: `max-depth`."""
        return self.field.replace("_", "-")

    @property
    def env(self) -> str:
        """As in the environment: `SITEMAP_CRAWLER_MAX_DEPTH`."""
        return "SITEMAP_CRAWLER_" + self.field.upper()


DEFAULTS: Final = Settings()


def settings_of(said: dict[str, dict[str, Any]]) -> Settings:
    """The settings that `dataclasses.asdict` and JSON made of some. Raises `TypeError` for what none are."""
    return Settings(
        **{
            name: type(getattr(DEFAULTS, name))(
                **{key: tuple(value) if isinstance(value, list) else value for key, value in section.items()}
            )
            for name, section in said.items()
        }
    )


def keys() -> Iterator[Key]:
    """Every setting there is, in the order of the reference."""
    for section in dataclasses.fields(Settings):
        for item in dataclasses.fields(getattr(DEFAULTS, section.name)):
            yield Key(section.name, item.name, item.metadata["option"], item.default)
