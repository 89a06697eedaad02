"""Turns every field of `settings` into an option, so that nothing is declared twice.

Click only collects the arguments; `settings.load` parses and checks them, and words all errors.
"""

from collections.abc import Callable, Mapping
from functools import cache
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
    "split": "Files by section",
    "output": "Output",
    "guard": "Guard",
    "submit": "Submission",
    "external": "Links to other sites",
    "report": "Report",
    "state": "State",
    "log": "Log",
}


MAIN: Final = frozenset(
    {
        "scope", "include", "exclude", "max_pages", "rate", "auth_env", "output", "publish_base", "dry_run",
        "state", "report", "quiet", "site",
    }
)  # fmt: skip
"""Parameters that -h shows."""
FEW: Final = 4  # options that -h does not leave out


class SettingOption(click.Option):
    """An option that knows its section, for the headings of --help."""

    def __init__(self, *args: Any, section: str = "", is_on: bool = False, **more: Any) -> None:
        self.section, self.is_on = section, is_on
        super().__init__(*args, **more)

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """Its names and help. A switch that is off by default has a --no-… as well, which is not shown."""
        record = super().get_help_record(ctx)
        return record and (record[0] if self.is_on else record[0].partition(" / ")[0], record[1])


class SettingCommand(click.Command):
    """A command whose --help groups all options by section; -h shows those that are needed most."""

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self.params.append(
            click.Option(
                ["-h"], is_flag=True, is_eager=True, expose_value=False, callback=_brief,
                help="show the main options and exit",
            )
        )  # fmt: skip

    def brief(self, ctx: click.Context) -> str:
        """The text of -h. If --help has hardly more, it is that."""
        shown = [param for param in self.get_params(ctx) if isinstance(param, click.Option)]
        main = [param for param in shown if not getattr(param, "section", "") or param.name in MAIN]
        left = len(shown) - len(main)
        if left < FEW:
            return self.get_help(ctx)
        formatter = ctx.make_formatter()
        self.format_usage(ctx, formatter)
        formatter.write_paragraph()
        formatter.write_text(self.get_short_help_str(formatter.width))
        with formatter.section("Options"):
            formatter.write_dl(
                [record for param in main if (record := param.get_help_record(ctx))], col_max=30
            )
        self.format_epilog(ctx, formatter)
        formatter.write_paragraph()
        formatter.write_text(f"--help shows {left} more.")
        return formatter.getvalue().rstrip("\n")

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        groups: dict[str, list[tuple[str, str]]] = {heading: [] for heading in (*HEADINGS.values(), "Other")}
        for param in self.get_params(ctx):
            if isinstance(param, click.Option) and (record := param.get_help_record(ctx)):
                groups[HEADINGS.get(getattr(param, "section", ""), "Other")].append(record)
        for heading, records in groups.items():
            if records:
                with formatter.section(heading):
                    formatter.write_dl(records, col_max=36)


def _brief(ctx: click.Context, param: click.Parameter, asked: object) -> None:
    del param
    if asked and isinstance(ctx.command, SettingCommand):
        click.echo(ctx.command.brief(ctx))
        ctx.exit()


class InOrder(click.Group):
    """A group whose help lists commands in the order of declaration, which is that of the README."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        del ctx
        return list(self.commands)

    def get_help_option_names(self, ctx: click.Context) -> list[str]:
        """A list of commands has no short form."""
        del ctx
        return ["-h", "--help"]


def examples(*lines: str) -> str:
    """The examples at the end of a command's help, one per line."""
    return "\n".join(["\b", "Examples:", *(f"  sitemap-crawler {line}" for line in lines)])


def settings_options(
    *sections: str, only: frozenset[str] | None = None, but: frozenset[str] = frozenset()
) -> Callable[[F], F]:
    """A decorator that adds the options of these sections: `only` those named, or all `but` those named.

    Every command has --log-format, as any may end with an error.
    """

    def decorate(command: F) -> F:
        for section, name, shared in reversed(_options()):
            wanted = section in sections and name not in but and (only is None or name in only)
            if wanted or name == "log-format":
                # As the decorator of `click.option` does, which would make one for each command.
                command.__dict__.setdefault("__click_params__", []).append(shared)
        return click.option(
            "--config", metavar="FILE", envvar="SITEMAP_CRAWLER_CONFIG", cls=SettingOption,
            help="settings in TOML; see config/example.toml",
        )(command)  # fmt: skip

    return decorate


site_option: Final = click.option(
    "--site", metavar="NAME", envvar="SITEMAP_CRAWLER_SITE", multiple=True, cls=SettingOption,
    section="scope", help="only this [[site]] of the settings file [repeatable]",
)  # fmt: skip
"""For commands that know several sites."""
format_option: Final = click.option(
    "--format", "form", type=click.Choice(["text", "json", "jsonl", "csv"]), default="text",
    cls=SettingOption,
    help="what is printed: text, one JSON document (json), one object a line (jsonl), or a table (csv) "
    "[default: text]",
)  # fmt: skip
"""For commands that print, with the same meaning in each."""


@cache
def _options() -> list[tuple[str, str, click.Option]]:
    """The section and name of the settings that have a flag, in the order of the reference."""
    return [(key.section, key.name, _option(key)) for key in keys() if key.option.flag]


def _option(key: Setting) -> click.Option:
    kind, is_switch = key.option.kind, isinstance(key.default, bool)
    names = [f"--{key.name}/--no-{key.name}" if is_switch else f"--{key.name}"]
    more: dict[str, Any] = {"section": key.section, "help": _help(key), "default": None}
    if key.option.short:
        names.insert(0, key.option.short)
    if is_switch:
        more |= {"is_flag": True, "is_on": key.default}
    else:
        more |= {"metavar": kind.metavar, "multiple": kind.many, "nargs": kind.words}
    if kind.choices:
        more["shell_complete"] = lambda *words: [one for one in kind.choices if one.startswith(words[-1])]
    return SettingOption([*names, key.field], **more)


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
