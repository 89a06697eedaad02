"""The levels of a poor site: after many requests for few contents, a run goes on one level at a time.

What the pages of a level link to is held until all of them are settled. Then the next level is released: URLs
that a page with a content of its own links to, as far as the budget of requests goes. URLs that only repeats
of other pages link to become a pattern, which is sampled in rounds (`rounds`). Other sites have no levels.
Each method is called within a transaction of the leader.
"""

from collections import Counter
from collections.abc import Set as AbstractSet
from typing import Final

from msgspec import Struct

from crawler.frontier.budget import Budget
from crawler.frontier.database import Database
from crawler.frontier.patterns import PatternTable, sample
from crawler.frontier.schema import settled
from crawler.frontier.visits import ANY_DEPTH, MovedVisit, move, release
from crawler.model.outcome import Pattern
from crawler.model.reasons import SeedKind
from crawler.parse.url import Url
from crawler.rules.nonexistent_pages import around
from crawler.rules.record import DUPLICATE, HELD, LEASED, LISTED, QUEUED, SETTLED, SOFT_404
from crawler.rules.traps import SAMPLE

# The depth that is being visited.
FRONT: Final = f"SELECT min(depth) FROM visit WHERE state BETWEEN {QUEUED} AND {LEASED}"
QUEUED_AT: Final = f"SELECT count(*) FROM visit WHERE state = {QUEUED} AND depth = :front"
# Released samples of patterns stay due; entries of sitemaps are due without a sample, and held as links are.
# URLs that the user named are never held.
HOLD: Final = f"""
UPDATE visit SET state = {HELD} WHERE state = {QUEUED} AND depth >= :front AND id IN (
    SELECT u.id FROM url AS u LEFT JOIN seed AS s ON s.id = u.seed WHERE u.run = :run
        AND (u.trap IS NULL OR (u.round IS NULL AND s.kind IS NOT NULL))
        AND coalesce(s.kind = {SeedKind.SITEMAP.value}, true)
)
"""
NEXT: Final = f"""
SELECT v.id, u.url FROM visit AS v JOIN url AS u ON u.id = v.id
WHERE v.state = {HELD} AND v.trap IS NULL AND v.depth <= :deepest AND (u.via IS NOT NULL) = :linked
"""

# A page that is read without what repeats its address repeats one that says the same and is read with it.
_SAID: Final = """
LEFT JOIN (
    SELECT DISTINCT host AS site, version AS text FROM known WHERE run = :run AND version IS NOT NULL
) AS said ON said.site = host AND said.text = echoing
"""
# The pages that were read. `place` is 1 for the first with its bytes and its content, which is `original` of
# the others: neither a text without the address of its page nor the bytes alone show all repeats.
_ORDER: Final = "ORDER BY found, depth, length(url), url"
READ_SO_FAR: Final = f"""
SELECT id, round, trap, seed, outcome, links,
    @greatest(row_number() OVER by_content, row_number() OVER by_bytes) AS place,
    CASE WHEN row_number() OVER by_content > 1 THEN first_value(id) OVER by_content
        ELSE first_value(id) OVER by_bytes END AS original
FROM known {_SAID} WHERE run = :run AND {settled("known")} AND attempts > 0
WINDOW by_content AS (PARTITION BY host, coalesce(said.text, version, url) {_ORDER}),
    by_bytes AS (PARTITION BY host, coalesce(digest, url) {_ORDER})
"""
# What the pages of the last level and round link to: URLs that are held for the next level, and those in
# patterns of repeats that were not fetched.
LINKED: Final = f"""
WITH read AS ({READ_SO_FAR})
SELECT t.id, t.url, t.host, t.depth, t.trap, min(r.place), min(o.url)
FROM read AS r @each(r.links) JOIN known AS t ON t.id = j.value JOIN url AS o ON o.id = r.original
WHERE (:level = 0 OR r.round >= :round) AND t.run = :run AND (
    (t.state = {HELD} AND t.trap IS NULL)
    OR ((t.state = {HELD} OR (t.state = {SETTLED} AND t.outcome = 'unlisted:trap' AND t.attempts = 0))
        AND t.trap IN (SELECT id FROM trap WHERE run = :run AND kind = 'repeats'))
)
GROUP BY t.id, t.url, t.host, t.depth, t.trap
"""
# Listed pages to which only repeats and the page that they repeat link; each with that page, which may be a
# duplicate itself.
REPEATS: Final = f"""
WITH read AS ({READ_SO_FAR}),
repeat AS (SELECT id, original FROM read WHERE place > 1 AND outcome = '{LISTED}' AND seed IS NULL)
SELECT r.id, u.url, o.url
FROM repeat AS r JOIN url AS u ON u.id = r.id JOIN known AS o ON o.id = r.original
WHERE o.outcome IN ('{LISTED}', '{DUPLICATE}') AND r.id NOT IN (
    SELECT j.value FROM read AS l @each(l.links) JOIN repeat AS t ON t.id = j.value
    WHERE l.place = 1 AND l.id <> t.original
)
ORDER BY u.url
"""
# What the requests so far brought, by their URLs.
READ_AND_FAILED: Final = f"""
SELECT url, outcome = '{LISTED}' FROM known
WHERE run = :run AND state = {SETTLED} AND attempts > 0
    AND (outcome = '{LISTED}' OR status >= 400 OR outcome = '{SOFT_404}')
"""
MOST_LISTED: Final = 2_000  # URLs that only a sitemap contains, in one level
FAILING: Final = 10  # times as many errors as pages, in a folder of which more are requested last
IN_FLIGHT: Final = 128  # visits that may begin before the next look, beside those that have begun

PLACED: Final = ("id", "trap", "sample")
PLACE: Final = """
UPDATE url SET trap = r.trap, sample = r.sample FROM @rows(id, trap, sample) WHERE url.id = r.id
"""


class _Linked(Struct, frozen=True):
    """A URL that a page links to."""

    id: int
    url: Url
    host: int
    depth: int
    trap: int | None
    place: int  # of that page among those with its content; 1: the first
    original: str  # the first page with that content


def least_depth(db: Database) -> int | None:
    """See `ports.reads.LeastDepth`."""
    (front,) = db.one(FRONT)
    return None if front is None else int(front)


class Levels:
    """The levels of the current run."""

    def __init__(self, db: Database, patterns: PatternTable, budget: Budget) -> None:
        self._db, self._patterns, self._budget = db, patterns, budget
        self._judged: int | None = None  # the depth down to which the site is not poor

    def watch(self, settled: int, begun: int) -> int:
        """Begin to go by levels if the site has turned out to be poor, now that so many URLs are settled and
        so many leased (`begun`). Returns the depth down to which pages may be leased.

        No page of the next level is requested before it is judged. It is judged once for each level, by all
        pages above that level, so the order of responses does not matter. Only a level that is too large for
        the budget ends before all of its pages were fetched.
        """
        if self._patterns.level is not None or not self._budget.may_be_poor(settled, begun + IN_FLIGHT):
            return ANY_DEPTH
        front = least_depth(self._db)
        if front is None:
            return ANY_DEPTH
        due = self._db.count(QUEUED_AT, {"front": front}) + begun
        is_too_large = self._budget.left(due) < due and self._budget.may_be_poor(settled)
        if is_too_large or (front != self._judged and self._budget.is_poor(front)):
            self._db.do(HOLD, {"front": front, "run": self._db.run})
            self._patterns.set_level(0)
        self._judged = front
        return front

    def descend(self, deepest: int) -> int:
        """Release the next level, down to `deepest`, as far as the budget goes; how many URLs are due.

        Those in folders of errors stay held while there are others. What only a sitemap contains gets half of
        what is left, since what the next levels lead to needs the rest.
        """
        level = self._patterns.level
        if level is None:
            return 0
        self._sort_out(level)
        linked, failing = self._next(deepest, linked=True)
        due = linked[: self._budget.left(len(linked))]
        share = (self._budget.left(len(due) + MOST_LISTED) - len(due) + 1) // 2
        if share >= SAMPLE or not due:  # it takes a pass over all of them
            others, failing_too = self._next(deepest, linked=False)
            due += others[:share]
            failing += failing_too
        due = due or failing[: self._budget.left(len(failing))]
        self._patterns.set_level(level + 1)
        return release(self._db, due, self._patterns.round + 1)

    def _next(self, deepest: int, *, linked: bool) -> tuple[list[int], list[int]]:
        """URLs held for the next level, in an order that strangers cannot choose; those in folders of errors.

        `linked`: those that a page links to, or else the others.
        """
        held = self._db.all(NEXT, {"deepest": deepest, "linked": linked})
        failing = self._failing() if len(held) > 1 else frozenset[str]()
        urls = sorted(held, key=lambda row: (sample(row[1]), row[1]))
        due, last = list[int](), list[int]()
        for number, url in urls:
            (last if around(url) in failing else due).append(number)
        return due, last

    def _failing(self) -> AbstractSet[str]:
        """The folders and paths that gave errors nearly always."""
        pages, errors = Counter[str](), Counter[str]()
        for url, is_page in self._db.all(READ_AND_FAILED, {"run": self._db.run}):
            (pages if is_page else errors)[around(url)] += 1
        return {place for place, count in errors.items() if count >= FAILING * max(1, pages[place])}

    def _sort_out(self, level: int) -> None:
        """Hold what only repeats link to in their pattern, and free what other pages link to as well."""
        given = {"run": self._db.run, "level": level, "round": self._patterns.round}
        moved = list[MovedVisit]()
        for row in self._db.ask_whole(LINKED, given)():
            one = _Linked(*row)
            if one.place == 1 and one.trap is not None:
                moved.append(MovedVisit(one.id, one.host, one.depth, None, None, HELD))
            elif one.place > 1 and one.trap is None:
                moved.append(self._held(one))
        if moved:
            self._db.do_rows(PLACE, PLACED, [(row.id, row.trap, row.sample) for row in moved])
            move(self._db, moved)

    def _held(self, one: _Linked) -> MovedVisit:
        pattern = Pattern("repeats", f"links of pages that repeat {one.original}")
        place = self._patterns.place(one.url, pattern)
        if place.closed:
            why = (SETTLED, "unlisted:trap", pattern.text, self._db.now())
            return MovedVisit(one.id, one.host, one.depth, place.trap, place.sample, *why)
        return MovedVisit(one.id, one.host, one.depth, place.trap, place.sample, HELD)
