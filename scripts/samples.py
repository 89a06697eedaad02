"""Runs the commands shown in documents against the website of the demo, and writes their output below each.

.venv/bin/python scripts/samples.py

A block of "console" holds lines that begin with "$ " and what they answer.
A test runs the same on another port and says when to run this. Log lines, which hold the time, are left out.
"""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from crawler.cli.demo import demo_site

ROOT: Final = Path(__file__).resolve().parent.parent
DOCUMENTS: Final = ("docs/use/tutorial.md",)
PORT: Final = 8000  # as in the documents
HOST: Final = r"(127\.0\.0\.1[:_])"  # before a port, in URLs and in names of states
BLOCK: Final = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LOG_LINE: Final = re.compile(r"^\d\d:\d\d:\d\d .*\n", re.MULTILINE)


def filled(document: str, port: int = PORT, *, rate: int = 5) -> str:
    """The document with the current output of its commands. `port`: of the website (0: any)."""
    with demo_site().serve(port=port) as origin, tempfile.TemporaryDirectory() as name:
        folder = Path(name)

        def fill(block: re.Match[str]) -> str:
            commands = [line for line in block[1].splitlines() if line.startswith("$ ")]
            answers = [f"{command}\n{_answer(command[2:], origin, folder, rate)}" for command in commands]
            return "```console\n" + "\n".join(answers) + "```"

        return BLOCK.sub(fill, document)


def _answer(command: str, origin: str, folder: Path, rate: int) -> str:
    """What the command says on stdout, then on stderr, with the port that the documents show."""
    port = origin.rpartition(":")[2]
    here = re.sub(rf"{HOST}{PORT}\b", rf"\g<1>{port}", command)
    here = here.replace("sitemap-crawler ", f"'{sys.executable}' -m crawler ", 1)
    told = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "COLUMNS": "80", "LANG": "C.UTF-8"}
    done = subprocess.run(
        here, shell=True, cwd=folder, env=told | {"SITEMAP_CRAWLER_RATE": str(rate)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    text = LOG_LINE.sub("", done.stdout + done.stderr).strip("\n")
    text = re.sub(rf"{HOST}{port}\b", rf"\g<1>{PORT}", text)
    return f"{text}\n" if text else ""


if __name__ == "__main__":
    for path in DOCUMENTS:
        (ROOT / path).write_text(filled((ROOT / path).read_text(encoding="utf-8")), encoding="utf-8")
