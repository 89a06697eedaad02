"""Adds discovered URLs to the frontier: each once, however many pages, seeds and members find it.

`rules` have already decided whether a URL is to be visited; `leases` and `rounds` decide when. New rows are
numbered in the order in which they were found, and inserted sorted by their key: members that find the same
URLs wait for each other without a deadlock.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from crawler.frontier.database import Database
from crawler.frontier.dialect import found_columns, found_rows
from crawler.frontier.hops import lower_hops
from crawler.frontier.hosts import HostTable
from crawler.frontier.links import Added, FoundBefore, Older, deduplicated, may_change_row
from crawler.frontier.patterns import PatternTable
from crawler.frontier.rows import NOFOLLOW, FoundRow, of
from crawler.frontier.schema import VERSION_OF
from crawler.frontier.seeds import SeedTable
from crawler.frontier.visits import MovedVisit, move
from crawler.model.reasons import SeedKind, Why
from crawler.model.seed import NO_DATES, Seed
from crawler.model.visit import Visit
from crawler.parse.url import Url, origin
from crawler.rules.record import HELD, PLANNED, QUEUED, SETTLED, TOO_DEEP, Earlier, found_in_new_run

_NOT_FOLLOWED: Final = f"r.outcome IS NOT DISTINCT FROM '{NOFOLLOW}'"
_FOLLOWED: Final = f"r.outcome IS DISTINCT FROM '{NOFOLLOW}'"

RENEWED: Final = ("id", "host", "depth", "hops", "via", "trap", "sample", "outcome")

# The dialect may need the key and the URL, or the URL only.
ADD: Final = f"""
INSERT INTO url (id, @columns_of_url, run, host, depth, hops, via, seed, trap, sample, found, nofollow)
SELECT next_id, @columns_of_url, :run, host, depth, hops, via, CAST(:seed AS bigint), trap, sample, :round,
    {_NOT_FOLLOWED}
FROM (SELECT *, @next_id AS next_id FROM @found) AS r WHERE true ORDER BY @insertion_order
ON CONFLICT (@key) DO NOTHING RETURNING id, url
"""

IDS: Final = "SELECT @next_id FROM @rows(id)"
# The same with ids that were asked for: an error if another member was faster.
ADD_AS: Final = """
INSERT INTO url (id, @columns_of_url, run, host, depth, hops, via, seed, trap, sample, found, nofollow)
SELECT id, @columns_of_url, :run, host, depth, hops, via, CAST(:seed AS bigint), trap, sample, :round,
    NOT_FOLLOWED
FROM @found(id) WHERE true ORDER BY @insertion_order
""".replace("NOT_FOLLOWED", _NOT_FOLLOWED)

OPEN: Final = """
INSERT INTO visit (id, host, depth, trap, sample, state)
SELECT id, host, depth, trap, sample, state FROM @rows(id, host, depth, trap, sample, state)
"""

FILTERED: Final = """
INSERT INTO page (id, outcome, detail, settled)
SELECT id, outcome, detail, settled
    FROM @rows(id, outcome, detail, settled) WHERE NOT EXISTS (SELECT 1 FROM page WHERE page.id = r.id)
"""

# URLs that an earlier run found, unless another member was faster.
RENEW: Final = f"""
UPDATE url SET run = :run, host = r.host, depth = r.depth, hops = r.hops, via = r.via,
    seed = CAST(:seed AS bigint), sitemap_date = NULL,
    trap = r.trap, sample = r.sample, found = :round, round = NULL, nofollow = {_NOT_FOLLOWED}
FROM @rows({", ".join(RENEWED)}) WHERE url.id = r.id AND url.run < :run RETURNING url.id
"""

EARLIER: Final = (
    f"SELECT p.id, p.was, p.was_lastmod, {of('p', Earlier._fields, content=VERSION_OF)}"
    " FROM page AS p WHERE p.id @any(ids)"
)
_RENEWED: Final = ("was", "was_lastmod", *Earlier._fields[3:])  # without what was read of the page
RENEW_PAGES: Final = f"""
UPDATE page SET
    attempts = 0, outcome = coalesce(r.outcome, page.outcome), settled = coalesce(r.settled, page.settled),
    detail = CASE WHEN r.outcome IS NULL THEN page.detail ELSE r.detail END,
    facts_run = CASE WHEN r.outcome IS NULL THEN page.facts_run END,
    {", ".join(f"{column} = r.{column}" for column in _RENEWED)}
FROM @rows(id, outcome, detail, settled, {", ".join(_RENEWED)}) WHERE page.id = r.id
"""

COMPLETE: Final = "status IN ('complete', 'concluded', 'refused')"
COMPLETE_RUNS: Final = f"SELECT number, status = 'concluded' FROM run WHERE number < :run AND {COMPLETE}"

# Found again: the first statement of a pair selects `MovedVisit`, the second one updates `url` for these
# rows.
_MOVED: Final = (
    "k.id, coalesce(k.host, r.host), r.depth, coalesce(k.trap, r.trap), coalesce(k.sample, r.sample)"
)
_OF_RUN: Final = "FROM @found JOIN known AS k ON k.@key = r.@key WHERE k.run = :run"

# A URL that was found by nofollow links only is followed now.
UPGRADE: Final = (
    f"SELECT k.id, r.host, r.depth, r.trap, r.sample, r.state, r.outcome, r.detail, r.settled {_OF_RUN} "
    f"AND k.nofollow AND {_FOLLOWED}",
    """
UPDATE url SET host = r.host, depth = r.depth, hops = r.hops, via = r.via, trap = r.trap, sample = r.sample,
    found = :round, nofollow = false
FROM @found WHERE url.@key = r.@key AND url.id @any(ids)
""",
)

# A URL that was found at a smaller depth than recorded (by a redirect), and was not fetched yet.
LOWER_DEPTHS: Final = (
    f"""
SELECT {_MOVED}, CASE WHEN k.state = {SETTLED} THEN r.state ELSE k.state END,
    CASE WHEN k.state = {SETTLED} THEN r.outcome ELSE k.outcome END,
    CASE WHEN k.state = {SETTLED} THEN r.detail ELSE k.detail END, NULL
{_OF_RUN} AND r.depth < k.depth
AND (k.state IN ({PLANNED}, {HELD}, {QUEUED}) OR (k.state = {SETTLED} AND k.outcome = 'unlisted:depth'))
""",
    """
UPDATE url SET depth = r.depth, hops = @least(url.hops, r.hops), via = r.via, host = coalesce(url.host,
    r.host),
    trap = coalesce(url.trap, r.trap), sample = coalesce(url.sample, r.sample)
FROM @found WHERE url.@key = r.@key AND url.id @any(ids)
""",
)

# A URL that a page names as canonical or redirects to, and that was not fetched yet, is moved to the pattern
# of such URLs.
NAMED: Final = (
    f"""
SELECT k.id, k.host, k.depth, r.trap, r.sample, r.state,
    coalesce(r.outcome, CASE WHEN k.state <> {SETTLED} THEN k.outcome END), r.detail, NULL
{_OF_RUN} AND k.trap IS NOT NULL AND k.trap <> r.trap
AND (k.state = {HELD} OR (k.state = {SETTLED} AND k.outcome = 'unlisted:trap' AND k.attempts = 0))
""",
    """
UPDATE url SET trap = r.trap, sample = r.sample FROM @found WHERE url.@key = r.@key AND url.id @any(ids)
""",
)

# A URL that was filtered, and is to be fetched because the site has grown or a shorter path was found.
ADMIT: Final = (
    f"SELECT k.id, r.host, k.depth, r.trap, r.sample, r.state, r.outcome, r.detail, r.settled {_OF_RUN} "
    f"AND k.state = {SETTLED} AND k.host IS NULL",
    """
UPDATE url SET host = r.host, trap = r.trap, sample = r.sample, found = :round
FROM @found WHERE url.@key = r.@key AND url.id @any(ids)
""",
)

# The first other page that links to a URL found in a seed.
LINKED: Final = f"""
UPDATE url SET via = r.via FROM @found
WHERE url.@key = r.@key AND url.run = :run AND url.via IS NULL AND url.id <> r.via AND {_FOLLOWED}
"""

# Whether a further link could change the row: the URL is known only from nofollow links, from a seed, or by
# redirects.
MAY_CHANGE: Final = "u.via IS NULL OR u.hops > 0 OR u.nofollow"
KNOWN: Final = f"SELECT u.url, u.id, u.run, {MAY_CHANGE} FROM url AS u WHERE u.@key @any(keys, key)"

ANY_NOFOLLOW: Final = "SELECT EXISTS (SELECT 1 FROM url WHERE nofollow)"
COUNT: Final = """
UPDATE member SET discovered = discovered + :discovered, settled = settled + :settled,
    revisited = revisited + :revisited
WHERE id = :member
"""


ID: Final = "SELECT id FROM url WHERE @key @any(keys, key)"


class Discovery:
    """Adds URLs."""

    def __init__(self, db: Database, hosts: HostTable, patterns: PatternTable, seeds: SeedTable) -> None:
        self._db, self._hosts, self._patterns, self._seeds = db, hosts, patterns, seeds

    def add(
        self, visits: Iterable[Visit], seed: Seed | None = None, dates: Mapping[Url, datetime] = NO_DATES
    ) -> int:
        """Add visits. `dates`: of the seed.

        The number of new ones, without those that are filtered or held, which are stored too.
        """
        self._db.by_index()
        if seed is None:
            visits = list(visits)
            added = self.add_found(visits, {}, self.ask_known((visit.url for visit in visits), new=True)())
            self.count(added.stored)
            return added.new
        number = self._seeds.id(seed)
        rows = [self._row(visit, {}, seed) for visit in deduplicated(visits)]
        known = self.ask_known((Url(row.url) for row in rows), new=True)()
        added = self._insert(rows, known, number)
        self.count(added.stored)
        new = added.new + self._seeds.requeue(rows, seed, number)
        lower_hops(self._db, [(row.url, 0, 0) for row in rows])
        if dates:
            self._seeds.store_dates(dates)
        return new

    def count(self, discovered: int, settled: int = 0, revisited: int = 0) -> None:
        """Count URLs that this member has stored and settled, for the balance of the run.

        `revisited`: how many of the settled ones an earlier run had visited.
        """
        if discovered or settled:
            given = {"discovered": discovered, "settled": settled, "revisited": revisited}
            self._db.do(COUNT, given | {"member": self._db.member})

    def add_found(self, visits: Iterable[Visit], pages: Mapping[Url, int], known: FoundBefore) -> Added:
        """Add what pages lead to. `pages`: record numbers of URLs that visits may have been found on.

        `known`: of these visits at least. The caller counts what was stored (`count`).
        """
        maybe, before = deduplicated(visits), known.numbers
        rows = [self._row(visit, pages) for visit in maybe if may_change_row(visit, before.get(visit.url, 0))]
        new, stored, numbers = self._insert(rows, known, None)
        return Added(new, stored, {**before, **numbers})

    def requeue(self, visits: Iterable[Visit]) -> int:
        rows = [self._row(visit, {}) for visit in visits if visit.filtered is None]
        self._change(ADMIT, rows)
        return sum(row.state == QUEUED for row in rows)

    def record_targets(self, found: Sequence[Visit]) -> None:
        """Record targets of redirects and canonicals: their depth and their pattern may change."""
        targets = [visit for visit in found if visit.hops and visit.filtered is None]
        nearest: dict[Url, Visit] = {}  # each URL once, as several pages may lead to it
        for visit in sorted(targets, key=lambda visit: visit.depth):
            nearest.setdefault(visit.url, visit)
        self._change(LOWER_DEPTHS, [self._row(visit, {}) for visit in nearest.values()])
        lower_hops(self._db, [(visit.url, visit.hops, 0) for visit in targets])
        named = {visit.url: visit for visit in found if visit.pattern and visit.pattern.named}
        self._change(NAMED, [self._row(visit, {}) for visit in named.values()])

    def record_hops(self, visits: Sequence[Visit]) -> None:
        """Record the redirects of settled visits: a shorter path may have been found meanwhile."""
        lower_hops(self._db, [(visit.url, visit.hops, visit.hops) for visit in visits if visit.hops])

    def _row(self, visit: Visit, pages: Mapping[Url, int], seed: Seed | None = None) -> FoundRow:
        filtered, pattern = visit.filtered, visit.pattern
        state, detail = QUEUED if filtered is None else SETTLED, None
        host = self._hosts.admitted(origin(visit.url)) if filtered is None else None
        if host is None and filtered is None:
            state, filtered = SETTLED, Why.HOSTS
        place = self._patterns.place(visit.url, pattern) if pattern and filtered is None else None
        if place and pattern and visit.via is not None:
            state = HELD
            if place.closed:
                state, filtered, detail = SETTLED, Why.TRAP, pattern.text
        elif state == QUEUED and self._patterns.is_partial:
            state = state if visit.hops else PLANNED
        elif state == QUEUED and (visit.via or _is_sitemap(seed)) and self._patterns.level is not None:
            state = HELD  # for the next level: redirects cost requests as well
        return FoundRow(
            visit.url,
            state,
            host,
            visit.depth,
            visit.hops,
            None if visit.via is None else pages.get(visit.via) or self._id(visit.via),
            None if filtered is None else f"unlisted:{filtered.value}",
            None if filtered is None else self._db.now() // 1,
            detail,
            place.trap if place else None,
            place.sample if place else None,
        )

    def _insert(self, rows: Sequence[FoundRow], known: FoundBefore, seed: int | None) -> Added:
        """Insert the rows of URLs, those to be fetched last, and record what the others add to known URLs.

        `seed`: its number.
        """
        if not rows:
            return Added(0, 0, {})
        rows = sorted(rows, key=lambda row: row.state == QUEUED)
        older, here = known.older, known.numbers
        unknown = [row for row in rows if row.url not in older and row.url not in here]
        added = self._ask_added(unknown, seed, known.ids) if unknown else list
        ids = self._renew([(older[row.url], row) for row in rows if row.url in older], seed)
        ids |= {url: number for number, url in added()}
        self._open([(ids[row.url], row) for row in rows if row.url in ids])
        new, stored = sum(row.state == QUEUED and row.url in ids for row in rows), len(ids)
        if stored == len(rows):
            numbers = {Url(row.url): -ids[row.url] if row.may_change else ids[row.url] for row in rows}
            return Added(new, stored, numbers)
        self._db.do(LINKED, self._given(rows))
        lower_hops(
            self._db,
            [(row.url, row.hops, 0) for row in rows if row.host is not None or row.outcome == TOO_DEEP],
        )
        if self._db.one(ANY_NOFOLLOW)[0]:
            new += self._change(UPGRADE, rows)
        return Added(new, stored, self.ask_known(Url(row.url) for row in rows)().numbers)

    def _ask_added(
        self, rows: Sequence[FoundRow], seed: int | None, ids: Sequence[int]
    ) -> Callable[[], list[Any]]:
        """Insert rows of URLs that no run has found, unless another member was faster: their ids and URLs."""
        dialect, given = self._db.dialect, self._of_run() | {"seed": seed}
        if len(ids) >= len(rows):
            numbered = [(*row, number) for row, number in zip(found_rows(dialect, rows), ids, strict=False)]
            self._db.do_rows(ADD_AS, (*found_columns(dialect), "id"), numbered, **given)
            return lambda: [(number, row.url) for row, number in zip(rows, ids, strict=False)]
        return self._db.ask_rows(ADD, found_columns(dialect), found_rows(dialect, rows), **given)

    def _renew(self, known: Sequence[tuple[Older, FoundRow]], seed: int | None) -> dict[str, int]:
        """Make the rows of URLs that an earlier run found those of this run; their ids."""
        if not known:
            return {}
        rows = [
            (old.id, row.host, row.depth, row.hops, row.via, row.trap, row.sample, row.outcome)
            for old, row in known
        ]
        given = self._of_run() | {"seed": seed}
        ids = {number for (number,) in self._db.ask_rows(RENEW, RENEWED, rows, **given)()}
        runs = self._db.ask(COMPLETE_RUNS, {"run": self._db.run})
        stored = self._db.ask(EARLIER, {"ids": self._db.dialect.all_of(ids)}, packed=True)
        complete = dict(runs())
        concluded = {number for number, is_published in complete.items() if is_published}
        last = max(concluded or complete, default=0)  # what it did not find is new
        renewed = {old.id: (old, row) for old, row in known if old.id in ids}
        pages = list[tuple[Any, ...]]()
        for number, was, was_lastmod, *facts in stored():
            (old, row), earlier = renewed[number], Earlier._make(facts)
            page = found_in_new_run(earlier, was_published=old.run in concluded)
            before = was, was_lastmod  # a refused or unfinished run since: what it saw is passed over
            if old.run <= last:
                before = (earlier.outcome, earlier.lastmod) if old.run == last else (None, None)
            pages.append((number, row.outcome, row.detail, row.settled, *before, *page[3:]))
        self._db.do_rows(RENEW_PAGES, ("id", "outcome", "detail", "settled", *_RENEWED), pages)
        return {row.url: number for number, (_, row) in renewed.items()}

    def _open(self, new: Sequence[tuple[int, FoundRow]]) -> None:
        """Insert what new URLs have beside their row: a visit, or the reason why there is none."""
        due = [
            (number, row.host, row.depth, row.trap, row.sample, row.state)
            for number, row in new
            if row.state != SETTLED
        ]
        if due:
            self._db.do_rows(OPEN, ("id", "host", "depth", "trap", "sample", "state"), due)
        filtered = [
            (number, row.outcome, row.detail, row.settled) for number, row in new if row.state == SETTLED
        ]
        if filtered:
            self._db.do_rows(FILTERED, ("id", "outcome", "detail", "settled"), filtered)

    def _change(self, change: tuple[str, str], rows: Sequence[FoundRow]) -> int:
        """Change known URLs that were found again; how many are due now."""
        if not rows:
            return 0
        given = self._given(rows)
        select, update = change
        moved = [MovedVisit._make(row) for row in self._db.all(select, given)]
        if not moved:
            return 0
        self._db.do(update, given | {"ids": self._db.dialect.all_of(row.id for row in moved)})
        move(self._db, moved)
        return sum(row.state == QUEUED for row in moved)

    def _given(self, rows: Sequence[FoundRow]) -> dict[str, Any]:
        return self._db.dialect.given_found(rows) | self._of_run()

    def _of_run(self) -> dict[str, int]:
        return {"run": self._db.run, "round": self._patterns.round}

    def ask_known(self, urls: Iterable[Url], *, new: bool = False) -> Callable[[], FoundBefore]:
        """Ask which of these URLs are known. `new`: the others are to be inserted."""
        given, this = list(dict.fromkeys(urls)), self._db.run
        if not given:
            return lambda: FoundBefore({}, {})
        ids = self._ask_ids(len(given)) if new else tuple
        asked = self._db.ask(KNOWN, {"keys": self._db.dialect.keys(given)}, packed=True)

        def known() -> FoundBefore:
            rows = asked()
            numbers = {
                url: -number if may_change else number for url, number, run, may_change in rows if run == this
            }
            if len(numbers) == len(rows):
                return FoundBefore(numbers, {}, ids())
            older = {url: Older(number, run) for url, number, run, _ in rows if run != this}
            return FoundBefore(numbers, older, ids())

        return known

    def _ask_ids(self, count: int) -> Callable[[], Sequence[int]]:
        """Ask for ids of so many URLs. Not when it is tried again: another member may insert them, too."""
        if count > self._db.ids_ahead or self._db.is_retry:
            return tuple
        asked = self._db.ask_rows(IDS, ("id",), [(0,)] * count)
        return lambda: [number for (number,) in asked()]

    def _id(self, url: Url) -> int | None:
        row = self._db.one_or_none(ID, {"keys": self._db.dialect.keys([url])})
        return row[0] if row else None


def _is_sitemap(seed: Seed | None) -> bool:
    return seed is not None and seed.kind is SeedKind.SITEMAP
