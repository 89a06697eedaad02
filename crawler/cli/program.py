"""The name of the program, and the words that call it in the commands that it suggests."""

import os
from typing import Final

PROGRAM: Final = "sitemap-crawler"
CALLED_AS: Final = (
    "_SITEMAP_CRAWLER_CALLED_AS"  # set by ./dev, which does not install the program on the PATH
)


def suggested(command: str) -> str:
    """A command of this program, as it can be typed where the program was called."""
    return f"{os.environ.get(CALLED_AS) or PROGRAM} {command}"
