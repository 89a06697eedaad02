"""Which flags have no effect because of another setting: one table, and the error for the first one.

Only what is given on the command line counts: a file may have settings for several commands. Values that
contradict each other wherever they are from are refused where they are used.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from crawler.errors import ConfigError
from crawler.settings.object_url import is_object_url, state_object
from crawler.settings.sections import Settings


class Need(Struct, frozen=True):
    """What flags need. `by`: the field that decides; a command without it does not need it."""

    fields: tuple[str, ...]
    by: str
    is_met: Callable[[Settings], bool]
    words: str  # the end of the sentence
    unless: str = ""  # a command with this field has another use for the flags


NEEDS: Final = (
    Need(("strip_param", "keep_param"), "drop_query", lambda s: not s.urls.drop_query, "with --drop-query"),
    Need(("max_depth",), "list_only", lambda s: not s.scope.list_only, "with --list-only"),
    Need(("browser",), "render", lambda s: s.render.render != "off", "without --render auto or always"),
    Need(("changefreq", "priority"), "format", lambda s: s.output.form == "xml",
         "with --format txt or jsonl"),
    Need(("hreflang", "images"), "format", lambda s: s.output.form == "xml",
         "with --format txt or jsonl", unless="render"),  # a crawl reports on them
    Need(("gzip", "file_mode", "publish_command"), "output", lambda s: s.output.output != "-",
         "with --output -"),
    Need(("publish_timeout",), "publish_command",
         lambda s: bool(s.output.publish_command or is_object_url(s.output.output)
                        or state_object(s.state.state)),
         "without --publish-command or an object store"),
    Need(("indexnow_key", "indexnow_key_location", "indexnow_endpoint"), "submit", lambda s: s.submit.submit,
         "without --submit"),
    Need(("check_files", "max_external", "max_external_hosts", "max_external_time"), "check_external",
         lambda s: s.external.check_external, "without --check-external"),
    Need(("webhook_when",), "webhook_env", lambda s: s.report.webhook_env is not None,
         "without --webhook-env"),
    Need(("run",), "state", lambda s: (s.state.state or "").startswith("postgres"),
         "without a --state on PostgreSQL"),
    Need(("verbose",), "quiet", lambda s: not s.log.quiet, "with --quiet"),
)  # fmt: skip


def check_needs(typed: Mapping[str, Any], known: Collection[str], sites: Sequence[Settings]) -> None:
    """Raises `ConfigError` for a flag that has no effect on any of the sites.

    `typed`: the flags that were given; `known`: those that the command has.
    """
    for need in NEEDS:
        given = [field for field in need.fields if typed.get(field) not in (None, False)]
        if given and need.by in known and need.unless not in known and not any(map(need.is_met, sites)):
            raise ConfigError(f"--{given[0].replace('_', '-')} has no effect {need.words}.")
