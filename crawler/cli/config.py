"""`config`: the effective settings, and where each comes from."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import click

from crawler.cli.rows import Rows
from crawler.errors import Exit
from crawler.parse.credentials import MASK, masked
from crawler.report.printable import printable
from crawler.settings.load import Origin
from crawler.settings.recipe import Recipe, recipe_of
from crawler.settings.sections import keys

FIELDS: Final = ("site", "section", "name", "value", "from", "patterns")  # of a table
WIDTH: Final = max(len(key.name) for key in keys())


def show_settings(sites: Sequence[tuple[str, Sequence[Origin]]], form: str) -> Exit:
    """Prints the settings: of several sites, those of all, and below what each has of its own.

    Secrets are masked.
    """
    if form == "text":
        for number, (name, origins) in enumerate(sites):
            _show(origins, f"[[site]] # {name}" if number else "")
        return Exit.OK
    rows = Rows(form, FIELDS)
    for name, origins in sites:
        for item in origins:
            rows.add({"site": name or None, **_facts(item)})
    rows.end()
    return Exit.OK


def _show(origins: Sequence[Origin], heading: str) -> None:
    """Prints the settings below their sections, or those of a site below `heading`."""
    shown = ""
    for item in origins:
        if shown != (above := heading or item.key.heading):
            shown = above
            click.echo(f"\n{above}")
        click.echo(f"{item.key.name:<{WIDTH}} = {_shown(item):<44} # {item.place}")
        if item.key.field == "recipe":
            for name in item.value:
                _show_recipe(recipe_of(name))


def _show_recipe(recipe: Recipe) -> None:
    """Its patterns, which count beside those of the settings."""
    for name, patterns in (("no-list", recipe.no_list), ("exclude", recipe.exclude)):
        for pattern in patterns:
            click.echo(f"  {name:<{WIDTH - 2}} + {pattern:<44} # {recipe.system}")


def _shown(item: Origin) -> str:
    if item.key.option.secret and item.value:
        return MASK
    return printable(masked(item.key.option.kind.show(item.value)), 200) or "-"


def _facts(item: Origin) -> Mapping[str, Any]:
    key, value = item.key, item.value
    if key.option.secret:
        value = MASK if value else None
    elif isinstance(value, tuple) and all(isinstance(part, str) for part in value):
        value = [masked(part) for part in value]
    elif not isinstance(value, bool | int | float | None):
        value = masked(key.option.kind.show(value))
    facts = {"section": key.section, "name": key.name, "value": value, "from": item.place}
    if key.field == "recipe":
        recipes = map(recipe_of, item.value)
        facts["patterns"] = {one.name: {"no-list": one.no_list, "exclude": one.exclude} for one in recipes}
    return facts
