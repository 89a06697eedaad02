"""The rounds of a crawl: when the URLs of a pattern that may be a crawler trap are fetched.

They are held until no other URL is open. Then each pattern releases the URLs of its sample; once that was
read, it is decided whether the pattern continues. All decisions are computed from the rows, so the set of
fetched URLs depends only on the site, not on the order of responses or on interruptions. The rule is in
`rules.traps`. Each method is called within a transaction.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from crawler.frontier.budget import Budget
from crawler.frontier.database import Database
from crawler.frontier.leases import ANY_OUT
from crawler.frontier.levels import Levels
from crawler.frontier.patterns import PatternTable, stored_traps
from crawler.frontier.query_values import ValueTable
from crawler.frontier.revisits import Revisits
from crawler.frontier.samples import ORIGINALS, SELDOM, ReadSample, count_new, leads_to_held
from crawler.frontier.visits import ANY_DEPTH, move, release
from crawler.model.trap import DoubtfulPattern, ImpossibleValues, Trap
from crawler.ports import Round
from crawler.rules.record import HELD, LEASED, QUEUED, SETTLED, WAITING
from crawler.rules.traps import GROWN, OVER_BUDGET, SAMPLE, Sampling

WITHIN: Final = 1 << 24  # the rank of a URL to which only pages of its own pattern link, at least
LATER: Final = 5  # places by which a URL that is found one round later stands behind
_PLACE: Final = f"(v.rank % {WITHIN} - {LATER} * u.found)"  # among the held links of its page

# Patterns with held URLs: one index lookup for each, however many URLs it has. Sorted, and therefore read
# completely before the first row is changed.
WITH_HELD: Final = f"""
WITH RECURSIVE held (trap) AS (
    SELECT min(trap) FROM visit WHERE state = {HELD}
    UNION ALL
    SELECT (SELECT min(trap) FROM visit WHERE state = {HELD} AND trap > held.trap)
        FROM held WHERE held.trap IS NOT NULL
)
SELECT t.id, t.size_left, t.dry, t.proven, t.kind, t.pattern, t.longest, t.longest_before, t.rounds_growing,
    (SELECT host FROM visit WHERE state = {HELD} AND trap = t.id ORDER BY rank, sample LIMIT 1)
FROM held JOIN trap AS t ON t.id = held.trap WHERE t.run = :run ORDER BY t.pattern, t.named
"""

DUE: Final = f"SELECT count(*) FROM visit WHERE state BETWEEN {QUEUED} AND {LEASED} AND depth <= :depth"

# Hosts with visits that can be leased: what they hold is released only once these are settled.
BUSY: Final = f"""
SELECT h.id FROM host AS h WHERE (
    SELECT depth FROM visit WHERE state = {QUEUED} AND host = h.id ORDER BY reopened, depth, id LIMIT 1
) <= :depth
"""
# Pages of patterns that are tried again later.
RETRIED_OF_PATTERNS: Final = f"""
SELECT trap, count(*) FROM visit WHERE state = {WAITING} AND trap IS NOT NULL GROUP BY trap
"""

DECIDABLE: Final = """
SELECT id, kind, pattern, size - size_left, sample_round, dry, proven FROM trap
WHERE run = :run AND NOT closed AND size_left <= 0
"""

# The next `:most` URLs of a pattern. `:turns`: in how many shares of `SAMPLE` links a page has its turn, for
# a URL that was found in this round; one more for each round since.
NEXT: Final = f"""
SELECT v.id FROM visit AS v JOIN url AS u ON u.id = v.id
WHERE v.state = {HELD} AND v.trap = :trap AND v.depth <= :depth
    AND (CAST(:turns AS bigint) IS NULL OR {_PLACE} < {SAMPLE} * (:turns + :round - u.found))
ORDER BY v.rank, v.sample LIMIT :most
"""
# The turn of the first URL that has not had its turn.
NEXT_TURN: Final = f"""
SELECT min({_PLACE} / {SAMPLE} - :round + u.found) + 1
FROM visit AS v JOIN trap AS t ON t.id = v.trap JOIN url AS u ON u.id = v.id
WHERE v.state = {HELD} AND v.depth <= :depth AND t.run = :run AND NOT t.proven AND t.dry = :dry
"""

HELD_URLS: Final = (
    f"SELECT count(*) FROM (SELECT 1 FROM visit WHERE state = {HELD} AND trap = :trap LIMIT :most) AS held"
)
# The place of each held URL among the held links of a page that was read; the best one, if several pages link
# to it. So links that are added to one page delay no URL that another page links to. URLs to which only pages
# of their own pattern link come after all others of it: a pattern that leads to itself may be endless. What
# is found later stands behind: where repeats lead to repeats, there are first links of some page at any time.
RANK: Final = f"""
UPDATE visit SET rank = r.rank FROM (
    SELECT id, min(place) AS rank FROM (
        SELECT v.id AS id, row_number() OVER (PARTITION BY p.id ORDER BY v.sample, v.id) - 1
            + {LATER} * u.found + CASE WHEN p.trap = v.trap THEN {WITHIN} ELSE 0 END AS place
        FROM known AS p @each(p.links) JOIN visit AS v ON v.id = j.value JOIN url AS u ON u.id = v.id
        WHERE p.run = :run AND p.state = {SETTLED} AND v.state = {HELD} AND v.rank < 0
    ) AS links GROUP BY id
) AS r WHERE visit.id = r.id
"""
UNLINKED: Final = f"UPDATE visit SET rank = 0 WHERE state = {HELD} AND rank < 0"
LEAST_RANK: Final = f"SELECT min(rank) FROM visit WHERE state = {HELD} AND trap = :trap"

# URLs of the last publication are fetched even from closed patterns, once no other URL is left.
PUBLISHED: Final = f"""
SELECT id, host, depth, trap, sample, {QUEUED}, NULL, NULL, NULL FROM known
WHERE run = :run AND state = {SETTLED} AND outcome = 'unlisted:trap' AND depth <= :depth AND attempts = 0
AND trap IS NOT NULL AND published >= (SELECT max(number) FROM publication WHERE run < :run)
"""

# The held URLs of a pattern, or of all, that have more than `:longer` characters.
BARRED: Final = f"""
SELECT v.id, v.host, v.depth, v.trap, v.sample, {SETTLED}, 'unlisted:trap', CAST(:detail AS text),
    CAST(:now AS double precision)
FROM visit AS v JOIN url AS u ON u.id = v.id
    WHERE v.state = {HELD} AND (v.trap = :trap OR CAST(:trap AS bigint) IS NULL) AND v.depth <= :depth
        AND length(u.url) > :longer
"""

CONTINUE: Final = """
UPDATE trap SET size = :size, size_left = :size, sample_round = :round, dry = :dry, proven = :proven,
    closed = :closed
WHERE id = :id
"""

EXAMPLE: Final = f"""
SELECT u.url FROM visit AS v JOIN url AS u ON u.id = v.id
    WHERE v.state = {HELD} AND v.trap = :trap ORDER BY v.sample LIMIT 1
"""
EXAMPLE_OF_ALL: Final = f"""
SELECT u.url FROM visit AS v JOIN url AS u ON u.id = v.id
    WHERE v.state = {HELD} AND v.depth <= :depth ORDER BY v.sample, u.url LIMIT 1
"""


class _Held(Struct, frozen=True):
    """A pattern with held URLs."""

    trap: int
    left: int  # pages left in its sample
    dry: int  # samples in a row that brought nothing new
    proven: int
    kind: str
    pattern: str
    longest: int  # characters of its longest URL
    longest_before: int  # the same before the last round
    rounds_growing: int  # consecutive rounds in which that length grew
    host: int


class Rounds:
    """The rounds of the current run."""

    def __init__(
        self,
        db: Database,
        patterns: PatternTable,
        values: ValueTable,
        levels: Levels,
        budget: Budget,
        revisits: Revisits,
    ) -> None:
        self._db, self._patterns, self._values, self._levels = db, patterns, values, levels
        self._budget, self._revisits = budget, revisits

    def advance(self, depth: int, shown: Mapping[int, ImpossibleValues]) -> Round:
        """Decide on the samples that were read, and release the next URLs, down to `depth`."""
        self._values.store(shown)
        if self._db.is_retry and (due := self._db.count(DUE, {"depth": depth})):
            return Round(due)  # the round was committed, and the answer was lost
        return self._advance(depth, waits=True)

    def _advance(self, depth: int, *, waits: bool) -> Round:
        """`waits`: see `_decide`; what waits is decided on once nothing else is left."""
        queued = self._db.ask(BUSY, {"depth": depth})  # no decision changes that
        closed, doubtful, waiting = self._decide(waits=waits)
        if doubtful:
            return Round(0, closed, doubtful)
        busy = {host for (host,) in queued()}
        level = 0 if busy else self._levels.descend(depth)
        released = level if level or busy else self._revisits.release_new()
        if level or not released:
            released += self._release(depth, closed, busy, level)
        if waiting and not released and not busy and self._rest(depth) is not None:
            last = self._advance(depth, waits=False)
            return replace(last, closed=[*closed, *last.closed])
        if not released and not busy:
            released = self._revisits.release_known() or self._revisits.release_new(sparing=False)
        if not released and (held := self._rest(depth)) is not None:
            closed += self._end(depth, held)
            if self._patterns.is_partial:
                self._revisits.close()
            else:
                released = move(self._db, self._db.all(PUBLISHED, {"run": self._db.run, "depth": depth}))
        if released:
            self._patterns.next_round()
        return Round(released, closed)

    def _decide(self, *, waits: bool) -> tuple[list[Trap], list[DoubtfulPattern], bool]:
        """Decide on the samples that were read; what is doubtful is decided on once the site was asked.

        `waits`: a sample without new content is decided on once what it led to in other patterns was read,
        such as the topics of lists. The last value: whether one waits.
        """
        shut, doubtful, waiting = set[str](), list[DoubtfulPattern](), False
        decided = [ReadSample(*row) for row in self._db.all(DECIDABLE, {"run": self._db.run})]
        has_repeats = any(one.kind == "repeats" for one in decided)
        originals = dict(self._db.ask_whole(ORIGINALS, {"run": self._db.run})()) if has_repeats else {}
        for one in decided:
            sampling, new = Sampling(one.size, one.dry, bool(one.proven)), count_new(self._db, one, originals)
            if waits and sampling.after(new).dry and leads_to_held(self._db, one):
                waiting = True
                continue
            if one.kind != "repeats" and sampling.after(new).dry:
                if doubt := self._values.doubts(one.trap):
                    doubtful.append(doubt)
                    continue
                new = self._values.count_true(one.trap, one.since, new, proven=sampling.proven)
            then = sampling.after(new)
            if then.is_closed and one.kind != "repeats":
                refuses = one.kind == "query" and self._values.refuses(one.trap)
                if then.proven or refuses:
                    seldom = self._db.one(SELDOM, {"trap": one.trap, "run": self._db.run})
                    then = then.patient(*seldom, refuses=refuses)
            given = {"closed": then.is_closed, "round": self._patterns.round, "id": one.trap}
            self._db.do(CONTINUE, then._asdict() | given)
            if then.is_closed:
                self._bar(one.trap, one.pattern)
                shut.add(one.pattern)
        if not shut:
            return [], doubtful, waiting
        self._patterns.note_closing()
        closed = stored_traps(self._db, len(shut) + 1_000)
        return [trap for trap in closed if trap.pattern in shut], doubtful, waiting

    def _rest(self, depth: int) -> list[tuple[str]] | None:
        """An example of what is held, if there is any; None while something is leased or waits."""
        out, held = self._db.ask(ANY_OUT), self._db.ask(EXAMPLE_OF_ALL, {"depth": depth})
        return None if out()[0][0] else held()

    def _end(self, depth: int, held: list[tuple[str]]) -> list[Trap]:
        """Bar everything that is held, once the budget is spent. `held`: an example."""
        if not held or self._budget.left(1):
            return []
        spent = Trap("repeats", OVER_BUDGET, held[0][0])
        self._bar(None, spent.pattern, depth=depth)
        self._patterns.store_traps([spent])
        return [spent]

    def _bar(self, trap: int | None, detail: str, *, longer: int = 0, depth: int = ANY_DEPTH) -> None:
        """See `BARRED`."""
        given = {"trap": trap, "depth": depth, "detail": detail, "now": self._db.now(), "longer": longer}
        move(self._db, self._db.all(BARRED, given))

    def _release(self, depth: int, closed: list[Trap], busy: AbstractSet[int], level: int) -> int:
        """Patterns whose last sample brought nothing, and those of repeats, wait for all others.

        The others do not wait for levels: a chain of repeats would spend the budget before any of them was
        looked at. `busy`: hosts that are left out. `level`: URLs of the next level, which are due.
        """
        held, retried = self._db.ask(WITH_HELD, {"run": self._db.run}), self._db.ask(RETRIED_OF_PATTERNS)
        waiting, begun = [_Held(*row) for row in held()], dict(retried())
        waiting = [
            replace(one, left=one.left - begun.get(one.trap, 0))
            for one in self._growing(waiting, closed)
            if one.host not in busy and not (level and one.kind == "repeats")
        ]
        for is_dry in (False,) if level else (False, True):
            some = [one for one in waiting if (one.dry > 0) is is_dry]
            if some and (released := self._release_some(some, depth, level)):
                return released
        return 0

    def _release_some(self, patterns: Sequence[_Held], depth: int, level: int) -> int:
        """Release the samples of patterns. Of those that have proven nothing, one page may link to a few."""
        if self._has_choice(patterns) and any(map(self._has_unranked, patterns)):
            self._db.do(RANK, {"run": self._db.run})
            self._db.do(UNLINKED)
        if released := self._release_turn(patterns, depth, 1, level):
            return released
        given = {"run": self._db.run, "round": self._patterns.round, "depth": depth, "dry": patterns[0].dry}
        [(turns,)] = self._db.all(NEXT_TURN, given)
        return 0 if turns is None else self._release_turn(patterns, depth, turns, level)

    def _release_turn(self, patterns: Sequence[_Held], depth: int, turns: int, level: int) -> int:
        """Release what has its turn, as far as the budget goes: proven patterns come first."""
        wanted = level + sum(max(0, one.left) for one in patterns)
        left = self._revisits.within(self._budget.left(wanted) - level)
        released = 0
        for one in sorted(patterns, key=lambda one: not one.proven):
            most = min(max(0, one.left), left - released)
            given = dict[str, int | None](trap=one.trap, depth=depth, most=most)
            released += self._release_next(given | {"turns": None if one.proven else turns})
        return released

    def _has_unranked(self, one: _Held) -> bool:
        least = self._db.one(LEAST_RANK, {"trap": one.trap})[0]
        return least is not None and least < 0

    def _has_choice(self, patterns: Sequence[_Held]) -> bool:
        """Whether some of the held URLs are not released now."""
        unproven = 0
        for one in patterns:
            held = self._db.count(HELD_URLS, {"trap": one.trap, "most": max(0, one.left) + 1})
            unproven += 0 if one.proven else held
            if held > one.left or unproven > SAMPLE:
                return True
        return False

    def _release_next(self, given: dict[str, int | None]) -> int:
        ids = [number for (number,) in self._db.all(NEXT, given | {"round": self._patterns.round})]
        return release(self._db, ids, self._patterns.round + 1)

    def _growing(self, patterns: Iterable[_Held], closed: list[Trap]) -> Iterator[_Held]:
        """All of them; if the longest URL of a pattern grew from round to round, longer ones are barred."""
        for one in patterns:
            rounds = one.rounds_growing + 1 if one.longest > one.longest_before else 0
            if rounds > GROWN:
                closed.append(self._cut(one))
            elif (rounds, one.longest) != (one.rounds_growing, one.longest_before):
                self._db.do(
                    "UPDATE trap SET rounds_growing = :rounds, longest_before = :longest WHERE id = :id",
                    {"rounds": rounds, "longest": one.longest, "id": one.trap},
                )
            yield one

    def _cut(self, one: _Held) -> Trap:
        growing = f"{one.pattern} growing from page to page"
        example = self._db.one(EXAMPLE, {"trap": one.trap})[0]
        self._bar(one.trap, growing, longer=one.longest_before)
        self._patterns.store_traps([Trap(one.kind, growing, example)])
        return Trap(one.kind, growing, example)
