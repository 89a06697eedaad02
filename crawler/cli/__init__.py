"""The command line: what was typed becomes settings, settings become one call, errors become one sentence.

Data goes to files, or to stdout with `-o -`; everything said goes to stderr. Exit codes are `errors.Exit`.
"""

import sys
from collections.abc import Sequence

import click

from crawler.cli.commands import cli
from crawler.errors import CrawlerError, Exit
from crawler.printable import printable

PROGRAM = "sitemap-crawler"


def main(args: Sequence[str] | None = None) -> None:
    """Run the program and leave with its exit code."""
    try:
        code = cli.main(args=None if args is None else list(args), prog_name=PROGRAM, standalone_mode=False)
    except click.UsageError as error:
        code = _say(_usage(error), Exit.USAGE)
    except click.ClickException as error:
        code = _say(error.format_message(), Exit.USAGE)
    except (click.Abort, KeyboardInterrupt):
        code = _say("interrupted.", Exit.INTERRUPTED)
    except CrawlerError as error:
        code = _say(str(error), error.exit)
    except BrokenPipeError:
        sys.stderr.close()  # nobody reads us any more; the interpreter would complain when it flushes
        code = Exit.STORAGE
    except Exception as error:
        if "-v" in sys.argv or "--verbose" in sys.argv:
            raise
        code = _say(
            f"internal error ({type(error).__name__}: {error}). This is a bug: "
            "run again with -v for the details and report it.",
            Exit.INTERNAL,
        )
    sys.exit(int(code or 0))


def _say(sentence: str, code: Exit) -> Exit:
    click.echo(f"{PROGRAM}: {printable(sentence, 1_000)}", err=True)
    return code


def _usage(error: click.UsageError) -> str:
    path = error.ctx.command_path if error.ctx else PROGRAM
    return f"{error.format_message()} (See `{path} --help`.)"
