"""Ours, its floor, and other crawlers in turn over the same sites: pages a second, CPU, memory, as medians and ratios.

    sudo apt-get install --no-install-recommends nginx-light postgresql-doc-15 openjdk-17-doc wget2
    .venv/bin/python benchmarks/speed.py --json benchmarks/speed.json

Sites: the two of `real_sites.py`, and 20,000 made-up pages (`synthetic.py`), all served by nginx on loopback. Runs take turns
(A B C, A B C), and only ratios within one call mean something. A crawler that is not at hand is passed over and named:

    --scrapy PYTHON    a Python that has Scrapy (tuned and stock: benchmarks/peers/scrapy_site.py)
    --spider-rs DIR    a folder with node_modules/@spider-rs/spider-rs (benchmarks/peers/spider_rs.mjs)
    --colly FILE       a program `FILE URL OUT` on colly, which writes a URL a line
    wget2              from the PATH
"""

import argparse
import gzip
import json
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import real_sites
import synthetic

HERE = Path(__file__).parent
PAGES = 20_000  # of the synthetic site
TIMEOUT = 600  # seconds for one run
Command = Callable[[str, Path], list[str]]
Figures = dict[str, float]


def ours(processes: int) -> Command:
    return lambda url, out: [
        sys.executable, "-m", "crawler", "crawl", url, "--rate", "0", "--quiet", "--processes", str(processes),
        "--output", str(out / "out"), "--state", str(out / "state.db"),
    ]  # fmt: skip


def contenders(chosen: argparse.Namespace) -> dict[str, Command]:
    """What can be run here, and how."""
    found: dict[str, Command] = {
        "sitemap-crawler": ours(1),
        "sitemap-crawler, 2 processes": ours(2),
        "bare loop": lambda url, out: [
            sys.executable,
            str(HERE / "floor.py"),
            url,
            str(out / "sitemap.xml.gz"),
        ],
    }
    if chosen.many:
        found |= {f"sitemap-crawler, {n} processes": ours(n) for n in (4, 8)}
    if chosen.scrapy:
        script = str(HERE / "peers/scrapy_site.py")
        found["Scrapy, tuned"] = lambda url, out: [chosen.scrapy, script, url, str(out / "found"), "tuned"]
        if chosen.stock:
            found["Scrapy, stock"] = lambda url, out: [
                chosen.scrapy,
                script,
                url,
                str(out / "found"),
                "stock",
            ]
    if chosen.spider_rs:
        found["spider-rs"] = lambda url, out: [
            "node",
            str(HERE / "peers/spider_rs.mjs"),
            url,
            str(out / "found"),
        ]
    if chosen.colly:
        found["colly"] = lambda url, out: [chosen.colly, url, str(out / "found")]
    if shutil.which("wget2"):
        found["wget2"] = lambda url, out: [
            "wget2", "--recursive", "--level=inf", "--robots=off", "--quiet", "--max-threads=32", "--delete-after",
            "--reject-regex", r"[.](css|js|png|svg|gif|pdf|ico|woff2?|txt)([?].*)?$", f"--directory-prefix={out / 'files'}",
            f"--stats-site=csv:{out / 'stats.csv'}", url,
        ]  # fmt: skip
    missing = {
        "Scrapy": chosen.scrapy,
        "spider-rs": chosen.spider_rs,
        "colly": chosen.colly,
        "wget2": shutil.which("wget2"),
    }
    for name in (name for name, path in missing.items() if not path):
        print(f"{name} is not at hand")
    return found


def found_in(out: Path) -> int:
    """How many pages a run brought."""
    sitemaps = [*(out / "out").glob("sitemap*.xml.gz"), *out.glob("sitemap.xml.gz")]
    if sitemaps:
        return sum(len(re.findall(rb"<url>", gzip.decompress(file.read_bytes()))) for file in sitemaps)
    if (out / "found").exists():
        return len(set((out / "found").read_text().split()))
    if (out / "stats.csv").exists():  # of wget2
        rows = (line.split(",") for line in (out / "stats.csv").read_text().splitlines())
        return len({row[2] for row in rows if len(row) > 3 and row[0].isdigit() and row[3] == "200"})
    return 0


def measure(command: list[str], out: Path, cwd: str | None) -> Figures:
    """One run: wall and CPU seconds and peak MB of all processes together, and what it found."""
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    began = time.monotonic()
    process = subprocess.Popen(
        command, cwd=cwd, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )
    signal.signal(signal.SIGALRM, lambda *_: os.killpg(process.pid, signal.SIGKILL))
    signal.alarm(TIMEOUT)
    ended, peak = 0, 0
    while not ended:
        time.sleep(0.02)
        peak = max(peak, sum(map(real_sites.resident, real_sites.family(process.pid))))
        ended, _, used = os.wait4(process.pid, os.WNOHANG)
    signal.alarm(0)
    wall, pages = time.monotonic() - began, found_in(out)
    cpu = used.ru_utime + used.ru_stime
    return {
        "pages": pages, "wall": wall, "cpu": cpu, "mb": peak / 2**20,
        "pages_a_second": pages / wall, "cpu_ms_a_page": cpu / pages * 1e3 if pages else 0.0,
    }  # fmt: skip


def middle(runs: list[Figures], name: str) -> float:
    return statistics.median(run[name] for run in runs)


def spread(runs: list[Figures], name: str) -> str:
    values = [run[name] for run in runs]
    return (
        f"{min(values):,.2f} to {max(values):,.2f}"
        if name.startswith("cpu")
        else f"{min(values):,.0f} to {max(values):,.0f}"
    )


def table(site: str, results: dict[str, list[Figures]]) -> str:
    """Markdown."""
    first = results["sitemap-crawler"]
    lines = [
        f"| {site} | pages | pages a second | (spread) | to ours | CPU ms a page | (spread) | to ours | MB, all processes |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for name, runs in results.items():
        speed, cpu = middle(runs, "pages_a_second"), middle(runs, "cpu_ms_a_page")
        pairs = [(a, b) for a, b in zip(runs, first, strict=True) if a["pages"] and b["pages"]]
        faster = (
            statistics.median(a["pages_a_second"] / b["pages_a_second"] for a, b in pairs) if pairs else 0.0
        )
        dearer = (
            statistics.median(a["cpu_ms_a_page"] / b["cpu_ms_a_page"] for a, b in pairs) if pairs else 0.0
        )
        lines.append(
            f"| {name} | {middle(runs, 'pages'):,.0f} | {speed:,.0f} | {spread(runs, 'pages_a_second')} | {faster:.2f} | "
            f"{cpu:.2f} | {spread(runs, 'cpu_ms_a_page')} | {dearer:.2f} | {middle(runs, 'mb'):,.0f} |"
        )
    return "\n".join(lines)


def synth(work: Path) -> None:
    """The made-up site as files."""
    for number in range(PAGES):
        file = work / "synth" / (synthetic.path(number).lstrip("/") or "index.html")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(synthetic.page(number, PAGES))
        os.utime(file, (1_700_000_000 + number * 60,) * 2)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("sites", nargs="*", default=["pg", "jdk", "synth"])
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--scrapy", metavar="PYTHON")
    parser.add_argument("--stock", action="store_true", help="Scrapy's CrawlSpider, too: it takes minutes")
    parser.add_argument("--spider-rs", metavar="DIR")
    parser.add_argument("--colly", metavar="FILE")
    parser.add_argument("--many", action="store_true", help="4 and 8 processes, too")
    parser.add_argument("--json", type=Path, metavar="FILE")
    chosen = parser.parse_args()
    work = Path(tempfile.mkdtemp(prefix="speed-"))
    real_sites.SITES["synth"] = (f"{PAGES:,} made-up pages", 8203, work / "synth")
    if "synth" in chosen.sites:
        synth(work)
    real_sites.serve(work, chosen.sites)
    results: dict[str, dict[str, list[Figures]]] = {}
    try:
        commands = contenders(chosen)
        for site in chosen.sites:
            title, port, _ = real_sites.SITES[site]
            runs: dict[str, list[Figures]] = {name: [] for name in commands}
            measure(
                ours(1)(f"http://127.0.0.1:{port}/", work / "out"), work / "out", None
            )  # warms the disk's cache
            for _ in range(chosen.runs):
                for name, command in commands.items():
                    cwd = chosen.spider_rs if name == "spider-rs" else None
                    runs[name].append(
                        measure(command(f"http://127.0.0.1:{port}/", work / "out"), work / "out", cwd)
                    )
            results[title] = runs
            print(table(title, runs), end="\n\n", flush=True)
        if chosen.json:
            chosen.json.write_text(json.dumps(results, indent=1) + "\n")
    finally:
        os.kill(int((work / "nginx.pid").read_text()), signal.SIGTERM)
        shutil.rmtree(work, ignore_errors=True)


if __name__ == "__main__":
    main()
