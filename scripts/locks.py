"""Writes the locks in .ci: the exact packages, with hashes, of the images and of what builds a release.

.venv/bin/python scripts/locks.py     (needs uv: pip install uv)
"""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
IMAGE = ("--extra", "cloud", "--extra", "fast", "--extra", "http2", "--extra", "postgres")
LOCKS = {
    "image": IMAGE,
    "image-render": (*IMAGE, "--extra", "render"),
    "build": (),
    "sbom": (),
}
TOOLS = {"build": "build>=1.3,<2\nhatchling>=1.27,<2\n", "sbom": "cyclonedx-bom>=7,<8\n"}


def lock(name: str) -> None:
    """Of the newest versions that pyproject.toml allows."""
    source = "-" if name in TOOLS else "pyproject.toml"
    words = [
        sys.executable, "-m", "uv", "pip", "compile", source, *LOCKS[name], "--quiet", "--upgrade", "--no-header",
        "--generate-hashes", "--no-annotate", "--python-version", "3.13", "--python-platform", "linux",
        "--output-file", f".ci/{name}.txt",
    ]  # fmt: skip
    subprocess.run(words, input=TOOLS.get(name), cwd=ROOT, text=True, check=True)


def build_on(base: str, name: str) -> None:
    """Name each package in one of two locks: what the image has is not said again."""
    known, own = (
        re.split(r"^(?=[a-z0-9])", (ROOT / f".ci/{one}.txt").read_text(), flags=re.MULTILINE)[1:]
        for one in (base, name)
    )
    more = (part for part in own if part not in known)
    (ROOT / f".ci/{name}.txt").write_text("".join([f"--requirement {base}.txt\n", *more]))


if __name__ == "__main__":
    for name in LOCKS:
        lock(name)
    build_on("image", "image-render")
