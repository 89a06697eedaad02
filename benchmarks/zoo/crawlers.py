"""The crawlers that are compared, and how each is started on a site.

Ours lists what is in its sitemap. The others list nothing or everything: for them, the pages that they were answered
with status 200 count as listed.
"""

import gzip
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable
from html import unescape
from pathlib import Path
from typing import Final, NamedTuple

PEERS: Final = Path(__file__).parents[1] / "peers"


class Crawler(NamedTuple):
    """`command`: for the start URL and a folder of its own. `listed`: URLs; without it, all pages that it got."""

    name: str
    command: Callable[[str, Path], list[str]]
    listed: Callable[[Path], Iterable[str]] | None = None
    folder: Path | None = None  # where it runs


def ours() -> Crawler:
    """This crawler, unpaced."""
    return Crawler(
        "sitemap-crawler", lambda url, out: [*_program("crawl", out), url, "--rate", "0", "--quiet"], _sitemap
    )


def peers(scrapy: str | None, npm: Path | None) -> list[Crawler]:
    """Those that are installed. `scrapy`: a Python that has it; `npm`: a folder that has sitemap-generator."""
    found = list[Crawler]()
    if scrapy:
        spider = str(PEERS / "scrapy_site.py")
        found.append(Crawler("Scrapy", lambda url, out: [scrapy, spider, url, str(out / "found"), "tuned"]))
    if wget2 := shutil.which("wget2"):
        options = ["--recursive", "--level=inf", "--robots=off", "--quiet", "--delete-after"]
        found.append(
            Crawler("wget2", lambda url, out: [wget2, *options, f"--directory-prefix={out / 'files'}", url])
        )
    if npm and (node := shutil.which("node")):
        script = str(PEERS / "sitemap_generator.cjs")
        found.append(
            Crawler(
                "sitemap-generator (npm)",
                lambda url, out: [node, script, url, str(out / "map.xml")],
                folder=npm,
            )
        )
    return found


def _program(command: str, out: Path) -> list[str]:
    folders = ["--output", str(out / "out"), "--state", str(out / "state.db")]
    return [sys.executable, "-m", "crawler", command, *folders]


def _sitemap(out: Path) -> list[str]:
    """Of a crawl that was stopped, what it would list so far."""
    if not (out / "ended").exists():
        subprocess.run([*_program("export", out), "--quiet"], check=False, capture_output=True)
    files = (gzip.decompress(file.read_bytes()).decode() for file in (out / "out").glob("sitemap*.xml.gz"))
    return [unescape(url) for text in files for url in re.findall("<url><loc>(.*?)</loc>", text)]
