"""The third role of the frontier: the life of a run."""

from typing import Protocol, TypeVar

from crawler.model.note import Note
from crawler.model.run import Run

T = TypeVar("T")


class Runs(Protocol):
    """The life of a run, and the notes that are kept with it."""

    async def begin(self, fingerprint: str, reading: str = "") -> Run:
        """Go on with an unfinished run, or begin a new one.

        `fingerprint` stands for the settings that decide what is found and listed: an unfinished run of another
        is given up. `reading` stands for those that decide what is read from a page: what was learned under
        another is not asked "changed since?".
        """
        ...

    async def run(self) -> Run | None:
        """The newest run, whatever became of it; None before the first."""
        ...

    async def finish(self) -> None:
        """Every URL is settled: the run is complete."""
        ...

    async def mark_published(self, urls: int) -> None:
        """What this run lists, `urls` of them, is published."""
        ...

    async def conclude(self, *, refused: bool = False) -> None:
        """The complete run was published (or `refused` for good): the next `begin` starts a new one.

        Only what a published run saw counts as known when a later one asks what changed.
        """
        ...

    async def remember(self, note: Note[T], value: T) -> None:
        """Keep a note for the length of this run."""
        ...

    async def recall(self, note: Note[T], *, published: bool = False) -> T:
        """A note kept in this run; or in the last one before it that was `published`. `note.absent` if there is none."""
        ...
