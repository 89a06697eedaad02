"""The values of query patterns: what impossible ones showed, and which pages are true ones for that reason.

If a value that cannot exist is refused, or shows a page of its own, the pages of other values are true ones,
even if they only repeat their addresses. But only links of pages outside of such patterns count, or else a
pattern of any numbers would never end; where numbers are bounded, each page keeps its pattern open, within
the budget. Each method is called within a transaction.
"""

from collections.abc import Mapping
from typing import Final

from crawler.frontier.database import Database
from crawler.frontier.patterns import BARE, CONTENT_OUTCOMES, WAS_READ
from crawler.model.trap import DoubtfulPattern, ImpossibleValues, PatternPage
from crawler.parse.url import Url
from crawler.rules.impossible_values import REFUSED
from crawler.rules.record import SETTLED
from crawler.rules.traps import SAMPLE

# In the order of the samples, which does not depend on time.
PAGES: Final = f"""
SELECT url, version FROM known WHERE trap = :trap AND run = :run AND state = {SETTLED} AND {WAS_READ}
ORDER BY sample, url LIMIT {2 * SAMPLE}
"""
ANSWER: Final = """
UPDATE trap SET missing = r.missing, asked = r.asked, bounded = r.bounded
FROM @rows(id, missing, asked, bounded) WHERE trap.id = r.id
"""
ANSWERED: Final = "SELECT asked, missing, bounded FROM trap WHERE id = :trap"

# The pages of a pattern that only those after round `:since` resemble. `:each`: none does.
_TRUE: Final = f"""
SELECT count(*) FROM (
    SELECT 1 FROM known
    WHERE trap = :trap AND run = :run AND state = {SETTLED} AND outcome IN ({CONTENT_OUTCOMES})
        AND version IS DISTINCT FROM CAST(:missing AS text) AND {BARE} AND {{linked}}
    GROUP BY CASE WHEN CAST(:each AS boolean) THEN url ELSE coalesce(echoing, version, url) END
    HAVING min(coalesce(round, 0)) > :since
) AS shown
"""
# Found before a page of the pattern was read, and so by links from outside of it.
FOUND_BEFORE: Final = _TRUE.format(
    linked="found < (SELECT min(round) FROM url WHERE trap = :trap AND run = :run)"
)
# By links of pages outside of all such patterns.
LINKED: Final = _TRUE.format(
    linked=f"""id IN (
    SELECT j.value FROM known AS p @each(p.links)
    WHERE p.run = :run AND p.state = {SETTLED} AND (p.trap IS NULL OR p.trap NOT IN (
        SELECT id FROM trap WHERE run = :run AND missing IS NOT NULL)))"""
)
ANY: Final = _TRUE.format(linked="true")
SHOWING: Final = f"""
SELECT 1 FROM known WHERE trap = :trap AND run = :run AND state = {SETTLED} AND version = :missing LIMIT 1
"""
CREDIT: Final = "UPDATE trap SET credit = credit + :more WHERE id = :trap"


class ValueTable:
    """What is known of the values of the query patterns of the current run."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def doubts(self, trap: int) -> DoubtfulPattern | None:
        """The pattern, if the site was not asked yet what it shows for impossible values."""
        if self._db.one(ANSWERED, {"trap": trap})[0] is not None:
            return None
        pages = self._db.all(PAGES, {"trap": trap, "run": self._db.run})
        return DoubtfulPattern(trap, [PatternPage(Url(url), content) for url, content in pages])

    def store(self, found: Mapping[int, ImpossibleValues]) -> None:
        if found:
            rows = [(trap, *shown) for trap, shown in found.items()]
            self._db.do_rows(ANSWER, ("id", "missing", "asked", "bounded"), rows)

    def refuses(self, trap: int) -> bool:
        """Whether the site refuses values that do not exist in a pattern, and numbers hardly larger: with an
        error, or with what no page of the pattern shows.
        """
        _, missing, is_bounded = self._db.one(ANSWERED, {"trap": trap})
        if missing is None or is_bounded not in {None, True}:
            return False
        given = {"trap": trap, "run": self._db.run, "missing": missing}
        return missing == REFUSED or not self._db.all(SHOWING, given)

    def count_true(self, trap: int, since: int, found: int, *, proven: bool) -> int:
        """The true pages that a sample brought, where `found` contents were new without their addresses.

        Where values are refused, each page is another one, unless all say the same: a calendar may be empty
        and end at some year. `proven`: they do not.
        """
        _, missing, is_bounded = self._db.one(ANSWERED, {"trap": trap})
        if missing is None:
            return found
        given = {"trap": trap, "run": self._db.run, "since": since, "missing": missing}
        given["each"] = proven and self.refuses(trap)
        true = self._db.count(FOUND_BEFORE, given)
        if true < 2:
            true = self._db.count(LINKED, given)
        if true > found:
            self._db.do(CREDIT, {"trap": trap, "more": true - found})
        if true < 2 and is_bounded:
            return self._db.count(ANY, given)
        return max(true, found)
