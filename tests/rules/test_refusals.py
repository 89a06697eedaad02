"""What a 429 concerns: a page, its folder, or the host."""

import pytest

from crawler.parse.url import Url
from crawler.rules.refusals import MOST_FOLDERS, UNSTATED, HostPause, Refusals, folder_of

SITE = "https://example.com"


def url(path: str) -> Url:
    return Url(SITE + path)


@pytest.fixture
def known() -> Refusals:
    """A host that refused once, and has waited since."""
    refusals = Refusals()
    assert refusals.refused(url("/login/0"), 30.0, 0.0) is HostPause.ONCE
    return refusals


def test_refusals_concern_a_page_then_its_folder(known: Refusals) -> None:
    assert known.refused(url("/login/1"), 30.0, 100.0) is HostPause.NO
    assert known.wait(url("/login/1"), 110.0) == 20.0
    assert known.wait(url("/login/2"), 110.0) == 0.0
    known.answered(url("/page"), 101.0)
    assert known.refused(url("/login/2"), 30.0, 111.0) is HostPause.NO
    assert known.wait(url("/login/3"), 112.0) == 29.0
    assert known.wait(url("/page"), 112.0) == known.wait(url("/login/a/b"), 112.0) == 0.0
    assert known.wait(url("/login/3"), 200.0) == 0.0


def test_a_host_that_answers_nowhere_else_is_meant_itself(known: Refusals) -> None:
    assert known.refused(url("/a/1"), 30.0, 100.0) is HostPause.NO
    assert known.refused(url("/b/1"), 30.0, 101.0) is HostPause.YES
    # What began before the refusal proves nothing.
    assert known.refused(url("/a/1"), 30.0, 200.0) is HostPause.NO
    known.answered(url("/c/1"), 199.0)
    assert known.refused(url("/b/1"), 30.0, 201.0) is HostPause.YES


def test_refusals_in_many_folders_are_those_of_the_host(known: Refusals) -> None:
    for number in range(MOST_FOLDERS):
        assert known.refused(url(f"/{number}/x"), 30.0, 100.0 + number) is HostPause.NO
        known.answered(url("/good/page"), 100.5 + number)
    assert known.refused(url("/more/x"), 30.0, 110.0) is HostPause.YES
    assert not known.wait(url("/0/x"), 110.0)


def test_a_folder_that_answers_does_not_wait_as_a_whole(known: Refusals) -> None:
    known.refused(url("/1"), 30.0, 100.0)
    known.refused(url("/2"), 30.0, 100.0)
    assert known.wait(url("/3"), 101.0)
    known.answered(url("/4"), 101.0)
    assert not known.wait(url("/3"), 102.0)


def test_hosts_and_unstated_waits_are_apart(known: Refusals) -> None:
    assert known.refused(Url("https://other.example/"), 30.0, 100.0) is HostPause.ONCE
    assert known.refused(url("/login/1"), 0.0, 100.0) is HostPause.NO
    assert known.wait(url("/login/1"), 100.0) == UNSTATED


@pytest.mark.parametrize(
    ("path", "folder"),
    [
        *((path, "/") for path in ("/", "/a", "/a/")),
        *((path, "/a/") for path in ("/a/b", "/a/b/")),
        ("/login?next=/x/y", "/login"),
        ("/a/b?", "/a/b"),
    ],
)
def test_queries_of_one_path_are_one_place(path: str, folder: str) -> None:
    assert folder_of(url(path)) == folder
