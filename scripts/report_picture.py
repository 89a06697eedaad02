"""The picture of an HTML report in the documents: of the demo's second website after its second run.

.venv/bin/python scripts/report_picture.py

Between the runs links are mended, others break, and pages come and go. The picture has the head, the first
actions, some of the changes, and the charts. Taken with Debian's chromium, and reduced to a few colours by
its pngquant: a third of the bytes.
"""

import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from crawler.cli.demo import faults_site
from crawler.cli.demo.faults import GONE, STORIES

ROOT: Final = Path(__file__).resolve().parent.parent
PICTURE: Final = ROOT / "docs/use/report.png"
SIZE: Final = "1000,1545"  # CSS pixels
COLOURS: Final = "48"
SHOWN: Final = {"first", "changes", "urls", "folders"}  # sections
CHARTS: Final = {"urls", "folders"}  # of these, without their tables
ACTIONS: Final = 3
DETAILS: Final = {"Mended: Broken links", "No longer listed"}  # of the changes
PORT: Final = 8000  # as in the tutorial
PUBLIC: Final = "https://tidewater.example"


def crawled(origin: str, folder: str, report: Path) -> None:
    """One run."""
    words = ["crawl", f"{origin}/", "--rate", "0", "--retries", "0", "-q", "--publish-base", PUBLIC]
    files = ["--state", f"{folder}/s.db", "-o", folder, "--report", str(report)]
    subprocess.run([sys.executable, "-m", "crawler", *words, *files], cwd=ROOT, check=True)


def excerpt(report: str) -> str:
    """The parts of a report that the picture shows."""

    def detail(change: re.Match[str]) -> str:
        return change[0] if any(f"<h3>{words}:" in change[0] for words in DETAILS) else ""

    def part(section: re.Match[str]) -> str:
        if section[1] not in SHOWN:
            return ""
        if section[1] in CHARTS:
            return re.sub(r"<table.*?</table>", "", section[0], flags=re.DOTALL)
        actions = re.findall(r"<li>.*?</li>", section[0], flags=re.DOTALL)
        if section[1] == "changes":
            return re.sub(r"<details.*?</details>", detail, section[0], flags=re.DOTALL)
        return section[0].replace("".join(f"{action}\n" for action in actions[ACTIONS:]), "")

    shown = re.sub(r'<section id="([\w-]+)">.*?</section>', part, report, flags=re.DOTALL)
    filters = r'<nav.*?</nav>|<p class="filter".*?</p>'
    return re.sub(filters, "", shown, flags=re.DOTALL)


def taken(picture: Path) -> None:
    """Two runs, and the picture of the second report."""
    site = faults_site()
    with tempfile.TemporaryDirectory() as folder, site.serve(port=PORT) as origin:
        report = Path(folder) / "report.html"
        crawled(origin, folder, report)
        for path in GONE[:2]:
            site.page(
                path, title=f"Found again: {path[-2:]}", text=f"<p>Restored from paper {path[-2:]}.</p>"
            )
        for path in STORIES[-2:]:
            del site.answers[path]
        crawled(origin, folder, report)
        report.write_text(excerpt(report.read_text()))
        flags = [
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--hide-scrollbars",
            f"--window-size={SIZE}",
        ]
        light = "--blink-settings=preferredColorScheme=1"
        shot = ["chromium", *flags, light, f"--screenshot={picture}", report.as_uri()]
        subprocess.run(shot, capture_output=True, check=True)
        reduced = [
            "pngquant",
            "--nofs",
            "--strip",
            "--speed",
            "1",
            "--force",
            "--output",
            str(picture),
            COLOURS,
            str(picture),
        ]
        subprocess.run(reduced, check=True)


if __name__ == "__main__":
    taken(PICTURE)
