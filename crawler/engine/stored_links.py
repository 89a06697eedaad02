"""Reads the stored links of unchanged pages from the frontier, for several pages at a time.

Requests that arrive during one call are combined in the next: a call takes as long for thirty pages as for one.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import anyio

from crawler.model.lease import Lease
from crawler.model.visit import Link
from crawler.ports import Record


@dataclass
class _Group:
    """Pages whose links are read in one call."""

    leases: list[Lease] = field(default_factory=list)
    links: dict[int, Sequence[Link]] | None = None  # by lease, once they are read


@dataclass
class StoredLinks:
    """`await stored_links(lease)`."""

    record: Record
    _next: _Group = field(init=False, default_factory=_Group)
    _turn: anyio.Lock = field(init=False, default_factory=anyio.Lock)

    async def __call__(self, lease: Lease) -> Sequence[Link]:
        """The links of a page, as in `Record.links`."""
        group = self._next
        group.leases.append(lease)
        async with self._turn:
            if group.links is None:
                if group is self._next:
                    self._next = _Group()
                links = await self.record.links(group.leases)
                group.links = {lease.id: found for lease, found in zip(group.leases, links, strict=True)}
        return group.links[lease.id]
