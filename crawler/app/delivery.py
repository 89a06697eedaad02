"""Delivers a published sitemap: calls `--publish-command` with the files that changed since it succeeded.

The state keeps the digest of each file that was delivered. So a delivery that failed, or that a killed run
never began, is delivered by the next run even if nothing changed since; and another command or folder gets
all files.
"""

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, Self

import msgspec

from crawler.errors import OutputError
from crawler.model.log import log
from crawler.ports import Runs, reads
from crawler.settings.object_url import is_object_url
from crawler.settings.sections import Output
from crawler.sitemap.publish import publish_command, stylesheet
from crawler.sitemap.publish.manifest import MANIFEST
from crawler.sitemap.publish.published import Published

DIGITS: Final = 16  # of a digest that are kept


class Delivery(msgspec.Struct, frozen=True):
    """The files at one target, by name: a digest of each."""

    target: str  # a digest of the command and the folder
    files: Mapping[str, str]

    @classmethod
    def read(cls, text: str | None, target: str) -> Self:
        """The last delivery to this target; an empty one if there was none."""
        try:
            known = msgspec.json.decode(text or "{}", type=cls)
        except ValueError:
            return cls(target, {})
        return known if known.target == target else cls(target, {})

    def written(self) -> str:
        """The text that `read` reads."""
        return msgspec.json.encode(self).decode()


async def deliver(runs: Runs, output: Output, published: Published) -> bool:
    """Calls the command if there is something to deliver; whether it was called.

    Raises `OutputError` if it failed: the next run calls it again.
    """
    if output.publish_command is None or output.is_stdout:
        return False
    folder = folder_of(output)
    now = Delivery(_digest(f"{output.publish_command}\n{folder}"), _files(output, published))
    last = await runs.read(reads.LastPublication())
    before = Delivery.read(last.delivered if last else None, now.target)
    changed = [name for name, digest in now.files.items() if before.files.get(name) != digest]
    removed = sorted(before.files.keys() - now.files.keys())
    if not changed and not removed:
        return False
    log.info("delivering", changed=len(changed), removed=len(removed))
    try:
        await publish_command.run(
            output.publish_command, _environ(folder, published, changed, removed), output.publish_timeout
        )
    except OutputError as error:
        raise OutputError(
            f"--publish-command: {error}. The sitemap is in {output.output}, but was not delivered; the next "
            "run tries again."
        ) from error
    await runs.mark_delivered(now.written())
    return True


def folder_of(output: Output) -> str:
    """The absolute path or the URL of the output; empty for stdout."""
    if output.is_stdout:
        return ""
    return output.output if is_object_url(output.output) else str(Path(output.output).absolute())


def _environ(
    folder: str, published: Published, changed: Sequence[str], removed: Sequence[str]
) -> Mapping[str, str]:
    """The variables for the command. Files are named in an order in which they can be copied one by one."""
    return {
        "SITEMAP_FOLDER": folder,
        "SITEMAP_ENTRY": published.files[-1].name,
        "SITEMAP_CHANGED": "\n".join([*changed, MANIFEST]),
        "SITEMAP_REMOVED": "\n".join(removed),
        "SITEMAP_URLS": str(published.urls),
    }


def _files(output: Output, published: Published) -> Mapping[str, str]:
    """The digest of each file, the entry point last; without the manifest, which changes with each run."""
    files = {}
    style = stylesheet.SOURCE if is_object_url(output.output) else Path(output.output, stylesheet.NAME)
    if output.stylesheet and style.is_file():
        files[stylesheet.NAME] = hashlib.sha256(style.read_bytes()).hexdigest()[:DIGITS]
    return files | {file.name: file.sha256[:DIGITS] for file in published.files}


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:DIGITS]
