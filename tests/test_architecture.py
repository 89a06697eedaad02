"""The architecture: imports only go to lower layers, pure packages stay pure, and every module has a docstring."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import crawler

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "crawler"
MODULES = sorted(PACKAGE.rglob("*.py"))

# The table of `docs/architecture.md`. A package imports only from lower layers, never from another of its own layer.
LAYERS = {
    "parse": 0,
    "model": 1,
    "errors": 1,
    "settings": 2,
    "ports": 2,
    "report": 2,
    "rules": 3,
    "fetch": 4,
    "frontier": 4,
    "sitemap": 4,
    "engine": 4,
    "workers": 5,
    "app": 6,
    "cli": 7,
}
PURE = {"parse", "model", "errors", "settings", "ports", "rules"}
CLOCKS = {"time.time", "time.monotonic", "datetime.now", "datetime.utcnow", "random.random"}
# Reading the settings file is the one thing that a pure package opens.
OPENS = {"settings/load.py"}


def package(path: Path) -> str:
    return path.relative_to(PACKAGE).with_suffix("").parts[0]


def name(path: Path) -> str:
    return str(path.relative_to(PACKAGE))


def imports(tree: ast.AST) -> Iterator[str]:
    """The packages of this project that a module imports, also inside functions."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module == "crawler":
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("crawler."):
            yield (node.module or "").split(".")[1]


PACKAGED = [path for path in MODULES if package(path) not in {"__init__", "__main__"}]


def test_entries_of_the_package_root() -> None:
    entries = {path.name for path in PACKAGE.iterdir() if path.name != "__pycache__"}
    assert {entry.removesuffix(".py") for entry in entries} == {*LAYERS, "__init__", "__main__", "py.typed"}
    assert len(entries - {"py.typed"}) <= 16


def test_the_document_shows_the_same_layers() -> None:
    table = (ROOT / "docs/architecture.md").read_text().partition("| layer |")[2].partition("\n\n")[0]
    for entry, layer in LAYERS.items():
        row = next(row for row in table.splitlines() if row.startswith(f"| {layer} |"))
        assert f"`{entry}`" in row or f"`{entry}/`" in row or f"`{entry}.py`" in row, entry


@pytest.mark.parametrize("path", PACKAGED, ids=name)
def test_imports_only_go_to_lower_layers(path: Path) -> None:
    own = package(path)
    for other in imports(ast.parse(path.read_text())):
        assert other == own or LAYERS[other] < LAYERS[own], f"{own} imports {other}"


BACKENDS = {entry.name for entry in (PACKAGE / "frontier").iterdir() if (entry / "__init__.py").exists()}


@pytest.mark.parametrize(
    "path", [p for p in MODULES if package(p) != "frontier" and name(p) != "app/state.py"], ids=name
)
def test_only_app_state_names_a_backend_of_the_frontier(path: Path) -> None:
    assert "sqlite" in BACKENDS
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            named = [part for alias in node.names for part in alias.name.split(".")]
        elif isinstance(node, ast.ImportFrom):
            named = [*(node.module or "").split("."), *(alias.name for alias in node.names)]
        else:
            continue
        assert not BACKENDS & set(named)


@pytest.mark.parametrize("path", [path for path in PACKAGED if package(path) in PURE], ids=name)
def test_pure_packages_do_not_await_read_clocks_or_open_files(path: Path) -> None:
    tree = ast.parse(path.read_text())
    waits = [node for node in ast.walk(tree) if isinstance(node, ast.Await | ast.AsyncFor | ast.AsyncWith)]
    calls = {ast.unparse(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    assert not waits
    assert not calls & CLOCKS
    assert name(path) in OPENS or not calls & {"open", "Path"}


@pytest.mark.parametrize("path", MODULES, ids=name)
def test_every_module_has_a_docstring(path: Path) -> None:
    assert ast.get_docstring(ast.parse(path.read_text()))


@pytest.mark.parametrize("path", [path for path in MODULES if package(path) != "cli"], ids=name)
def test_public_names_have_docstrings(path: Path) -> None:
    tree = ast.parse(path.read_text())
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and node.name[0] != "_":
            assert ast.get_docstring(node), f"{node.name} has no docstring"


def test_all_lists_what_can_be_imported() -> None:
    assert sorted(crawler.__all__) == crawler.__all__
    assert all(getattr(crawler, public) is not None for public in crawler.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = crawler.nonsense
