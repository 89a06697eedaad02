"""Turns every field of `settings` into an option, so that nothing is declared twice.

Click only collects the arguments; `settings.load` parses and checks them, and words all errors.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

import click

from crawler.settings.option import Setting
from crawler.settings.sections import keys

F = TypeVar("F", bound=Callable[..., Any])

HEADINGS: Final = {
    "scope": "What to crawl",
    "urls": "URL normalisation",
    "pace": "Pace",
    "http": "HTTP",
    "verdicts": "What is listed",
    "render": "Pages made by scripts",
    "dates": "Dates",
    "rules": "Rules by pattern",
    "output": "Output",
    "guard": "Guard",
    "submit": "Submission",
    "external": "Links to other sites",
    "report": "Report",
    "state": "State",
    "log": "Log",
}


class SettingOption(click.Option):
    """An option that knows its section, for the headings of --help."""

    def __init__(self, *args: Any, section: str = "", **more: Any) -> None:
        self.section = section
        super().__init__(*args, **more)


class SettingCommand(click.Command):
    """A command whose help groups options under the headings of their sections."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes the options by section."""
        groups: dict[str, list[tuple[str, str]]] = {heading: [] for heading in (*HEADINGS.values(), "Other")}
        for param in self.get_params(ctx):
            if isinstance(param, click.Option) and (record := param.get_help_record(ctx)):
                groups[HEADINGS.get(getattr(param, "section", ""), "Other")].append(record)
        for heading, records in groups.items():
            if records:
                with formatter.section(heading):
                    formatter.write_dl(records, col_max=36)


class InOrder(click.Group):
    """A group whose help lists commands in the order of declaration, which is that of the README."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names in order."""
        del ctx
        return list(self.commands)


def examples(*lines: str) -> str:
    """The examples at the end of a command's help, one per line."""
    return "\n".join(["\b", "Examples:", *(f"  sitemap-crawler {line}" for line in lines)])


def settings_options(
    *sections: str, only: frozenset[str] | None = None, but: frozenset[str] = frozenset()
) -> Callable[[F], F]:
    """A decorator that adds the options of these sections: `only` those named, or all `but` those named."""

    def decorate(command: F) -> F:
        for key in reversed(list(keys())):
            wanted = key.name not in but and (only is None or key.name in only)
            if key.option.flag and key.section in sections and wanted:
                command = _option(key)(command)
        return click.option(
            "--config",
            "config",
            metavar="FILE",
            envvar="SITEMAP_CRAWLER_CONFIG",
            cls=SettingOption,
            help="settings in TOML; see config/example.toml",
        )(command)

    return decorate


def format_option(*forms: str, says: str) -> Callable[[F], F]:
    """A decorator that adds `--format`: the first of `forms` is the default."""
    return click.option(
        "--format",
        "form",
        type=click.Choice(forms),
        default=forms[0],
        cls=SettingOption,
        help=f"{says} [default: {forms[0]}]",
    )


def _option(key: Setting) -> Callable[[F], F]:
    kind, names = key.option.kind, [f"--{key.name}"]
    more: dict[str, Any] = {"cls": SettingOption, "section": key.section, "help": _help(key), "default": None}
    if key.option.short:
        names.insert(0, key.option.short)
    if isinstance(key.default, bool):
        if key.default:
            names = [f"--{key.name}/--no-{key.name}"]
        more["is_flag"] = True
    else:
        more |= {"metavar": kind.metavar, "multiple": kind.many, "nargs": kind.words}
    return click.option(*names, key.field, **more)


def _help(key: Setting) -> str:
    notes = []
    if key.option.kind.many:
        notes.append("repeatable")
    if not isinstance(key.default, bool) and key.default not in (None, ()):
        notes.append(f"default: {key.option.kind.show(key.default)}")
    return key.option.help + (f" [{'; '.join(notes)}]" if notes else "")


def typed(params: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters that were given on the command line."""
    known = {key.field for key in keys()}
    return {
        name: value for name, value in params.items() if name in known and value is not None and value != ()
    }
