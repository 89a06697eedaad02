"""The command line: what was typed becomes settings, settings become one call, errors become one sentence.

Answers go to stdout, and so does a sitemap with `-o -`; all else that is said goes to stderr. Exit codes are
`errors.Exit`. Here is only the door, so that little is imported before signals are noted; inside is `cli.main`.
"""

import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import NoReturn

from crawler.cli.signals import noted


def main(args: Sequence[str] | None = None) -> NoReturn:
    """Run the program and leave with its exit code. Must be called in the main thread."""
    began_here = noted.begin()
    try:
        code = _run(sys.argv[1:] if args is None else args)
    finally:
        if began_here:  # else the process is ours, to its end
            noted.end()
    sys.exit(code)


def _run(args: Sequence[str]) -> int:
    """A signal that came while the program was imported ends it before anything begins."""
    from crawler.cli.main import run  # noqa: PLC0415 - takes long

    if noted.first:
        if sys.stderr is not None:
            with suppress(OSError):
                sys.stderr.write(f"sitemap-crawler: {noted.word} before the start.\n")
                sys.stderr.flush()
        return noted.exit
    code = int(run(args))
    return noted.exit or code  # also of one that came when nothing was left to do


if __name__ == "__main__":
    main()
