"""Draws docs/use/demo.svg: the real closing summary of `demo`, exported from the terminal.

A test tells when to run it:

.venv/bin/python scripts/picture.py
"""

import io
import os
import re
import tempfile
from pathlib import Path
from unittest.mock import patch

import anyio
from rich.console import Console

from crawler.cli import crawl as crawling
from crawler.cli.demo import command as demo
from crawler.cli.summary import Facts
from crawler.cli.summary_text import show_summary
from crawler.settings.sections import Log, Output, Settings

PICTURE = Path(__file__).resolve().parent.parent / "docs/use/demo.svg"
WIDTH = 80


def demo_summary(rate: float = demo.RATE) -> Facts:
    """The summary at the end of the demo."""
    kept: list[Facts] = []
    settings = Settings(output=Output(output="sitemaps"), log=Log(quiet=True))
    back = Path.cwd()
    with (
        tempfile.TemporaryDirectory() as folder,
        patch.object(crawling, "print_summary", lambda closing, *_: kept.append(closing)),
        patch.object(demo, "RATE", rate),
    ):
        os.chdir(folder)
        try:
            anyio.run(lambda: demo.crawl_demo(settings, named=True, faults=False))
        finally:
            os.chdir(back)
    return kept[0]


def picture(what: Facts) -> str:
    """The summary as SVG, without fonts from elsewhere."""
    console = Console(
        record=True,
        width=WIDTH,
        file=io.StringIO(),
        force_terminal=True,
        color_system="truecolor",
        markup=False,
        emoji=False,
        highlight=False,
        _environ={},
    )
    show_summary(console, what)
    svg = console.export_svg(title="./dev run demo", unique_id="demo")
    return re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL)


if __name__ == "__main__":
    PICTURE.write_text(picture(demo_summary()), encoding="utf-8")
