"""The sixth role of the frontier: what search engines were told (`submit`)."""

from collections.abc import Sequence
from typing import Protocol

from crawler.model.ledger import LedgerRow
from crawler.ports.reads import Reads


class Ledger(Reads, Protocol):
    """The mark of each URL that engines were last told, and the submissions."""

    async def open_ledger(self, base: str, *, noted: bool) -> int:
        """Begins a new ledger for URLs published below `base`. Returns how many URLs are in it.

        `noted`: with the listed pages of the newest run, as if they had been submitted; otherwise empty.
        """
        ...

    async def enter(self, rows: Sequence[LedgerRow], sent: int | None = None) -> None:
        """Stores the marks of the newest run as submitted; a URL without one leaves the ledger.

        `sent`: number of URLs that an engine accepted, for the list of submissions; 0: none, but from now on
        `ledger` compares with the settings of the newest run; None: neither.
        """
        ...
