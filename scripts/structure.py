"""Prints how the package is built: imports between packages, and how long modules and functions are.

.venv/bin/python scripts/structure.py
"""

import ast
from collections import Counter
from itertools import pairwise
from pathlib import Path
from statistics import median, quantiles

PACKAGE = Path(__file__).resolve().parent.parent / "crawler"


def main() -> None:
    trees = {path: ast.parse(path.read_text()) for path in sorted(PACKAGE.rglob("*.py"))}
    lengths = {path: len(path.read_text().splitlines()) for path in trees}
    functions = [
        node.end_lineno - node.lineno + 1
        for tree in trees.values()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.end_lineno
    ]
    edges = Counter(
        (of(path), other) for path, tree in trees.items() for other in imported(tree) if other != of(path)
    )
    packages = Counter(of(path) for path in trees)
    print(f"{'package':<10} {'modules':>7} {'lines':>7}  imports")
    for name in sorted(packages):
        lines = sum(count for path, count in lengths.items() if of(path) == name)
        print(
            f"{name:<10} {packages[name]:>7} {lines:>7}  {' '.join(sorted(to for at, to in edges if at == name))}"
        )
    print(f"edges between packages: {len(edges)}")
    print(
        f"modules: {len(trees)}, median {median(lengths.values()):.0f} lines, p90 {p90(lengths.values()):.0f}"
    )
    print(f"functions: {len(functions)}, median {median(functions):.0f} lines, p90 {p90(functions):.0f}")
    longest = sorted(
        ((count, str(path.relative_to(PACKAGE))) for path, count in lengths.items()), reverse=True
    )[:5]
    print("longest: " + ", ".join(f"{name} {count}" for count, name in longest))


def of(path: Path) -> str:
    return path.relative_to(PACKAGE).with_suffix("").parts[0]


def imported(tree: ast.AST) -> set[str]:
    """The packages of this project that a module imports."""
    modules = [node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    return {part for module in modules for root, part in pairwise(module.split(".")) if root == "crawler"}


def p90(counts: object) -> float:
    return quantiles(counts, n=10)[8]  # type: ignore[call-overload, no-any-return]  # any iterable of numbers


if __name__ == "__main__":
    main()
