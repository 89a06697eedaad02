"""The notes of a run: values that one part of the program stores in the state for a later part, or for a resumed run.

A note has a type and a text form, declared here, so that reader and writer agree. The text forms are part of the state
format. Data about pages and traps is not a note: it has tables of its own.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

from crawler.model.external import ExternalCheck
from crawler.parse.url import Url

T = TypeVar("T")


@dataclass(frozen=True)  # no slots: a frozen generic cannot have them on 3.11
class Note(Generic[T]):
    """One kind of note. `read` raises `ValueError` for a text that `write` cannot produce."""

    key: str
    absent: T  # the value if a run has no such note
    read: Callable[[str], T]
    write: Callable[[T], str] = json.dumps


def _json(shape: Callable[[Any], T]) -> Callable[[str], T]:
    return lambda text: shape(json.loads(text))


def _is(kind: type[T]) -> Callable[[Any], T]:
    def shape(value: Any) -> T:
        if not isinstance(value, kind):
            raise ValueError(f"a note of the run holds {value!r:.50} instead of {kind.__name__}")  # noqa: TRY004 - the text is invalid
        return value

    return shape


def _list(each: Callable[[Any], T]) -> Callable[[Any], list[T]]:
    return lambda value: [each(item) for item in _is(list)(value)]


def _pair(each: Callable[[Any], T]) -> Callable[[Any], tuple[T, T]]:
    def shape(value: Any) -> tuple[T, T]:
        first, second = _list(each)(value)
        return first, second

    return shape


def _by_name(each: Callable[[Any], T]) -> Callable[[Any], dict[str, T]]:
    return lambda value: {name: each(item) for name, item in _is(dict)(value).items()}


def _url(value: Any) -> Url:
    return Url(_is(str)(value))


PUBLISH_BASE: Final = Note[str]("publish-base", "", read=str, write=str)
"""`--publish-base` of the run; empty without."""

OUTPUT: Final = Note[str]("output", "", read=str, write=str)
"""The absolute path of `--output`, or its URL; empty for standard output."""

WRITER: Final = Note[str]("writer", "", read=str, write=str)
"""A random name by which the attempts to publish the run to an object store recognise each other."""

SETTINGS: Final = Note[Sequence[tuple[str, str]]]("settings", (), read=_json(_list(_pair(_is(str)))))
"""The settings of the run that are not the default: name and value, without secrets."""

ROBOTS_LINE: Final = Note[str]("robots line", "", read=str, write=str)
"""The line that robots.txt should have for the sitemap of the run; empty if nothing was published."""

ANSWERED: Final = Note[int]("answered", -1, read=int, write=str)
"""Number of pages that had answered when the run was last interrupted."""

DEATHS: Final = Note[Mapping[str, int]]("deaths", {}, read=_json(_by_name(_is(int))))
"""Number of worker processes that died while parsing a page, by its URL."""

MOVED: Final = Note[Sequence[tuple[Url, Url]]]("moved", (), read=_json(_list(_pair(_url))))
"""Start URLs that redirect, with their targets, in the order of discovery."""

ALIASES: Final = Note[Mapping[str, str]]("alias targets", {}, read=_json(_by_name(_is(str))))
"""Possible aliases of the site that were checked, with their redirect target: an origin, if every page redirects to the same
path there; the target of the root, if only that redirects; empty, if there is no redirect to another origin."""

PUBLISHED_BY: Final = Note[str]("published by", "", read=str, write=str)
"""The member that published the run, as HOST:PID; empty before."""

UNRELIABLE: Final = Note[Mapping[str, str]]("lies", {}, read=_json(_by_name(_is(str))))
"""Origins whose Last-Modified headers are not trusted, with the reason."""

BUILDS: Final = Note[Mapping[str, Sequence[tuple[int, int]]]](
    "builds", {}, read=_json(_by_name(_list(_pair(_is(int)))))
)
"""Known builds by origin: first and last moment, in seconds since the epoch."""

EXTERNAL: Final = Note[ExternalCheck | None]("external", None, read=_json(ExternalCheck.read))
"""The check of the links to other sites; None: the run made none."""

DATE_NOTES: Final = Note[Sequence[str]]("date notes", (), read=_json(_list(_is(str))))
"""Sentences about the dates of this run, for the summary."""
