"""The picture of the demo's HTML report in the README, taken with Debian's chromium.

.venv/bin/python scripts/report_picture.py
"""

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from crawler.cli.demo import demo_site

ROOT: Final = Path(__file__).resolve().parent.parent
PICTURE: Final = ROOT / "docs/use/report.png"
SIZE: Final = "1000,1140"  # CSS pixels: as far as the first bar
PORT: Final = 8000  # as in the tutorial


def taken(picture: Path) -> None:
    with tempfile.TemporaryDirectory() as name, demo_site().serve(port=PORT) as origin:
        report = Path(name) / "report.html"
        words = ["crawl", f"{origin}/", "--rate", "0", "-q", "--state", f"{name}/s.db", "-o", name]
        subprocess.run([sys.executable, "-m", "crawler", *words, "--report", report], cwd=ROOT, check=True)
        flags = [
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--hide-scrollbars",
            f"--window-size={SIZE}",
        ]
        light = "--blink-settings=preferredColorScheme=1"
        subprocess.run(
            ["chromium", *flags, light, f"--screenshot={picture}", report.as_uri()],
            capture_output=True,
            check=True,
        )


if __name__ == "__main__":
    taken(PICTURE)
