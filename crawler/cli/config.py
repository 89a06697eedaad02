"""`config`: the effective settings, and where each comes from."""

from collections.abc import Sequence
from typing import TextIO

from crawler.parse.credentials import MASK, masked
from crawler.report.printable import printable
from crawler.settings.load import Origin


def show_settings(origins: Sequence[Origin], out: TextIO) -> None:
    """Prints each setting with its value and origin; secrets are masked."""
    section = ""
    for item in origins:
        if item.key.section != section:
            section = item.key.section
            out.write(f"\n{item.key.heading}\n")
        out.write(f"{item.key.name:<16}= {_shown(item):<44} # {item.place}\n")


def _shown(item: Origin) -> str:
    if item.key.option.secret and item.value:
        return MASK
    return printable(masked(item.key.option.kind.show(item.value)), 200) or "-"
