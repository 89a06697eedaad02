"""The logger of the program. An event is a fixed message, with its details as fields.

Where the message is a sentence of its own, `event` names it for programs. `report.log` writes both.
"""

import logging
from collections.abc import MutableMapping
from typing import Any, Final


class FieldLogger(logging.LoggerAdapter[logging.Logger]):
    """Takes the fields of an event as keyword arguments: `log.info("sitemap read", url=url)`."""

    def process(self, msg: Any, kwargs: MutableMapping[str, Any]) -> tuple[Any, MutableMapping[str, Any]]:
        """See `LoggerAdapter.process`."""
        event, exc_info = kwargs.pop("event", None), kwargs.pop("exc_info", None)
        named = {"event": event} if event else {}
        return msg, {"exc_info": exc_info, "extra": {"fields": kwargs, **named}}


log: Final = FieldLogger(logging.getLogger("crawler"))
