"""The files of `--input`, which list URLs, one per line; `-` is stdin, `#` begins a comment."""

import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from tempfile import TemporaryFile
from typing import BinaryIO, Final

import anyio
import anyio.to_thread

from crawler.app.settings_urls import line_url
from crawler.errors import ConfigError
from crawler.model.log import log
from crawler.model.reasons import SeedOutcome
from crawler.model.seed import Seed, SeedSettlement, SeedUrls
from crawler.parse.normalise import Normaliser
from crawler.parse.url import Url, netloc
from crawler.settings.sections import Scope
from crawler.sitemap.tree import CHUNK

URLS_AT_ONCE: Final = 2_000  # URLs added to the frontier at once
MOST_HOSTS: Final = 1_000  # different hosts, if no start URL is given


class InputFile:
    """Lines that are not URLs are skipped."""

    def __init__(self, name: str, normalise: Normaliser) -> None:
        """Raises `ConfigError` when the file cannot be read."""
        self.name, self._normalise, self._entries = name, normalise, 0
        try:
            self._file: BinaryIO = sys.stdin.buffer if name == "-" else open(name, "rb")  # noqa: SIM115 - read while crawling
        except OSError as error:
            raise ConfigError(f"--input: {name} cannot be read ({error.strerror}).") from error
        self._numbered = enumerate(self._file, 1)

    def map_to(self, normalise: Normaliser) -> None:
        """From now on, reads URLs with this normaliser: of the site that turned out to be crawled."""
        self._normalise = normalise

    async def spool(self) -> None:
        """Copies a pipe to a file, so that it can be read twice, and no thread blocks when the crawl ends."""
        if self._file.seekable():
            return
        copy = TemporaryFile()  # noqa: SIM115 - closed by `close`
        pipe, chunk = self._file.fileno(), b"-"
        while chunk:
            await anyio.wait_readable(pipe)
            chunk = os.read(pipe, CHUNK)
            copy.write(chunk)
        copy.seek(0)
        self._file, self._numbered = copy, enumerate(copy, 1)

    def hosts(self) -> dict[str, Url]:
        """The first URL of each host; the lines can be taken afterwards. Blocks."""
        found: dict[str, Url] = {}
        for line in self._file:
            if url := line_url(_text(line), self._normalise):
                found.setdefault(netloc(url), url)
            if len(found) > MOST_HOSTS:
                break
        self._file.seek(0)
        self._numbered = enumerate(self._file, 1)
        return found

    def take(self) -> SeedUrls | None:
        """The next URLs; None at the end. Blocks. Raises `ConfigError` when the file fails."""
        try:
            chunk = list(islice(self._numbered, URLS_AT_ONCE))
        except OSError as error:
            raise ConfigError(f"--input: {self.name} cannot be read ({error.strerror}).") from error
        urls = [url for number, line in chunk if (url := self._read(number, line))]
        self._entries += len(urls)
        return dict.fromkeys(urls) if chunk else None

    def settlement(self, seed: Seed) -> SeedSettlement:
        return SeedSettlement(seed, SeedOutcome.READ, entries=self._entries)

    def _read(self, number: int, line: bytes) -> Url | None:
        text = _text(line)
        if not text:
            return None
        url = line_url(text, self._normalise)
        if url is None:
            log.warning("skipped a line that is not a URL", input=self.name, line=number)
        return url

    def close(self) -> None:
        """Closes the file, unless it is stdin."""
        if self._file is not sys.stdin.buffer:
            self._file.close()


def _text(line: bytes) -> str:
    """The text of a line; empty for a comment."""
    text = line.decode("utf-8-sig", "replace").strip()
    return "" if text.startswith("#") else text


async def started_by_input(scope: Scope, inputs: Sequence[InputFile]) -> Scope:
    """The scope without a given start URL: the first URL of each host becomes one. Raises `ConfigError`."""
    if scope.scope == "path":
        raise ConfigError("--scope path needs a start URL in addition to --input: its folder is the site.")
    starts: dict[str, Url] = {}
    for file in inputs:
        await file.spool()
        found = await anyio.to_thread.run_sync(file.hosts)
        starts |= {host: url for host, url in found.items() if host not in starts}
    if not starts:
        raise ConfigError(f"--input: no line in {' or '.join(scope.input)} is an http or https URL.")
    if len(starts) > MOST_HOSTS:
        raise ConfigError(f"--input names more than {MOST_HOSTS:,} hosts, and there is no start URL.")
    return replace(scope, start=tuple(starts.values()))
