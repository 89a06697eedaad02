"""What is asked of a pattern of queries, and what follows from the answers."""

from collections.abc import Sequence

import pytest

from crawler.model.trap import PatternPage
from crawler.parse.url import Url
from crawler.rules.impossible_values import (
    MOST_PARAMETERS,
    REFUSED,
    all_show,
    hardly_larger,
    leads_elsewhere,
    questions,
    shown,
)

SITE = "https://site.test"
NONE = "-no-such-page"


def pages(*targets: str, content: str = "there") -> list[PatternPage]:
    return [PatternPage(Url(SITE + target), content) for target in targets]


def asked(*targets: str) -> list[tuple[str, ...]]:
    """The questions, with marks for impossible values."""
    found = list[tuple[str, ...]]()
    for pair in questions(pages(*targets)):
        parts = (url.removeprefix(SITE).replace("9876543210", "#").replace("8765432109", "#") for url in pair)
        found.append(tuple(part.partition(NONE)[0][:-6] + "*" if NONE in part else part for part in parts))
    return found


@pytest.mark.parametrize(
    ("targets", "pairs"),
    [
        (["/s?sku=12", "/s?sku=7"], [("/s?sku=#", "/s?sku=#")]),
        (["/s?sku=ab", "/s?sku=cd"], [("/s?sku=*", "/s?sku=*")]),
        (["/s?tea", "/s?milk"], [("/s?*", "/s?*")]),
        (["/s?a=1&b=2", "/s?b=2&a=3"], [("/s?a=#&b=2", "/s?b=2&a=#")]),
        (["/s?a=1&b=2", "/s?a=3&b=4"], [("/s?a=#&b=2", "/s?a=#&b=4"), ("/s?a=1&b=#", "/s?a=3&b=#")]),
        (["/s?a[1]=x", "/s?a[2]=x"], []),
        (["/s?a=1"], []),
        (["/on/2026-03-31", "/on/2026-04-01"], [("/on/2961-03-28", "/on/2983-04-01")]),
        (["/on/2026/03/", "/on/2026/04/"], [("/on/2961/03/", "/on/2983/04/")]),
        (["/s?y=2026&m=3", "/s?y=2026&m=4"], [("/s?y=2961&m=3", "/s?y=2983&m=4")]),
        (["/s?month=-3", "/s?month=-4"], []),
        (["/on/2026-03-31"], []),
        (["/s?" + "&".join(f"{n}={m}" for n in range(MOST_PARAMETERS + 1)) for m in (1, 2)], []),
    ],
)
def test_each_parameter_that_differs_is_asked_for_alone(
    targets: list[str], pairs: list[tuple[str, str]]
) -> None:
    assert asked(*targets) == pairs


@pytest.mark.parametrize(
    ("targets", "larger"),
    [
        (["/s?n=9", "/s?n=41"], "/s?n=9876"),
        (["/s?a=x&n=9", "/s?a=x&n=8"], "/s?a=x&n=987"),
        (["/s?n=9", "/s?n=ab"], None),
        (["/s?n=1&m=1", "/s?n=2&m=2"], None),
        (["/s?n=12345678", "/s?n=2"], None),
        (["/s?n=1"], None),
    ],
)
def test_number_that_is_hardly_larger(targets: list[str], larger: str | None) -> None:
    found = hardly_larger(pages(*targets))
    assert (found and found.removeprefix(SITE)) == larger


def test_pages_of_different_contents_are_asked() -> None:
    others = pages("/s?n=1", "/s?n=2", "/s?n=3&") + pages("/s?n=4000", content="another")
    [(one, other)] = questions([*others, *pages("/s?n=10&n=1")])[:1]
    assert (one, other) == (f"{SITE}/s?n=9876543210", f"{SITE}/s?n=8765432109")


@pytest.mark.parametrize(
    ("answers", "found"),
    [
        ([], None),
        ([(REFUSED, REFUSED)], REFUSED),
        ([("gone", "gone")], "gone"),
        ([(REFUSED, REFUSED), ("gone", "gone")], "gone"),
        ([("there", "there")], "there"),
        ([("there", "there"), (REFUSED, REFUSED)], None),
        ([("gone", "gone"), ("lost", "lost")], None),
        ([(REFUSED, "gone")], None),
        ([("gone", "lost")], None),
        ([(None, None)], None),
        ([(REFUSED, REFUSED), (None, REFUSED)], None),
    ],
)
def test_what_is_shown_for_values_that_do_not_exist(
    answers: Sequence[tuple[str | None, str | None]], found: str | None
) -> None:
    assert shown(pages("/s?n=1&m=1", "/s?n=2&m=2"), answers) == found


def test_page_for_what_is_missing_may_be_an_example() -> None:
    both = pages("/s?n=1") + pages("/s?n=2", content="gone")
    assert shown(both, [("gone", "gone")]) == "gone"
    assert shown(both, [("there", "gone")]) is None, "each ignores the parameter"
    assert shown(both, [("gone", "gone"), (REFUSED, REFUSED)]) == "gone"


def test_pages_that_say_what_is_said_of_any_value() -> None:
    assert all_show(pages("/s?n=1", "/s?n=2"), "there")
    assert not all_show([*pages("/s?n=1"), *pages("/s?n=2", content="gone")], "there")


@pytest.mark.parametrize(
    ("url", "to", "refused"),
    [
        ("/s?n=1", None, False),
        ("/s?n=1", "/", True),
        ("/s?n=1", "/s", True),
        ("/s?n=1&m=2", "/s", False),
        ("/s?n=1&m=2", "/s?n=1", False),
        ("/s?n=1", "/s?n=2", False),
    ],
)
def test_redirects_that_refuse_a_value(url: str, to: str | None, refused: bool) -> None:
    assert leads_elsewhere(Url(SITE + url), Url(SITE + to) if to else None) is refused
