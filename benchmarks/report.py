"""What a report and lists cost: CPU and memory of `report` and `list` over a made state.

.venv/bin/python benchmarks/report.py 200000        # URLs; about 16 links each
.venv/bin/python benchmarks/report.py 1000000 4
"""

import json
import os
import random
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio

from crawler.frontier.sqlite.frontier import SqliteFrontier

SITE = "https://big.example"
URL = "id, url, run, host, depth, hops"
PAGE = "id, attempts, outcome, detail, settled, status, lastmod, source, content, links"
OUTCOMES = (
    ["listed"] * 92
    + ["failed:not-found"] * 2
    + ["moved"] * 3
    + ["unlisted:noindex", "unlisted:robots", "failed:timeout"]
)
STATUS = {"listed": 200, "unlisted:noindex": 200, "failed:not-found": 404, "moved": 301}
FORMS = ("report.html", "report.json", "report.md", "report.csv")
COMMANDS = (
    ["report", *(word for form in FORMS for word in ("--report", form))],
    ["list", "pages", "--format", "csv"],
    ["list", "findings", "--format", "csv"],
    ["list", "links", "--only", "broken-link", "--format", "csv"],
    ["list", "runs", "--format", "csv"],
    ["list", "links", "--format", "csv"],
)


def url(number: int) -> str:
    return f"{SITE}/section-{number % 211:03}/topic-{number % 1999:04}/page-{number:07}.html"


def rows(size: int, links: int) -> Iterator[tuple[Any, ...]]:
    chance = random.Random(1)
    for number in range(1, size + 1):
        outcome = OUTCOMES[number * 7919 % 100]
        led = (
            [1 + int(chance.random() ** 2 * size) for _ in range(links)]
            if STATUS.get(outcome) == 200
            else None
        )
        detail = url(number + 1) if outcome == "moved" else None
        content = f"{number:032x}" if number % 50 else f"same {number // 500}"
        yield (
            number, 1, outcome, detail, 1.8e9, STATUS.get(outcome),
            1_700_000_000 + number if outcome == "listed" else None, "header", content, led and json.dumps(led),
        )  # fmt: skip


async def begin(path: str) -> None:
    frontier = SqliteFrontier(path)
    await frontier.begin("settings", "reading")
    await frontier.close()


def made(path: str, size: int, links: int) -> None:
    anyio.run(begin, path)
    db = sqlite3.connect(path)
    with db:
        urls = ((n, url(n), 1, 1, min(9, n.bit_length() // 2), 0) for n in range(1, size + 1))
        for table, columns, values in (("url", URL, urls), ("page", PAGE, rows(size, links))):
            marks = ", ".join("?" * len(columns.split(", ")))
            db.executemany(f"INSERT INTO {table} ({columns}) VALUES ({marks})", values)
        db.execute("UPDATE member SET discovered = ?", (size,))
        db.execute("UPDATE run SET status = 'concluded'")
    db.close()


def measured(words: list[str], folder: str) -> str:
    """Run a command: its CPU, its peak memory, and the size of what it wrote."""
    began = time.monotonic()
    with open(f"{folder}/stdout", "wb") as out:
        command = [sys.executable, "-m", "crawler", *words, "--state", f"{folder}/s.db"]
        process = subprocess.Popen(command, cwd=folder, stdout=out)
        _, status, used = os.wait4(process.pid, 0)
    assert status == 0, status
    sizes = [
        f"{name} {path.stat().st_size:,}"
        for name in ("stdout", *FORMS)
        if (path := Path(folder, name)).exists()
    ]
    return (
        f"{used.ru_utime + used.ru_stime:.1f} s CPU, {time.monotonic() - began:.1f} s, "
        f"{used.ru_maxrss // 1024} MB, bytes: {', '.join(sizes)}"
    )


def main(size: int, links: int = 16) -> None:
    with tempfile.TemporaryDirectory() as folder:
        made(f"{folder}/s.db", size, links)
        for words in COMMANDS:
            print(f"{' '.join(words)}: {measured(words, folder)}", flush=True)
            for name in FORMS:
                Path(folder, name).unlink(missing_ok=True)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
