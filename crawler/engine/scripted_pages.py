"""Which pages are rendered with --render auto, beside those that show nothing without scripts.

The leader decides when nothing else is to be visited. Of each kind of pages (`rules.rendering`) one is
rendered, the first by URL; if its scripts showed more, those of its kind that were not rendered are read
again. What was chosen is a note of the run, so that all members render such pages when they meet them; the
evidence is what is stored of the pages themselves.
"""

from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from crawler.model.note import SCRIPTED
from crawler.model.visit import Lease, ScriptedPages
from crawler.ports import Frontier, reads
from crawler.rules import rendering

MOST_SAMPLES: Final = 20  # pages that are rendered as samples


class ScriptedSite(Struct, eq=False):
    """The pages of one site that are rendered. Chosen by the leader, recalled by all."""

    frontier: Frontier
    is_sampled: bool  # with --render auto
    _chosen: ScriptedPages | None = None

    def prepared(self, lease: Lease) -> Lease:
        """The lease with what was chosen so far."""
        return replace(lease, scripted=self._chosen) if self._chosen else lease

    async def recall(self, *, anew: bool = False) -> None:
        """Restores what this run has chosen."""
        if self.is_sampled and (self._chosen is None or anew):
            self._chosen = await self.frontier.recall(SCRIPTED)

    async def choose(self) -> int:
        """Has samples and pages like them rendered; how many are read again."""
        if not self.is_sampled:
            return 0
        await self.recall()
        chosen = self._chosen or ScriptedPages()
        known = await self.frontier.read(reads.KindsOfScripted())
        proven, samples = rendering.decided(known)
        samples = samples[: max(0, MOST_SAMPLES - len(known.samples))]
        now = ScriptedPages(chosen.samples.union(samples), chosen.kinds | proven)
        if now != chosen:
            self._chosen = now
            await self.frontier.remember(SCRIPTED, now)
        again = await self.frontier.read(reads.UnrenderedPages(sorted(now.kinds))) if known.plain else ()
        return await self.frontier.read_again(list(dict.fromkeys([*samples, *again])), once=False)
