"""The house: imports only go down, pure rooms stay pure, and every room says what it is."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import crawler

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "crawler"
MODULES = sorted(PACKAGE.rglob("*.py"))
PURE = 2  # the highest floor that never awaits and never reads a clock


def table() -> dict[str, int]:
    """The floor of each room, from docs/architecture.md."""
    floors: dict[str, int] = {}
    text = (ROOT / "docs/architecture.md").read_text()
    for floor, rooms in re.findall(r"^\| (\d) \| (.+) \|$", text, re.MULTILINE):
        for names in re.findall(r"((?:`\w+/?`(?:, )?)+)", rooms):
            floors |= {name.strip("`/"): int(floor) for name in names.split(", ") if name}
    return floors


FLOORS = table()


def room(path: Path) -> str:
    return path.relative_to(PACKAGE).with_suffix("").parts[0]


def imports(tree: ast.AST) -> Iterator[str]:
    """The rooms of ours that a module imports, wherever the import stands; not those for the type checker only."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module == "crawler":
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("crawler."):
            yield (node.module or "").split(".")[1]


def name(path: Path) -> str:
    return str(path.relative_to(PACKAGE))


ROOMS = [path for path in MODULES if room(path) not in {"__init__", "__main__"}]


def test_the_table_names_every_room_and_no_other() -> None:
    assert set(FLOORS) == {room(path) for path in ROOMS}


@pytest.mark.parametrize("path", ROOMS, ids=name)
def test_imports_go_down(path: Path) -> None:
    own, floor = room(path), FLOORS[room(path)]
    for other in imports(ast.parse(path.read_text())):
        if other != own:
            assert FLOORS[other] < floor or floor == FLOORS[other] == 0, f"{own} imports {other}"


@pytest.mark.parametrize("path", [path for path in ROOMS if FLOORS[room(path)] <= PURE], ids=name)
def test_pure_rooms_do_not_wait_and_read_no_clock(path: Path) -> None:
    tree = ast.parse(path.read_text())
    awaits = [node for node in ast.walk(tree) if isinstance(node, ast.Await | ast.AsyncFor | ast.AsyncWith)]
    calls = {ast.unparse(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    assert not awaits
    assert not calls & {
        "time.time",
        "time.monotonic",
        "datetime.now",
        "datetime.utcnow",
        "random.random",
        "open",
    }


@pytest.mark.parametrize("path", MODULES, ids=name)
def test_a_module_says_what_it_is(path: Path) -> None:
    assert ast.get_docstring(ast.parse(path.read_text()))


@pytest.mark.parametrize("path", [path for path in MODULES if room(path) != "cli"], ids=name)
def test_what_is_public_is_documented(path: Path) -> None:
    tree = ast.parse(path.read_text())
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and node.name[0] != "_":
            assert ast.get_docstring(node), f"{node.name} has no docstring"


def test_all_is_what_can_be_imported() -> None:
    assert sorted(crawler.__all__) == crawler.__all__
    assert all(getattr(crawler, public) is not None for public in crawler.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = crawler.nonsense
