"""Measures how the program is built, as Markdown: lengths, names, breadth of features, words of documents.

.venv/bin/python scripts/structure.py              the program of this checkout
.venv/bin/python scripts/structure.py --at DIR     of another one, to compare
.venv/bin/python scripts/structure.py --packages   each package, its lines, and what it imports
.venv/bin/python scripts/structure.py --write      the same into docs/dev/architecture.md, between its marks

Only text and syntax are read; nothing of the program is imported, so any version of it can be measured.
"""

import argparse
import ast
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parent.parent
DOCUMENT = ROOT / "docs/dev/architecture.md"
MARKS = ("<!-- by scripts/structure.py -->\n", "<!-- end -->\n")
# What the text of a module says if it takes part in a feature.
FEATURES = {
    "`--images`": "image",
    "`--check-external`": "external",
    "`--render`": "render",
    "`--hreflang`": "hreflang",
    "object stores": "object_store|obstore",
    "metrics": "metrics",
    "webhook": "webhook",
    "IndexNow": "indexnow",
}
# Documents for those who change the program; all others are for those who use or run it.
INSIDE = {"architecture", "benchmarks", "conformance", "decisions", "glossary"}
Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Checkout:
    """The program and the documents in a folder."""

    root: Path

    @cached_property
    def texts(self) -> dict[Path, str]:
        """Of each module, by its path in the package."""
        package = self.root / "crawler"
        return {path.relative_to(package): path.read_text() for path in sorted(package.rglob("*.py"))}

    @cached_property
    def trees(self) -> dict[Path, ast.Module]:
        return {path: ast.parse(text) for path, text in self.texts.items()}

    @cached_property
    def lines(self) -> dict[Path, int]:
        return {path: len(text.splitlines()) for path, text in self.texts.items()}

    def classes(self) -> Iterator[tuple[Path, ast.ClassDef]]:
        for path, tree in self.trees.items():
            yield from ((path, node) for node in ast.walk(tree) if isinstance(node, ast.ClassDef))

    def bodies(self) -> list[tuple[int, str]]:
        """The lines of the body of each function, without its docstring, and its name."""
        nodes = [
            node for tree in self.trees.values() for node in ast.walk(tree) if isinstance(node, Function)
        ]
        return sorted(((body_lines(node), node.name) for node in nodes), reverse=True)


def body_lines(function: Function) -> int:
    body = function.body[1:] if ast.get_docstring(function) else function.body
    return (function.end_lineno or 0) - body[0].lineno + 1 if body else 0


def of(path: Path) -> str:
    """The package of a module."""
    return path.with_suffix("").parts[0]


def table(checkout: Checkout) -> str:
    lengths = sorted(((count, str(path)) for path, count in checkout.lines.items()), reverse=True)
    bodies = checkout.bodies()
    rows = [
        ("lines of `crawler/`; modules", f"{sum(checkout.lines.values()):,}; {len(lengths)}"),
        ("longest module", f"{lengths[0][0]} (`{lengths[0][1]}`)"),
        ("modules over 400 lines; over 450", f"{over(400, lengths)}; {over(450, lengths)}"),
        ("lines of a module, median", f"{median(count for count, _ in lengths):.0f}"),
        ("longest function body", f"{bodies[0][0]} (`{bodies[0][1]}`)"),
        ("bodies over 40 lines; over 50", f"{over(40, bodies)}; {over(50, bodies)}"),
        ("verbs of the frontier's interface", str(len(verbs(checkout)))),
        (
            "fields of `Crawl`; of `Job`",
            f"{fields(checkout, 'engine', 'Crawl')}; {fields(checkout, 'app', 'Job')}",
        ),
        ("class names that mean two things", shown(ambiguous(checkout))),
        *(
            (f"modules, packages that name {name}", breadth(checkout, word))
            for name, word in FEATURES.items()
        ),
        *words(checkout),
    ]
    return "| measure | figure |\n|---|---|\n" + "".join(f"| {what} | {figure} |\n" for what, figure in rows)


def over(limit: int, lengths: Iterable[tuple[int, str]]) -> int:
    return sum(count > limit for count, _ in lengths)


def verbs(checkout: Checkout) -> set[str]:
    """The methods of `ports.Frontier` and of the Protocols that it combines."""
    ports = {node.name: node for path, node in checkout.classes() if of(path) == "ports"}
    found, waiting = set[str](), ["Frontier"]
    while waiting:
        node = ports.get(waiting.pop())
        if node is not None:
            waiting += [base.id for base in node.bases if isinstance(base, ast.Name)]
            found |= methods(node)
    return found


def methods(node: ast.ClassDef) -> set[str]:
    return {part.name for part in node.body if isinstance(part, Function)}


def fields(checkout: Checkout, package: str, name: str) -> str:
    """The fields of a dataclass."""
    for path, node in checkout.classes():
        if of(path) == package and node.name == name:
            return str(sum(isinstance(part, ast.AnnAssign) for part in node.body))
    return "-"


def ambiguous(checkout: Checkout) -> list[str]:
    """Names of classes in several modules that are not one thing."""
    places = defaultdict[str, list[tuple[Path, ast.ClassDef]]](list)
    for path, node in checkout.classes():
        places[node.name].append((path, node))
    return sorted(name for name, where in places.items() if len(where) > 1 and not is_one_thing(where))


def is_one_thing(where: list[tuple[Path, ast.ClassDef]]) -> bool:
    """Parts of the backends of the frontier, or a port and what implements it."""
    packages = {of(path) for path, _ in where}
    if packages == {"frontier"}:
        return True
    ports = [node for path, node in where if of(path) == "ports" and methods(node)]
    return bool(ports) and all(methods(ports[0]) <= methods(node) for _, node in where)


def shown(names: list[str]) -> str:
    return f"{len(names)}" + (f" ({', '.join(names)})" if names else "")


def breadth(checkout: Checkout, word: str) -> str:
    named = [path for path, text in checkout.texts.items() if re.search(word, text, re.IGNORECASE)]
    return f"{len(named)}, {len({of(path) for path in named})}"


def words(checkout: Checkout) -> Iterator[tuple[str, str]]:
    """Of the documents, by those who read them."""
    pages = list((checkout.root / "docs").rglob("*.md"))
    inside = [page for page in pages if page.stem in INSIDE or page.parent.name == "dev"]
    yield "words for users and operators", f"{count(page for page in pages if page not in inside):,}"
    yield "words for developers", f"{count(inside):,}"
    root = checkout.root
    yield (
        "words of README; of CHANGELOG",
        f"{count([root / 'README.md']):,}; {count([root / 'CHANGELOG.md']):,}",
    )


def count(pages: Iterable[Path]) -> int:
    return sum(len(page.read_text().split()) for page in pages)


def packages(checkout: Checkout) -> str:
    """A row for each package."""
    lines, modules, imports = (
        defaultdict[str, int](int),
        defaultdict[str, int](int),
        defaultdict[str, set[str]](set),
    )
    for path, tree in checkout.trees.items():
        lines[of(path)] += checkout.lines[path]
        modules[of(path)] += 1
        imports[of(path)] |= imported(tree) - {of(path)}
    rows = [
        f"| `{name}` | {modules[name]} | {lines[name]} | {' '.join(sorted(imports[name]))} |\n"
        for name in sorted(modules)
        if not name.startswith("__")
    ]
    return "| package | modules | lines | imports |\n|---|---|---|---|\n" + "".join(rows)


def imported(tree: ast.AST) -> set[str]:
    """The packages of this project that a module imports."""
    modules = [node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    return {part for module in modules for root, part in pairwise(module.split(".")) if root == "crawler"}


def filled(document: str, checkout: Checkout) -> str:
    """The document with the current figures between its marks."""
    begin, end = MARKS
    head, _, rest = document.partition(begin)
    return f"{head}{begin}\n{packages(checkout)}\n{end}{rest.partition(end)[2]}"


def main() -> None:
    parser = argparse.ArgumentParser(description="Measures how the program is built.")
    parser.add_argument("--at", type=Path, default=ROOT, metavar="DIR")
    parser.add_argument("--packages", action="store_true")
    parser.add_argument("--write", action="store_true")
    asked = parser.parse_args()
    checkout = Checkout(asked.at)
    if asked.write:
        DOCUMENT.write_text(filled(DOCUMENT.read_text(), checkout))
    else:
        print(packages(checkout) if asked.packages else table(checkout), end="")


if __name__ == "__main__":
    main()
