"""scripts/structure.py counts what it says, on a small program."""

from pathlib import Path

from tests.test_documents import script

MODULES = {
    "ports/queue.py": "class Queue:\n async def add(self): ...\n async def lease(self): ...\n",
    "ports/frontier.py": "class Frontier(Queue):\n async def close(self): ...\n def add(self): ...\n",
    "frontier/one.py": "class Table: ...\nclass Queue:\n def add(self): ...\n def lease(self): ...\n",
    "frontier/two.py": "class Table: ...\n",
    "engine/crawl.py": "class Crawl:\n a: int\n b: int = 1\n def run(self):\n  self.images()\n",
    "engine/other.py": 'class Report: ...\ndef f():\n """Says.\n\n More."""\n return (\n  1\n )\n',
    "report.py": "from crawler.engine.crawl import Crawl\nclass Report: ...\nIMAGE = 1\n",
}


def figures(tmp_path: Path) -> tuple[dict[str, str], str]:
    for name, text in MODULES.items():
        path = tmp_path / "crawler" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    for name, text in {"README.md": "one two", "CHANGELOG.md": "one", "docs/use/a.md": "a b c"}.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    structure = script("structure")
    checkout = structure.Checkout(tmp_path)
    rows = [line.strip("| ").split(" | ") for line in structure.table(checkout).splitlines()[2:]]
    return dict(rows), structure.packages(checkout)


def test_the_measures_of_a_small_program(tmp_path: Path) -> None:
    measured, packages = figures(tmp_path)
    expected = {
        "lines of `crawler/`; modules": "27; 7",
        "longest function body": "3 (`f`)",
        "verbs of the frontier's interface": "3",
        "fields of `Crawl`; of `Job`": "2; -",
        "class names that mean two things": "1 (Report)",
        "modules, packages that name `--images`": "2, 2",
        "words for users and operators": "3",
        "words of README; of CHANGELOG": "2; 1",
    }
    assert {what: measured[what] for what in expected} == expected
    assert "| `report` | 1 | 3 | engine |" in packages


def test_the_figures_replace_what_is_between_the_marks(tmp_path: Path) -> None:
    figures(tmp_path)
    structure = script("structure")
    begin, end = structure.MARKS
    once = structure.filled(f"head\n{begin}old\n{end}tail\n", structure.Checkout(tmp_path))
    assert once.startswith("head\n")
    assert once.endswith("tail\n")
    assert "old" not in once
    assert structure.filled(once, structure.Checkout(tmp_path)) == once
