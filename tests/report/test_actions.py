"""What to do first about images: one action for an image that is broken on many pages."""

import re

import pytest
from msgspec.structs import replace

from crawler.model.external import ExternalCheck, ExternalRow
from crawler.model.seed import Seed
from crawler.report.actions import Action, actions, words
from crawler.report.advice import ADVICE
from crawler.report.catalogue import Code, Severity
from crawler.report.report import Finding, Item, Said
from tests.report.made import NIGHT, OLD_SITEMAP, START, MadeState

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
    ("uses", "own", "rest"),
    [
        ((9,), "", "mends 1 image"),  # too few: the advice alone
        ((9, 9), "", "mends both images"),
        ((10,), "in the header of 10 pages", ""),
        ((190, 1), "in the header", "mends 1 of 2 images"),
        (
            (10, *[1] * 30),
            "in the header of 10 pages",
            "mends 30 of 31 images",
        ),  # a quarter, and what is left
        ((10, *[1] * 31), "", "mends all 32 images"),
    ],
)
def test_an_image_of_many_pages_stands_beside_what_is_left(
    uses: tuple[int, ...], own: str, rest: str
) -> None:
    found = about_images(*uses)
    assert [one.text for one in found if one.unit == "use"] == (
        [f"Broken images: correct or put back {SITE}/0.png (“Shop”), {own}"] if own else []
    )
    assert [words(one) for one in found if one.unit == "image"] == ([rest] if rest else [])


def test_a_page_with_most_of_the_broken_images_is_an_action() -> None:
    state = MadeState(1)
    state.page("/", links=["/page"])
    items = [replace(LOGO, url=f"{SITE}/{number}.png", links=1) for number in range(5)]
    state.files = [Finding(Code.BROKEN_IMAGE, 5, 0, 5, 2, items, [(f"{SITE}/page", 4)])]
    texts = [action.text for action in actions(state.report())]
    assert texts == [f"Broken images: correct those on {SITE}/page"]


@pytest.mark.parametrize(
    ("outcome", "advice"),
    [
        ("failed:server-error", "Server errors: open one of the addresses: if it fails again, "),
        ("failed:connect", "No usable response: mend the host, or correct the link if its address is wrong"),
        ("failed:redirect-loop", "Redirects without an end: look for two rules of the server that undo "),
    ],
)
def test_a_page_is_not_to_blame_for_what_the_server_does(outcome: str, advice: str) -> None:
    """Where links lead to pages that fail, it is not the page with the links that is to be corrected."""
    state = MadeState(1)
    state.page("/hub", links=[f"/down-{number}" for number in range(5)])
    for number in range(5):
        state.page(f"/down-{number}", outcome)
    (action,) = actions(state.report())
    assert (action.page, action.mends) == (None, 5)
    assert action.text.startswith(advice)


def test_a_link_of_the_template_to_a_failing_page_stays() -> None:
    state = MadeState(1)
    for number in range(30):
        state.page(f"/{number}", links=["/shop", f"/{(number + 1) % 30}"])
    state.page("/shop", "failed:server-error", status=500)
    (action,) = actions(state.report())
    assert action.text == f"Server errors: look into {SITE}/shop, linked in the template"


@pytest.mark.parametrize(
    ("seed", "named"), [(START, "a start URL"), (OLD_SITEMAP, f"{SITE}/old-sitemap.xml")]
)
def test_an_address_that_no_page_links_to_is_corrected_there(seed: Seed, named: str) -> None:
    state = MadeState(1)
    state.page("/lost", "failed:not-found", status=404, seed=seed)
    action = next(one for one in actions(state.report()) if one.codes == [Code.BROKEN_LINK])
    assert action.text == (
        f"Broken links ({SITE}/lost, named by {named}): correct the address there, or redirect it"
    )


def test_one_broken_image_says_where_it_is() -> None:
    state = MadeState(1)
    state.page("/", links=["/page"])
    item = replace(LOGO, links=1, sources=[f"{SITE}/"], said={f"{SITE}/": Said("Shop", "header")})
    state.files = [Finding(Code.BROKEN_IMAGE, 1, 0, 1, 1, [item])]
    (action,) = actions(state.report())
    assert action.text.startswith(f"Broken images ({SITE}/logo.png, on {SITE}/: “Shop”, in the header): ")
    assert words(action) == "mends 1 image"


def test_a_link_with_an_action_of_its_own_is_not_told_again() -> None:
    """In a manual, one removed page is linked from 14 others: that is one thing to do."""
    state = MadeState(1)
    for number in range(14):
        state.page(f"/{number}", links=["/gone"])
    for number in range(20):
        state.page(f"/other-{number}", links=["/0"])
    state.page("/gone", "failed:not-found", status=404)
    (action,) = about_links(state)
    assert action.text == f"Correct or remove the link to {SITE}/gone from 14 pages"
    assert words(action) == "mends all 14 links"


@pytest.mark.parametrize(("lost", "rest"), [(2, 9), (6, 5), (11, 0)])
def test_pages_that_were_listed_before_are_an_action(lost: int, rest: int) -> None:
    state = MadeState(2)
    for number in range(11):
        state.page(f"/{number}", links=[f"/{number}/gone"], was="listed")
        was = "listed" if number < lost else "failed:not-found"
        state.page(f"/{number}/gone", "failed:not-found", status=404, was=was)
    texts = {words(action): action.text for action in about_links(state)}
    own = f"put back or redirect {lost} pages that were listed before, or remove the links to them"
    told = "all 11 URLs" if lost == 11 else f"{lost} of 11 URLs"
    assert texts.get(f"mends {told}") == (f"Broken links: {own}" if lost > 2 else None)
    others = f"mends {rest} of 11 URLs" if lost > 2 else "mends all 11 URLs"
    assert (others in texts) == (rest > 0)


def test_a_page_mends_its_own_links_and_no_others() -> None:
    """An index of all pages links to each removed page, which others link to as well."""
    state = MadeState(1)
    gone = [f"/gone-{number}" for number in range(6)]
    state.page("/contents", links=gone)
    for number in range(90):
        state.page(f"/{number}", links=[gone[number % 6]])
    for path in gone:
        state.page(path, "failed:not-found", status=404)
    assert [(action.page, words(action)) for action in about_links(state)] == [(None, "mends all 6 URLs")]
    state = MadeState(1)
    state.page("/contents", links=gone)
    state.page("/0", links=gone[:1])
    for path in gone:
        state.page(path, "failed:not-found", status=404)
    assert [(action.page, words(action)) for action in about_links(state)] == [
        (f"{SITE}/contents", "mends 6 of 7 links")
    ]


@pytest.mark.parametrize("gone", [6, 150])
def test_what_is_left_is_not_what_another_action_mends(gone: int) -> None:
    """A page has most of the broken links; a few stand elsewhere. With many, the report has not all items."""
    state = MadeState(1)
    on_page = [f"/gone-{number}" for number in range(gone)]
    state.page("/list", links=on_page)
    others = [f"/lost-{number}" for number in range(gone // 2)]
    for path in others:
        state.page(f"/page{path}", links=[path])
    for path in (*on_page, *others):
        state.page(path, "failed:not-found", status=404)
    every = gone + gone // 2
    assert [(action.page, words(action)) for action in about_links(state)] == [
        (f"{SITE}/list", f"mends {gone} of {every} links"),
        (None, f"mends {gone // 2} of {every} URLs"),
    ]


def test_folder_is_no_action_where_a_page_has_its_links() -> None:
    state = MadeState(1)
    gone = [f"/old/{number}" for number in range(6)]
    state.page("/list", links=gone)
    for number in range(3):
        state.page(f"/{number}", links=[f"/lost-{number}"])
        state.page(f"/lost-{number}", "failed:not-found", status=404)
    for path in gone:
        state.page(path, "failed:not-found", status=404)
    assert [(action.target, words(action)) for action in about_links(state)] == [
        (None, "mends 6 of 9 links"),
        (None, "mends 3 of 9 URLs"),
    ]


def test_what_is_left_is_not_in_the_folder_of_another_action() -> None:
    state = MadeState(1)
    gone = [f"/old/{number}" for number in range(4)]
    lost = [f"/lost-{number}" for number in range(4)]
    for number, path in enumerate([*gone, *lost]):
        state.page(f"/{number}", links=[path])
        state.page(path, "failed:not-found", status=404)
    assert [(action.target, words(action)) for action in about_links(state)] == [
        (None, "mends 4 of 8 URLs"),
        (f"{SITE}/old/", "mends 4 of 8 URLs"),
    ]


@pytest.mark.parametrize("index", ["index.html", "default.asp"])
def test_a_folder_and_its_index_page_are_one_action(index: str) -> None:
    state = MadeState(1)
    for number in range(12):
        state.page(f"/{number}", links=["/a/", f"/a/{index}", "/a/other.html"])
    for path in ("/a/", f"/a/{index}", "/a/other.html"):
        state.page(path, "failed:not-found", status=404)
    both, other = about_links(state)
    assert both.text == (
        f"Correct or remove the link to {SITE}/a/ from the template; "
        f"also correct or remove the link to {SITE}/a/{index} from the template"
    )
    assert (words(both), words(other)) == ("mends 24 of 36 links", "mends 12 of 36 links")


def test_a_folder_whose_index_page_has_its_links_is_no_action() -> None:
    state = MadeState(1)
    gone = [f"/docs/a/gone-{number}.html" for number in range(6)]
    state.page("/docs/a/index.html", links=gone)
    state.page("/other", links=["/lost", "/gone", *gone[:1]])
    for path in (*gone, "/lost", "/gone"):
        state.page(path, "failed:not-found", status=404)
    texts = [action.text for action in about_links(state)]
    assert f"Broken links: correct those on {SITE}/docs/a/index.html" in texts
    assert not [text for text in texts if "look into" in text]


def test_links_to_a_folder_elsewhere_are_to_be_corrected_here() -> None:
    state, urls = MadeState(1), [f"https://other.example/c/{number}" for number in range(9)]
    for number, url in enumerate(urls):
        state.page(f"/{number}", links=[url])
        gone = ExternalRow("broken:not-found", 404, "", NIGHT, 1, "ok")
        state.page(url, "unlisted:offsite", status=None, external=gone)
    state.more = {"check": ExternalCheck(1, NIGHT, True)}
    texts = [action.text for action in actions(state.report())]
    assert texts[0] == (
        "Broken links to other sites: correct the links to https://other.example/c/, which holds 9 of 9"
    )


@pytest.mark.parametrize("lines", [["Disallow: /a"], ["Disallow: /a", "Disallow: /b"]])
def test_files_that_one_line_disallows_name_it(lines: list[str]) -> None:
    state = MadeState(1)
    state.page("/")
    items = [Item(f"{SITE}/{line}", None, line, 1, [f"{SITE}/"]) for line in lines * 2]
    state.files = [Finding(Code.BLOCKED_FILE, len(items), 0, len(items), 1, items)]
    (text,) = (action.text for action in actions(state.report()))
    named = f" ({lines[0]})" if len(lines) == 1 else ""
    assert text.startswith(f"Files that robots.txt disallows{named}: allow these files in robots.txt")


def about_links(state: MadeState) -> list[Action]:
    return [action for action in actions(state.report()) if Code.BROKEN_LINK in action.codes]


def test_errors_come_before_warnings_however_much_these_mend() -> None:
    state = MadeState(1)
    for number in range(12):
        state.page(f"/{number}", links=["/other", "/gone-0" if number else "/gone-1"], title="The same")
    for path in ("/gone-0", "/gone-1"):
        state.page(path, "failed:not-found", status=404)
    items = [replace(LOGO, links=200, site_wide=True)]
    state.files = [Finding(Code.BROKEN_IMAGE, 1, 0, 200, 200, items)]
    found = actions(state.report())
    order = [(action.severity, -action.mends) for action in found]
    assert [severity for severity, _ in order] == sorted(
        (severity for severity, _ in order), key=[*Severity].index
    )
    assert [mends for severity, mends in order if severity is Severity.ERROR] == [-11, -1]
    assert found[2].codes == [Code.BROKEN_IMAGE]


def test_an_action_is_one_sentence() -> None:
    assert not [text for text in ADVICE.values() if re.search(r"[a-z]{4,}\. [a-z]", text)]


def test_no_flag_in_an_advice_is_cut_by_the_end_of_a_line() -> None:
    assert not [text for text in ADVICE.values() if re.search(r"--[a-z-]*-(\s|$)", text)]
