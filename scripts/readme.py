"""The README as it is shown on PyPI: its links and pictures lead to the repository. A hook of the build.

pyproject.toml names this file; nothing but hatchling is needed to run it.
"""

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

PAGES = "https://github.com/sitemap-crawler/sitemap-crawler/blob/main/"
FILES = "https://raw.githubusercontent.com/sitemap-crawler/sitemap-crawler/main/"


def absolute(text: str) -> str:
    """The same text, whose relative links are absolute."""
    return re.sub(
        r"(!?)\[([^\]]*)\]\((?!https?:|#)([^)]+)\)",
        lambda link: f"{link[1]}[{link[2]}]({FILES if link[1] else PAGES}{link[3]})",
        text,
    )


class Readme(MetadataHookInterface):
    """Adds the README to the metadata."""

    def update(self, metadata: dict[str, Any]) -> None:
        """See hatchling."""
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        metadata["readme"] = {"content-type": "text/markdown", "text": absolute(text)}
