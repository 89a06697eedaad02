"""A backtracking matcher that counts its steps: how the work of a pattern grows can be measured without a clock.

It walks the parse tree of `re` and tries alternatives in the same order as `re` does, so it is linear, quadratic or
worse where that is. It says nothing of speed, and knows only the operators that our patterns use.
"""

import random
import re
from collections.abc import Callable
from re import _constants as op  # type: ignore[attr-defined]  # the parse tree has no public name
from re import _parser  # type: ignore[attr-defined]
from typing import Any, Final

Rest = Callable[[int], bool]
Matcher = Callable[[int, Rest], bool]
Text = str | bytes

MOST: Final = 100_000  # steps: no linear pattern comes near
LONG: Final = 60  # repetitions, from which on a repetition is taken to be without end
CATEGORIES: Final = {
    op.CATEGORY_DIGIT: (str.isdecimal, True),
    op.CATEGORY_NOT_DIGIT: (str.isdecimal, False),
    op.CATEGORY_SPACE: (str.isspace, True),
    op.CATEGORY_NOT_SPACE: (str.isspace, False),
    op.CATEGORY_WORD: (lambda char: char.isalnum() or char == "_", True),
    op.CATEGORY_NOT_WORD: (lambda char: char.isalnum() or char == "_", False),
}
NEUTRAL: Final = "a0/ .-_?&=;:\"'<>,\n%*#\x01é"  # characters that stand for a class


class TooMuchWork(Exception):  # noqa: N818 - an answer
    """More than `MOST` steps."""


def pieces_of(tree: Any) -> list[tuple[Any, Any]]:
    """The operators of a parse tree, with their arguments."""
    return list(tree)


class Counting:
    """Counts what `pattern` does on a text."""

    def __init__(self, pattern: re.Pattern[Any]) -> None:
        self.tree = _parser.parse(pattern.pattern, pattern.flags & ~re.DEBUG)
        self._flags = self.tree.state.flags
        self._groups: dict[int, tuple[int, int]] = {}
        self._text, self._steps = "", 0
        self._top = self._sequence(self.tree)

    def steps(self, text: Text, *, scans: bool) -> int:
        """The steps of one match at the start; if it `scans`, of all searches up to the end of the text."""
        self._text = text.decode("latin-1") if isinstance(text, bytes) else text
        self._steps, at = 0, 0
        end = -1

        def accept(to: int) -> bool:
            nonlocal end
            end = to
            return True

        try:
            while at <= len(self._text):
                self._groups.clear()
                found = self._top(at, accept)
                if not scans:
                    break
                at = max(at + 1, end) if found else at + 1
        except TooMuchWork:
            return MOST
        return self._steps

    def _step(self) -> None:
        self._steps += 1
        if self._steps > MOST:
            raise TooMuchWork

    def _sequence(self, tree: Any) -> Matcher:
        matchers = [self._matcher(kind, given) for kind, given in pieces_of(tree)]
        if len(matchers) == 1:
            return matchers[0]

        def match(at: int, rest: Rest, number: int = 0) -> bool:
            if number == len(matchers):
                return rest(at)
            return matchers[number](at, lambda to: match(to, rest, number + 1))

        return match

    def _matcher(self, kind: Any, given: Any) -> Matcher:
        if (fits := self.single(kind, given)) is not None:
            return self._one(fits)
        match kind:
            case op.AT:
                return self._place(given)
            case op.BRANCH:
                return self._either([self._sequence(tree) for tree in given[1]])
            case op.SUBPATTERN:
                return self._group(given[0], self._sequence(given[3]))
            case op.MAX_REPEAT | op.MIN_REPEAT | op.POSSESSIVE_REPEAT:
                return self._repeated(kind, *given)
            case op.ATOMIC_GROUP:
                return self._atomic(self._sequence(given))
            case op.ASSERT | op.ASSERT_NOT:
                return self._look(given[0], given[1], wanted=kind is op.ASSERT)
            case op.GROUPREF:
                return self._again(given)
        raise NotImplementedError(str(kind))

    def single(self, kind: Any, given: Any) -> Callable[[str], bool] | None:
        """Whether a character fits, for an operator that takes one."""
        folds = bool(self._flags & re.IGNORECASE)

        def fold(char: str) -> set[str]:
            return {char, char.lower(), char.upper(), char.swapcase()} if folds else {char}

        match kind:
            case op.LITERAL:
                return lambda char: chr(given) in fold(char)
            case op.NOT_LITERAL:
                return lambda char: chr(given) not in fold(char)
            case op.ANY:
                return (lambda _: True) if self._flags & re.DOTALL else (lambda char: char != "\n")
            case op.IN:
                negated = given[0][0] is op.NEGATE
                known: dict[str, bool] = {}

                def fits(char: str) -> bool:
                    if char not in known:
                        known[char] = negated != any(
                            _fits(item[0], item[1], one)
                            for item in given
                            for one in fold(char)
                            if len(one) == 1
                        )
                    return known[char]

                return fits
        return None

    def _one(self, fits: Callable[[str], bool]) -> Matcher:
        def match(at: int, rest: Rest) -> bool:
            self._step()
            return at < len(self._text) and fits(self._text[at]) and rest(at + 1)

        return match

    def _place(self, given: Any) -> Matcher:
        def match(at: int, rest: Rest) -> bool:
            self._step()
            return self._is_at(given, at) and rest(at)

        return match

    def _is_at(self, given: Any, at: int) -> bool:
        text, word = self._text, re.compile(r"\w")
        match given:
            case op.AT_BEGINNING | op.AT_BEGINNING_STRING:
                return at == 0
            case op.AT_END:
                return at == len(text) or text[at:] == "\n"
            case op.AT_END_STRING:
                return at == len(text)
        failpoint = [bool(word.match(char)) for char in (text[at - 1 : at] if at else "", text[at : at + 1])]
        return (failpoint[0] != failpoint[1]) == (given is op.AT_BOUNDARY)

    def _either(self, matchers: list[Matcher]) -> Matcher:
        return lambda at, rest: any(matcher(at, rest) for matcher in matchers)

    def _group(self, number: int | None, inner: Matcher) -> Matcher:
        if number is None:
            return inner

        def match(at: int, rest: Rest) -> bool:
            def closed(to: int) -> bool:
                before = self._groups.get(number)
                self._groups[number] = at, to
                if rest(to):
                    return True
                self._groups.pop(number)
                if before:
                    self._groups[number] = before
                return False

            return inner(at, closed)

        return match

    def _again(self, number: int) -> Matcher:
        def match(at: int, rest: Rest) -> bool:
            start, end = self._groups.get(number, (0, -1))
            self._steps += max(1, end - start)
            said = self._text[start : max(end, 0)]
            return end >= start and self._text.startswith(said, at) and rest(at + len(said))

        return match

    def _atomic(self, inner: Matcher) -> Matcher:
        def match(at: int, rest: Rest) -> bool:
            ends: list[int] = []
            return inner(at, lambda to: not ends.append(to)) and rest(ends[0])  # type: ignore[func-returns-value]

        return match

    def _look(self, direction: int, tree: Any, *, wanted: bool) -> Matcher:
        inner, width = self._sequence(tree), tree.getwidth()[0] if direction < 0 else 0

        def match(at: int, rest: Rest) -> bool:
            self._step()
            found = at >= width and inner(at - width, lambda _: True)
            return found is wanted and rest(at)

        return match

    def _repeated(self, kind: Any, low: int, high: int, tree: Any) -> Matcher:
        (first, *more) = pieces_of(tree)
        fits = None if more else self.single(*first)
        if kind is op.POSSESSIVE_REPEAT:
            return self._atomic(self._repeated(op.MAX_REPEAT, low, high, tree))
        if fits:
            return self._run(fits, low, high, greedy=kind is op.MAX_REPEAT)
        inner, greedy = self._sequence(tree), kind is op.MAX_REPEAT

        def match(at: int, rest: Rest, done: int = 0) -> bool:
            self._step()

            def once_more() -> bool:
                if done >= high:
                    return False
                return inner(at, lambda to: (to > at or done < low) and match(to, rest, done + 1))

            if done < low:
                return once_more()
            return (once_more() or rest(at)) if greedy else (rest(at) or once_more())

        return match

    def _run(self, fits: Callable[[str], bool], low: int, high: int, *, greedy: bool) -> Matcher:
        """Many of one character, in a loop and not in a recursion."""

        def match(at: int, rest: Rest) -> bool:
            text, end = self._text, at
            most = len(text) if high is op.MAXREPEAT else min(len(text), at + int(high))
            need = most if greedy else min(most, at + low)
            while end < need and fits(text[end]):
                self._step()
                end += 1
            if end - at < low:
                return False
            if greedy:
                return any(rest(to) for to in range(end, at + low - 1, -1))
            while not rest(end):
                self._step()
                if end >= most or not fits(text[end]):
                    return False
                end += 1
            return True

        return match


def _fits(kind: Any, given: Any, char: str) -> bool:
    if kind is op.LITERAL:
        return bool(ord(char) == given)
    if kind is op.RANGE:
        return bool(given[0] <= ord(char) <= given[1])
    if kind is op.CATEGORY:
        test, wanted = CATEGORIES[given]
        return bool(test(char)) is wanted
    return False


class Hostile:
    """What a pattern may find hard: a lead, something to be repeated, and an end that does not fit."""

    def __init__(self, pattern: re.Pattern[Any]) -> None:
        self._counting = Counting(pattern)
        self._tree = self._counting.tree
        self._chance = random.Random(1)
        self._ascii = isinstance(pattern.pattern, bytes)

    def texts(self, rounds: int) -> list[tuple[str, str, str]]:
        """Lead, unit, end: the work of `lead + unit * n + end` is to grow as n does."""
        words = self._words()
        first = self._sample(self._tree)[:1]
        found = {(lead, word, "\x01"): None for word in words for lead in dict.fromkeys(["", first])}
        found |= {("", word + self._chance.choice(words), ""): None for word in words}
        for _ in range(rounds):
            for number in range(self._long(self._tree)):
                lead, unit, rest = self._pumped(number)
                found |= dict.fromkeys([(lead, unit, rest), (lead, unit, "\x01")] if unit else [])
                # In a repetition of one class, what follows it may be the class's own.
                found |= {
                    (lead, word, "\x01"): None for word in self._chance.sample(words, min(6, len(words)))
                }
        return list(found)

    def _words(self) -> list[str]:
        """One of each class, all words that the pattern spells, and some characters."""
        chars: dict[str, None] = {}
        words = [""]

        def look(tree: Any) -> None:
            for kind, given in pieces_of(tree):
                if kind is op.LITERAL:
                    words[-1] += chr(given)
                    continue
                words.append("")
                if kind is op.IN:
                    chars[self._fitting(kind, given)] = None
                for inner in _within(kind, given):
                    words.append("")
                    look(inner)
                    words.append("")

        look(self._tree)
        named = list(dict.fromkeys(word for word in words if word))
        return list(dict.fromkeys([*chars, *named[:15], "a", "0", " "]))

    def _long(self, tree: Any) -> int:
        return sum(
            (kind in REPEATS and _is_long(given)) + sum(map(self._long, _within(kind, given)))
            for kind, given in pieces_of(tree)
        )

    def _pumped(self, number: int) -> tuple[str, str, str]:
        """A text that fits, cut at the long repetition of that number."""
        parts = ["", "", ""]
        count = -1

        def put(text: str) -> None:
            parts[2 if parts[1] else 0] += text

        def walk(tree: Any) -> None:
            nonlocal count
            for kind, given in pieces_of(tree):
                if kind in REPEATS and _is_long(given):
                    count += 1
                    if count == number:
                        parts[1] = self._sample(given[2])
                        continue
                inner = _within(kind, given)
                if inner and self._long_within(inner) and kind not in {op.ASSERT, op.ASSERT_NOT}:
                    for one in inner:
                        before = count
                        walk_this = before < number <= before + self._long(one)
                        if walk_this:
                            walk(one)
                        else:
                            count += self._long(one)
                else:
                    count += sum(map(self._long, inner))
                    put(self._sample([(kind, given)]))

        walk(self._tree)
        return parts[0], parts[1], parts[2]

    def _long_within(self, trees: list[Any]) -> bool:
        return any(map(self._long, trees))

    def _sample(self, tree: Any) -> str:
        """A text that fits, mostly."""
        out = ""
        for kind, given in pieces_of(tree):
            if self._counting.single(kind, given) is not None:
                out += self._fitting(kind, given)
            elif kind is op.BRANCH:
                out += self._sample(self._chance.choice(given[1]))
            elif kind in REPEATS:
                low, high, inner = given
                ceiling = low + 2 if high is op.MAXREPEAT else min(int(high), low + 2)
                out += "".join(self._sample(inner) for _ in range(self._chance.randint(low, ceiling)))
            elif kind not in {op.ASSERT, op.ASSERT_NOT}:
                out += "".join(map(self._sample, _within(kind, given)))
        return out

    def _fitting(self, kind: Any, given: Any) -> str:
        fits = self._counting.single(kind, given)
        assert fits is not None
        own = [
            chr(item) for name, item in (given if kind is op.IN else [(kind, given)]) if name is op.LITERAL
        ]
        own += [chr(item[0]) for name, item in (given if kind is op.IN else []) if name is op.RANGE]
        good = [char for char in [*own, *NEUTRAL] if fits(char) and (not self._ascii or char < "\x80")]
        return self._chance.choice(good) if good else "a"


REPEATS: Final = frozenset({op.MAX_REPEAT, op.MIN_REPEAT, op.POSSESSIVE_REPEAT})


def _within(kind: Any, given: Any) -> list[Any]:
    """The parse trees inside an operator."""
    if kind is op.BRANCH:
        return list(given[1])
    if kind is op.SUBPATTERN:
        return [given[3]]
    if kind in REPEATS:
        return [given[2]]
    if kind is op.ATOMIC_GROUP:
        return [given]
    if kind in {op.ASSERT, op.ASSERT_NOT}:
        return [given[1]]
    return []


def _is_long(repeat: Any) -> bool:
    return bool(repeat[1] is op.MAXREPEAT or int(repeat[1]) >= LONG)
