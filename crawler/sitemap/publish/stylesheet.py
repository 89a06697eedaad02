"""`--stylesheet`: the CSS file beside a sitemap, by which browsers show it as a table.

XML without gzip only: browsers save a `.gz` file instead of showing it. CSS, as browsers are removing XSLT. A
file that is already there is left alone, so that it can be changed.
"""

from pathlib import Path
from typing import Final

from crawler.errors import ConfigError
from crawler.settings.sections import Output

NAME: Final = "sitemap.css"
SOURCE: Final = Path(__file__).with_name(NAME)


def check(output: Output) -> None:
    """Raises `ConfigError` if files of this kind cannot have a stylesheet."""
    if output.stylesheet and (output.gzip or output.form != "xml" or output.is_stdout):
        raise ConfigError(
            "--stylesheet needs XML files without compression: add --no-gzip, and leave --format xml and a "
            "folder as --output."
        )


def stage(place: Path) -> str:
    """Writes the file into the staging folder; its name. Raises `OSError`."""
    (place / NAME).write_bytes(SOURCE.read_bytes())
    return NAME
