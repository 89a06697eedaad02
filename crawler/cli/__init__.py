"""The command line: what was typed becomes settings, settings become one call, errors become one sentence.

Answers go to stdout, and so does a sitemap with `-o -`; all else that is said goes to stderr. Exit codes are
`errors.Exit`. Here is only the door, so that little is imported before signals are heeded; inside is `program`.
"""

import signal
import sys
from collections.abc import Sequence
from typing import NoReturn

from crawler.errors import Exit


def main(args: Sequence[str] | None = None) -> NoReturn:
    """Run the program and leave with its exit code. Must be called in the main thread."""
    before = signal.signal(signal.SIGTERM, _terminated)
    try:
        from crawler.cli.program import run  # noqa: PLC0415 - takes long, and may be interrupted already

        code = run(sys.argv[1:] if args is None else args)
    except KeyboardInterrupt:
        code = Exit.INTERRUPTED
    finally:
        signal.signal(signal.SIGTERM, before or signal.SIG_DFL)
    sys.exit(int(code))


def _terminated(*_: object) -> NoReturn:
    """End as by ctrl-C, so that whoever holds files lets go of them; a crawl hears the signal itself."""
    sys.exit(int(Exit.TERMINATED))
