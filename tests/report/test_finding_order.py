"""The order of a list of findings is that of sorting them, in a few bytes for each."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from crawler.model.rows import PageRow
from crawler.parse.url import Url
from crawler.report.catalogue import Code
from crawler.report.finding_order import FindingOrder
from crawler.report.findings import PageFinding

SMALL = st.integers(0, 3)


def found(number: int, code: Code) -> PageFinding:
    return PageFinding(code, PageRow(number, Url(f"https://a.example/{number:03}"), 1, "listed"), "")


@given(st.lists(SMALL))
def test_the_most_linked_come_first_then_by_url(links: list[int]) -> None:
    order = FindingOrder()
    for number, count in enumerate(links):
        order.add(replace(found(number, Code.BROKEN_LINK), links=count))
        order.add(replace(found(number, Code.BROKEN_LINK), links=count))
    expected = sorted(range(len(links)), key=lambda number: (-links[number], number))
    assert list(order.pages(Code.BROKEN_LINK)) == expected
    assert list(order.pages(Code.ORPHAN)) == []


@given(st.lists(SMALL))
def test_the_largest_groups_come_first_and_stay_together(groups: list[int]) -> None:
    order, sizes = FindingOrder(), Counter(groups)
    for number, group in enumerate(groups):
        order.add(replace(found(number, Code.DUPLICATE_TITLE), group=group))
    expected = sorted(
        range(len(groups)), key=lambda number: (-sizes[groups[number]], groups.index(groups[number]), number)
    )
    assert list(order.pages(Code.DUPLICATE_TITLE)) == expected
