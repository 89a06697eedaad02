"""Posts the message about the end of a run to the URL in the variable that `--webhook-env` names.

That URL is a secret: it appears in no log, error, state, report or metric, and nor does anything that a
failed request says of it. It is requested through our own transport, with the address guard, without
credentials of the crawl, without following redirects, and always with verified certificates. Whatever goes
wrong is a warning.
"""

import json
import logging
import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

import anyio

from crawler.errors import ConfigError
from crawler.fetch.address_guard import AddressGuard
from crawler.fetch.exchange import HttpFetcher
from crawler.fetch.request_headers import Identity, anonymous
from crawler.model.reply import Broken, Reply
from crawler.parse.normalise import Normaliser
from crawler.parse.url import Url
from crawler.ports import Request
from crawler.rules import retries
from crawler.settings.sections import Http

TRIES: Final = 3
SECONDS: Final = 10.0  # for one try
QUICK: Final = 3.0  # the same, when the program was asked to end
PAUSE: Final = 1.0  # seconds between two tries
ANSWER: Final = 10_000  # bytes of an answer that are read

log = logging.getLogger("crawler.app.webhook")


def hook_of(variable: str, environ: Mapping[str, str] = os.environ) -> Url | None:
    """The URL in that variable; None if it is empty, as container tools set those that are absent.

    Raises `ConfigError`, which does not show it.
    """
    text = environ.get(variable)
    if text is None:
        raise ConfigError(f"--webhook-env: the variable {variable} is not set.")
    if not (text := text.strip()):
        log.warning("no messages are sent: the variable is empty", extra={"fields": {"variable": variable}})
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
        fields = {"variable": variable, "because": why}
        log.warning(words, extra={"event": "message not delivered", "fields": fields})


async def _deliver(hook: Url, body: bytes, http: Http, is_ending: Callable[[], bool]) -> str:
    """Posts until a try succeeds; why the last one failed, or nothing."""
    chosen = replace(anonymous(http), insecure=False, http2=False, total_timeout=SECONDS)
    guard = AddressGuard([hook], http.allow_address)
    async with HttpFetcher(chosen, guard, Identity(chosen, ()), connections=1) as fetcher:

        async def post() -> Reply:
            seconds = QUICK if is_ending() else SECONDS
            return await fetcher.fetch(Request(hook, limit=ANSWER, cut=True, seconds=seconds, post=body))

        posting = retries.while_result(
            lambda reply: _is_transient(reply) and not is_ending(),
            tries=TRIES,
            sleep=anyio.sleep,
            wait=lambda _: PAUSE,
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
