"""No pattern takes more than linear work: each is found, fed what it may find hard, and its steps are counted."""

import ast
import importlib
import pkgutil
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache
from inspect import getsource
from math import inf
from types import ModuleType
from typing import Any, Final

import pytest

import crawler
from crawler.parse.late import LatePattern
from crawler.rules import traps as spaces
from crawler.settings.values import compile_pattern
from tests.regex_work import MOST, Counting, Hostile

SIZES: Final = (
    24,
    250,
)  # repetitions, and twice as many: the second is above nearly all bounds in our patterns
GROWTH: Final = 2.7  # what is linear doubles, what is quadratic takes four times as many steps
FEW: Final = 6  # steps for each character: so few grow with the text only
SCANNING: Final = frozenset({"search", "sub", "subn", "findall", "finditer", "split"})


ALONE: Final = ("__main__", "sandbox_entry")  # take modules from their process, which psycopg needs
PACKAGES: Final = sorted(info.name for info in pkgutil.iter_modules(crawler.__path__))


def modules(package: str) -> Iterator[ModuleType]:
    """The modules of a package, imported when its patterns are measured, not when tests are collected."""
    for info in pkgutil.walk_packages(crawler.__path__, "crawler."):
        if info.name.split(".")[1] == package and not info.name.endswith(ALONE):
            yield importlib.import_module(info.name)


def within(value: Any) -> Iterator[re.Pattern[Any]]:
    if isinstance(value, LatePattern):
        yield value.compiled()
    elif isinstance(value, re.Pattern):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from within(item)
    elif isinstance(value, list | tuple | set | frozenset):
        for item in value:
            yield from within(item)


def scanned(tree: ast.AST, name: str) -> bool:
    """Whether the module uses that pattern for more than a match at a place."""
    uses = [
        node.attr for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == name
    ]  # fmt: skip
    return not uses or not SCANNING.isdisjoint(uses)


def spelled_out(module: ModuleType, tree: ast.AST) -> Iterator[tuple[str, re.Pattern[Any], bool]]:
    """Patterns that stand in a call: `re.sub("…", …)`."""
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
            continue
        if not (isinstance(node.func.value, ast.Name) and node.func.value.id == "re" and node.args):
            continue
        try:
            text = eval(compile(ast.Expression(node.args[0]), "pattern", "eval"), dict(vars(module)))
        except NameError:  # made of what a function is given
            continue
        if isinstance(text, str | bytes):
            place = f"{module.__name__}:{node.lineno}"
            yield place, re.compile(text), node.func.attr in SCANNING


@cache
def patterns(package: str) -> dict[str, tuple[re.Pattern[Any], bool]]:
    """By name: each pattern of a package, and whether it scans."""
    found: dict[str, tuple[re.Pattern[Any], bool]] = {}
    seen: set[str | bytes] = set()
    for module in modules(package):
        tree = ast.parse(getsource(module))
        for name, value in vars(module).items():
            for number, pattern in enumerate(within(value)):
                if pattern.pattern not in seen:
                    seen.add(pattern.pattern)
                    found[f"{module.__name__}.{name}[{number}]"] = pattern, scanned(tree, name)
        for place, pattern, scans in spelled_out(module, tree):
            if pattern.pattern not in seen:
                seen.add(pattern.pattern)
                found[place] = pattern, scans
    return found


@pytest.fixture(autouse=True)
def deep() -> Iterator[None]:
    """A repetition of a group takes some calls each."""
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(100_000)
    yield
    sys.setrecursionlimit(limit)


def hardest(pattern: re.Pattern[Any], *, scans: bool, rounds: int = 6) -> tuple[float, str]:
    """How much the work grows when the text doubles, and on what text: the first that grows too much, if any."""
    counting = Counting(pattern)
    for lead, unit, end in Hostile(pattern).texts(rounds):
        shown = lead + unit * 3 + "…" + end
        growth = 0.0
        for size in SIZES:  # a bound is no growth beyond it
            twice = lead + unit * (2 * size) + end
            after = counting.steps(twice, scans=scans)
            if after >= MOST:
                return inf, shown
            if after < FEW * len(twice):
                break
            growth = after / counting.steps(lead + unit * size + end, scans=scans)
            if growth < GROWTH:
                break
        else:
            return growth, shown
    return 0.0, ""


def test_patterns_are_found() -> None:
    found = {**patterns("parse"), **patterns("rules")}
    assert len(found) > 40
    assert "crawler.rules.traps._CALENDAR_PATH[0]" in found
    assert any(name.startswith("crawler.parse.fingerprint._") for name in found)


@pytest.mark.slow
@pytest.mark.parametrize("package", PACKAGES)
def test_every_pattern_takes_linear_work(package: str) -> None:
    for name, (pattern, scans) in patterns(package).items():
        growth, text = hardest(pattern, scans=scans)
        assert growth < GROWTH, f"{name}: {pattern.pattern!r} on {text!r}"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("bad", "scans"),
    [
        (r"[a-z]+0", True), (r"(?:a|b)*c", True), (r"\s+$", True), (r"(a+)+b", False), (r"x.*y.*z", False),
        (r"/[^/?]*(?:calend|agenda)[^/?]*/\d", False),
    ],
)  # fmt: skip
def test_the_measurement_recognises_quadratic_patterns(bad: str, scans: bool) -> None:
    assert hardest(re.compile(bad), scans=scans)[0] >= GROWTH


@pytest.mark.parametrize("good", [r"[a-z]+", r"(?<![a-z])[a-z]+0", r"<[^<>]*>", r"\d{1,9}:\d\d", r"(?>a+)b"])
def test_the_measurement_recognises_linear_patterns(good: str) -> None:
    assert hardest(re.compile(good), scans=False)[0] < GROWTH


@pytest.mark.parametrize(
    "pattern", ["*a*a*a*b", "/calendar/*", "*?*=*&*=*", "[a-z]*[!0-9]*x", "*" * 50 + "y"]
)
def test_a_glob_takes_linear_work(pattern: str) -> None:
    growth, text = hardest(compile_pattern(pattern), scans=True)
    assert growth < GROWTH, text


def test_steps_are_counted_like_those_of_re() -> None:
    for text, pattern in (("aab", r"(a+)(b|c)"), ("2024-05", r"(\d+)-(?=0)\d\d$"), ("xayax", r"(.)a.a\1")):
        assert re.match(pattern, text)
        assert Counting(re.compile(pattern)).steps(text, scans=False) < 30


@pytest.mark.parametrize("url", ["http://a.b/" + "a/" * 4_000, "http://a.b/?" + "a&" * 4_000])
def test_a_long_url_takes_linear_work(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    counted: list[int] = []

    class Counted(Counter[str]):
        def __init__(self, words: Iterable[str]) -> None:
            given = list(words)
            counted.append(len(given))
            super().__init__(given)

    monkeypatch.setattr(spaces, "Counter", Counted)
    assert spaces.obvious(url, 1)
    assert len(counted) == 1
    assert counted[0] <= 4_001
