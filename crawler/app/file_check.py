"""Checks files that listed pages load (`--check-files` with `--check-external`): whether they answer.

Files on hosts of the site are requested like its pages: by robots.txt, at the pace of the crawl; all others
like links to other sites (`external`). By HEAD, and by GET where HEAD may not tell. Files that are broken, or
disallowed by robots.txt of the site, are noted for the report and the next sitemap; what was known of files
that were not requested stays.
"""

from collections import defaultdict
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from hashlib import blake2b
from heapq import heappop, heappush
from itertools import islice
from typing import Final, NamedTuple

import anyio

from crawler.app.broken_files import MOST_NOTED
from crawler.app.external import asking
from crawler.app.features import checked
from crawler.app.features.feature import readings
from crawler.app.report import note_left_out
from crawler.engine.robots import Access
from crawler.model.external import BROKEN, OK, Answer, BrokenFile, CheckedLink, DueLink, kind_of
from crawler.model.log import log
from crawler.model.note import BROKEN_FILES
from crawler.model.reasons import Why
from crawler.model.reply import Reply, Response
from crawler.parse import url as urls
from crawler.parse.url import Url, origin
from crawler.ports import Frontier, Request, reads
from crawler.rules.external import ANSWER_BY_CAUSE, UNREACHED, answer_of, needs_get
from crawler.rules.redirects import Redirects
from crawler.settings.sections import Settings

LONGEST_LINE: Final = 500  # characters of a line of robots.txt
DISALLOWED: Final = Answer.ROBOTS.value
LAST: Final = 1 << 64  # beyond any hash
SILENCES: Final = frozenset(ANSWER_BY_CAUSE[cause].value for cause in UNREACHED)
SILENT: Final = 3  # files in a row without a response, after which hosts of the site are asked no more


class _File(NamedTuple):
    """A file of a page. `kind`: the name of the feature that read it."""

    kind: str
    url: Url


async def check_files(
    frontier: Frontier, settings: Settings, access: Access, run: int, seconds: float
) -> None:
    """Asks for the files of the run, those that were broken first, and notes which are.

    Nothing if the settings do not ask for it. The limits are those on links to other sites, each as if there
    were none of these. `run`: its number; `seconds`: how long it may take, if that is less than
    `--max-external-time`. Raises `FrontierError`.
    """
    if not (kinds := checked(settings)):
        return
    limits, hosts = settings.external, {host.origin for host in await frontier.read(reads.BusiestHosts())}
    check = _Check(run, await frontier.read(reads.BrokenFiles(undecided=True)), hosts)
    choice = _Choice(run, limits.max_external)
    for kind in kinds:
        async for page in readings(frontier, kind):
            for _, url in page.read:
                choice.add(_File(kind, url), is_broken=check.knows(kind, url))
    files = check.files = choice.chosen()
    own = [file for file in files if origin(file.url) in hosts]
    others = _on_hosts(files, hosts, limits.max_external_hosts)
    log.info("checking files", urls=len(own) + len(others))
    with anyio.move_on_after(min(seconds, limits.max_external_time)) as limit:
        async with (
            asking(settings, check.store, frontier.clock) as checking,
            anyio.create_task_group() as tasks,
        ):
            tasks.start_soon(checking.ask, others)
            async for file, found in _answers(own, access, hosts, settings.http.max_redirects):
                check.note(file, found)
    await frontier.remember(BROKEN_FILES, check.noted(kinds))
    because = "no answer" if len(own) + len(others) == len(files) else "max-external-hosts"
    because = because if choice.has_all else "max-external"
    because = "max-external-time" if limit.cancelled_caught else because
    for kind in kinds:
        count = sum(file.kind == kind for file in files)
        every = count if choice.has_all else await frontier.read(reads.CountUrls(kind))
        await _note_left(frontier, kind, every - sum(file.kind == kind for file in check.asked), because)


class _Check:
    """What is known of files, of earlier runs and of this one."""

    def __init__(
        self, run: int, known: Mapping[str, Mapping[str, BrokenFile]], hosts: Collection[str]
    ) -> None:
        """`hosts`: the origins of the site."""
        self._run, self._known = run, known
        self._domains = {_domain(Url(host)) for host in hosts}
        self._broken = defaultdict[str, dict[str, BrokenFile]](dict)
        self.files: Sequence[_File] = ()
        self.asked = set[_File]()

    def knows(self, kind: str, url: Url) -> bool:
        """Whether a file that a page loads was broken; it stays so, unless it is asked for."""
        if (before := self._known.get(kind, {}).get(url)) is None:
            return False
        self._broken[kind][url] = before
        return True

    async def store(self, answers: Sequence[CheckedLink]) -> None:
        """Note the answers of other sites."""
        for one in answers:
            file = self.files[one.id]
            # Nobody here can change robots.txt of another domain.
            is_ours = one.code == DISALLOWED and _domain(file.url) in self._domains
            self.note(
                file, BrokenFile(one.code, one.status, line=one.detail[:LONGEST_LINE] if is_ours else "")
            )

    def note(self, file: _File, found: BrokenFile) -> None:
        """Note an answer. In the first run that asks for files of a kind, none of them is newly broken.

        A broken one whose answer tells nothing now is noted as such: it is neither new nor mended.
        """
        self.asked.add(file)
        kind, url = file
        was = self._broken[kind].pop(url, None)
        if kind_of(found.code) == BROKEN or found.line:
            before = self._known.get(kind, {}).get(url)
            if before is None or bool(before.line) != bool(found.line):
                before = BrokenFile("", since=self._run if kind in self._known else 0)
            self._broken[kind][url] = before._replace(code=found.code, status=found.status, line=found.line)
        elif was and kind_of(found.code) != OK:
            self._broken[kind][url] = was._replace(code=found.code, line="")

    def noted(self, kinds: Collection[str]) -> Mapping[str, Mapping[str, BrokenFile]]:
        """The first of the broken ones; of other kinds, what was known."""
        return {
            **self._known,
            **{kind: dict(sorted(self._broken[kind].items())[:MOST_NOTED]) for kind in kinds},
        }


async def _note_left(frontier: Frontier, kind: str, left: int, because: str) -> None:
    await note_left_out(frontier, kind, left, because)
    if left:
        log.warning("not all files were checked", kind=kind, left=left, because=because)


def _on_hosts(files: Sequence[_File], own: Collection[str], most: int) -> Sequence[DueLink]:
    """The files on the first other hosts, by their place."""
    links = [
        DueLink(number, file.url, is_file=True)
        for number, file in enumerate(files)
        if origin(file.url) not in own
    ]
    hosts = {*islice(dict.fromkeys(urls.host(link.url) for link in links), most)}
    return [link for link in links if urls.host(link.url) in hosts]


class _Choice:
    """Files to ask for in a run: all, or as many as may be asked for, which differ from run to run."""

    def __init__(self, run: int, most: int) -> None:
        self._run, self._most = run, most
        self._files: dict[int, _File] = {}
        self._heap: list[int] = []  # their hashes, negative
        self.has_all = True

    def add(self, file: _File, *, is_broken: bool) -> None:
        """Add a file of a page; it may have been added before. Those known to be broken come first."""
        digest = blake2b(f"{self._run} {file.kind} {file.url}".encode(), digest_size=8).digest()
        place = int.from_bytes(digest) + (0 if is_broken else LAST)
        if place in self._files:
            return
        self.has_all = self.has_all and len(self._heap) < self._most
        if len(self._heap) >= self._most and place > -self._heap[0]:
            return
        self._files[place] = file
        heappush(self._heap, -place)
        if len(self._heap) > self._most:
            del self._files[-heappop(self._heap)]

    def chosen(self) -> list[_File]:
        """The files, in the order in which they are asked for."""
        return [file for _, file in sorted(self._files.items())]


def _domain(url: Url) -> str:
    return urls.registrable(urls.host(url))


async def _answers(
    files: Sequence[_File], access: Access, hosts: Collection[str], hops: int
) -> AsyncIterator[tuple[_File, BrokenFile]]:
    """The answers for files on hosts of the site, while these answer."""
    silent = 0
    for file in files:
        found = await _answer(file.url, access, hosts, hops)
        silent = silent + 1 if found.code in SILENCES else 0
        if silent >= SILENT:
            return
        if not silent:  # else it says nothing about the file
            yield file, found


async def _answer(url: Url, access: Access, hosts: Collection[str], hops: int) -> BrokenFile:
    """The answer for a file on a host of the site; without a code if it may not be asked for."""
    redirects, reply = Redirects(url, hops=hops), None
    while reply is None or redirects.follow(reply):
        if origin(redirects.url) not in hosts:
            return BrokenFile("")
        permit = await access.permit(redirects.url)
        if permit.why is Why.ROBOTS:
            return BrokenFile(DISALLOWED, line=permit.line[:LONGEST_LINE])
        if not permit.allowed:
            return BrokenFile("")
        reply = await _reply(redirects.url, access)
    answer = answer_of(reply, redirects, sets_cookie=False, is_file=True)
    return BrokenFile(answer.value, reply.status if isinstance(reply, Response) else None)


async def _reply(url: Url, access: Access) -> Reply:
    reply = await access.fetch(Request(url, head=True))
    is_unsure = needs_get(reply, is_file=True)
    return await access.fetch(Request(url, wants_body=lambda *_: False)) if is_unsure else reply
