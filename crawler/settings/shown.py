"""The settings as a report shows them: those that are not the default, without secrets."""

from collections.abc import Sequence

from crawler.parse.credentials import MASK, masked
from crawler.settings.sections import Settings, keys


def changed(settings: Settings) -> Sequence[tuple[str, str]]:
    """Name and value of each setting that is not the default."""
    return [
        (key.name, MASK if key.option.secret else masked(key.option.kind.show(value)))
        for key in keys()
        if (value := getattr(getattr(settings, key.section), key.field)) != key.default
    ]
