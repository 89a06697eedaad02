"""Whether a page costs more than it did: our work against the bare loop's, held to the figure in `ratchet.json`.

    .venv/bin/python benchmarks/ratchet.py             # exit 1 if the ratio grew
    .venv/bin/python benchmarks/ratchet.py --record    # write the figure of this machine's counter

Both crawl the same made-up site (`synthetic.py`, its server is not counted) with the same interpreter, in turn, and both
include their start. Where valgrind is installed, it counts the instructions of the whole tree of processes: on any machine
and however busy that is, they repeat within a percent, so 5 % more fails. (`perf` counts faster, but few virtual machines
have its counters.) Elsewhere it is CPU seconds, the least of several runs each: busy neighbours take from the caches, which
moved the ratio by 16 %, so only 25 % more fails, and only if it is so twice. Takes a minute of CPU.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from synthetic import answers

HERE = Path(__file__).parent
FIGURES = HERE / "ratchet.json"
PORT = 8297
PAGES = 600
MARGIN = {"instructions": 0.05, "CPU seconds": 0.25}
RUNS = {"instructions": 1, "CPU seconds": 6}
ENOUGH = 25  # seconds, after which no further pair of runs begins
COUNTER = ["valgrind", "--quiet", "--tool=cachegrind", "--cache-sim=no", "--trace-children=yes"]


def counted(folder: Path) -> float:
    """The instructions in what cachegrind wrote, a file for each process."""
    lines = [line for file in folder.glob("counted.*") for line in file.read_text().splitlines()]
    return float(sum(int(line.split()[1]) for line in lines if line.startswith("summary:")))


def commands(folder: Path) -> tuple[list[str], list[str]]:
    """Ours, and the bare loop."""
    site = f"http://127.0.0.1:{PORT}/"
    ours = [
        sys.executable, "-m", "crawler", "crawl", site, "--rate", "0", "--quiet",
        "--output", str(folder / "out"), "--state", str(folder / "state.db"),
    ]  # fmt: skip
    return ours, [sys.executable, str(HERE / "floor.py"), site]


def cost(command: list[str], folder: Path, unit: str) -> float:
    """What one run takes, in that unit."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    environment = os.environ | {"PYTHONPYCACHEPREFIX": str(folder.parent / "compiled"), "PYTHONHASHSEED": "0"}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    into = f"--cachegrind-out-file={folder}/counted.%p"
    words = [*COUNTER, into, *command] if unit == "instructions" else command
    process = subprocess.Popen(words, cwd=HERE.parent, env=environment, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    if status:
        sys.exit(f"{' '.join(command)} ended with {os.waitstatus_to_exitcode(status)}")
    if unit == "instructions":
        return counted(folder)
    return used.ru_utime + used.ru_stime


def ratio(unit: str, work: Path) -> float:
    """Ours to the bare loop's: the least of each."""
    began = time.monotonic()
    ours, bare = commands(work / "run")
    for command in (ours, bare):  # compiles what is imported
        cost(command, work / "run", "CPU seconds")
    pairs = list[tuple[float, float]]()
    while len(pairs) < RUNS[unit] and (not pairs or time.monotonic() - began < ENOUGH):
        pairs.append((cost(ours, work / "run", unit), cost(bare, work / "run", unit)))
    return min(one for one, _ in pairs) / min(other for _, other in pairs)


def serve() -> subprocess.Popen[bytes]:
    """The site, once it answers."""
    server = subprocess.Popen([sys.executable, str(HERE / "synthetic.py"), str(PAGES), "--port", str(PORT)])
    if not answers(f"http://127.0.0.1:{PORT}/"):
        server.kill()
        sys.exit("the site did not start")
    return server


def measured(unit: str) -> float:
    """The ratio on this machine."""
    server = serve()
    try:
        with tempfile.TemporaryDirectory(prefix="ratchet-") as folder:
            return ratio(unit, Path(folder))
    finally:
        server.terminate()
        server.wait()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--record", action="store_true", help="write the figure into ratchet.json")
    chosen = parser.parse_args()
    figures: dict[str, float] = json.loads(FIGURES.read_text())
    unit = "instructions" if shutil.which(COUNTER[0]) else "CPU seconds"
    found = measured(unit)
    if chosen.record:
        FIGURES.write_text(json.dumps(figures | {unit: round(found, 3)}, indent=4) + "\n")
        figures = json.loads(FIGURES.read_text())
    most = figures[unit] * (1 + MARGIN[unit])
    found = min(found, measured(unit)) if found > most and unit != "instructions" else found
    verdict = f"{unit}: {found:.2f} times the bare loop, at most {most:.2f}"
    sys.exit(f"{verdict}: a page costs more than it did" if found > most else print(verdict))


if __name__ == "__main__":
    main()
