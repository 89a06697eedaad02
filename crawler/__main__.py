"""The entry point of the command line: installs signal handlers, imports the rest, then runs `cli.main`.

Results go to stdout, as does a sitemap with `-o -`; everything else goes to stderr. Exit codes are in
`errors.Exit`.
"""

import gc
import sys
from collections.abc import Sequence
from typing import NoReturn

from crawler.cli.signals import received


def main(args: Sequence[str] | None = None) -> NoReturn:
    """Runs the program and exits with its exit code. Must be called in the main thread."""
    began_here = received.begin()
    try:
        code = _run(sys.argv[1:] if args is None else args)
    finally:
        if began_here:  # else the handlers stay until the process ends
            received.end()
    gc.freeze()  # what is left ends with the process
    sys.exit(code)


def _run(args: Sequence[str]) -> int:
    gc.disable()  # while modules are loaded, which are no garbage
    from crawler.cli.main import run  # noqa: PLC0415 - slow to import

    gc.freeze()
    gc.set_threshold(20_000)
    gc.enable()
    code = int(run(args))
    return received.exit or code  # also for a signal that arrived at the very end


if __name__ == "__main__":
    main()
