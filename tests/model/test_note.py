"""Notes of a run: their text form is part of the state format, and other texts are refused."""

from typing import Any

import pytest

from crawler.model import note
from crawler.model.external import BrokenFile, ExternalCheck
from crawler.model.note import Note
from crawler.model.rendering import Inputs, RenderedPage, UsedAnswer
from crawler.model.survey import Restless, SiteHealth, VanishedPage, VanishedPages
from crawler.model.visit import MissingPage, ScriptedPages
from crawler.parse.url import Url

A = "https://example.com"

# The texts as they are stored.
WRITTEN: list[tuple[Note[Any], str, object]] = [
    (note.PUBLISH_BASE, "https://example.org/shop", "https://example.org/shop"),
    (note.OUTPUT, "/srv/sitemaps", "/srv/sitemaps"),
    (note.OUTPUT, "", ""),
    (note.SETTINGS, '[["rate","2"]]', [("rate", "2")]),
    (note.ROBOTS_LINE, f"Sitemap: {A}/sitemap.xml.gz", f"Sitemap: {A}/sitemap.xml.gz"),
    (note.LIMITS, '{"timeout":20.0}', {"timeout": 20.0}),
    (note.WRITER, "5f3c9a", "5f3c9a"),
    (note.ANSWERED, "17", 17),
    (note.DEATHS, f'{{"{A}/p":2}}', {f"{A}/p": 2}),
    (note.MOVED, f'[["{A}/","{A}/en/"]]', [(f"{A}/", f"{A}/en/")]),
    (note.ALIASES, f'{{"{A}":"","http://example.com":"{A}"}}', {A: "", "http://example.com": A}),
    (note.PUBLISHED_BY, "crawler-1:17", "crawler-1:17"),
    (note.UNRELIABLE, f'{{"{A}":"all of one day"}}', {A: "all of one day"}),
    (note.BUILDS, f'{{"{A}":[[100,200],[900,950]]}}', {A: [(100, 200), (900, 950)]}),
    (
        note.RESTLESS,
        f'{{"{A}":{{"runs":[[100,12,3]],"first":100,"last":100,"edits":[[4,40,1]],'
        f'"turns":{{"gone":[],"runs":[],"pages":[],"is_known":false}},"templates":[4711]}}}}',
        {A: Restless(((100, 12, 3),), 100, 100, ((4, 40, 1),), templates=(4711,))},
    ),
    (note.EXTERNAL, "null", None),
    (
        note.EXTERNAL,
        '[3,1795000000.5,true,7,"max-external"]',
        ExternalCheck(3, 1795000000.5, True, 7, "max-external"),
    ),
    (note.IDENTITY, '{"sites":["a.com"],"scope":"host"}', {"sites": ["a.com"], "scope": "host"}),
    (note.HEALTH, "null", None),
    (note.HEALTH, '{"asked":5,"answered":4,"silent":["x"]}', SiteHealth(5, 4, ["x"])),
    (
        note.VANISHED,
        f'{{"count":2,"asked":[["{A}/p","listed",""]],"others":["{A}/q"],"passing":1}}',
        VanishedPages(2, [VanishedPage(Url(f"{A}/p"), "listed")], [Url(f"{A}/q")], 1),
    ),
    (note.DATE_NOTES, '["all dates are of one build"]', ["all dates are of one build"]),
    (note.MISSING, "null", None),
    (
        note.MISSING,
        f'{{"{A}":[[1,2],40,false,"https://site.test/a/",null,[],[]]}}',
        {A: MissingPage((1, 2), 40, is_exact=False, place="https://site.test/a/")},
    ),
    (note.REDIRECTED, f'{{"{A}":"{A}/gone"}}', {A: Url(f"{A}/gone")}),
    (note.ASKED_PLACES, f'[{{"{A}/news/":true}},17]', ({f"{A}/news/": True}, 17)),
    (note.STATED_FIRST, f'{{"{A}":[100,200]}}', {A: (100, 200)}),
    (note.STATED_SINCE, f'{{"{A}":[3,1]}}', {A: (3, 1)}),
    (
        note.BROKEN_FILES,
        f'{{"images":{{"{A}/a.png":["broken:not-found",404,2,"a","main",""]}}}}',
        {"images": {f"{A}/a.png": BrokenFile("broken:not-found", 404, 2, "a", "main")}},
    ),
    (
        note.BROKEN_FILES,
        f'{{"scripts":{{"{A}/a.js":["unknown:robots",null,2,null,"","Disallow: /a"]}}}}',
        {"scripts": {f"{A}/a.js": BrokenFile("unknown:robots", since=2, line="Disallow: /a")}},
    ),
    (note.FOUND_BEFORE, "null", None),
    (note.FOUND_BEFORE, '{"orphan":"eJwDAAAAAAE="}', {"orphan": "eJwDAAAAAAE="}),
    (note.LEFT_OUT, '{"images":[7,"no answer"]}', {"images": (7, "no answer")}),
    (
        note.RENDERED,
        f'{{"{A}/x":[[20000,"b",["{A}/x","0a",null,null,0],[],[]],[["link","y"]],"ZQ=="]}}',
        {
            f"{A}/x": RenderedPage(
                Inputs(20_000, "b", UsedAnswer(Url(f"{A}/x"), "0a")), (("link", "y"),), b"e"
            )
        },
    ),
    (note.SCRIPTED, note.SCRIPTED.write(ScriptedPages()), ScriptedPages()),
]


@pytest.mark.parametrize(("kind", "text", "value"), WRITTEN)
def test_a_note_is_read_and_written_the_same(kind: Note[Any], text: str, value: object) -> None:
    assert kind.read(text) == value
    assert kind.write(kind.read(text)) == text


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (note.SETTINGS, '[["rate"]]'),
        (note.ANSWERED, "many"),
        (note.DEATHS, "[]"),
        (note.DEATHS, '{"a": "2"}'),
        (note.MOVED, '[["a"]]'),
        (note.MOVED, '[["a", 1]]'),
        (note.ALIASES, '{"a": 1}'),
        (note.UNRELIABLE, "null"),
        (note.UNRELIABLE, "{"),
        (note.BUILDS, '{"a": [[1, 2, 3]]}'),
        (note.EXTERNAL, "[3]"),
        (note.EXTERNAL, '["3", 1, true, 7, ""]'),
        (note.DATE_NOTES, '"a"'),
        (note.BROKEN_FILES, '{"images":{"a":[]}}'),
        (note.LEFT_OUT, '{"images":["7","no answer"]}'),
    ],
)
def test_invalid_notes_are_refused(kind: Note[Any], text: str) -> None:
    with pytest.raises(ValueError):
        kind.read(text)


def test_no_two_notes_share_a_key() -> None:
    kinds = [kind for kind in vars(note).values() if isinstance(kind, Note)]
    assert len({kind.key for kind in kinds}) == len(kinds) == len({kind.key for kind, *_ in WRITTEN})
