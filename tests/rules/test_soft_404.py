"""What nonexistent pages have in common, and which page is shown in their place."""

from collections.abc import Iterable, Sequence

import pytest

from crawler.model.visit import Links, MissingPage
from crawler.parse.fingerprint import PageText
from crawler.parse.url import Url
from crawler.rules import soft_404

HOME = "https://a.example"


@pytest.mark.parametrize(
    ("page", "title", "place"),
    [
        ("/shop/ab-1", "Product ab-1 is gone", ("/shop/", "product is gone")),
        ("/find?q=red+tea", "Results: red tea, page 2", ("/find?", "results page")),
        ("/shop/ab-1/", "Product ab-1 is gone", ("/shop/", "product is gone")),
        ("/shop/", "Shop", ("/", "")),
        ("/", None, ("/", "")),
    ],
)
def test_pages_of_a_place_that_call_themselves_the_same(
    page: str, title: str | None, place: tuple[str, str]
) -> None:
    url = Url(HOME + page)
    assert (soft_404.doubtful_places(url)[0], soft_404.title_words(url, title)) == (HOME + place[0], place[1])


def test_page_shown_for_anything_leads_on_as_all_such_pages_do() -> None:
    shop = "https://site.test/shop/"
    missing = MissingPage((), 9, place=shop, content="c", links=(Url(f"{shop}a"), Url("https://site.test/")))
    to = tuple(map(Url, (f"{shop}a", f"{shop}x-1", "https://site.test/b")))
    assert soft_404.leading_on(Url(f"{shop}x"), Links(to), missing).followed == (to[0], to[2])
    assert soft_404.leading_on(Url(shop), Links(to), missing).followed == to, "the page of the place itself"


def test_pages_that_a_folder_tells_apart_lead_nowhere() -> None:
    missing = MissingPage((), 9, place=f"{HOME}/step/{{name}}/view", content="c")
    to = tuple(Url(HOME + path) for path in ("/step/2/view", "/step/2/other", "/step/view", "/step/2/a/view"))
    assert soft_404.leading_on(Url(f"{HOME}/step/1/view"), Links(to), missing).followed == to[1:3]


def test_page_that_is_missing_leads_where_all_such_pages_do() -> None:
    missing = MissingPage((1,), 9, links=(Url(f"{HOME}/a"), Url(f"{HOME}/b")))
    to = Links((Url(f"{HOME}/x/"), Url(f"{HOME}/a")), (Url(f"{HOME}/b"),))
    assert soft_404.known_links(to, missing) == Links((Url(f"{HOME}/a"),))


@pytest.mark.parametrize(
    ("paths", "fronts"),
    [
        (("/en/a", "/en/b/", "/de/", "/en/c"), ("/en/", "/en")),
        (("/en/a", "/en/b", "/de/", "/fr/"), ("/en/", "/en")),
        (("/en/a", "/en/b", "/de/", "/fr/", "/es/"), ()),
        (("/shop/en/a", "/shop/en/b"), ("/shop/", "/shop", "/shop/en/", "/shop/en")),
        (("/a", "/b"), ()),
        ((), ()),
    ],
)
def test_front_page_is_of_folder_with_half_of_links(paths: Sequence[str], fronts: Sequence[str]) -> None:
    assert soft_404.front_pages([Url(HOME + path) for path in paths]) == [HOME + front for front in fronts]


@pytest.mark.parametrize(
    ("shown", "on_start", "true", "fronts"),
    [
        ("habc", "hn", ["hn", "h"], "h"),  # a menu, and pages to which nothing else leads
        ("hnabc", "hn", ["h", "hn"], "hn"),  # most linked first
        ("hn", "hn", ["hn", "h"], ""),  # an error has the menu, and nothing else
        ("habc", "n", ["hn"], ""),  # the start page does not lead there
        ("abcdefghijkl", "abcdefghijklm", ["h"], "habcdefgij"),  # only some are asked
        ("h", "h", [], "h"),
    ],
)
def test_front_page_is_linked_by_start_and_by_itself(
    shown: str, on_start: str, true: list[str], fronts: str
) -> None:
    def to(names: str) -> list[Url]:
        return [Url(f"{HOME}/{name}") for name in names]

    others = [soft_404.ShownPage(Url(HOME), (), None, to(names)) for names in true]
    assert [*soft_404.linked_fronts(to(shown), to(on_start), others)] == to(fronts)


def page(*ways: Iterable[int], content: str = "c") -> soft_404.ShownPage:
    """One that shows these blocks, without what repeats its address, and perhaps with it."""
    return soft_404.ShownPage(
        Url(HOME), tuple(PageText(tuple(sorted(way)), content) for way in ways), content, ()
    )


@pytest.mark.parametrize(
    ("is_exact", "ways", "expected"),
    [
        (False, [{1}, {2}], True),
        (False, [{1, 3}, {1, 2}], True),
        (False, [{1}, {3}], False),
        (False, [{1, 2, 3, 4}], True),
        (False, [{1, 2, 3, 4, 5}], False),  # more than any of these
        (False, [{3}, {1, 2, 3, 4, 5}], False),
        (True, [{1, 2}], True),
        (True, [{1, 4}, {2}], False),  # something of its own
        (True, [{1, 3}, {1, 2}], True),
        (True, [{1, 2, 3}], False),
        (True, [set(), {1, 2}], False),  # nothing but its address
    ],
)
def test_words_of_its_own_address_hide_no_error(
    *, is_exact: bool, ways: Sequence[set[int]], expected: bool
) -> None:
    missing = MissingPage((1, 2), 4, is_exact=is_exact)
    assert soft_404.is_missing(missing, page(*ways).said) is expected


@pytest.mark.parametrize("content", ["c", "d"])
def test_numbers_and_pictures_are_compared_where_all_is_alike(content: str) -> None:
    missing = MissingPage((1, 2), 4, is_exact=True, content="c")
    assert soft_404.is_missing(missing, page({1, 2}, content=content).said) is (content == "c")


def test_page_of_the_place_is_shown_instead() -> None:
    assert Url(f"{HOME}/shop/") in soft_404.shown_instead(f"{HOME}/shop/")
    assert Url(f"{HOME}/s") in soft_404.shown_instead(f"{HOME}/s?")


TEMPLATE = {1, 2, 3}


def test_missing_page_is_what_only_error_pages_show() -> None:
    asked = [page(TEMPLATE | {10, 11, 90}), page(TEMPLATE | {10, 11, 91, 92})]
    start, others = TEMPLATE | {20}, [page({1, 2, 30}), page({1, 2, 11, 31})]
    missing = soft_404.missing_page(asked, start, others)
    assert missing
    assert set(missing.blocks) == {10}, "11 is on a true page, too"
    assert soft_404.is_missing(missing, page(TEMPLATE | {10, 11, 92}).said)
    assert not soft_404.is_missing(missing, page(TEMPLATE | {11, 92}).said)
    assert soft_404.is_missing(missing, page(TEMPLATE | {10, *range(100, 104)}).said)
    assert not soft_404.is_missing(missing, page(TEMPLATE | {10, *range(100, 105)}).said), "much more"


@pytest.mark.parametrize(
    ("asked", "start", "others"),
    [
        ([{1, 2}, {1, 2}], {1, 2}, [{3}]),  # the start page for every path
        ([{1, 5}, {1, 6}], {1}, [{3}]),  # nothing in common but what the start page has
        ([{1, 9, 4}, {1, 9, 5}], {1}, [{1, 9, 3}]),  # what every page but the start page has
        ([{1, 9}, {1, 9}], {1}, [{1, 9}]),
        ([{1, 9}, {1, 9}], {1}, []),  # nothing to compare with
        ([{1, 9, 8, 4}, {1, 9, 8, 5}], {1}, [{1, 9}, {1, 8}]),
    ],
)
def test_missing_page_is_none_if_it_is_not_clear(
    asked: list[set[int]], start: set[int], others: list[set[int]]
) -> None:
    assert soft_404.missing_page(list(map(page, asked)), start, list(map(page, others))) is None


def test_error_pages_among_the_samples_are_no_true_pages() -> None:
    asked = [page({1, 9, 4}), page({1, 9, 5})]
    missing = soft_404.missing_page(asked, {1}, [page({1, 9, 6}), page({1, 3})])
    assert missing
    assert missing.blocks == (9,)


@pytest.mark.parametrize("others", [[{1, 3}], [{1, 9, 5}, {1, 9, 6}], [{1, 9}, {1, 3}]])
def test_what_true_pages_show_as_well_is_no_error_by_itself(others: list[set[int]]) -> None:
    """Their title, on the page of a product that does not exist: whether or not the start page leads to some."""
    missing = soft_404.missing_page([page({1, 9})] * 3, {1}, list(map(page, others)))
    assert missing
    assert soft_404.is_missing(missing, page({1, 9}).said)
    assert not soft_404.is_missing(missing, page({1, 9, 5}).said)
    assert not soft_404.is_missing(missing, page({1, 9}, content="another picture").said)


@pytest.mark.parametrize(
    "title",
    [
        "Page not found", "404", "Error 404: Lamps", "This item is no longer available", "It doesn't exist",
        "Seite nicht gefunden", "Page introuvable", "Cette page n'existe plus", "Página no encontrada",
        "Página não encontrada", "Pagina non trovata", "Pagina niet gevonden", "Страница не найдена",
        "Sidan hittades inte", "Side ikke fundet", "Pagina bestaat niet", "Strona nie istnieje", "La pagina non esiste",
        "Produkt nicht mehr da", "No existe", "PAGE NOT FOUND!", "ページが見つかりません", "页面不存在",
    ],
)  # fmt: skip
def test_titles_that_name_an_error(title: str) -> None:
    assert soft_404.names_error(title)


@pytest.mark.parametrize("title", ["Lamps", "Lost and found", "What is available", "Nicht nur Lampen"])
def test_titles_that_name_none(title: str) -> None:
    assert not soft_404.names_error(title)


@pytest.mark.parametrize(
    ("place", "beside", "expected"),
    [
        ("/a/", ["/a/", "/b/", "/c/"], True),
        ("/a/", ["/a/", "/b/", "/c/d/"], False),
        ("/a/", ["/a/", "/b/", "/c?"], False),
        ("/a?", ["/a?", "/b/", "/c/", "/d/"], False),
        ("/", ["/", "/a/", "/b/"], False),
    ],
)
def test_folders_beside_one(place: str, beside: list[str], expected: bool) -> None:
    assert soft_404.has_beside(HOME + place, [HOME + other for other in beside]) is expected
