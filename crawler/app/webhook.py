"""The message about the end of a run: when it is due, its text, and its delivery.

It is a short text for a chat, and the report without its lists. A chat interprets what it is sent, so
whatever may come from the network stands in a code span, without the characters that could end it or that
Slack reads as commands. It is posted to the URL in the variable that `--webhook-env` names.

That URL is a secret: it appears in no log, error, state, report or metric, and neither does anything that a
failed request says of it. It is requested through our own transport, with the address guard, without
credentials of the crawl, without following redirects, and always with verified certificates. Whatever goes
wrong is a warning.
"""

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import anyio

from crawler.errors import SUCCESS, ConfigError, Exit
from crawler.fetch.exchange import fetcher_of
from crawler.fetch.request_headers import anonymous
from crawler.fetch.retry import because
from crawler.model.log import log
from crawler.model.reply import Broken, Reply
from crawler.model.rows import PublicationRow
from crawler.parse import url as urls
from crawler.parse.credentials import masked
from crawler.parse.normalise import Normaliser
from crawler.parse.url import Url
from crawler.ports import Request
from crawler.report.catalogue import Severity
from crawler.report.formatting import counted
from crawler.report.forms import as_json
from crawler.report.forms.as_text import balance
from crawler.report.log import log_repeated
from crawler.report.printable import printable
from crawler.report.report import Finding, Item, SiteReport
from crawler.rules import retries
from crawler.settings.sections import Http

ITEMS: Final = 5
LONGEST_TEXT: Final = 300  # characters of a URL or a sentence
_CHAT: Final = str.maketrans({"<": "(", ">": ")", "`": "'"})
ENDS: Final = {
    Exit.OK: "is complete",
    Exit.INTERNAL: "failed: internal error",
    Exit.USAGE: "did not start: wrong settings",
    Exit.STORAGE: "failed: something could not be written or read",
    Exit.UNREACHABLE: "failed: the start URL is unreachable",
    Exit.ROBOTS: "failed: robots.txt forbids the start URL",
    Exit.GUARD: "was refused by the publish guard; the old sitemap stays",
    Exit.PARTIAL: "is not complete; the next start resumes it",
    Exit.FINDINGS: "is complete, with findings that --fail-on names",
    Exit.BUSY: "did not start: another run is in progress",
    Exit.INTERRUPTED: "was interrupted",
    Exit.TERMINATED: "was terminated",
}


def is_due(when: str, code: Exit, findings: Sequence[Finding], published: PublicationRow | None) -> bool:
    """Whether a run that ended with `code` is worth a message. `published`: what this run published."""
    if when == "always" or code is not Exit.OK or _new_errors(findings):
        return True
    return when == "change" and code in SUCCESS and _has_changed(published)


def _has_changed(published: PublicationRow | None) -> bool:
    """Whether the publication differs from the one before."""
    if published is None:
        return False
    changes = (published.added, published.removed, published.changed)
    return any(count is None or count > 0 for count in changes)


def _new_errors(findings: Sequence[Finding]) -> list[Finding]:
    return [finding for finding in findings if finding.code.severity is Severity.ERROR and finding.new]


def message(site: str, code: Exit, why: str, report: SiteReport | None) -> dict[str, Any]:
    """The object to post: `text`, and `report` as in docs/use/report.schema.json without its lists."""
    return {"text": text(site, code, why, report), "report": _without_lists(report)}


def text(site: str, code: Exit, why: str, report: SiteReport | None) -> str:
    """At most three lines, and up to five new errors. `why`: the sentence of an error, or of the guard."""
    run = f"run {report.known.run.number} of " if report else "the crawl of "
    lines = [f"sitemap-crawler: {run}{_code(site)} {ENDS[code]} (exit {code.value})"]
    details = [_code(why)] if why else []
    details += [" · ".join(balance(report))] if report else []
    lines += details[:1] if len(details) < 2 else [f"{details[0]} {details[1]}"]
    new = _new_errors(report.findings) if report else []
    if new:
        counts = ", ".join(f"{finding.code.value} {finding.new:,}" for finding in new)
        lines.append(f"New errors: {counts}")
        items = [item for finding in new for item in finding.items if item.new]
        lines += [_item(item) for item in items[:ITEMS]]
    return "\n".join(lines)


def _item(item: Item) -> str:
    where = f", linked from {counted(item.links, 'page')}" if item.links else ""
    return f"• {item.status or 'no answer'} {_code(item.url)}{where}"


def _code(text: str) -> str:
    """Text from the network as a code span: no markup, no link, and no mention of the whole channel."""
    return f"`{printable(masked(text), LONGEST_TEXT).translate(_CHAT)}`"


def _without_lists(report: SiteReport | None) -> dict[str, Any] | None:
    if report is None:
        return None
    values = as_json.masked_json(report)
    for finding in values["findings"]:
        del finding["items"], finding["more"], finding["by_page"], finding["advice"]
    for name in ("changes", "mended", "actions", "folders", "slowest", "largest", "traps"):
        del values[name]
    del values["robots"]["rules"]
    return values


TRIES: Final = 3
SECONDS: Final = 10.0  # for one try
QUICK: Final = 3.0  # the same, when the program was asked to end
PAUSE: Final = 1.0  # seconds between two tries
ANSWER: Final = 10_000  # bytes of an answer that are read


def hook_of(variable: str, environ: Mapping[str, str] = os.environ) -> Url | None:
    """The URL in that variable; None if it is empty, as container tools set those that are absent.

    Raises `ConfigError`, which does not show it.
    """
    text = environ.get(variable)
    if text is None:
        raise ConfigError(f"--webhook-env: the variable {variable} is not set.")
    if not (text := text.strip()):
        log.warning("no messages are sent: the variable is empty", variable=variable)
        return None
    url = None if "@" in text.partition("?")[0] else Normaliser(strip=(), sessions=None).literal(text)
    if url is None:
        raise ConfigError(f"--webhook-env: the variable {variable} does not hold an http or https URL.")
    return url


async def deliver(
    variable: str, hook: Url, body: Mapping[str, Any], http: Http, is_ending: Callable[[], bool]
) -> None:
    """Posts `body` as JSON. `is_ending`: whether the program was asked to end, and has little time."""
    try:
        why = await _deliver(hook, json.dumps(body).encode(), http, is_ending)
    except Exception as error:  # noqa: BLE001 - a message never changes how a run ends; and the error may hold the URL
        why = type(error).__name__
    if why:
        words = f"the message to the URL in {variable} was not delivered: {why}"
        log.warning(words, event="message not delivered", variable=variable, because=why)


async def _deliver(hook: Url, body: bytes, http: Http, is_ending: Callable[[], bool]) -> str:
    """Posts until a try succeeds; why the last one failed, or nothing."""
    chosen = replace(anonymous(http), insecure=False, http2=False, total_timeout=SECONDS)
    async with fetcher_of(chosen, [hook], connections=1) as fetcher:

        async def post() -> Reply:
            seconds = QUICK if is_ending() else SECONDS
            return await fetcher.fetch(Request(hook, limit=ANSWER, cut=True, seconds=seconds, post=body))

        posting = retries.while_result(
            lambda reply: _is_transient(reply) and not is_ending(),
            tries=TRIES,
            sleep=anyio.sleep,
            wait=lambda _: PAUSE,
            repeats=lambda reply, attempt: log_repeated(urls.origin(hook), because(reply), attempt),
        )
        return _wrong_with(await posting(post))


def _wrong_with(reply: Reply) -> str:
    if isinstance(reply, Broken):
        return reply.cause.says
    return "" if 200 <= reply.status < 300 else f"it answered {reply.status}"


def _is_transient(reply: Reply) -> bool:
    if isinstance(reply, Broken):
        return reply.transient
    return reply.status in {408, 429} or reply.status >= 500
