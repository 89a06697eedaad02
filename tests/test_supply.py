"""What the program is made of comes by hash: actions, the base of the image, its packages; and no side door is open."""

import json
import re
import runpy
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from crawler.settings.sections import DEFAULTS
from crawler.workers.spawn import python

ROOT = Path(__file__).parent.parent
WORKFLOWS = [*(ROOT / ".github/workflows").glob("*.yml"), ROOT / "action.yml"]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
LOCKS = {
    "image": ("cloud", "fast", "http2", "postgres"),
    "image-render": ("cloud", "fast", "http2", "postgres", "render"),
}
DOCKERFILE = (ROOT / "Dockerfile").read_text()


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_actions_are_pinned_by_commit(path: Path) -> None:
    used = re.findall(r"uses: (.+)", path.read_text())
    assert used
    assert [one for one in used if not re.fullmatch(r"[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", one)] == []


def test_an_action_has_one_commit_everywhere() -> None:
    used = {
        one for path in WORKFLOWS for one in re.findall(r"uses: ([\w-]+/[\w-]+)\S*(@.+)", path.read_text())
    }
    assert len(used) == len({name for name, _ in used})


def steps() -> list[dict[str, Any]]:
    jobs = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text())["jobs"]
    return [step for job in jobs.values() for step in job["steps"]]


def test_no_job_keeps_credentials_or_a_cache() -> None:
    checkouts = [step for step in steps() if step.get("uses", "").startswith("actions/checkout@")]
    assert len(checkouts) == 3
    assert all(step["with"]["persist-credentials"] is False for step in checkouts)
    assert [step for step in steps() if "cache" in str(step)] == []


def test_a_release_has_provenance_and_a_list_of_parts() -> None:
    used = [step["uses"].partition("@")[0] for step in steps() if "uses" in step]
    assert {"actions/attest-build-provenance", "actions/attest-sbom"} < set(used)
    assert used[-1] == "pypa/gh-action-pypi-publish", "attested before it is published"


def pins(name: str) -> dict[str, str]:
    """Versions by package, of a lock and of what it builds on; each has a hash."""
    text = (ROOT / f".ci/{name}.txt").read_text()
    text += "".join(
        (ROOT / ".ci" / base).read_text() for base in re.findall(r"^--requirement (.+)", text, re.MULTILINE)
    )
    parts = re.split(r"^(?=[a-z0-9])", text, flags=re.MULTILINE)[1:]
    assert all("--hash=sha256:" in part for part in parts)
    return dict(re.match(r"([a-z0-9._-]+)==(\S+)", part).groups() for part in parts)  # type: ignore[union-attr, misc]


@pytest.mark.parametrize("name", LOCKS)
def test_locks_of_images_are_what_the_project_asks_for(name: str) -> None:
    locked = pins(name)
    asked = list(PROJECT["dependencies"])
    asked += [text for extra in LOCKS[name] for text in PROJECT["optional-dependencies"][extra]]
    for wanted in map(Requirement, asked):
        if wanted.marker is None or wanted.marker.evaluate(
            {"python_version": "3.13", "sys_platform": "linux"}
        ):
            version = locked.get(canonicalize_name(wanted.name))
            assert version, f"{wanted.name}: run scripts/locks.py"
            assert wanted.specifier.contains(version), f"{wanted.name}: run scripts/locks.py"


def test_the_image_with_a_browser_has_the_same_packages() -> None:
    assert pins("image").items() < pins("image-render").items()


def test_the_image_takes_its_base_and_its_packages_by_hash() -> None:
    bases = [line for line in re.findall(r"^FROM (\S+)", DOCKERFILE, re.MULTILINE) if ":" in line]
    assert len(bases) == 2
    assert len(set(bases)) == 1
    assert re.fullmatch(r"python:3\.13-slim@sha256:[0-9a-f]{64}", bases[0])
    installs = re.findall(r"-m pip (?:--python \S+ )?(?:install|wheel) .*", DOCKERFILE)
    assert len(installs) == 5
    assert all("--require-hashes" in one or "--no-deps" in one for one in installs)


def test_links_of_the_readme_are_absolute_where_it_is_published() -> None:
    absolute = runpy.run_path(str(ROOT / "scripts/readme.py"))["absolute"]
    shown = absolute((ROOT / "README.md").read_text())
    links = re.findall(r"\]\(([^)]+)\)", shown)
    assert len(links) > 10
    assert [link for link in links if not link.startswith("https://")] == []
    assert absolute("[a](#b) [c](d/e.md) ![f](g.svg)") == (
        "[a](#b) [c](https://github.com/sitemap-crawler/sitemap-crawler/blob/main/d/e.md) "
        "![f](https://raw.githubusercontent.com/sitemap-crawler/sitemap-crawler/main/g.svg)"
    )


def test_dev_run_imports_nothing_from_the_current_folder() -> None:
    dev = runpy.run_path(str(ROOT / "dev"))
    main = dev["main"]
    main.__globals__.update(install=lambda _: "python", call=lambda *words: words)
    assert main(["run", "--version"]) == ("python", "-P", "-m", "crawler", "--version")


def test_a_child_imports_nothing_from_the_current_folder(tmp_path: Path) -> None:
    (tmp_path / "json.py").write_text("open('read', 'w').close()")
    command = python("crawler.workers.nothing:main")
    assert command[0] == sys.executable
    assert str(tmp_path) not in json.loads(command[4])
    subprocess.run(command, cwd=tmp_path, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    assert not (tmp_path / "read").exists()


def test_the_user_agent_names_the_page_of_the_project() -> None:
    assert DEFAULTS.http.user_agent == f"sitemap-crawler (+{PROJECT['urls']['Homepage']})"
