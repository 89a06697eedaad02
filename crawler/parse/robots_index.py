"""An index of robots.txt rules: finds the rule that decides for a path without trying each of them. Pure.

A rule is a sequence of literals: the path starts with the first one, each further one occurs anywhere after
the one before (that is the meaning of `*`), and `$` is a literal like any other, because a `$` is appended to
every path. Rules that start with the same literals share a branch of a trie. A lookup enters a branch at most
once, at the earliest position where its literals end: a later one could match nothing more, as the next `*`
covers the rest. Where a branch continues with many literals, they are looked up at each position of the path
instead of being searched one by one, so the cost of a lookup grows with the path and not with the number of
rules. The work is counted and bounded. What a line of robots.txt means is in `robots_txt`.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Final

from msgspec import Struct

END: Final = b"$"  # appended to every path; inside a path it is spelled %24
FEW_LITERALS: Final = 8  # up to here each literal is searched on its own
STEPS: Final = 16  # allowed for each octet of a path
LEAST_STEPS: Final = 16_384  # steps allowed for any path
SEARCHED: Final = 1_024  # comparisons of octets that cost as much as a step
NEEDLE: Final = 100  # octets of a literal that count as work: longer ones are searched in linear time


class TooMuchWork(Exception):  # noqa: N818 - caught, and the path counts as disallowed
    """The matching rule cannot be found within the limit of work."""


class Rule(Struct, frozen=True, eq=False):
    """An Allow or a Disallow, its path in the normal form and split at each `*`."""

    allow: bool
    line: str
    group: str
    # Octets, then Allow over Disallow, then the earliest line: the highest rank decides (2.2.2).
    rank: tuple[int, bool, int]
    literals: tuple[bytes, ...]  # the first may be empty, the others are not


class RuleIndex:
    """The rules for one agent."""

    def __init__(self, rules: Iterable[Rule]) -> None:
        best: dict[tuple[bytes, ...], Rule] = {}
        for rule in rules:
            known = best.setdefault(rule.literals, rule)
            if known.rank < rule.rank:
                best[rule.literals] = rule
        self._heads = _Literals(_trie(sorted(best.values(), key=lambda rule: rule.literals)))
        self.weight = sum(600 + rule.rank[0] + 20 * len(rule.literals) for rule in best.values())
        self.steps = 0  # taken by the last lookup

    def deciding(self, path: bytes) -> Rule | None:
        """The highest of the rules that match `path`, in the normal form. Raises `TooMuchWork`."""
        lookup = _Lookup(path + END)
        try:
            lookup.ask(self._heads)
        finally:
            self.steps = lookup.steps
        return lookup.found


class _Branch:
    """Rules that start with the same literals, up to where they differ."""

    __slots__ = ("best", "few", "literals", "many", "rule")

    def __init__(self, rules: Sequence[Rule], depth: int) -> None:
        """`rules`: sorted by their literals, equal up to `depth`. Branches below are added later."""
        first, last = rules[0].literals, rules[-1].literals
        end = depth
        while end < len(first) and end < len(last) and first[end] == last[end]:
            end += 1
        self.literals = first[depth:end]
        self.rule = rules[0] if len(first) == end else None  # the one that ends here
        self.best = max(rule.rank for rule in rules)
        self.few: Sequence[tuple[bytes, _Branch]] = ()
        self.many: _Literals | None = None


def _trie(rules: Sequence[Rule]) -> list[tuple[bytes, _Branch]]:
    """The branches of all rules, by first literal. Not recursive: a rule may have any number of literals."""
    trunk = list(_split(rules, 0))
    open_ = [(branch, part, 1) for _, branch, part in trunk]
    while open_:
        branch, part, depth = open_.pop()
        depth += len(branch.literals)
        parts = list(_split(part[1:] if branch.rule else part, depth))
        branch.few = [(literal, inner) for literal, inner, _ in parts]
        if len(parts) > FEW_LITERALS:
            branch.few, branch.many = (), _Literals(branch.few)
        open_ += [(inner, more, depth + 1) for _, inner, more in parts]
    return [(literal, branch) for literal, branch, _ in trunk]


def _split(rules: Sequence[Rule], depth: int) -> Iterator[tuple[bytes, _Branch, Sequence[Rule]]]:
    for literal, group in groupby(rules, key=lambda rule: rule.literals[depth]):
        part = list(group)
        yield literal, _Branch(part, depth + 1), part


class _Literals:
    """Many literals with their branches, looked up by position in a text."""

    def __init__(self, branches: Sequence[tuple[bytes, _Branch]]) -> None:
        """`branches`: sorted by literal, without duplicates."""
        self._sorted = [literal for literal, _ in branches]
        self.branches = [branch for _, branch in branches]
        self.best = max((branch.best for branch in self.branches), default=(0, False, 0))
        self.longest = max(map(len, self._sorted), default=0)
        # For each literal, those that are prefixes of it, and itself, shortest first.
        self._within: list[tuple[int, ...]] = []
        for number, literal in enumerate(self._sorted):
            within = self._within[-1] if number else ()
            while within and not literal.startswith(self._sorted[within[-1]]):
                within = within[:-1]
            self._within.append((*within, number))

    def within(self, text: bytes, places: Iterable[int]) -> Iterator[tuple[int, Sequence[int]]]:
        """The literals that occur at each of the places, shortest first.

        All of them are prefixes of the last literal that does not sort after the text at that place.
        """
        known, longest = self._sorted, self.longest
        for place in places:
            part = text[place : place + longest]
            before = bisect_right(known, part) - 1
            if before < 0:
                continue
            if part.startswith(known[before]):
                yield place, self._within[before]
            elif len(self._within[before]) > 1:
                yield place, self._shorter(self._within[before], part)

    def _shorter(self, within: Sequence[int], part: bytes) -> Sequence[int]:
        return within[: bisect_left(within, True, key=lambda each: not part.startswith(self._sorted[each]))]

    def __getitem__(self, number: int) -> bytes:
        return self._sorted[number]


class _Lookup:
    """The lookup of one path, with the best rule found so far."""

    def __init__(self, text: bytes) -> None:
        self.found: Rule | None = None
        self.steps = 0
        self._text = text
        self._most = LEAST_STEPS + STEPS * len(text)
        self._open: list[tuple[_Branch, int]] = []  # branches to enter, each with its position in the path

    def ask(self, heads: _Literals) -> None:
        self._look_up(heads, range(1))
        while self._open:
            self._enter(*self._open.pop())

    def _spend(self, steps: int) -> None:
        self.steps += steps
        if self.steps > self._most:
            raise TooMuchWork

    def _enqueue(self, branch: _Branch, at: int) -> None:
        self._spend(1)
        self._open.append((branch, at))

    def _is_open(self, best: tuple[int, bool, int]) -> bool:
        """Whether a rule of this rank would outrank the one found."""
        return self.found is None or best > self.found.rank

    def _enter(self, branch: _Branch, at: int) -> None:
        if not self._is_open(branch.best):
            return
        for literal in branch.literals:
            at = self._end_of(literal, at)
            if at < 0:
                return
        if branch.rule and self._is_open(branch.rule.rank):
            self.found = branch.rule
        if branch.many and self._is_open(branch.many.best):
            self._look_up(branch.many, range(at, len(self._text)))
        for literal, inner in branch.few:
            if self._is_open(inner.best) and (end := self._end_of(literal, at)) >= 0:
                self._enqueue(inner, end)

    def _end_of(self, literal: bytes, at: int) -> int:
        """The end of the first occurrence of a literal at or after a position; negative: there is none."""
        found = self._text.find(literal, at)
        passed = (len(self._text) if found < 0 else found) - at
        self._spend(1 + passed * min(len(literal), NEEDLE) // SEARCHED)
        return found + len(literal) if found >= 0 else -1

    def _look_up(self, literals: _Literals, places: range) -> None:
        """Enqueues each branch at the first of the places where its literal occurs."""
        self._spend(len(places))
        reached = set[int]()
        for place, numbers in literals.within(self._text, places):
            for number in reversed(numbers):
                if number in reached:
                    break  # and so are its prefixes
                reached.add(number)
                self._enqueue(literals.branches[number], place + len(literals[number]))
