"""Asks the site what it shows for values that a parameter cannot have, of patterns that may be endless.

The leader asks at a barrier, so what is asked depends on the site alone. What follows from the answers is
decided by `rules.impossible_values` and `frontier.query_values`.
"""

from collections.abc import Awaitable, Callable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from crawler.engine.finish.answers import plain_markup
from crawler.model.reply import Reply, Response
from crawler.model.trap import DoubtfulPattern, ImpossibleValues
from crawler.parse.extract import Extract
from crawler.parse.url import Url
from crawler.rules.impossible_values import (
    REFUSED,
    REFUSING,
    all_show,
    hardly_larger,
    leads_elsewhere,
    questions,
    shown,
)
from crawler.rules.judge import Judge
from crawler.rules.redirects import target_of


class QueryValues(Struct, eq=False):
    """Asks for one crawl."""

    judge: Judge
    fetch: Callable[[Url], Awaitable[Reply | None]]

    async def ask(self, patterns: Sequence[DoubtfulPattern]) -> dict[int, ImpossibleValues]:
        """What is shown in each pattern for values that do not exist."""
        return {pattern.id: await self._shown(pattern) for pattern in patterns}

    async def _shown(self, pattern: DoubtfulPattern) -> ImpossibleValues:
        answers = list[tuple[str | None, str | None]]()
        for one, other in questions(pattern.pages):
            answers.append((await self._answer(one), await self._answer(other)))
            if shown(pattern.pages, answers) is None:
                break
        found, near = shown(pattern.pages, answers), hardly_larger(pattern.pages)
        if found is None or near is None or all_show(pattern.pages, found):
            return ImpossibleValues(found, 2 * len(answers))
        return ImpossibleValues(found, 2 * len(answers) + 1, await self._answer(near) == found)

    async def _answer(self, url: Url) -> str | None:
        """None as well for a page that may stall the parser, or lacks what scripts make of it."""
        reply = await self.fetch(url)
        if not isinstance(reply, Response):
            return None
        if reply.status in REFUSING or leads_elsewhere(url, target_of(url, reply)):
            return REFUSED
        markup = plain_markup(self.judge, url, reply)
        if markup is None or self.judge.renders:
            return None
        return replace(markup, wanted=markup.wanted - {Extract.SPARING} | {Extract.ECHOLESS}).read().content
