"""The revisits of a partial run: one with a limit, of a site that is published already.

It begins by taking over what the last runs know: pages that it does not visit keep outcome, facts and date.
Start pages and hubs are visited first, and more hubs if these led to new URLs, then new URLs, then known
pages in the order of `rules.revisits`, each time when nothing else is open. How many may still be visited is
counted from the rows: which ones are visited depends on the state, the site and the limit, but not on the
order of responses or on interruptions. Each method is called within a transaction, of the leader.
"""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from crawler.frontier.budget import Budget
from crawler.frontier.database import Database
from crawler.frontier.patterns import PatternTable, sample
from crawler.frontier.publications import last_publication
from crawler.frontier.rows import of
from crawler.frontier.schema import IN_SITEMAP, VERSION_OF
from crawler.frontier.visits import move, release
from crawler.model.outcome import Failed, code
from crawler.model.reasons import Cause
from crawler.model.survey import Knowledge
from crawler.parse.url import Url
from crawler.rules import revisits
from crawler.rules.noise import LastChange
from crawler.rules.record import (
    DAY,
    HELD,
    LEASED,
    LISTED,
    PLANNED,
    QUEUED,
    SETTLED,
    UNVISITED,
    Earlier,
    found_in_new_run,
)
from crawler.rules.revisits import Revisit

# The run that published the site last, if all runs since had the same settings.
_FOLLOWED: Final = """
SELECT max(p.run) FROM publication AS p JOIN run AS r ON r.number = :run JOIN run AS o ON o.number = p.run
WHERE p.run < :run AND p.fingerprint = r.fingerprint AND o.status = 'concluded' AND NOT EXISTS (
    SELECT 1 FROM run AS other
    WHERE other.number > p.run AND other.number < :run AND other.fingerprint <> r.fingerprint)
"""
_FOLLOW: Final = """
UPDATE run SET follows = :follows,
    round = @greatest(round, coalesce((SELECT max(o.round) FROM run AS o WHERE o.number >= :follows), 0))
WHERE number = :run
"""

_OLDER: Final = "u.run >= :follows AND u.run < :run"
# Most of a site after a whole run: what was published of a page for the first time is all that is known of
# it, and a page that is as it was when it was dated stays as it is (`record.found_in_new_run`).
_PUBLISHED: Final = f"""
u.id = p.id AND {_OLDER} AND p.visited = :follows AND p.outcome = '{LISTED}' AND {VERSION_OF} IS NOT NULL
"""
_FIRST_PUBLISHED: Final = f"""
UPDATE page AS p SET was_lastmod = p.lastmod, published_content = {VERSION_OF}, dated_content = {VERSION_OF},
    dated_lastmod = p.lastmod, dated_header = p.header, dated_stated = p.stated FROM url AS u
WHERE {_PUBLISHED} AND coalesce(p.published_content, p.dated_content) IS NULL AND p.dated_lastmod IS NULL
"""
_STAYING: Final = f"""
{_PUBLISHED} AND p.published_content = {VERSION_OF} AND p.dated_content = {VERSION_OF}
AND p.dated_lastmod IS NOT DISTINCT FROM p.lastmod
AND (p.dated_header IS NOT NULL OR p.header IS NULL) AND (p.dated_stated IS NOT NULL OR p.stated IS NULL)
"""
# Pages whose content was published, or refused, since an earlier run took them over, or whose date was
# withdrawn when they were not visited; shifted at once.
_RENEWED: Final = ("id", "outcome", "facts_run", *Earlier._fields[3:])
_TO_RENEW: Final = f"""
SELECT p.id, p.visited, p.facts_run,
    coalesce(b.until >= :last, false) AND (NOT {IN_SITEMAP} OR {VERSION_OF} <> p.published_content),
    {of("p", Earlier._fields, content=VERSION_OF)}
FROM page AS p JOIN url AS u ON u.id = p.id LEFT JOIN published AS b ON b.id = p.id
WHERE p.id > :after AND {_OLDER} AND (p.visited >= :follows
    OR (p.outcome = '{LISTED}' AND p.published_content IS DISTINCT FROM {VERSION_OF})
    OR (p.outcome = '{LISTED}' AND u.run = :follows AND p.dated_lastmod IS DISTINCT FROM p.lastmod))
AND NOT coalesce({_STAYING}, false)
ORDER BY p.id LIMIT :limit
"""
_RENEW: Final = f"""
UPDATE page SET {", ".join(f"{column} = r.{column}" for column in _RENEWED[1:])},
    was_lastmod = r.lastmod FROM @rows({", ".join(_RENEWED)}) WHERE page.id = r.id
"""
_SHIFT: Final = """
UPDATE page SET was = outcome, was_lastmod = lastmod FROM url AS u
WHERE u.id = page.id AND u.run = :follows
    AND (page.was IS DISTINCT FROM page.outcome OR page.was_lastmod IS DISTINCT FROM page.lastmod)
"""
_TAKE_OVER: Final = "UPDATE url SET run = :run WHERE run >= :follows AND run < :run"
_TAKE_TRAPS: Final = """
UPDATE trap SET run = :run WHERE run = (SELECT max(run) FROM trap WHERE run >= :follows AND run < :run)
    AND NOT EXISTS (SELECT 1 FROM trap AS t WHERE t.run = :run)
"""
_COUNT: Final = "UPDATE member SET discovered = discovered + :urls WHERE id = :me"

# What an earlier run did not come to.
_LEFT_OVER: Final = f"""
SELECT id, host, depth, trap, sample, CASE WHEN trap IS NULL THEN {PLANNED} ELSE {HELD} END, NULL, NULL, NULL
FROM known AS u WHERE run = :run AND outcome = '{UNVISITED}'
"""

_IN_RUN: Final = "u.run = :run AND u.host IS NOT NULL AND p.outcome <> 'unlisted:trap'"
_VISITABLE: Final = f"{_IN_RUN} AND p.visited < :run"
# Text that has changed twice in a row may be noise: it is looked at soon, when an edit would still stand.
_URGENT: Final = f"""
coalesce(p.outcome LIKE 'kept:%' OR p.watched LIKE '{LastChange.REPEATED}%'
    OR (p.outcome = '{LISTED}' AND p.status IS NOT NULL
        AND (p.facts_run IS NULL OR p.facts_run < :since)), false)
"""
# A bare day is stored as its midnight; its page may have changed later that day.
_ANNOUNCED: Final = """
coalesce(u.sitemap_date > p.first_visit, false), coalesce(u.sitemap_date > p.first_visit
    AND u.sitemap_date + CASE WHEN u.sitemap_date % 86400 = 0 THEN 86400 ELSE 0 END > p.last_visit, false)
"""
_GONE: Final = code(Failed(Cause.NOT_FOUND))
_REVISIT: Final = f"""
p.id, u.url, {_URGENT}, p.visits, p.changes, p.first_visit, p.last_visit, p.visited,
{_ANNOUNCED}, coalesce(p.outcome = '{_GONE}', false)
"""
_KNOWN: Final = f"SELECT {_REVISIT} FROM url AS u JOIN page AS p ON p.id = u.id WHERE {_VISITABLE}"
# What a run saw to have changed, as long before it as in it: pages that it visited did not change since.
_CHOICE: Final = f"""
SELECT {_REVISIT}, u.via, CASE WHEN p.lastmod > :lately
    THEN p.lastmod - CASE WHEN p.source = 'history' THEN {DAY // 2} ELSE 0 END END
FROM url AS u JOIN page AS p ON p.id = u.id WHERE {_VISITABLE}
"""
# The same of the pages that this run has visited; noise changes at most visits, and says nothing.
_SEEN: Final = f"""
SELECT u.via, p.last_visit, CASE WHEN p.outcome = '{LISTED}' AND p.published_content <> {VERSION_OF}
    AND p.changes * 2 <= p.visits + 1 THEN CASE WHEN p.header > p.dated_header AND p.header <= p.last_visit
        THEN p.header ELSE p.last_visit - {DAY // 2} END END, count(*)
FROM url AS u JOIN page AS p ON p.id = u.id WHERE {_IN_RUN} AND p.visited = :run GROUP BY 1, 2, 3
"""
# Pages that led to several, and those that a start page leads to.
_HUBS: Final = f"""
SELECT {_REVISIT}, h.found, u.depth
FROM (SELECT via, count(*) AS found FROM url WHERE run = :run AND via IS NOT NULL AND host IS NOT NULL
    AND seed IS NULL GROUP BY via HAVING count(*) > 1 OR min(depth) <= 2) AS h
JOIN page AS p ON p.id = h.via JOIN url AS u ON u.id = p.id WHERE {_IN_RUN}
"""
# What led to URLs that are new in this run, and wait.
_LED: Final = f"""
SELECT DISTINCT u.via FROM visit AS v JOIN url AS u ON u.id = v.id LEFT JOIN page AS p ON p.id = v.id
WHERE v.state < {QUEUED} AND u.via IS NOT NULL AND p.id IS NULL
"""
# With the targets of their redirects.
_STARTS: Final = f"""
SELECT {_REVISIT} FROM url AS u JOIN page AS p ON p.id = u.id WHERE {_VISITABLE} AND (
    u.seed = (SELECT id FROM seed WHERE kind = 0) OR (u.hops > 0 AND u.via IN (
        SELECT id FROM url WHERE run = :run AND seed = (SELECT id FROM seed WHERE kind = 0))))
"""
_OPEN: Final = """
INSERT INTO visit (id, host, depth, state, rank) SELECT r.id, u.host, u.depth, r.state, r.rank
FROM @rows(id, state, rank) JOIN url AS u ON u.id = r.id WHERE true ON CONFLICT DO NOTHING
"""

_TERMS: Final = """
SELECT started, follows, budget, max_age, (SELECT count(*) FROM visit WHERE state BETWEEN OPENED),
    (SELECT CAST(coalesce(sum(settled), 0) AS bigint) FROM member WHERE run = :run),
    (SELECT CAST(coalesce(sum(revisited), 0) AS bigint) FROM member WHERE run = :run)
FROM run WHERE number = :run
""".replace("OPENED", f"{QUEUED} AND {LEASED}")
_NEW: Final = f"""
SELECT v.id, u.url FROM visit AS v JOIN url AS u ON u.id = v.id WHERE v.state = {PLANNED} AND v.rank < 0
"""
_NEXT: Final = f"SELECT id FROM visit WHERE state = {PLANNED} AND rank >= 0 ORDER BY rank LIMIT :most"
_NAMED: Final = "u.@key @any(keys, key)"
_OPENED_AT: Final = f"SELECT v.id FROM visit AS v JOIN url AS u ON u.id = v.id WHERE {_NAMED} AND v.state"
_RELEASE: Final = f"UPDATE visit SET state = {QUEUED} WHERE id @any(ids)"

# What is still open at the end: known pages are as they were.
_RESTORE: Final = """
UPDATE page SET outcome = coalesce(outcome, was), settled = coalesce(settled, last_visit),
    attempts = CASE WHEN attempts = 0 AND facts_run IS NOT NULL THEN 1 ELSE attempts END
WHERE coalesce(outcome, was) IS NOT NULL AND id @first SELECT id FROM visit @end
"""
_LEAVE: Final = f"""
INSERT INTO page (id, outcome, settled) SELECT v.id, '{UNVISITED}', CAST(:now AS double precision)
FROM visit AS v LEFT JOIN page AS p ON p.id = v.id WHERE p.outcome IS NULL
ON CONFLICT (id) DO UPDATE SET outcome = excluded.outcome, settled = excluded.settled
"""


_KNOWLEDGE: Final = f"""
SELECT count(*), count(*) FILTER (WHERE u.visited = :run), avg(:now - u.last_visit), max(:now - u.last_visit),
    (SELECT count(*) FROM page AS p JOIN url ON url.id = p.id
        WHERE url.run = :run AND p.outcome = '{UNVISITED}'),
    (SELECT max_age FROM run WHERE number = :run)
FROM known AS u WHERE run = :run AND state = {SETTLED} AND {IN_SITEMAP}
"""


class _RunTerms(NamedTuple):
    """The limits of a partial run, and how far it has come."""

    started: float  # seconds since the epoch
    follows: int | None  # the run that published the site last
    budget: int | None  # pages
    max_age: float  # seconds
    open: int  # released pages that are not settled
    settled: int
    revisited: int  # of `settled`: known pages

    @property
    def left(self) -> int | None:
        """How many pages may still be released; None: any number."""
        return None if self.budget is None else max(0, self.budget - self.settled - self.open)

    @property
    def left_for_new(self) -> int | None:
        """The same for new URLs, which leave some of the budget to known pages."""
        if self.budget is None:
            return None
        return max(0, (self.left or 0) - max(0, self.budget // revisits.SPARED - self.revisited))


def knowledge(db: Database) -> Knowledge | None:
    """See `ports.reads.WhatIsKnown`."""
    if _RunTerms._make(db.one(_TERMS, {"run": db.run})).follows is None:
        return None
    pages, visited, mean, oldest, waiting, max_age = db.one(_KNOWLEDGE, {"run": db.run, "now": db.now()})
    days = [max(0.0, round(seconds / DAY, 1)) for seconds in (mean or 0.0, oldest or 0.0, max_age or 0.0)]
    return Knowledge(pages, visited, days[0], days[1], waiting, days[2])


class Revisits:
    """The revisits of the current run, if it is a partial one."""

    def __init__(self, db: Database, patterns: PatternTable, budget: Budget) -> None:
        self._db, self._patterns, self._budget = db, patterns, budget

    def begin(self) -> int | None:
        """Make a new run with a limit a partial one, if the site is published; the run that it follows."""
        follows = self._take_over()
        if follows is None:
            return None
        run = {"run": self._db.run}
        move(self._db, self._db.all(_LEFT_OVER, run))
        terms = self._terms()
        starts = [page.id for page in self._pages(_STARTS)[: terms.left]]
        self._open(starts, QUEUED)
        if terms.left is None or len(starts) < terms.left:
            hubs = revisits.hubs(self._pages(_HUBS), terms.started, terms.left)
            self._open([page.id for page in hubs], QUEUED)
        return follows

    def _take_over(self) -> int | None:
        """Take over what the runs since the last publication know, and this one did not find."""
        (follows,) = self._db.one(_FOLLOWED, {"run": self._db.run})
        if follows is None:
            return None
        given = {"run": self._db.run, "follows": follows}
        self._renew(given)
        self._db.do(_SHIFT, given)
        urls = self._db.changed(_TAKE_OVER, given)
        self._db.do(_COUNT, {"urls": urls, "me": self._db.member})
        self._db.do(_TAKE_TRAPS, given)
        self._db.do(_FOLLOW, given)
        self._db.forget()
        return int(follows)

    def _renew(self, given: dict[str, Any]) -> None:
        """What pages keep of the last publication; those that a refused run saw otherwise are listed again,
        and visited anew.
        """
        last = last_publication(self._db)
        self._db.do(_FIRST_PUBLISHED, given)
        for rows in self._db.chunks(_TO_RENEW, given | {"last": last}):
            renewed = []
            for number, visited, facts_run, has_left, *known in rows:
                page, is_refused = Earlier._make(known), visited is not None and visited > given["follows"]
                kept = found_in_new_run(page, was_published=not is_refused)
                anew = is_refused and has_left
                then = (LISTED, None) if anew else (page.outcome, facts_run)
                if anew or kept != page:
                    renewed.append((number, *then, *kept[3:]))
            if renewed:
                self._db.do_rows(_RENEW, _RENEWED, renewed)

    def _pages(self, statement: str) -> list[Revisit]:
        return [
            Revisit(*row) for row in self._db.all(statement, {"run": self._db.run, "since": self._db.since})
        ]

    def _open(self, pages: Sequence[int], state: int) -> None:
        """Open visits of pages; they count for no pattern."""
        if rows := [(page, state, rank) for rank, page in enumerate(pages)]:
            self._db.do_rows(_OPEN, ("id", "state", "rank"), rows)

    def _terms(self) -> _RunTerms:
        return _RunTerms._make(self._db.one(_TERMS, {"run": self._db.run}))

    def arrive(self, pages: Sequence[Url]) -> int:
        """See `ports.Queue.arrive`. No limit keeps them."""
        given = {"run": self._db.run, "since": self._db.since, "keys": self._db.dialect.keys(pages)}
        if self._patterns.is_partial:
            self._open([row[0] for row in self._db.all(f"{_KNOWN} AND {_NAMED}", given)], PLANNED)
        ids = [number for (number,) in self._db.all(f"{_OPENED_AT} < {QUEUED}", given)]
        for table in "visit", "url":
            self._db.do(
                f"UPDATE {table} SET depth = 0 WHERE id @any(ids)", {"ids": self._db.dialect.all_of(ids)}
            )
        if release(self._db, ids, self._patterns.round + 1):
            self._patterns.next_round()
        return len(self._db.all(f"{_OPENED_AT} = {QUEUED}", given))

    def within(self, wanted: int) -> int:
        """How many of these pages may be released."""
        left = self._terms().left if self._patterns.is_partial else None
        return wanted if left is None else min(wanted, left)

    def release_new(self, *, sparing: bool = True) -> int:
        """Release new URLs, and hubs beside those that led to them; how many. `sparing`: leave some of the
        budget to known pages.
        """
        if not self._patterns.is_partial:
            return 0
        more = self._open_more_hubs() if sparing else 0
        rows = self._db.all(_NEW)
        if not rows:
            return more
        terms = self._terms()
        left = terms.left_for_new if sparing else terms.left
        most = self._budget.left(len(rows) if left is None else min(left, len(rows)))
        urls = sorted(rows, key=lambda row: (sample(row[1]), row[1]))  # which strangers cannot choose
        return more + self._release([number for number, _ in urls[:most]])

    def _open_more_hubs(self) -> int:
        """Open visits of hubs, if others led to new URLs in this run and known pages were not planned yet."""
        led = set() if self._next(1) else {via for (via,) in self._db.all(_LED)}
        if not led:
            return 0
        terms, hubs = self._terms(), self._pages(_HUBS)
        # What is new on a start page says nothing of lists.
        asked = {page.id for page in hubs if page.visited == self._db.run and page.depth}
        others = [page for page in hubs if page.visited < self._db.run]
        more = revisits.hubs(others, terms.started, terms.budget, len(asked), len(asked & led))
        self._open([page.id for page in more[: terms.left]], QUEUED)
        return len(more[: terms.left])

    def release_known(self) -> int:
        """Release the next known pages; how many."""
        if not self._patterns.is_partial:
            return 0
        terms = self._terms()
        most = revisits.batch(terms.left)
        if most and not self._next(1):
            self._plan(terms)
        return self._release(self._next(most))

    def _next(self, most: int) -> list[int]:
        return [number for (number,) in self._db.all(_NEXT, {"most": most})]

    def _plan(self, terms: _RunTerms) -> None:
        """Choose the known pages to visit next, in their order."""
        lately = terms.started - revisits.LATELY * DAY
        pages = self._db.all(_CHOICE, {"run": self._db.run, "since": self._db.since, "lately": lately})
        seen = map(revisits.Sighting._make, self._db.all(_SEEN, {"run": self._db.run}))
        most = revisits.portion(terms.left, terms.budget)
        most = len(pages) if most is None else most
        self._open(revisits.plan(pages, terms.started, terms.max_age, most, seen), PLANNED)

    def _release(self, ids: Sequence[int]) -> int:
        if ids:
            self._db.do(_RELEASE, {"ids": self._db.dialect.all_of(ids)})
        return len(ids)

    def close(self) -> bool:
        """Leave what is still open as it is, if the site is published; False if it is not.

        A run that was to visit every page becomes a partial one, as it has reached a limit.
        """
        if not self._patterns.is_partial and self._take_over() is None:
            return False
        self._db.do(_RESTORE)
        self._db.do(_LEAVE, {"now": self._db.now()})
        self._db.do("DELETE FROM visit")
        return True
