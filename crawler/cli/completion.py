"""`completion`: the lines by which a shell completes what is typed for this program, made by click."""

import click

from crawler.cli.options import SettingCommand, examples
from crawler.cli.output import COMPLETION_VARIABLE, PROGRAM
from crawler.errors import Exit


@click.command(cls=SettingCommand, epilog=examples(
    "completion bash",
    "completion zsh",
    "completion fish > ~/.config/fish/completions/sitemap-crawler.fish",
))  # fmt: skip
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> int:
    """Print completions of commands, flags, values for a shell.

    For bash (4.4 or newer), add eval "$(sitemap-crawler completion bash)" to ~/.bashrc; for zsh, the same
    with zsh to ~/.zshrc, after compinit; for fish, write them into a file, as below.
    """
    from click.shell_completion import get_completion_class  # noqa: PLC0415 - rarely needed

    made = get_completion_class(shell)
    if made is None:
        raise click.ClickException(f"there are no completions for {shell}.")
    source = made(ctx.find_root().command, {}, PROGRAM, COMPLETION_VARIABLE)
    click.echo(source.source_template % source.source_vars())
    return Exit.OK
