"""What to do first about images: one action for an image that is broken on many pages."""

import pytest

from crawler.report.actions import Action, actions, words
from crawler.report.catalogue import Code
from tests.report.made import MadeState

LOGO = "https://shop.example/logo.png (not found (404, 410); “Shop” in the header)"


def about_images(pages: dict[str, str]) -> list[Action]:
    """The actions about images of a site with these broken images, by page."""
    state = MadeState(1)
    state.page("/", links=list(pages))
    for path, images in pages.items():
        state.page(path)
        state.faults[state.id(path)] = [(Code.BROKEN_IMAGE, images)]
    return [action for action in actions(state.report()) if Code.BROKEN_IMAGE in action.codes]


def test_a_broken_image_of_the_template_is_one_action() -> None:
    (action,) = about_images({f"/page-{number}": LOGO for number in range(200)})
    assert action.text == f"Broken images: correct or put back {LOGO}"
    assert words(action) == "mends all 200 pages"


@pytest.mark.parametrize(
    ("same", "others", "texts"),
    [
        (2, 0, 1),  # too few: the advice alone
        (3, 0, 1),
        (5, 15, 2),  # a quarter, and what is left
        (5, 16, 1),
        (16, 4, 1),  # nearly all
        (15, 5, 2),
    ],
)
def test_an_image_of_many_pages_stands_beside_what_is_left(same: int, others: int, texts: int) -> None:
    own = {f"/own-{number}": f"https://shop.example/{number}.png (not found)" for number in range(others)}
    found = about_images({f"/page-{number}": LOGO for number in range(same)} | own)
    is_told = same >= 3 and 4 * same >= same + others
    assert any(LOGO in action.text and action.mends == same for action in found) is is_told
    assert len(found) == texts
