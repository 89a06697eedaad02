"""docs/run/logs.md and the code name the same events, each with the same fields.

The code is read, not run: every call of a logger has a fixed event, and fields whose names can be read from it.
"""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from crawler.cli.summary import LINES

ROOT = Path(__file__).parent.parent
LEVELS = {"debug", "info", "warning", "error", "exception", "log"}
TEXT_ONLY = {"stalled_words(facts)", "wrong"}  # sentences that only the text log has


def documented() -> dict[str, set[str]]:
    rows = re.findall(
        r"^\| `([^|]+)` \| [a-z, ]+ \| ([^|]*)\|", (ROOT / "docs/run/logs.md").read_text(), re.MULTILINE
    )
    assert rows
    return {event: set(re.findall(r"`(\w+)`", fields)) for event, fields in rows}


SOURCES = {path: path.read_text() for path in sorted((ROOT / "crawler").rglob("*.py"))}


@cache
def called(name: str) -> ast.FunctionDef:
    """The function of that name."""
    [path] = [path for path, source in SOURCES.items() if f"\ndef {name}(" in source]
    tree = ast.parse(SOURCES[path])
    return next(node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == name)


def keys(value: ast.expr, within: ast.AST) -> set[str]:
    """The names of the fields that an expression makes; `within`: the function that it stands in."""
    match value:
        case ast.Dict(names):
            return {str(ast.literal_eval(name)) for name in names if name is not None}
        case ast.BinOp(left, ast.BitOr(), right):
            return keys(left, within) | keys(right, within)
        case ast.DictComp(generators=[ast.comprehension(iter=ast.Call(ast.Attribute(of, "items")))]):
            return keys(of, within)
        case ast.Name(name):
            assigned = [node for node in ast.walk(within) if isinstance(node, ast.Assign | ast.AnnAssign)]
            targets = {
                ast.unparse(target): node.value
                for node in assigned
                for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
            }
            given = targets[name]
            assert given is not None
            return keys(given, within)
        case ast.Call(ast.Name("as_json")):  # of the summary
            return {line.key for line in LINES if line.is_json}
        case ast.Call(ast.Name(name)):
            function = called(name)
            [returned] = [node.value for node in ast.walk(function) if isinstance(node, ast.Return)]
            assert returned is not None
            return keys(returned, function)
    raise AssertionError(f"the fields of {ast.unparse(value)} cannot be read")


def events() -> Iterator[tuple[str, set[str]]]:
    for source in SOURCES.values():
        if " log." in source:
            for function in functions(ast.parse(source)):
                for call in (node for node in ast.walk(function) if isinstance(node, ast.Call)):
                    match call.func:
                        case ast.Attribute(ast.Name("log"), level) if level in LEVELS:
                            yield from event(call, function, level)


def functions(tree: ast.Module) -> Iterator[ast.AST]:
    """The functions of a module and of its classes."""
    for node in tree.body:
        below = node.body if isinstance(node, ast.ClassDef) else [node]
        yield from (one for one in below if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef))


def event(call: ast.Call, function: ast.AST, level: str) -> Iterator[tuple[str, set[str]]]:
    text = call.args[1 if level == "log" else 0]
    told = {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg != "exc_info"}
    named = told.pop("event", text)
    if isinstance(named, ast.Constant):
        of_others = [keys(value, function) for name, value in told.items() if name is None]
        yield str(named.value), {name for name in told if name}.union(*of_others)
    else:
        assert ast.unparse(text) in TEXT_ONLY, f"no fixed event: {ast.unparse(call)}"


@pytest.fixture(scope="module")
def in_the_code() -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for name, fields in events():
        found[name] = found.get(name, set()) | fields
    return found


def test_the_document_names_all_events(in_the_code: dict[str, set[str]]) -> None:
    assert set(in_the_code) == set(documented())


def test_the_document_names_all_fields(in_the_code: dict[str, set[str]]) -> None:
    assert in_the_code == documented()
