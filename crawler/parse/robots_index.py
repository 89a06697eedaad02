"""Which rule of a robots.txt decides for a path, without asking each of them. Pure.

A rule is a sequence of literals: the first begins the path, each further one stands anywhere behind the one before (that
is what `*` means), and `$` is a literal like others, as every path is given one `$` behind its end. Rules that begin with
the same literals share a branch. A question enters a branch at most once, at the earliest place where its literals end:
later places could match no more, as the next `*` covers the rest. Where a branch leads to many literals, they are looked
up at each place of the path instead of being searched one by one, so the cost of a question grows with the path and not
with the number of rules. It is counted, and bounded. What a line of robots.txt means is for `match`.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final

END: Final = b"$"  # stands behind every path; elsewhere a path spells it %24
FEW: Final = 8  # literals up to which each is searched on its own
STEPS: Final = 16  # of work for each octet of a path, at most
LEAST: Final = 16_384  # steps that any path may take
SEARCHED: Final = 1_024  # comparisons of octets that take as long as a step
NEEDLE: Final = 100  # octets of a literal that count: longer ones are searched in linear time


class TooMuchWork(Exception):  # noqa: N818 - becomes an answer where it is caught
    """The rules are made so that no bounded work tells which of them matches."""


@dataclass(frozen=True, slots=True, eq=False)
class Rule:
    """An Allow or a Disallow, its path in the normal form and cut at its `*`."""

    allow: bool
    line: str
    group: str
    rank: tuple[
        int, bool, int
    ]  # octets, then Allow over Disallow, then the first line: the highest decides (2.2.2)
    literals: tuple[bytes, ...]  # the first may be empty, the others are not

    def matches(self, path: bytes) -> bool:
        """Whether it matches. What the index finds is what this says of each rule."""
        text, (head, *behind) = path + END, self.literals
        at = len(head) if text.startswith(head) else -1
        for literal in behind:
            if at < 0:
                break
            found = text.find(literal, at)
            at = found + len(literal) if found >= 0 else -1
        return at >= 0


class RuleIndex:
    """The rules that concern one agent."""

    def __init__(self, rules: Iterable[Rule]) -> None:
        best: dict[tuple[bytes, ...], Rule] = {}
        for rule in rules:
            known = best.setdefault(rule.literals, rule)
            if known.rank < rule.rank:
                best[rule.literals] = rule
        self._heads = _Literals(_grown(sorted(best.values(), key=lambda rule: rule.literals)))
        self.weight = sum(600 + rule.rank[0] + 20 * len(rule.literals) for rule in best.values())
        self.steps = 0  # that the last question took

    def deciding(self, path: bytes) -> Rule | None:
        """The highest of the rules that match `path`, in the normal form. Raises `TooMuchWork`."""
        question = _Question(path + END)
        try:
            question.ask(self._heads)
        finally:
            self.steps = question.steps
        return question.found


class _Branch:
    """Rules that begin with the same literals, up to where they part."""

    __slots__ = ("best", "few", "literals", "many", "rule")

    def __init__(self, rules: Sequence[Rule], depth: int) -> None:
        """`rules`: sorted by their literals, which are the same up to `depth`. What they go on with comes later."""
        first, last = rules[0].literals, rules[-1].literals
        end = depth
        while end < len(first) and end < len(last) and first[end] == last[end]:
            end += 1
        self.literals = first[depth:end]
        self.rule = rules[0] if len(first) == end else None  # the one that ends here
        self.best = max(rule.rank for rule in rules)
        self.few: Sequence[tuple[bytes, _Branch]] = ()
        self.many: _Literals | None = None


def _grown(rules: Sequence[Rule]) -> list[tuple[bytes, _Branch]]:
    """The branches of all rules, by their heads. Without recursion: a rule may have any number of literals."""
    trunk = list(_parted(rules, 0))
    open_ = [(branch, part, 1) for _, branch, part in trunk]
    while open_:
        branch, part, depth = open_.pop()
        depth += len(branch.literals)
        parts = list(_parted(part[1:] if branch.rule else part, depth))
        branch.few = [(literal, inner) for literal, inner, _ in parts]
        if len(parts) > FEW:
            branch.few, branch.many = (), _Literals(branch.few)
        open_ += [(inner, more, depth + 1) for _, inner, more in parts]
    return [(literal, branch) for literal, branch, _ in trunk]


def _parted(rules: Sequence[Rule], depth: int) -> Iterator[tuple[bytes, _Branch, Sequence[Rule]]]:
    for literal, group in groupby(rules, key=lambda rule: rule.literals[depth]):
        part = list(group)
        yield literal, _Branch(part, depth + 1), part


class _Literals:
    """Many literals with their branches: which of them begin at a place of a text."""

    def __init__(self, branches: Sequence[tuple[bytes, _Branch]]) -> None:
        """`branches`: in the order of the literals, each of which is there once."""
        self._sorted = [literal for literal, _ in branches]
        self.branches = [branch for _, branch in branches]
        self.best = max((branch.best for branch in self.branches), default=(0, False, 0))
        self.longest = max(map(len, self._sorted), default=0)
        # By literal: those that it begins with, and itself, from short to long.
        self._within: list[tuple[int, ...]] = []
        for number, literal in enumerate(self._sorted):
            within = self._within[-1] if number else ()
            while within and not literal.startswith(self._sorted[within[-1]]):
                within = within[:-1]
            self._within.append((*within, number))

    def within(self, text: bytes, places: Iterable[int]) -> Iterator[tuple[int, Sequence[int]]]:
        """At each of the places, the literals that stand there, from short to long.

        The last one in order that is not behind the text at a place begins with all of them, and may go on otherwise.
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


class _Question:
    """One path, and the best rule found so far."""

    def __init__(self, text: bytes) -> None:
        self.found: Rule | None = None
        self.steps = 0
        self._text = text
        self._most = LEAST + STEPS * len(text)
        self._open: list[tuple[_Branch, int]] = []  # branches to enter, each with the place where it begins

    def ask(self, heads: _Literals) -> None:
        self._look_up(heads, range(1))
        while self._open:
            self._enter(*self._open.pop())

    def _spend(self, steps: int) -> None:
        self.steps += steps
        if self.steps > self._most:
            raise TooMuchWork

    def _reach(self, branch: _Branch, at: int) -> None:
        self._spend(1)
        self._open.append((branch, at))

    def _is_open(self, best: tuple[int, bool, int]) -> bool:
        """Whether rules up to this rank could still decide."""
        return self.found is None or best > self.found.rank

    def _enter(self, branch: _Branch, at: int) -> None:
        if not self._is_open(branch.best):
            return
        for literal in branch.literals:
            at = self._behind(literal, at)
            if at < 0:
                return
        if branch.rule and self._is_open(branch.rule.rank):
            self.found = branch.rule
        if branch.many and self._is_open(branch.many.best):
            self._look_up(branch.many, range(at, len(self._text)))
        for literal, inner in branch.few:
            if self._is_open(inner.best) and (end := self._behind(literal, at)) >= 0:
                self._reach(inner, end)

    def _behind(self, literal: bytes, at: int) -> int:
        """Where a literal ends, at or behind a place for the first time; below zero: nowhere."""
        found = self._text.find(literal, at)
        passed = (len(self._text) if found < 0 else found) - at
        self._spend(1 + passed * min(len(literal), NEEDLE) // SEARCHED)
        return found + len(literal) if found >= 0 else -1

    def _look_up(self, literals: _Literals, places: range) -> None:
        """Reach each branch at the first of the places where its literal stands."""
        self._spend(len(places))
        reached = set[int]()
        for place, numbers in literals.within(self._text, places):
            for number in reversed(numbers):
                if number in reached:
                    break  # and so are those that it begins with
                reached.add(number)
                self._reach(literals.branches[number], place + len(literals[number]))
