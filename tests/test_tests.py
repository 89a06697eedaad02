"""What holds for every test module: short names, one server, no sleep, no tables. Read from syntax trees; runs no test."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

TESTS = Path(__file__).parent
LONGEST_NAME = 60
SLEEPS = {"time.sleep", "anyio.sleep", "asyncio.sleep", "trio.sleep"}
LISTENS = {"socket.create_server", "asyncio.start_server", "anyio.create_tcp_listener"}
SERVERS = {"http.server", "socketserver", "werkzeug.serving"}
STATEMENT = re.compile(r"\s*(?:SELECT|INSERT|UPDATE|DELETE)\s")
TABLE = re.compile(r"\b(?:FROM|JOIN|INTO|UPDATE)\s+([a-z_]+)")
VIEWS = {"pages", "links", "images", "runs", "external_links"}  # what docs/use/state.md shows to users
# The database is their subject: a crowd of members, clocks of members that fell silent, 25,000 URLs at once, secrets.
ON_TABLES = ("frontier/", "shared/", "cli/test_shared_state.py", "test_compose_many.py", "cli/test_submit.py", "cli/test_delivery.py")  # fmt: skip
# The one place for each, and what is no HTTP: a proxy before PostgreSQL, ears for any datagram.
SLEEPING = {"waiting.py"}
LISTENING = {"server.py", "shared/proxy.py", "render/test_attack.py"}


def broken(tree: ast.Module, path: str) -> Iterator[str]:
    """The rules that a module breaks."""
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) if name.startswith("test_"):
                if len(name) > LONGEST_NAME:
                    yield f"{path}: {name} has more than {LONGEST_NAME} characters"
            case ast.Call(func=ast.Attribute(value=ast.Name(id=module), attr=function)):
                called = f"{module}.{function}"
                if called in SLEEPS and path not in SLEEPING:
                    yield f"{path}:{node.lineno}: {called}; wait for an event, or for a condition of tests/waiting.py"
                if called in LISTENS and path not in LISTENING:
                    yield f"{path}:{node.lineno}: {called}; tests/server.py is the server of the tests"
            case ast.Constant(value=str(text)) if STATEMENT.match(text) and not path.startswith(ON_TABLES):
                if tables := {*TABLE.findall(text)} - VIEWS:
                    yield f"{path}:{node.lineno}: reads {tables}; ask the frontier, the program or a documented view"
            case ast.ImportFrom(module=module) if module in SERVERS:
                yield f"{path}:{node.lineno}: {module}; tests/server.py is the server of the tests"


def test_every_test_keeps_the_rules() -> None:
    """One pass over all modules: parsing them takes most of its time."""
    modules = {str(path.relative_to(TESTS)): ast.parse(path.read_text()) for path in TESTS.rglob("*.py")}
    assert [rule for path, tree in sorted(modules.items()) for rule in broken(tree, path)] == []
