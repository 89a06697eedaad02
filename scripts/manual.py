"""Writes docs/use/sitemap-crawler.1, the man page that the wheel installs, from the program itself. A test tells when
to run it.

.venv/bin/python scripts/manual.py
"""

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import click

from crawler.cli.commands import cli
from crawler.cli.options import HEADINGS

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs/use/sitemap-crawler.1"
FILES = {
    "sitemap-crawler.toml": "Settings, found in the working folder; --config and SITEMAP_CRAWLER_CONFIG name another file.",
    ".sitemap-crawler/HOST.db": "The state of a site, in the working folder, unless --state names another place.",
    "sitemaps/": "The sitemap, unless --output names another place.",
}
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def manual() -> str:
    return "\n".join([*_head(), *_commands(), *_options(), *_tail(), ""])


def _head() -> Iterator[str]:
    yield f'.TH SITEMAP\\-CRAWLER 1 "" "sitemap\\-crawler {PROJECT["version"]}" "User Commands"'
    yield ".SH NAME"
    yield f"sitemap\\-crawler \\- {_roff(PROJECT['description'].rstrip('.').lower())}"
    yield ".SH SYNOPSIS"
    yield '.B sitemap\\-crawler\n.I command\n.RI [ option \\|.\\|.\\|.] " " [ argument \\|.\\|.\\|.]'
    yield ".SH DESCRIPTION"
    yield 'Each command has examples:\n.BR "sitemap\\-crawler " command " \\-\\-help" .'
    yield "Every option of crawl is also an environment variable, and except \\-\\-config and \\-\\-site a key of a TOML file: \\-\\-max\\-depth is SITEMAP_CRAWLER_MAX_DEPTH."


def _commands() -> Iterator[str]:
    yield ".SH COMMANDS"
    for name, command in cli.commands.items():
        context = click.Context(command, info_name=name)
        pieces = [piece for piece in command.collect_usage_pieces(context) if piece != "[OPTIONS]"]
        yield f".TP\n.B {_roff(' '.join([name, *pieces]))}"
        yield _roff(" ".join((command.help or "").replace("\b", "").split()))


def _options() -> Iterator[str]:
    """Each flag once, under the heading of its section; those of single commands name these."""
    groups: dict[str, dict[str, tuple[str, list[str]]]] = {}
    for name, command in cli.commands.items():
        for param in command.params:
            record = (
                param.get_help_record(click.Context(command)) if isinstance(param, click.Option) else None
            )
            if record and record[0] != "-h":
                heading = HEADINGS.get(getattr(param, "section", ""), "Other")
                groups.setdefault(heading, {}).setdefault(record[0], (record[1], []))[1].append(name)
    yield ".SH OPTIONS"
    for heading in (*HEADINGS.values(), "Other"):
        if options := groups.get(heading):
            yield f".SS {_roff(heading)}"
        for flags, (text, names) in (options or {}).items():
            known = "" if "crawl" in names else f" ({', '.join(names)})"
            yield f".TP\n.B {_roff(flags)}\n{_roff(text + known)}"


def _tail() -> Iterator[str]:
    yield ".SH FILES"
    yield from (f".TP\n.I {_roff(name)}\n{_roff(text)}" for name, text in FILES.items())
    yield ".SH EXIT STATUS"
    table = (ROOT / "README.md").read_text().partition("| exit |")[2].partition("\n\n")[0]
    for code, meaning in re.findall(r"^\| ([\d, ]+) \| (.+) \|$", table, re.MULTILINE):
        yield f".TP\n.B {code}\n{_roff(meaning.replace('`', ''))}"
    yield ".SH SEE ALSO"
    yield _roff(PROJECT["urls"]["Documentation"])


def _roff(text: str) -> str:
    """Text without a meaning for roff."""
    escaped = text.replace("\\", "\\e").replace("-", "\\-")
    return re.sub(r"^([.'])", r"\\&\1", escaped)


if __name__ == "__main__":
    PAGE.write_text(manual(), encoding="utf-8")
