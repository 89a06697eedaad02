"""Which canonicals are ignored: a pure rule over pages and what became of what they name."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler.rules.canonicals import ENDLESS, LEADS_BACK, End, Naming, ignored

CANONICAL = "unlisted:canonical"


def told(named: dict[str, str], **others: str) -> dict[str, str]:
    """What is ignored, by page. `others`: what became of other URLs, redirects as `>x`."""
    ends = {url: End("moved", to[1:]) if to.startswith(">") else End(to) for url, to in others.items()}
    ends |= {url: End(CANONICAL) for url in named}
    pages = [
        Naming(number, url, target) for number, (url, target) in enumerate(named.items()) if target in ends
    ]
    found = ignored(pages, ends)
    return {page.url: found[page.id] for page in pages if page.id in found}


@pytest.mark.parametrize(
    ("named", "others", "listed"),
    [
        ({"a": "x"}, {}, set()),  # x is listed, kept, off the site, or unknown
        ({"a": "x"}, {"x": "failed:not-found"}, {"a"}),
        ({"a": "x"}, {"x": "failed:wall"}, {"a"}),
        ({"a": "r"}, {"r": ">x"}, set()),
        ({"a": "r"}, {"r": ">x", "x": "failed:dns"}, {"a"}),
        ({"a": "r"}, {"r": ">s", "s": ">r"}, {"a"}),
        ({"a": "r"}, {"r": ">a"}, {"a"}),  # back by a redirect
        ({"a": "b", "b": "a"}, {}, {"a", "b"}),
        ({"a": "b", "b": "c", "c": "b"}, {}, {"b", "c"}),  # a leads into a circle, and b is listed
        ({"a": "b", "b": "c"}, {}, set()),  # a chain to a page that is listed
        ({"a": "b", "b": "c"}, {"c": "failed:not-found"}, {"b"}),
        ({"a": "r", "b": "s"}, {"r": ">b", "s": ">a"}, {"a", "b"}),
    ],
)
def test_dead_and_circular_canonicals_are_ignored(
    named: dict[str, str], others: dict[str, str], listed: set[str]
) -> None:
    assert set(told(named, **others)) == listed


def test_the_reason_is_told() -> None:
    assert told({"a": "x"}, x="failed:not-found") == {"a": "not found (404, 410)"}
    assert told({"a": "b", "b": "a"}) == {"a": LEADS_BACK, "b": LEADS_BACK}
    assert told({"a": "r"}, r=">r") == {"a": ENDLESS}


URLS = st.sampled_from("abcdefgh")


@given(
    st.dictionaries(URLS, URLS),
    st.dictionaries(URLS, st.sampled_from(["failed:dns", ">a", ">b", ">h"])),
    st.randoms(),
)
def test_every_page_leads_to_one_that_is_listed_in_any_order(
    named: dict[str, str], others: dict[str, str], dice: random.Random
) -> None:
    named = {url: to for url, to in named.items() if to != url}
    others = {url: what for url, what in others.items() if url not in named}
    listed = told(named, **others)
    mixed = list(named.items())
    dice.shuffle(mixed)
    assert told(dict(mixed), **others) == listed
    for url in set(named) - set(listed):
        at, steps = url, 0
        while at not in listed and (at in named or others.get(at, "").startswith(">")):
            at, steps = named.get(at) or others[at][1:], steps + 1
            assert steps <= len(named) + len(others), "it never ends"
        assert not others.get(at, "").startswith("failed:")
