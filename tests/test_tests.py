"""What holds for every test: a short name. Read from their syntax trees; nothing here runs a test."""

import ast
from functools import cache
from pathlib import Path

TESTS = Path(__file__).parent
LONGEST_NAME = 60


@cache
def trees() -> dict[str, ast.Module]:
    """The modules of our tests by their path below tests/."""
    return {str(path.relative_to(TESTS)): ast.parse(path.read_text()) for path in sorted(TESTS.rglob("*.py"))}


def test_names_of_tests_are_short() -> None:
    nodes = (node for tree in trees().values() for node in ast.walk(tree))
    functions = [node for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    names = [function.name for function in functions if function.name.startswith("test_")]
    assert [name for name in names if len(name) > LONGEST_NAME] == []
