"""The notes of a run: values that one part of the program stores in the state for a later part, or for a
resumed run.

A note has a type and a text form, declared here, so that reader and writer agree. The text forms are part of
the state format. Data about pages and traps is not a note: it has tables of its own.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, Generic, Literal, TypeVar, cast

import msgspec
from msgspec import Struct

from crawler.model.external import BrokenFile, ExternalCheck
from crawler.model.rendering import RenderedPage
from crawler.model.survey import NONE_VANISHED, Restless, SiteHealth, VanishedPages
from crawler.model.visit import MissingPage, ScriptedPages
from crawler.parse.url import Url

T = TypeVar("T")
RunWithNote = Literal["this", "published", "earlier"]
"""Of this run, of the last published one before it, or of the last one before it that has the note."""


class Note(Struct, Generic[T], frozen=True):
    """One kind of note. Its text form is JSON, or the text itself."""

    key: str
    type: Any  # the `T` of its values, as msgspec reads them
    absent: T  # the value if a run has no such note

    def read(self, text: str) -> T:
        """The value with this text form. Raises `ValueError`."""
        return cast("T", text if self.type is str else msgspec.json.decode(text, type=self.type))

    def write(self, value: T) -> str:
        """The text form of a value."""
        return value if isinstance(value, str) else msgspec.json.encode(value).decode()


PUBLISH_BASE: Final = Note[str]("publish-base", str, "")
"""`--publish-base` of the run; empty without."""

OUTPUT: Final = Note[str]("output", str, "")
"""The absolute path of `--output`, or its URL; empty for standard output."""

WRITER: Final = Note[str]("writer", str, "")
"""A random name by which the attempts to publish the run to an object store recognise each other."""

SETTINGS: Final = Note[Sequence[tuple[str, str]]]("settings", list[tuple[str, str]], ())
"""The settings of the run that are not the default: name and value, without secrets."""

LIMITS: Final = Note[Mapping[str, float]]("limits", dict[str, float], {})
"""The limits, as in `Terms`, by which pages of the run failed."""

ROBOTS_LINE: Final = Note[str]("robots line", str, "")
"""The line that robots.txt should have for the sitemap of the run; empty if nothing was published."""

ANSWERED: Final = Note[int]("answered", int, -1)
"""Number of pages that had answered when the run was last interrupted."""

DEATHS: Final = Note[Mapping[str, int]]("deaths", dict[str, int], {})
"""Number of worker processes that died while parsing a page, by its URL."""

MOVED: Final = Note[Sequence[tuple[Url, Url]]]("moved", list[tuple[Url, Url]], ())
"""Start URLs that redirect, with their targets, in the order of discovery."""

ALIASES: Final = Note[Mapping[str, str]]("alias targets", dict[str, str], {})
"""Possible aliases of the site that were checked, with their redirect target: an origin, if every page
redirects to the same path there; the target of the root, if only that redirects; empty, if there is no
redirect to another origin.
"""

PUBLISHED_BY: Final = Note[str]("published by", str, "")
"""The member that published the run, as HOST:PID; empty before."""

UNRELIABLE: Final = Note[Mapping[str, str]]("unreliable", dict[str, str], {})
"""Origins whose Last-Modified headers are not trusted, with the reason."""

STATED_SINCE: Final = Note[Mapping[str, tuple[int, int]]]("stated since", dict[str, tuple[int, int]], {})
"""By origin: pages that changed without a new stated date so far, and those with one."""

STATED_FIRST: Final = Note[Mapping[str, tuple[int, int]]]("stated first", dict[str, tuple[int, int]], {})
"""By origin: the first and last moment of what many pages stated in their first run, as after a build."""

BUILDS: Final = Note[Mapping[str, Sequence[tuple[int, int]]]]("builds", dict[str, list[tuple[int, int]]], {})
"""Known builds by origin: first and last moment, in seconds since the epoch."""

RESTLESS: Final = Note[Mapping[str, Restless]]("restless", dict[str, Restless], {})
"""By origin: how often pages changed again in the same place, and where they had not changed before."""

EXTERNAL: Final = Note[ExternalCheck | None]("external", ExternalCheck | None, None)
"""The check of the links to other sites; None: the run made none."""

BROKEN_FILES: Final = Note[Mapping[str, Mapping[str, BrokenFile]]](
    "broken files", dict[str, dict[str, BrokenFile]], {}
)
"""`images`, `scripts` and `styles` of listed pages that do not answer or are disallowed, by URL; without a
kind that no run has asked for."""

LEFT_OUT: Final = Note[Mapping[str, tuple[int, str]]]("left out", dict[str, tuple[int, str]], {})
"""What was not done after the publication: how many `images` or `pages` were not asked, and why."""

FOUND_BEFORE: Final = Note[Mapping[str, str] | None]("found before", dict[str, str] | None, None)
"""By code, the URLs with a finding in the run that was published last before this one, as in
`report.history`; None: there was none.
"""

IDENTITY: Final = Note[Mapping[str, Any]]("identity", dict[str, Any], {})
"""What the run crawls, in the form of a manifest: site, scope, and the settings that choose pages."""

HEALTH: Final = Note[SiteHealth | None]("site health", SiteHealth | None, None)
"""Pages that were asked again because many failed; None: they were not."""

VANISHED: Final = Note[VanishedPages]("vanished", VanishedPages, NONE_VANISHED)
"""The published pages to which no link leads any more."""

MISSING: Final = Note[Mapping[str, MissingPage] | None]("missing", dict[str, MissingPage] | None, None)
"""What origins, folders and paths of the site show for a nonexistent page, where they answer that; None: no
origin was asked yet.
"""

REDIRECTED: Final = Note[Mapping[str, Url]]("redirected", dict[str, Url], {})
"""By origin, the page to which its nonexistent pages are redirected, if that is one but for its query."""

ASKED_PLACES: Final = Note[tuple[Mapping[str, bool], int]](
    "asked places", tuple[dict[str, bool], int], ({}, 0)
)
"""Folders and paths that were asked for a nonexistent page, whether they answered with one; all requests."""

SCRIPTED: Final = Note[ScriptedPages]("scripted", ScriptedPages, ScriptedPages())
"""The pages that are rendered as samples, and the kinds of pages that are all rendered."""

RENDERED: Final = Note[Mapping[str, RenderedPage]]("rendered", dict[str, RenderedPage], {})
"""What nonexistent pages of the site showed in the browser, by URL; the last asked is the last."""

DATE_NOTES: Final = Note[Sequence[str]]("date notes", list[str], ())
"""Sentences about the dates of this run, for the summary."""
