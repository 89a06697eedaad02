"""What `--render` costs: a rendered page beside a plain one, and a site of plain pages with `--render auto` beside `off`.

    .venv/bin/python benchmarks/rendering.py            # the four applications of the tests, each three times,
                                                        # and the next night, in which nothing has changed
    .venv/bin/python benchmarks/rendering.py --crawlee PYTHON   # and crawlee beside it
    .venv/bin/python benchmarks/rendering.py --plain    # instructions of 300 plain pages with a script, by valgrind

CPU time and memory are those of the crawler, playwright's driver and the browser together: the processes below ours, looked
at ten times a second. Memory is what these share with no other process.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

from ratchet import COUNTER, counted  # noqa: E402 - a script beside this one

from crawler.cli.demo.site import Site  # noqa: E402
from crawler.fetch.render import chromium  # noqa: E402
from crawler.fetch.render.browser import _private, _tree  # noqa: E402
from tests.render.sites import APPS, spa  # noqa: E402 - from the tests

TICKS = os.sysconf("SC_CLK_TCK")
PLAIN = 300


def words(origin: str, folder: Path, mode: str, *more: str) -> list[str]:
    return [
        sys.executable, "-m", "crawler", "crawl", f"{origin}/", "--render", mode, "--rate", "0", "--quiet", *more,
        "--state", str(folder / "state.db"), "--output", str(folder / "out"), "--seed-sitemaps", "off",
    ]  # fmt: skip


def ticks(pid: int) -> int:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0
    return int(fields[11]) + int(fields[12])


def watched(command: list[str]) -> tuple[float, float, int]:
    """Elapsed seconds, CPU seconds, and most bytes of memory."""
    began, used, most = time.monotonic(), dict[int, int](), 0
    process = subprocess.Popen(command, cwd=HERE.parent)
    while process.poll() is None:
        tree = set(_tree(process.pid))
        for pid in tree:
            used[pid] = max(used.get(pid, 0), ticks(pid))
        most = max(most, sum(map(_private, tree)))
        time.sleep(0.1)
    if process.returncode:
        sys.exit(f"the crawl ended with {process.returncode}")
    return time.monotonic() - began, sum(used.values()) / TICKS, most


def applications(runs: int, browser: str, crawlee: str | None) -> None:
    print("application  run      pages  s     pages/s  CPU s  ms of CPU a page  MB   requests")
    for app in APPS:
        site = spa(app)
        with site.serve() as origin, tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            ours = words(origin, folder, "auto", "--browser", browser, "--no-gzip")
            kinds = {"first": [*ours, "--fresh"], "second": ours}
            if crawlee:
                peer = str(HERE / "peers/crawlee_site.py")
                kinds["crawlee"] = [crawlee, peer, f"{origin}/", str(folder / "found"), browser]
            for kind, command in runs * tuple(kinds.items()):
                site.log.clear()
                wall, cpu, memory = watched(command)
                pages = found_by(folder, kind)
                print(
                    f"{app:12} {kind:7} {pages:6}  {wall:5.1f} {pages / wall:7.1f}  {cpu:5.1f}  "
                    f"{1000 * cpu / pages:16.0f}  {memory / 1e6:<4.0f} {len(site.log)}",
                    flush=True,
                )


def found_by(folder: Path, kind: str) -> int:
    if kind == "crawlee":
        return len(set((folder / "found").read_text().split()))
    return (folder / "out/sitemap.xml").read_text().count("<loc>")


def plain_site() -> Site:
    """Pages as most are: with scripts, a noscript, and 25 links, so that every sign is looked for."""
    site = Site()
    text = "<p>Words that can be read without any script at all.</p>" * 60
    head = "<script src=/app.js></script><script>var dataLayer = []</script>"
    text += "<noscript><img src=/pixel.gif></noscript><div id=application></div>"
    for number in range(PLAIN):
        links = [f"/{(number * 7 + step * step) % PLAIN}" for step in range(24)]
        site.page(f"/{number}", links=links, text=text, head=head, title=f"Page {number}")
    site.page("/", links=[f"/{number}" for number in range(20)], text=text, head=head)
    return site


def plain() -> None:
    if not shutil.which(COUNTER[0]):
        sys.exit("valgrind is missing")
    found: dict[str, float] = {}
    environment = os.environ | {"PYTHONHASHSEED": "0"}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    with plain_site().serve() as origin, tempfile.TemporaryDirectory() as name:
        for mode in ("off", "auto"):
            folder = Path(name) / mode
            folder.mkdir()
            command = words(origin, folder, mode, "--fresh")
            subprocess.run(command, cwd=HERE.parent, env=environment, check=True)  # compiles what is imported
            into = f"--cachegrind-out-file={folder}/counted.%p"
            subprocess.run([*COUNTER, into, *command], cwd=HERE.parent, env=environment, check=True)
            found[mode] = counted(folder)
    for mode, count in found.items():
        print(f"--render {mode:5} {count / 1e6:10,.1f} million instructions")
    print(f"auto / off    {found['auto'] / found['off']:.4f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--plain", action="store_true", help="plain pages, with and without --render auto")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--browser", default=chromium.find(None))
    parser.add_argument("--crawlee", metavar="PYTHON", help="of an environment with crawlee[playwright]")
    chosen = parser.parse_args()
    plain() if chosen.plain else applications(chosen.runs, chosen.browser, chosen.crawlee)
