"""Runs a command: standard streams, exit code, and errors as one sentence each.

The commands are in `commands`. Click's own `main` is not used, because it exits with 1 if the reader of
stdout has gone.
"""

import errno
import os
import shlex
import sys
from collections.abc import Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Final, TextIO

import click

from crawler.cli.commands import cli
from crawler.cli.output import COMPLETION_VARIABLE, PROGRAM, suggested
from crawler.cli.signals import received
from crawler.errors import CrawlerError, Exit, Interrupted
from crawler.model.log import log
from crawler.parse.credentials import masked
from crawler.parse.late import late
from crawler.report.log import configure, is_json
from crawler.report.printable import printable
from crawler.settings import load

UNWRITABLE: Final = {
    errno.EPIPE: "the reader closed the pipe",
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "the disk quota is exceeded",
    errno.EFBIG: "the file is too large",
    errno.EIO: "input/output error",
    errno.EBADF: "stdout is closed",
}
RANGES: Final = {
    "a valid float range": "a number of at least 0",
    "a valid integer range": "a whole number of at least 0",
}
_ADDRESS: Final = late(r"(?i)https?:|localhost\b|[^/\s@]+\.[^/\s@]+(/|$)")  # as people type a site


def run(words: Sequence[str]) -> int:
    """Runs the command line `words`; its exit code, or `Exit.STORAGE` if output could not be written."""
    _open_closed()
    configure(_log_format(words))
    if received.first:
        return _say(f"{received.word} before the start.", Exit(received.exit))
    code = _answer(words)
    error = _flush(sys.stdout)
    _flush(sys.stderr)
    return _lost(error) if error and code != Exit.STORAGE else code


def _answer(words: Sequence[str]) -> int:
    try:
        return _invoke(words)
    except (Exception, KeyboardInterrupt) as error:
        match error:
            case click.UsageError():
                said, code = _usage(error, words), Exit.USAGE
            case click.ClickException():
                said, code = error.format_message(), Exit.USAGE
            case click.Abort() | KeyboardInterrupt():
                said, code = "interrupted.", Exit.INTERRUPTED
            case Interrupted():
                said, code = f"{received.word}.", Exit(received.exit)
            case CrawlerError():
                said, code = str(error), error.exit
            case OSError(errno=errno.EMFILE | errno.ENFILE):
                said, code = "No file descriptor is left: raise the limit (ulimit -n).", Exit.STORAGE
            case OSError() if error.errno in UNWRITABLE:
                return _lost(error)
            case _ if not is_json() and ("-v" in words or "--verbose" in words):
                raise
            case _:
                said = f"internal error ({type(error).__name__}: {error}). This is a bug: run again with "
                said, code = f"{said}--log-format json for the details and report it.", Exit.INTERNAL
        return _say(said, code, error if code is Exit.INTERNAL else None)


def _log_format(words: Sequence[str]) -> str:
    """The format of the log, before the settings are read: an error in them has it, too."""
    given: object = _value(words, "--log-format", "SITEMAP_CRAWLER_LOG_FORMAT")
    if not given:
        named = _value(words, "--config", "SITEMAP_CRAWLER_CONFIG")
        given = load.log_format(Path(named or load.FILE))
    return "json" if given == "json" else "text"


def _value(words: Sequence[str], flag: str, variable: str) -> str:
    """The value of a flag, else of its variable; may be empty."""
    found = [value for name, value in pairwise(words) if name == flag]
    found += [word.partition("=")[2] for word in words if word.startswith(f"{flag}=")]
    return found[-1] if found else os.environ.get(variable, "")


def _lost(error: OSError) -> Exit:
    """Reports lost output, except when the reader closed the pipe."""
    if error.errno != errno.EPIPE:
        _say(
            f"The output cannot be written: {UNWRITABLE.get(error.errno or 0, error.strerror)}.", Exit.STORAGE
        )
    return Exit.STORAGE


def _invoke(words: Sequence[str]) -> int:
    if asked := os.environ.get(COMPLETION_VARIABLE):
        from click.shell_completion import shell_complete  # noqa: PLC0415 - a shell asks

        return shell_complete(cli, {}, PROGRAM, COMPLETION_VARIABLE, asked)
    try:
        with cli.make_context(PROGRAM, list(words) or ["--help"]) as context:
            return int(cli.invoke(context) or 0)
    except click.exceptions.Exit as left:  # --help, --version
        return left.exit_code


def _say(sentence: str, code: Exit, bug: BaseException | None = None) -> Exit:
    """Says how the program ends: in one sentence, or one object of the JSON log."""
    if is_json():
        log.error(
            sentence, exc_info=bug, event="failed", exit=int(code), code=code.name.lower(), error=sentence
        )
        return code
    with suppress(OSError):
        click.echo(f"{PROGRAM}: {printable(masked(sentence), 1_000)}", err=True)
    return code


def _usage(error: click.UsageError, words: Sequence[str]) -> str:
    command = f"{PROGRAM} {words[0]}" if words and words[0] in cli.commands else PROGRAM
    path = error.ctx.command_path if error.ctx else command
    match error:
        case click.MissingParameter(param=click.Argument(type=click.Choice(choices=choices))):
            said = f"Missing argument: one of {', '.join(choices)}."
        case click.BadParameter(param=click.Argument(type=click.Choice())):
            said = error.message
        case click.NoSuchCommand(command_name=name) if near := _command(name):
            said = f"{name!r} is no command: did you mean `{suggested(shlex.join([*near, *words[1:]]))}`?"
        case click.NoSuchOption(option_name=name, ctx=click.Context(parent=None)) if _is_of_crawl(name):
            rest = [word for word in words if word != "crawl"]
            said = f"{name} is a flag of crawl: did you mean `{suggested(shlex.join(['crawl', *rest]))}`?"
        case _:
            said = " ".join(error.format_message().split())
    for jargon, plain in RANGES.items():
        said = said.replace(jargon, plain)
    return f"{said} (See `{path} --help`.)"


def _is_of_crawl(name: str) -> bool:
    return any(name in (*param.opts, *param.secondary_opts) for param in cli.commands["crawl"].params)


def _command(name: str) -> list[str]:
    """The command that was meant by a word that is none; empty if click is to name similar ones."""
    from crawler.app.settings_urls import meant  # noqa: PLC0415 - for errors only
    from crawler.cli.typed_url import is_path  # noqa: PLC0415

    if name.lower() in cli.commands:
        return [name.lower()]
    if name.lower() in {"help", "version"}:
        return [f"--{name.lower()}"]
    if Path(name).exists():
        return ["crawl", "--input", name] if Path(name).suffix == ".txt" else ["validate", name]
    if is_path(name):
        return ["explain", name]
    return ["crawl", url] if _ADDRESS.match(url := meant(name)) else []


# -- streams ------------------------------------------------------------------------------------------------


def _open_closed() -> None:
    """Reopens standard streams that were closed by the caller, so that no other file gets their descriptors.

    Output to such a stderr is discarded. Output to such a stdout fails, as on a full disk.
    """
    if sys.stdin is None:
        sys.stdin = os.fdopen(os.open(os.devnull, os.O_RDONLY))
    if sys.stdout is None:
        sys.stdout = os.fdopen(os.open(os.devnull, os.O_RDONLY), "w")
    if sys.stderr is None:
        sys.stderr = os.fdopen(os.open(os.devnull, os.O_WRONLY), "w")


def _flush(stream: TextIO) -> OSError | None:
    """Flushes a stream. One that fails is redirected to /dev/null, as the interpreter flushes it again."""
    try:
        stream.flush()
    except OSError as error:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, stream.fileno())
        os.close(null)
        return error
    return None
