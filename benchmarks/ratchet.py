"""Whether a page costs more than it did: our work against the bare loop's (`floor.py`), held to the figures in `ratchet.json`.

    .venv/bin/python benchmarks/ratchet.py             # exit 1 if the ratio grew
    .venv/bin/python benchmarks/ratchet.py --record    # write the figures of this machine

Both crawl the same made-up site (`synthetic.py`, its server is not counted) with the same interpreter, in turn, and both
include their start; what counts is the whole tree of processes. There are two figures. Where valgrind is installed, it
counts the instructions, and nothing else is measured: on any machine and however busy that is, they repeat within 0.1 %, but
one run in twenty takes a percent more; so 1 % more fails, if it is so three times. (`perf` counts faster, but few virtual
machines have its counters.) It does not count the kernel; CPU seconds do, the least of several runs each. Busy neighbours move their ratio by 16 %, so only 25 % more fails, if it is so
twice.
--record measures both, and a start, which is a crawl of one page. Takes a minute of CPU; --record two.
"""

import argparse
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from synthetic import answers

HERE = Path(__file__).parent
FIGURES = HERE / "ratchet.json"
with socket.create_server(("127.0.0.1", 0)) as probe:
    PORT = probe.getsockname()[1]  # free when it was asked
PAGES = 400
MARGIN = {"instructions": 0.01, "CPU seconds": 0.25}
RUNS = {"instructions": 1, "CPU seconds": 6}
AGAIN = {"instructions": 2, "CPU seconds": 1}  # times that too much is measured again
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
    return ours, [sys.executable, str(HERE / "floor.py"), site, str(folder / "sitemap.xml.gz")]


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


def least(unit: str, work: Path) -> tuple[float, float]:
    """What ours and the bare loop take at least."""
    began = time.monotonic()
    ours, bare = commands(work / "run")
    for command in (ours, bare):  # compiles what is imported
        cost(command, work / "run", "CPU seconds")
    pairs = list[tuple[float, float]]()
    while len(pairs) < RUNS[unit] and (not pairs or time.monotonic() - began < ENOUGH):
        pairs.append((cost(ours, work / "run", unit), cost(bare, work / "run", unit)))
    return min(one for one, _ in pairs), min(other for _, other in pairs)


def serve(pages: int) -> subprocess.Popen[bytes]:
    """The site, once it answers."""
    server = subprocess.Popen([sys.executable, str(HERE / "synthetic.py"), str(pages), "--port", str(PORT)])
    if not answers(f"http://127.0.0.1:{PORT}/"):
        server.kill()
        sys.exit("the site did not start")
    return server


def measured(unit: str, pages: int = PAGES) -> tuple[float, float]:
    """What a crawl of so many pages takes on this machine: ours, and the bare loop."""
    server = serve(pages)
    try:
        with tempfile.TemporaryDirectory(prefix="ratchet-") as folder:
            return least(unit, Path(folder))
    finally:
        server.terminate()
        server.wait()


def shown(unit: str, ours: float, bare: float) -> str:
    scale, name = (1e9, "G") if unit == "instructions" else (1, "s")
    return f"{ours / scale:.2f} {name} to {bare / scale:.2f} {name}, {ours / bare:.2f} times"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--record", action="store_true", help="write the figure into ratchet.json")
    chosen = parser.parse_args()
    figures: dict[str, float] = json.loads(FIGURES.read_text())
    unit = "instructions" if shutil.which(COUNTER[0]) else "CPU seconds"
    found = {each: measured(each) for each in ({unit, "CPU seconds"} if chosen.record else {unit})}
    for each, (ours, bare) in found.items():
        print(f"{PAGES} pages, {each}:", shown(each, ours, bare))
    if chosen.record:
        print("start:", shown("CPU seconds", *measured("CPU seconds", 1)))
        figures |= {each: round(ours / bare, 3) for each, (ours, bare) in found.items()}
        FIGURES.write_text(json.dumps(figures, indent=4) + "\n")
    ours, bare = found[unit]
    most = figures[unit] * (1 + MARGIN[unit])
    for _ in range(AGAIN[unit]):
        if ours / bare > most:
            ours, bare = min((ours, bare), measured(unit), key=lambda pair: pair[0] / pair[1])
    if ours / bare > most:
        sys.exit(
            f"{unit}: {ours / bare:.2f} times the bare loop, at most {most:.2f}: a page costs more than it did"
        )


if __name__ == "__main__":
    main()
