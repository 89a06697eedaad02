"""What a site shows for pages that cannot exist, as it is asked for."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from crawler.engine.missing_pages import MissingPages
from crawler.model.reply import Headers, Reply, Response
from crawler.parse.normalise import Normaliser
from crawler.parse.url import Url
from crawler.rules.judge import Judge, JudgeRules
from crawler.rules.nonexistent_pages import at_origin

pytestmark = pytest.mark.anyio
HOME = "https://www.example.com"
START = Url(f"{HOME}/")
NAMES = ("lamps", "chairs", "tables", "shelves", "beds", "mirrors", "carpets")


def html(title: str, text: str, to: Sequence[str] = ()) -> bytes:
    links = "".join(f'<a href="{path}">{path}</a>' for path in to)
    return f"<title>{title}</title><p>{text}</p>{links}".encode()


def asking(page: Callable[[str], bytes | None]) -> MissingPages:
    """Asks a site that answers 404 where there is no page."""

    async def fetch(url: Url) -> Reply:
        body = page(url.removeprefix(HOME))
        fields = Headers([("content-type", "text/html; charset=utf-8")])
        return Response(404 if body is None else 200, fields, body or b"")

    frontier: Any = None
    return MissingPages(frontier, Judge(JudgeRules("sitemap-crawler", Normaliser())), fetch)


@pytest.mark.parametrize("is_one", [True, False])
@pytest.mark.parametrize(("place", "above"), [("/x/", False), ("/x/{name}", True)])
async def test_above_folders_only_one_answer_shows_what_is_missing(
    place: str, above: bool, is_one: bool
) -> None:
    def page(path: str) -> bytes | None:
        if path == "/":
            return html("Shop", "Welcome", [f"/{name}" for name in NAMES])
        if path[1:] in NAMES:
            return html(path[1:], f"All our {path[1:]}")
        said = "Nothing here" if is_one else f"Nothing here</p><p>{NAMES[len(path) % 7]} {path[3:5]}"
        return html("Sorry", said) if path.startswith("/x/") else None

    pages = [Url(f"{HOME}/x/{name}/") for name in ("ab", "cde")]
    found = await asking(page)._of_place(f"{HOME}{place}", pages, [START])
    assert (found is not None) is (is_one or not above)


@pytest.mark.parametrize("queries", [0, 3, 7])
async def test_pages_with_a_query_are_samples_where_others_are_few(queries: int) -> None:
    def page(path: str) -> bytes | None:
        if path == "/":
            paths = [f"/?of={name}" for name in NAMES[:queries]]
            return html("Shop", "Welcome", [*paths, "/gone"])
        if path.startswith("/?of="):
            return html(path[5:], f"All our {path[5:]}")
        return html("Sorry", "There is no such page")

    found = await asking(page)._answer(at_origin(HOME), [START])
    assert (found is not None) is (queries > 0), "an error alone shows nothing"


@pytest.mark.parametrize("is_front", [True, False])
async def test_what_is_shown_for_all_that_is_missing_may_be_a_page(is_front: bool) -> None:
    def page(path: str) -> bytes | None:
        if path == "/":
            return html("Languages", "Choose", ["/en/", "/de/"])
        if path == "/de/":
            return html("Willkommen", "Lampen", ["/de/lampen"])
        if path == "/en/" and not is_front:
            return html("Welcome", "Lamps and more")
        return html("Sorry", "We have lamps", [f"/en/{name}" for name in NAMES])

    found = await asking(page)._answer(at_origin(HOME), [START])
    assert found
    assert f"{HOME}/en/" in found.instead if is_front else f"{HOME}/en/" not in found.instead
    assert found.links == tuple(sorted(f"{HOME}/en/{name}" for name in NAMES))


@pytest.mark.parametrize(("fronts", "expected"), [(["/home"], ["/home"]), (["/home", "/old"], [])])
async def test_front_page_is_the_one_of_a_menu_that_shows_it(fronts: list[str], expected: list[str]) -> None:
    """Of several that do, all may be links to errors."""

    def page(path: str) -> bytes | None:
        if path in ("/", "/news"):
            return html(path, "Welcome" if path == "/" else "News", [*fronts, "/news"])
        return html("Home", "All our lamps", [*fronts, "/news", *(f"/{name}" for name in NAMES)])

    found = await asking(page)._answer(at_origin(HOME), [START])
    assert found
    assert [*found.instead] == [HOME + path for path in expected]
