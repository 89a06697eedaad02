"""The sections for what follows a run: submission, links to other sites, reports. See `settings.sections`."""

from dataclasses import dataclass

from crawler.settings.option import SHARED, Section, option
from crawler.settings.values import (
    ABSENT,
    CHOICE,
    COUNT,
    DURATION,
    KEY,
    LIST,
    LISTEN,
    SWITCH,
    TEXT,
    URL,
    VARIABLE,
)


@dataclass(**SHARED)
class Submit(Section):
    """Submission of changed pages to search engines, by IndexNow."""

    submit: bool = option(
        False,
        "after publication, submit pages whose content changed to search engines by IndexNow (not to Google, "
        "which does not take part)",
        SWITCH,
    )
    indexnow_key: str | None = option(
        None,
        "your IndexNow key, which the site must serve at /KEY.txt; it is public; submit --new-key makes one",
        ABSENT(KEY),
    )
    indexnow_key_location: str | None = option(
        None, "URL of the key file, if it is not at the root of the host", ABSENT(URL)
    )
    indexnow_endpoint: str = option(
        "https://api.indexnow.org/indexnow",
        "IndexNow endpoint of one search engine, which informs the others",
        URL,
    )


@dataclass(**SHARED)
class External(Section):
    """Links to other sites."""

    check_external: bool = option(
        False,
        "after the crawl, check the links to other sites, with at most one request per second to a host",
        SWITCH,
    )
    check_files: tuple[str, ...] = option(
        ("images",),
        "files of pages to check as well: images (those of --images), scripts, styles",
        LIST(CHOICE("images", "scripts", "styles"), ","),
    )
    max_external: int = option(10_000, "maximum number of URLs on other sites to check in one run", COUNT(1))
    max_external_hosts: int = option(1_000, "maximum number of other hosts to check in one run", COUNT(1))
    max_external_time: float = option(1_800.0, "longest time for checking links to other sites", DURATION)


@dataclass(**SHARED)
class Report(Section):
    """Reports, metrics and messages about a run."""

    report: tuple[str, ...] = option(
        (), "write a report of the run: FILE.html, .json, .md or .csv", LIST(TEXT)
    )
    fail_on: tuple[str, ...] = option(
        (), "exit 8 if there are findings of this kind: CODE, new:CODE, error or warning", LIST(TEXT)
    )
    link_pages: int = option(
        50,
        "pages to request again after the crawl, at most, for the text and place of broken links",
        COUNT(0),
    )
    metrics_file: str | None = option(
        None,
        "write metrics for Prometheus to this file at the end of every run, also of one that failed",
        ABSENT(TEXT),
    )
    metrics_port: str | None = option(
        None,
        "serve metrics at http://HOST:PORT/metrics while crawling; the host is 127.0.0.1 if absent",
        ABSENT(LISTEN),
    )
    webhook_env: str | None = option(
        None,
        "environment variable with the URL to which a message is sent when a run ends badly (JSON, by POST)",
        ABSENT(VARIABLE),
    )
    webhook_when: str = option(
        "problem",
        "when to send a message: after a bad end or new errors (problem), also when the sitemap changed "
        "(change), or always",
        CHOICE("problem", "change", "always"),
    )
