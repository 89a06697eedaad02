"""What is committed and what ships: nothing is at the root by accident, no file is large, and the source distribution is small."""

import ast
import importlib
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
import zlib
from pathlib import Path

import pytest

REPO = Path(__file__).parents[1]
ROOT = {
    ".ci", ".dockerignore", ".github", ".gitignore", "CHANGELOG.md", "CODE_OF_CONDUCT.md", "CONTRIBUTING.md", "Dockerfile",
    "LICENSE", "README.md", "SECURITY.md", "action.yml", "benchmarks", "config", "crawler", "dev", "docs", "pyproject.toml", "scripts", "tests",
}  # fmt: skip
LARGEST = 1_000_000  # bytes of a tracked file
ARCHIVE = 2_110_000  # of the source distribution, with the tests
CLONE = 3_000_000  # bytes that a clone without history transfers
SHIPPED = ROOT | {"PKG-INFO"}


@pytest.fixture(scope="module")
def tracked() -> list[Path]:
    if not (REPO / ".git").exists() and os.environ.get("CI") != "true":
        pytest.skip("not a git checkout")
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=REPO, capture_output=True, check=True).stdout
    return [REPO / name for name in listed.decode().split("\0") if name]


def test_only_known_files_are_at_the_root(tracked: list[Path]) -> None:
    assert {path.relative_to(REPO).parts[0] for path in tracked} == ROOT


def test_no_tracked_file_is_large(tracked: list[Path]) -> None:
    sizes = {str(path.relative_to(REPO)): path.stat().st_size for path in tracked if path.exists()}
    assert {name: size for name, size in sizes.items() if size > LARGEST} == {}


def test_a_clone_without_history_is_small(tracked: list[Path]) -> None:
    assert sum(len(zlib.compress(path.read_bytes())) for path in tracked if path.exists()) < CLONE


@pytest.mark.slow
def test_the_source_distribution_is_an_explicit_list(tmp_path: Path) -> None:
    build = [sys.executable, "-m", "hatchling", "build", "--target", "sdist", "--directory", str(tmp_path)]
    subprocess.run(build, cwd=REPO, capture_output=True, check=True)
    (archive,) = tmp_path.glob("*.tar.gz")
    assert archive.stat().st_size < ARCHIVE
    with tarfile.open(archive) as tar:
        assert {Path(name).parts[1] for name in tar.getnames()} == SHIPPED


@pytest.mark.slow
def test_the_wheel_installs_the_man_page(tmp_path: Path) -> None:
    build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(tmp_path)]
    subprocess.run(build, cwd=REPO, capture_output=True, check=True)
    (archive,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(archive) as wheel:
        (page,) = [
            name for name in wheel.namelist() if name.endswith(".data/data/share/man/man1/sitemap-crawler.1")
        ]
        assert wheel.read(page) == (REPO / "docs/use/sitemap-crawler.1").read_bytes()


def test_the_man_page_is_valid_roff() -> None:
    if shutil.which("groff") is None:
        pytest.skip("groff is not installed")
    page = REPO / "docs/use/sitemap-crawler.1"
    done = subprocess.run(
        ["groff", "-man", "-ww", "-z", "-k", str(page)], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    "path", [*REPO.glob("benchmarks/**/*.py"), *REPO.glob("scripts/*.py")], ids=lambda path: path.stem
)
def test_scripts_import_what_there_is(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] in {"crawler", "tests"}:
            module = importlib.import_module(node.module or "")
            for name in node.names:
                if not hasattr(module, name.name):
                    importlib.import_module(f"{node.module}.{name.name}")
