"""What to do first about images: one action for an image that is broken on many pages."""

import pytest
from msgspec.structs import replace

from crawler.report.actions import Action, actions, words
from crawler.report.catalogue import Code
from crawler.report.report import Finding, Item, Said
from tests.report.made import MadeState

SITE = "https://shop.example"
LOGO = Item(f"{SITE}/logo.png", 404, text="Shop", place="header")


def about_images(*uses: int, pages: int = 200) -> list[Action]:
    """The actions about broken images, each on that many of the pages."""
    state = MadeState(1)
    state.page("/", links=["/page"])
    items = [
        replace(LOGO, url=f"{SITE}/{number}.png", links=count, site_wide=count >= 0.9 * pages)
        for number, count in enumerate(uses)
    ]
    state.files = [Finding(Code.BROKEN_IMAGE, len(items), 0, sum(uses), pages, items)]
    return [action for action in actions(state.report()) if Code.BROKEN_IMAGE in action.codes]


def test_a_broken_image_of_the_template_is_one_action() -> None:
    (action,) = about_images(200)
    assert action.text == f"Broken images: correct or put back {SITE}/0.png (“Shop”), in the header"
    assert words(action) == "mends all 200 uses"


@pytest.mark.parametrize(
    ("uses", "texts"),
    [
        ((9,), 1),  # too few: the advice alone
        ((10,), 2),
        ((190, 1), 2),
        ((10, *[1] * 30), 2),  # a quarter, and what is left
        ((10, *[1] * 31), 1),
    ],
)
def test_an_image_of_many_pages_stands_beside_what_is_left(uses: tuple[int, ...], texts: int) -> None:
    found = about_images(*uses)
    assert len(found) == texts
    assert any("0.png (“Shop”), in" in action.text for action in found) is (texts > 1)


def test_a_page_with_most_of_the_broken_images_is_an_action() -> None:
    state = MadeState(1)
    state.page("/", links=["/page"])
    items = [replace(LOGO, url=f"{SITE}/{number}.png", links=1) for number in range(5)]
    by_page = [(f"{SITE}/page", 4), (f"{SITE}/", 2)]
    state.files = [Finding(Code.BROKEN_IMAGE, 5, 0, 6, 2, items, by_page)]
    texts = [action.text for action in actions(state.report())]
    assert texts == [f"Broken images: correct {SITE}/page, which has 4 of 5"]


def test_one_broken_image_says_where_it_is() -> None:
    state = MadeState(1)
    state.page("/", links=["/page"])
    item = replace(LOGO, links=1, sources=[f"{SITE}/"], said={f"{SITE}/": Said("Shop", "header")})
    state.files = [Finding(Code.BROKEN_IMAGE, 1, 0, 1, 1, [item])]
    (action,) = actions(state.report())
    assert action.text.startswith(f"Broken images ({SITE}/logo.png, on {SITE}/: “Shop”, in the header): ")
    assert words(action) == "mends 1 image"
