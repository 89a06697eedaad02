"""A wrong default does not pass `mypy --strict`: each `type: ignore` here would be reported as unused if it did."""

import dataclasses
from typing import get_type_hints

from crawler.settings.option import option
from crawler.settings.sections import DEFAULTS, Settings, keys
from crawler.settings.values import ABSENT, COUNT, LIST, NUMBER, SWITCH, TEXT


def of_another_kind() -> None:
    """The default is not what the kind reads. Only mypy runs this."""
    option("16", "requests in flight", COUNT(1))  # type: ignore[misc]
    option(None, "requests a second", NUMBER(0, 1))  # type: ignore[misc]
    option((1,), "URLs", LIST(TEXT))  # type: ignore[misc]
    option("no", "a switch", SWITCH)  # type: ignore[misc]


class OfAnotherType:
    """The kind does not read what the field is annotated with."""

    depth: int = option(None, "links to follow", ABSENT(COUNT(0)))  # type: ignore[assignment]
    names: tuple[int, ...] = option((), "names", LIST(TEXT))  # type: ignore[arg-type]
    count: str = option(1, "a number", COUNT(0))  # type: ignore[assignment]


def test_each_default_is_valid() -> None:
    """What types cannot hold: a default is also within the bounds of its kind."""
    for key in keys():
        assert key.option.kind.read(key.default) == key.default, key.name


def test_no_section_is_untyped() -> None:
    for section in dataclasses.fields(Settings):
        hints = get_type_hints(type(getattr(DEFAULTS, section.name)))
        assert "typing.Any" not in {str(hint) for hint in hints.values()}
