"""What becomes of the language versions that pages name."""

import pytest

from crawler.app.features import hreflang
from crawler.model.facts import LONGEST_LABEL
from crawler.model.rows import FeatureRow
from crawler.parse.url import Url

DE, EN, FR, XX = (Url(f"https://x.test/{name}") for name in ("de", "en", "fr", "all"))
AWAY = Url("https://away.test/it")


def page(url: Url, stated: str, outcome: str = "listed") -> FeatureRow:
    """`stated`: as in `de=de en=en`."""
    pairs = (pair.split("=") for pair in stated.split())
    urls = {"de": DE, "en": EN, "fr": FR, "all": XX, "away": AWAY}
    return FeatureRow(0, url, outcome, read=hreflang.stored((code, urls[to]) for code, to in pairs))


def judged(*pages: FeatureRow) -> hreflang.Cluster:
    first, *others = pages
    known = {other.url: other for other in (first, *others)}
    return hreflang.cluster(first, known, lambda version: version.outcome == "listed")


ALL = "de=de en=en"


@pytest.mark.parametrize(
    ("pages", "links", "faults"),
    [
        ([page(DE, ALL), page(EN, ALL)], ALL, []),
        ([page(DE, "EN=en de=de"), page(EN, ALL)], ALL, []),
        ([page(DE, "x-default=en " + ALL), page(EN, ALL)], f"{ALL} x-default=en", []),
        ([page(DE, ALL), page(EN, "en=en")], "", ["hreflang-no-return"]),
        ([page(DE, ALL), page(EN, "en=en x-default=de")], ALL, []),
        ([page(DE, ALL), page(EN, ALL, "unlisted:noindex")], "", ["hreflang-target"]),
        ([page(DE, "de=de it=away")], "de=de it=away", []),
        ([page(DE, "de=de it=away"), page(AWAY, "", "unlisted:offsite")], "de=de it=away", []),
        ([page(DE, "de=de en=en en=fr"), page(EN, ALL), page(FR, "de=de")], "", ["hreflang-conflict"]),
        ([page(DE, f"{ALL} en-UK=en"), page(EN, ALL)], ALL, ["hreflang-code"]),
        ([page(DE, "en=en"), page(EN, ALL)], ALL, ["hreflang-no-self"]),
        ([page(DE, "en=en"), page(EN, "en=en x-default=de")], "en=en", ["hreflang-no-self"]),
        ([page(DE, "en=en"), page(EN, "en=en de=de de-AT=de")], "en=en", ["hreflang-no-self"]),
        ([page(DE, "de=en"), page(EN, ALL)], "de=en", ["hreflang-no-self"]),
        # A page that is named with a wrong code is named.
        ([page(DE, "de-UK=de en=en"), page(EN, ALL)], ALL, ["hreflang-code"]),
        ([page(DE, "de=de de=fr"), page(FR, "de=de")], "", ["hreflang-conflict"]),
        ([page(DE, "de=de de-AT=de en=en"), page(EN, ALL)], "de=de de-AT=de en=en", []),
        ([page(DE, "de=de x-default=de")], "", []),
        ([page(DE, ALL), page(EN, "en=en fr=fr"), page(FR, "de=de en=en")], "", ["hreflang-no-return"]),
        ([page(DE, "")], "", []),
    ],
)
def test_clusters(pages: list[FeatureRow], links: str, faults: list[str]) -> None:
    found = judged(*pages)
    wanted = list(page(DE, links).read)
    assert list(found.links) == wanted
    assert [code.value for code, _ in hreflang.faults(found)] == faults


def test_a_fault_tells_what_is_wrong() -> None:
    [(_, detail)] = hreflang.faults(judged(page(DE, "de=de en-UK=en en_US=en")))
    assert detail == f"en-UK {EN}: invalid code: en-GB? (and 1 more)"
    [(_, detail)] = hreflang.faults(judged(page(DE, ALL), page(EN, ALL, "unlisted:noindex")))
    assert detail == f"en {EN}: not listed: marked noindex"


def test_what_is_stored_is_bounded_and_of_one_line() -> None:
    stated = [("a b\n" * 99, DE), *((f"{number}", EN) for number in range(9_999))]
    stored = hreflang.stored(stated)
    assert len(stored) == hreflang.MOST_VERSIONS
    assert stored[0] == (("a?b?" * 99)[:LONGEST_LABEL], DE)
    long = hreflang.stored((f"{number}", Url(f"{EN}{'a' * 2_000}")) for number in range(9_999))
    assert 0 < sum(len(code) + len(url) for code, url in long) <= hreflang.LONGEST_ALL
