"""What a page is made from, and whether all of it is still the same, so that it need not be rendered again.

The inputs are the validators of each response that its scripts used, and a digest of what they can see of it.
They can also see the day: a page that names it in a request has no inputs, any other is rendered again after
`DAYS`. A failure is a response, too.
"""

import re
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, timedelta
from hashlib import blake2b
from pathlib import Path
from typing import Final
from urllib.parse import unquote

import anyio
import msgspec

from crawler.fetch.render.resources import Resources, Waiting
from crawler.fetch.render.steady import steady
from crawler.model.facts import Validators
from crawler.model.rendering import LONGEST_INPUTS, MOST_INPUTS, Inputs, UsedAnswer
from crawler.model.reply import Headers, Reply, Response
from crawler.parse.url import Url
from crawler.rules.judge import validators_of

DAYS: Final = 7  # after which a page is rendered again, as its scripts can see the date
MOST_ASKED: Final = 10_000  # answers of a run that are remembered
_EPOCH: Final = date(1970, 1, 1)
_SPELLINGS: Final = ("%Y-%m-%d", "%Y%m%d", "%Y/%m/%d", "%d.%m.%Y", "%d-%m-%Y", "%d/%m/%Y", "%m/%d/%Y")
_SECONDS: Final = re.compile(r"(?<!\d)\d{10}(?=(?:\d{3})?(?!\d))")  # since the epoch, or so many milliseconds
# Headers that may say who asks are not stored.
_SECRET: Final = re.compile(r"auth|token|key|secret|session|sign|csrf|xsrf|cookie")
# Headers that scripts, the browser or the judge read; others may differ each time.
_SEEN: Final = frozenset({
    "content-type", "location", "link", "refresh", "x-robots-tag", "content-location",
    "content-security-policy", "content-range",
})  # fmt: skip
_SEEN_PREFIXES: Final = ("access-control-", "x-total", "x-wp-total", "x-pagination", "x-next-page")


def digest(reply: Reply) -> str:
    """Digest of what can be seen of a response, except its own moment and tokens; of a failure, its cause."""
    if not isinstance(reply, Response):
        return f"broken:{reply.cause.value}"
    seen = sorted(
        field for field in reply.headers if field[0] in _SEEN or field[0].startswith(_SEEN_PREFIXES)
    )
    head = msgspec.json.encode((reply.status, seen))
    return blake2b(steady(reply, head), digest_size=12).hexdigest()


def browser_digest(path: str, *driven: object) -> str:
    """Digest of the file of the browser, which an update changes, and of how it is driven."""
    found = Path(path).stat()
    return blake2b(repr((found.st_size, int(found.st_mtime), driven)).encode(), digest_size=6).hexdigest()


def _answer(url: Url, reply: Reply, asked: int = 0) -> UsedAnswer:
    given = validators_of(reply.headers if isinstance(reply, Response) else Headers())
    return UsedAnswer(url, digest(reply), given.etag, given.modified, asked)


class Recorder:
    """Asks for the resources of one page, and notes what it is made from. `day`: that its clock shows."""

    def __init__(self, resources: Resources, waiting: Waiting, browser: str, day: int) -> None:
        self._resources, self._waiting, self._browser, self.day = resources, waiting, browser, day
        near = [_EPOCH + timedelta(day + more) for more in (-1, 0, 1)]
        self._days = {each.strftime(spelling) for each in near for spelling in _SPELLINGS}
        self._headers: dict[tuple[tuple[str, str], ...], int] = {}
        self._answers: dict[tuple[Url, int], UsedAnswer] = {}
        self._is_whole = True

    async def get(self, url: Url, headers: Mapping[str, str], *, keep: bool) -> Reply:
        reply = await self._resources.get(url, headers, self._waiting, keep=keep)
        self._add(url, headers, reply)
        return reply

    def _add(self, url: Url, headers: Mapping[str, str], reply: Reply) -> None:
        asked = self._headers.setdefault(tuple(sorted(headers.items())), len(self._headers))
        one = _answer(url, reply, asked)
        same = self._answers.setdefault((url, asked), one).digest == one.digest
        said = [unquote(url), *headers.values()]
        self._is_whole &= (
            same
            and len(self._answers) <= MOST_INPUTS
            and not any(map(self._names_the_day, said))
            and not any(map(_SECRET.search, headers))
        )
        if not self._is_whole:
            self._answers.clear()

    def _names_the_day(self, text: str) -> bool:
        """Whether a request would be another one a few days later."""
        moments = (int(found[0]) // 86_400 for found in _SECONDS.finditer(text))
        return any(day in text for day in self._days) or any(abs(day - self.day) < 2 for day in moments)

    def inputs(self, url: Url, shell: Response) -> Inputs | None:
        """All of them; None if they are too many, too long, or not the same for one request."""
        if not self._is_whole:
            return None
        sets = sorted(self._headers)
        order = [sets.index(headers) for headers in self._headers]
        answers = sorted(one._replace(asked=order[one.asked]) for one in self._answers.values())
        known = Inputs(self.day, self._browser, _answer(url, shell), tuple(sets), tuple(answers))
        text = msgspec.json.encode(known)
        try:
            return msgspec.json.decode(text, type=Inputs) if len(text) <= LONGEST_INPUTS else None
        except ValueError:  # a header that is not to be sent
            return None


@dataclass(eq=False, slots=True)
class _Asked:
    lock: anyio.Lock = field(default_factory=anyio.Lock)
    digest: str | None = None


class Inspector:
    """Asks whether what pages were made from is unchanged: each answer once a run."""

    def __init__(self, resources: Resources, browser: str) -> None:
        self._resources, self._browser = resources, browser
        self._asked: OrderedDict[bytes, _Asked] = OrderedDict()

    def may_count(self, known: Inputs, day: int) -> bool:
        """Whether the page could be made in the same way today."""
        return known.browser == self._browser and 0 <= day - known.day < DAYS

    async def are_same(self, known: Inputs, waiting: Waiting) -> bool:
        """Whether all answers are what they were; the first one that is not ends it."""
        for one in known.answers:
            headers = known.headers[one.asked] if one.asked < len(known.headers) else ()
            if not await self._is_same(one, dict(headers), waiting):
                return False
        return True

    async def _is_same(self, one: UsedAnswer, headers: Mapping[str, str], waiting: Waiting) -> bool:
        # Pages that share an answer differ in the referrer.
        alike = sorted((name, value) for name, value in headers.items() if name != "referer")
        key = blake2b(repr((one.url, alike)).encode(), digest_size=16).digest()
        asked = self._asked.setdefault(key, _Asked())
        self._asked.move_to_end(key)
        async with asked.lock:
            if asked.digest is None:
                given = Validators(one.etag, one.modified)
                reply = await self._resources.ask(one.url, headers, waiting, given)
                asked.digest = one.digest if is_confirmed(one, reply) else digest(reply)
        while len(self._asked) > MOST_ASKED:
            self._asked.popitem(last=False)
        return asked.digest == one.digest


def is_confirmed(one: UsedAnswer, reply: Reply) -> bool:
    """Whether a reply says that an answer is still the same (304)."""
    return isinstance(reply, Response) and reply.status == 304 and bool(one.etag or one.modified)
