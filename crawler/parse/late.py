"""Patterns that are compiled when they are first used, as most crawls use few of them.

Compiling is a twentieth of a start. What every page or link needs stays with `re.compile`. Pure.
"""

import re
from typing import Any, AnyStr, Generic, cast


class LatePattern(Generic[AnyStr]):
    """Stands for a pattern: has its attributes, from the first use on as its own."""

    def __init__(self, text: AnyStr, flags: int) -> None:
        self.pattern: AnyStr = text
        self._flags = flags

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.compiled(), name)
        setattr(self, name, found)
        return found

    def compiled(self) -> re.Pattern[AnyStr]:
        return re.compile(self.pattern, self._flags)


def late(text: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """Like `re.compile`, which takes place when the pattern is first used."""
    return cast("re.Pattern[AnyStr]", LatePattern(text, flags))
