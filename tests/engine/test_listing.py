"""Which pages are listed, in whole crawls: true pages that look alike are, one page under several URLs is once."""

import random
import re
from datetime import date, timedelta
from pathlib import Path
from urllib.parse import urlencode

import pytest

from crawler import Ending
from crawler.cli.demo.site import CannedResponse, Site
from tests.engine.test_rounds import Page, crawl, html, moved, served, start

pytestmark = [pytest.mark.anyio, pytest.mark.slow]


def month_of(at: int) -> str:
    return f"{2000 + at // 12}/{at % 12 + 1:02}"


def draws(count: int) -> dict[str, Page]:
    """Draws of numbers by date, with hardly a word."""
    names = [f"/draw/{month_of(at // 28)}/{at % 28 + 1:02}" for at in range(count)]

    def draw(path: str, _: dict[str, str]) -> CannedResponse:
        numbers = sorted(random.Random(path).sample(range(1, 50), 6))
        return html("Draw", "/", head="") if path not in names else html(" ".join(map(str, numbers)), "/")

    return {"/": start(*names), **dict.fromkeys(names, draw)}


def photos(count: int) -> dict[str, Page]:
    """Pages that differ in the picture only."""

    def photo(_: str, query: dict[str, str]) -> CannedResponse:
        return html(f"Photo <img src=/i/{query['id']}.jpg>", "/")

    return {"/": start(*(f"/photo?id={number}" for number in range(count))), "/photo": photo}


def product(_: str, query: dict[str, str]) -> CannedResponse:
    known = query.get("id", "1")
    return html(f"Lamp {known} of {random.Random(known).randbytes(9).hex(' ')}", "/")


def products(posted: int) -> dict[str, Page]:
    """Products, and a guest page with links to one of them with other parameters."""
    own = [f"/product?id={number}" for number in range(1, 201)]
    guests = (f"/product?id=1&x{number:03}=1" for number in range(posted))
    return {"/": start("/guests", *own), "/guests": start(*guests), "/product": product}


def news(count: int, posted: int) -> dict[str, Page]:
    """Dated news, and posted links to what looks like a calendar."""
    names = [f"/news/{month_of(at // 28)}/{at % 28 + 1:02}" for at in range(count)]
    guests = (f"/events/{month_of(at // 28)}/{at % 28 + 1:02}" for at in range(posted))
    told = {name: start(f"/{name}") for name in names}
    for name in names:
        told[name] = lambda path, _: html(f"News {random.Random(path).randbytes(40).hex(' ')}", "/")
    return {"/": start("/guests", *names), "/guests": start(*guests), **told}


@pytest.mark.parametrize(
    ("pages", "expected"),
    [
        (draws(600), 601), (draws(140), 141), (photos(400), 401), (photos(60), 61), (products(599), 202),
        (products(40), 202), (news(100, 200), 102),
    ],
    ids=["600 draws", "140 draws", "400 photos", "60 photos", "599 posted", "40 posted", "100 news"],
)  # fmt: skip
async def test_true_pages_are_all_listed(tmp_path: Path, pages: dict[str, Page], expected: int) -> None:
    with served(pages) as (_, origin):
        result = await crawl(origin, tmp_path, concurrency=16)
    listed = [path for path in result.listed if "&x" not in path]
    assert len(listed) == expected


SESSIONS = ["a8f5f167f44f4964", "0cc175b9c0f1b6a8", "92eb5ffee6ae2fec", "4a8a08f09d37b737"]


async def test_pages_under_ids_of_sessions_are_listed_once_each(tmp_path: Path) -> None:
    """Each answer links to the pages of the site with another id."""
    names = [f"page{number}" for number in range(11)]

    def page(path: str, _: dict[str, str]) -> CannedResponse:
        name = path.rpartition("/")[2]
        other = SESSIONS[(SESSIONS.index(path.split("/")[2]) + 1 + len(name)) % len(SESSIONS)]
        words = random.Random(name).randbytes(20).hex(" ")
        return html(f"About {words}", *(f"/s/{other}/{one}" for one in names))

    site = {f"/s/{sid}/{name}": page for sid in SESSIONS for name in names}
    with served({"/": start(f"/s/{SESSIONS[0]}/page0"), **site}) as (_, origin):
        result = await crawl(origin, tmp_path)
    assert sorted(path.rpartition("/")[2] for path in result.listed) == sorted(["", *names])


async def test_choices_that_all_links_carry_on_are_no_pages(tmp_path: Path) -> None:
    """Three parameters with two values each: there are 27 addresses of each page."""
    names = ["", *(f"page-{at}" for at in range(60))]
    choices = {"theme": ("dark", "light"), "size": ("big", "small"), "view": ("grid", "rows")}

    def page(path: str, query: dict[str, str]) -> CannedResponse:
        at = names.index(path[1:])
        near = [(f"/{name}", query, name) for name in (names + names)[at : at + 8]]
        near += [(path, query | {key: one}, one) for key, values in choices.items() for one in values]
        anchors = "".join(f'<a href="{to}?{urlencode(given)}">{said}</a>' for to, given, said in near)
        words = random.Random(at).randbytes(20).hex(" ")
        return Site.answer(200, f"<title>{path}</title><p>{words}{anchors}".replace('?"', '"').encode())

    with served(dict.fromkeys((f"/{name}" for name in names), page)) as (_, origin):
        result = await crawl(origin, tmp_path, concurrency=16)
    assert sorted(result.listed) == sorted(f"/{name}" for name in names)


async def test_spellings_of_an_address_are_listed_once(tmp_path: Path) -> None:
    spellings = ["/a", "/a/", "/A", "/a//", "/a.html", "/a/index.html", "/a?x=", "/%61%2Fb", "/a/b"]
    site = {name: (lambda *_: html("one text", "/")) for name in spellings}
    with served({"/": start(*spellings, "/a"), "/links": start("/a"), **site}) as (_, origin):
        result = await crawl(origin, tmp_path)
    assert sorted(result.listed) == ["/", "/a", "/a/b"]


async def test_errors_with_status_200_in_any_folder_are_not_listed(tmp_path: Path) -> None:
    dead = [f"/archive/{number}/x{number}" for number in range(40)] + [
        f"/s?q=w{number}" for number in range(9)
    ]
    pages = {"/": start("/a", *dead), "/a": start("/"), "*": lambda *_: html("We are sorry.")}
    with served(pages) as (_, origin):
        result = await crawl(origin, tmp_path)
    assert sorted(result.listed) == ["/", "/a"]
    assert result.outcomes["unlisted:soft-404"] == len(dead)


@pytest.mark.parametrize("posted", [2, 3, 200])
async def test_days_without_news_are_not_listed(tmp_path: Path, posted: int) -> None:
    """Of two pages that any address gets, one is listed; true days stay, whatever they say."""
    pages = news(60, posted)

    def other(path: str, _: dict[str, str]) -> CannedResponse:
        return html("Nothing happened.", "/") if path.startswith("/events/") else Site.answer(404, b"")

    true = [path for path in pages if path.startswith("/news/")]
    with served(pages | {"*": other}) as (_, origin):
        result = await crawl(origin, tmp_path)
    listed = {path for path in result.listed if not path.startswith("/events/")}
    assert listed == {"/", "/guests", *true}
    assert len(result.listed) - len(listed) == (1 if posted < 3 else 0)


@pytest.mark.parametrize("form", ["/calendar/{}/event-{}", "/event?date={}&id={}"])
async def test_events_whose_dates_mean_nothing_are_listed(tmp_path: Path, form: str) -> None:
    names = [form.format(f"2024-05-{at + 1:02}", at) for at in range(9)]

    def event(path: str, query: dict[str, str]) -> CannedResponse:
        if path == "/robots.txt":
            return Site.answer(404, b"")
        at = int(query.get("id") or path.rpartition("-")[2])
        said = f"<title>Event</title><p>{random.Random(at).randbytes(20).hex(' ')}"
        return Site.answer(200, f"{said}<a href={names[(at + 1) % 9].replace('&', '&amp;')}>x</a>".encode())

    with served({"/": start(names[0]), "*": event}) as (_, origin):
        result = await crawl(origin, tmp_path)
    assert sorted(result.listed) == sorted(["/", *names])


@pytest.mark.parametrize("folder", ["/2024/05/17/", "/minutes/2024-05-17/"])
async def test_errors_in_the_folder_of_a_day_have_an_end(tmp_path: Path, folder: str) -> None:
    names = [f"{folder}a{at}" for at in range(12)]

    def page(path: str, _: dict[str, str]) -> CannedResponse:
        some = random.Random(path)
        if not path.startswith(folder):
            return Site.answer(404, b"")
        if path in names:
            return html(some.randbytes(20).hex(" "), f"{folder}gone-{path[-1]}")
        links = "".join(f"<a href={folder}{some.randrange(10**9):x}-x>x</a>" for _ in range(2))
        said = f"<title>No such page</title><p>Sorry, no such page. <p>Perhaps {some.random()}? {links}"
        return Site.answer(200, said.encode())

    with served({"/": start(*names), "*": page}) as (_, origin):
        result = await crawl(origin, tmp_path, max_pages=1_400)
    assert result.ending is Ending.COMPLETE
    assert sorted(result.listed) == sorted(["/", *names])


@pytest.mark.parametrize("pages", [1, 2, 3, 12])
async def test_last_page_of_a_list_that_comes_again_is_listed_once(tmp_path: Path, pages: int) -> None:
    """For any higher number it is shown, too. Its number is not."""

    def shown(path: str, query: dict[str, str]) -> CannedResponse:
        at = int(query.get("p", "1"))
        own = f"/thing/{'x' * min(at, pages)}"
        return html(f"All things<p>{words(min(at, pages)).translate(LETTERS)}", own, f"{path}?p={at + 1}")

    site: dict[str, Page] = {"/": start("/list?p=1"), "/list": shown, "/thing/*": lambda path, _: html(path)}
    with served(site) as (_, origin):
        result = await crawl(origin, tmp_path)
    lists = {f"/list?p={at}" for at in range(1, pages + 1)}
    assert {path for path in result.listed if path.startswith("/list")} == (
        lists if pages > 1 else {"/list?p=1"}
    )


@pytest.mark.parametrize(("count", "ignoring"), [(4, 4), (40, 40), (40, 2)])
async def test_copies_below_pages_are_listed_unless_none_is_a_page(
    tmp_path: Path, count: int, ignoring: int
) -> None:
    """Where some pages take seriously what follows their path, equal pages are listed."""
    names = [f"/dish{number}" for number in range(count)]
    below = [f"{name}/{word}" for name in names for word in ("a", "b", "c")]

    def dish(path: str, _: dict[str, str]) -> CannedResponse:
        at = int(path.split("/")[1].removeprefix("dish") or 0)
        if path not in below and path not in names and at >= ignoring:
            return Site.answer(404, b"")
        return html(f"Dish {words(at)}", "/")

    with served({"/": start(*names, *below), "*": dish}) as (_, origin):
        result = await crawl(origin, tmp_path)
    assert {"/", *names} <= set(result.listed)
    taken_seriously = [path for path in below if int(path.split("/")[1].removeprefix("dish")) >= ignoring]
    assert set(taken_seriously) <= set(result.listed)
    if count == ignoring:
        assert sorted(result.listed) == sorted(["/", *names])


@pytest.mark.parametrize("digits", [6, 8])
async def test_numbers_that_look_like_dates_unlist_nothing(tmp_path: Path, digits: int) -> None:
    """Each answer puts a new number into its links, of which some could be a month or day; it means nothing."""
    names = [f"topic-{number}" for number in range(30)]

    def forum(_: str, query: dict[str, str]) -> CannedResponse:
        name = query.get("topic", "")
        rolls = random.Random(f"{name} {query.get('n')}")
        new = rolls.choice(
            [rolls.randrange(10**digits), 20 * 10 ** (digits - 2) + rolls.choice([1105, 1206, 112])]
        )
        links = [f"/?topic={to}&n={new}" for to in (names if not name else rolls.sample(names, 4))]
        return html(f"{name} {words(len(name) and names.index(name))}", *links)

    with served({"/": forum}) as (_, origin):
        result = await crawl(origin, tmp_path)
    listed = {path.partition("&")[0].partition("=")[2] for path in result.listed}
    assert listed == {"", *names}


async def test_one_body_for_every_path_is_one_page(tmp_path: Path) -> None:
    names = [f"/x{number}" for number in range(30)]
    same = start(*names)
    with served({"/": same, "*": same}) as (_, origin):
        result = await crawl(origin, tmp_path)
    assert result.listed == ["/"]


def sorry(path: str, _: dict[str, str]) -> CannedResponse:
    """An error page that repeats the address, with a number, a time, and suggestions."""
    rolls = random.Random(path)
    some = "".join(
        f"<li><a href=/page{at}>Page {at}: {words(at)[:20]}</a>" for at in rolls.sample(range(40), 4)
    )
    said = f"Nothing at {path}<p>Incident {rolls.getrandbits(40):X}<p>{rolls.randrange(24)}:{rolls.randrange(60):02}"
    return html(f"{said}<p>You may like<ul>{some}</ul>", "/")


LETTERS = str.maketrans("0123456789", "ghijklmnop")


def words(at: int) -> str:
    return " ".join(random.Random(at).randbytes(2).hex() for at in range(at, at + 30))


@pytest.mark.parametrize(
    ("processes", "form"), [(1, "/{}"), (2, "/{}"), (1, "/{}/"), (1, "/{}.html"), (1, "/?page={}")]
)
async def test_errors_that_differ_are_neither_listed_nor_followed(
    tmp_path: Path, processes: int, form: str
) -> None:
    """Also where all addresses get a slash, those of nothing, too, or where no others than like its pages answer."""
    names = [form.format(f"page{number}") for number in range(40)]
    dead = [form.format(f"{folder}/gone-{at}") for folder in ("old", "new/2024") for at in range(30)]

    def page(path: str, query: dict[str, str]) -> CannedResponse:
        asked = f"/?page={query['page']}" if "page" in query else path
        if asked == "/":
            return start(*names)(path, query)
        if asked in names:
            number = names.index(asked)
            return html(f"You may like this: {words(number)}", "/", *dead[:: number % 7 + 1])
        if form.endswith("/") and not path.endswith("/"):
            return moved(f"{path}/")(path, query)
        return sorry(asked, query) if form.startswith("/?") or asked.endswith(form[3:]) else Site.answer(404)

    with served({"*": page}) as (_, origin):
        first = await crawl(origin, tmp_path, processes=processes)
        second = await crawl(origin, tmp_path, processes=processes)
    assert sorted(first.listed) == sorted(["/", *names])
    assert first.outcomes["unlisted:soft-404"] == len(dead)
    assert (second.listed, second.outcomes) == (first.listed, first.outcomes)


@pytest.mark.parametrize(
    ("bare", "count"), [("default", 2), ("default", 25), ("redirect", 2), ("redirect", 25), ("error", 2)]
)
async def test_what_queries_show_by_default_is_listed(tmp_path: Path, bare: str, count: int) -> None:
    """A manual in several editions: for an unknown one it shows its newest, with a line by chance."""
    names = [f"/manual?edition={chr(97 + at)}-e" for at in range(count)]

    def manual(path: str, query: dict[str, str]) -> CannedResponse:
        if not query and bare != "default":
            return moved(names[-1])(path, query) if bare == "redirect" else Site.answer(404)
        asked = f"{path}?edition={query.get('edition')}"
        at = names.index(asked) if asked in names else count - 1
        tip = words(random.Random(asked).randrange(9_000, 9_900))
        said = f"<title>Manual</title><main><p>{words(100 * at)}</p><p>Tip of the day: {tip}</p></main>"
        return Site.answer(200, said.encode())

    with served({"/": start(*names), "/manual": manual}) as (_, origin):
        result = await crawl(origin, tmp_path)
    assert [name for name in names if name not in result.listed] == []


@pytest.mark.parametrize(
    ("form", "most"),
    [
        ("/search/{}", 0),
        ("/search/{}/", 0),
        ("/search/{}.html", 0),
        ("/search?q={}", 0),
        ("/search/{}/all", 1),
        ("/search-{}.html", 1),
    ],
)
async def test_searches_that_show_random_pages_are_none(tmp_path: Path, form: str, most: int) -> None:
    folder, end = form.split("{}")
    names = [f"/page{number}{end}" for number in range(20)]

    def answer(path: str, query: dict[str, str]) -> CannedResponse:
        if path in names:
            return html(words(names.index(path)), "/")
        asked = path + "".join(f"?q={value}" for value in query.values())
        if not asked.startswith(folder) or not asked.endswith(end):
            return Site.answer(404, b"")
        said, rolls = asked.removeprefix(folder).removesuffix(end), random.Random(asked)
        more = (form.format(f"{said}-{rolls.randrange(99)}") for _ in range(2))
        return html(f"Results for {said}: 3 pages", "/", *rolls.sample(names, 3), *more)

    searches = (form.format(f"{number:02x}tea") for number in range(25))
    with served({"/": start(*names, *searches), "*": answer}) as (_, origin):
        result = await crawl(origin, tmp_path)
    assert {"/", *names} <= {*result.listed}
    assert len(result.listed) <= len({"/", *names}) + most


@pytest.mark.parametrize(
    ("to", "linked", "listed"),
    [
        ("/gone", (), []),
        ("/gone?of={}", (), []),
        ("/gone", ("/gone",), ["/gone"]),  # a true page, shown for what is missing
        ("/gone?of={}", ("/gone?of=lamp",), ["/gone?of=lamp"]),
        ("/gone/{}", (), ["/gone/old-0", "/gone/old-1"]),  # no one page
    ],
)
async def test_pages_only_redirects_of_nothing_lead_to_are_errors(
    tmp_path: Path, to: str, linked: tuple[str, ...], listed: list[str]
) -> None:
    """They suggest something else for each address, so that no two are alike."""
    names, dead = [f"/page{number}" for number in range(12)], ["/old-0", "/old-1"]

    def answer(path: str, query: dict[str, str]) -> CannedResponse:
        if path in names:
            return html(words(names.index(path)), "/")
        if path.startswith("/gone"):
            said = random.Random(path + query.get("of", "")).sample(names, 3)
            return html(f"Perhaps {words(names.index(said[0]))}", "/", *said)
        return moved(to.format(path[1:]))(path, query)

    with served({"/": start(*names, *dead, *linked), "*": answer}) as (_, origin):
        result = await crawl(origin, tmp_path)
    assert {*result.listed} == {"/", *names, *listed}


async def test_products_that_are_sold_out_are_no_errors(tmp_path: Path) -> None:
    names = [f"/p/ab{number}" for number in range(30)]

    def product(path: str, _: dict[str, str]) -> CannedResponse:
        name = path.rpartition("/")[2]
        if path in names:
            return html(f"Product {name}<p>Article {name} is out of stock.<p>{words(int(name[2:]))}", "/")
        return html(f"Product {name}<p>Article {name} is unknown.", "/")

    linked = [*names, *(f"/p/x{number}" for number in range(20))]
    with served({"/": start(*linked), "*": product}) as (_, origin):
        result = await crawl(origin, tmp_path)
    assert sorted(result.listed) == sorted(["/", *names])


async def test_pages_with_an_ignored_parameter_are_listed_once(tmp_path: Path) -> None:
    """The page without the parameter is never linked."""
    names = [f"/tale{number}" for number in range(8)]
    came = [f"{name}?cameby={other[1:]}" for name in names for other in names[:5]]

    def tale(path: str, _: dict[str, str]) -> CannedResponse:
        return html(f"Tale {words(int(path[5:]))}", "/")

    with served({"/": start(*came), **dict.fromkeys(names, tale)}) as (_, origin):
        result = await crawl(origin, tmp_path)
    assert sorted(path.partition("?")[0] for path in result.listed) == ["/", *names]


async def test_parameters_that_mean_something_elsewhere_are_ignored(tmp_path: Path) -> None:
    """The order of a list in the links to its products; it stands before and behind what tells them apart."""
    orders = ["", "&by=price", "&by=name"]
    names = [f"/?at=product&id={number}" for number in range(60)]

    def shop(_: str, query: dict[str, str]) -> CannedResponse:
        by = query.get("by", "")
        if query.get("at") == "product" and int(query["id"]) < 60:
            return html(f"Lamp {words(int(query['id']))}", "/")
        if query.get("at") not in {None, "list"}:
            return Site.answer(404, b"")
        shown = random.Random(by).sample(range(60), 60)
        carried = f"list={by}&" if by else ""
        to = (f"/?{carried}at=product&id={at}{f'&by={by}' if by else ''}" for at in shown)
        return html(f"List {shown}", *(f"/?at=list{order}" for order in orders), *to)

    with served({"/": shop}) as (_, origin):
        result = await crawl(origin, tmp_path)
    assert sorted(result.listed) == sorted(["/", "/?at=list&by=name", "/?at=list&by=price", *names])


async def test_posts_that_show_their_topic_are_not_listed(tmp_path: Path) -> None:
    """Any number of a post does; a word in its place may be a page of its own."""

    def board(_: str, query: dict[str, str]) -> CannedResponse:
        if not re.fullmatch(r"(1?[0-9]|20)\.(0|new|msg[0-9]+)", query.get("t", "")):
            return Site.answer(404, b"")
        topic = query["t"].partition(".")[0]
        return html(f"Topic {words(int(topic))}", f"/board?t={topic}.new", f"/board?t={topic}.msg{topic}")

    topics = [f"/board?t={number}.0" for number in range(21)]
    with served({"/": start(*topics), "/board": board}) as (_, origin):
        result = await crawl(origin, tmp_path)
    assert {*topics, "/"} <= {*result.listed}
    assert [url for url in result.listed if "msg" in url] == []


async def test_histories_that_go_on_are_listed_once_each(tmp_path: Path) -> None:
    """All under one script, and alike but for the name of their page, which is a part of their address."""
    names = [f"fox{number}" for number in range(20)]

    def wiki(_: str, query: dict[str, str]) -> CannedResponse:
        page = query.get("page", "")
        if page not in names:
            return Site.answer(404, b"")
        if "from" not in query:
            return html(f"{page} {words(int(page[3:]))}", f"/w?page={page}&from=0")
        return html(f"History of {page}: no changes.", f"/w?page={page}&from={int(query['from']) + 50}")

    with served({"/": start(*(f"/w?page={name}" for name in names)), "/w": wiki}) as (_, origin):
        result = await crawl(origin, tmp_path)
    histories = [f"/w?page={name}&from=0" for name in names]
    assert sorted(result.listed) == sorted(["/", *(f"/w?page={name}" for name in names), *histories])


@pytest.mark.parametrize(
    "form", ["/tale{}/{}", "/tale{}/{}/", "/tales/{}/{}.html", "/tale{}-{}.html", "/tale{}?as={}"]
)
@pytest.mark.parametrize("many", [1, 9])
async def test_pages_with_any_name_after_theirs_are_listed_once(tmp_path: Path, form: str, many: int) -> None:
    """Of each page or of one of them, several such addresses are linked, but not its own."""
    names = [form.format(number, "x") for number in range(9)]
    came = [form.format(number, name) for number in range(many) for name in ("red-fox", "foxes", "a-fox")]
    at = names[0].index("0")

    def tale(path: str, query: dict[str, str]) -> CannedResponse:
        is_tale = path[:at] == names[0][:at] and (path[at + 1 :] or query)
        return html(f"Tale {words(int(path[at]))}", "/") if is_tale else Site.answer(404, b"")

    with served({"/": start(*came, *names[many:]), "*": tale}) as (_, origin):
        result = await crawl(origin, tmp_path)
    assert sorted(path[: at + 1] for path in result.listed) == ["/", *(name[: at + 1] for name in names)]


@pytest.mark.parametrize("says", ["This was here once", "There is nothing more in {}"])
async def test_folders_of_errors_are_not_listed(tmp_path: Path, says: str) -> None:
    gone = [f"/{folder}/{name}" for folder in ("old", "older", "oldest") for name in ("a", "b", "c")]

    def error(path: str, _: dict[str, str]) -> CannedResponse:
        return (
            html(says.format(path.split("/")[1]), "/") if path.startswith("/old") else Site.answer(404, b"")
        )

    with served({"/": start(*gone, "/news"), "/news": start("/"), "*": error}) as (_, origin):
        result = await crawl(origin, tmp_path)
    assert [url for url in result.listed if url in gone] == []


@pytest.mark.parametrize("form", ["/{}/{}", "/{}?q={}"])
async def test_searches_beside_each_other_find_nothing(tmp_path: Path, form: str) -> None:
    says = {"books": "Nobody wrote it", "films": "Never seen on screens", "songs": "It is still unsung"}
    searches = [form.format(folder, name) for folder in says for name in ("a", "b", "c")]

    def search(path: str, query: dict[str, str]) -> CannedResponse:
        folder, *asked = path.strip("/").split("/")
        if folder not in says:
            return Site.answer(404, b"")
        return html(says[folder] if asked or query else f"Search for {folder}", "/")

    forms = ["/books", "/films", "/songs"]
    with served({"/": start(*forms, *searches), "*": search}) as (_, origin):
        result = await crawl(origin, tmp_path)
    assert sorted(result.listed) == ["/", *forms]


@pytest.mark.parametrize("form", ["/tale{}?edition={}", "/tale{}/{}"])
async def test_pages_with_links_by_chance_are_listed_once(tmp_path: Path, form: str) -> None:
    came = [form.format(number, year) for number in range(9) for year in range(2001, 2006)]
    other = came[2]  # of one title with others, and no example of those that are asked

    def tale(path: str, query: dict[str, str]) -> CannedResponse:
        if not path.startswith("/tale"):
            return Site.answer(404, b"")
        chance = random.Random(f"{path}{query}").sample(came, 3)
        linked = "".join(f'<a href="{link}">{words(int(link[5]))[:9]}</a>' for link in chance)
        said, asked = (
            f"Tale {words(int(path[5]))}",
            path + "".join(f"?edition={year}" for year in query.values()),
        )
        more = words(99) if asked == other else ""
        return Site.answer(200, f"<title>{said}</title><h1>{said}</h1>{more}{linked}".encode())

    with served({"/": start(*came), "*": tale}) as (_, origin):
        result = await crawl(origin, tmp_path)
    assert other in result.listed
    tales = sorted(path[:6] for path in result.listed if path != other)
    assert tales == ["/", *(f"/tale{number}" for number in range(9))]


@pytest.mark.parametrize(
    "shows", ["a caption", "links of its own", "the first page", "links in place of a quote"]
)
async def test_pages_beside_others_by_chance_are_all_listed(tmp_path: Path, shows: str) -> None:
    """Nonsense is answered with something random, under one title; true values have something of their own."""
    shelves = [f"/shelf?at={number}" for number in range(12)]

    def shelf(path: str, query: dict[str, str]) -> CannedResponse:
        rolls, at = random.Random(str(query)), query.get("at", "")
        is_true = f"{path}?at={at}" in shelves
        known = int(at) if is_true else 0
        chance = "".join(f'<a href="/b{n}">{words(n)}</a>' for n in rolls.sample(range(90, 200), 3))
        own = "".join(f'<a href="/b{n}">{words(n)}</a>' for n in range(7 * known, 7 * known + 7))
        body = {
            "a caption": words(300 + known) if is_true else chance,
            "links of its own": own if is_true else chance,
            "the first page": own + chance,
            "links in place of a quote": own[: own.index("</a>") + 4]
            if is_true
            else words(rolls.randrange(99)),
        }[shows]
        more = "".join(f'<a href="{link}">x</a>' for link in shelves)
        text = f"<title>Shelf</title><h1>What stands on our shelf, in this order</h1>{body}{more}"
        return Site.answer(200, text.encode())

    def book(path: str, _: dict[str, str]) -> CannedResponse:
        return (
            html(f"Book <p>{words(int(path[2:]))}", "/") if path.startswith("/b") else Site.answer(404, b"")
        )

    with served({"/": start(*shelves), "/shelf": shelf, "*": book}) as (_, origin):
        result = await crawl(origin, tmp_path)
    assert [url for url in shelves if url not in result.listed] == []


@pytest.mark.parametrize("form", ["/tale{}?", "/tales?of=tale{}&"])
@pytest.mark.parametrize("says", ["welcome, friend of {}", "{} costs {price}", "{} was never made"])
async def test_pages_that_only_name_a_value_are_no_pages(tmp_path: Path, says: str, form: str) -> None:
    """One is posted for each page. If only known values are named so, and others otherwise, they are pages."""
    names = [form.format(number)[:-1] for number in range(12)]
    known = [f"{form.format(number)}about=nora{number}" for number in range(12)]

    def tale(path: str, query: dict[str, str]) -> CannedResponse:
        about, which = query.get("about"), query.get("of", path)
        number = int(which[which.index("tale") + 4 :])
        is_known = about == f"nora{number}" or "was" not in says
        price = random.Random(f"{number}{about}").random()
        named = (says if is_known else "nothing about {}").format(about, price=price) if about else ""
        text = f"<title>tale{number}</title><p>{words(number)}<p>{named}</p><a href=/>x</a>"
        return Site.answer(200, text.encode())

    paths = {name.partition("?")[0] for name in names}
    with served({"/": start(*names, *known), **dict.fromkeys(paths, tale)}) as (_, origin):
        result = await crawl(origin, tmp_path)
    are_pages = "friend" not in says
    assert sorted(result.listed) == sorted(["/", *names, *(known if are_pages else ())])


@pytest.mark.parametrize(("segment", "posted"), [(0, ("{}x", "{}y")), (-1, ("{}?x=1", "{}?x=2"))])
async def test_a_posted_link_moves_no_page_to_another_address(
    tmp_path: Path, segment: int, posted: tuple[str, ...]
) -> None:
    """Of a site that looks at one segment only, where it is one more page that links to copies."""
    names = ("about", "team", "prices")

    def of_segment(path: str, _: dict[str, str]) -> CannedResponse:
        name = path.strip("/").split("/")[segment]
        return html(f"all of {name}", *(f"{to}/" for to in names)) if name in names else Site.answer(404, b"")

    home = start(
        *(f"{name}/" for name in names), *(form.format(f"/{to}/") for to in names for form in posted)
    )
    with served({"/": home, "*": of_segment}) as (_, origin):
        result = await crawl(origin, tmp_path)
    assert result.listed == ["/", *(f"/{name}/" for name in sorted(names))]


@pytest.mark.parametrize(
    "form", ["{0:%Y-%m-%d}", "{0:%A, %d %B %Y}", "{0.day}</li><li>no bookings", "{0:%d.%m.%Y}"]
)
@pytest.mark.parametrize("path", ["/rooms/{0:%Y-%m}/view", "/rooms/{0:%Y-%m}", "/rooms?month={0:%Y-%m}"])
async def test_empty_months_that_show_their_days_have_an_end(tmp_path: Path, form: str, path: str) -> None:
    def month(path_of: str, query: dict[str, str]) -> CannedResponse:
        found = re.search(r"(\d{4})-(\d\d)", query.get("month", path_of))
        if found is None or not 1 <= int(found[2]) <= 12:
            return Site.answer(404, b"")
        first = date(int(found[1]), int(found[2]), 1)
        days = [day for at in range(31) if (day := first + timedelta(at)).month == first.month]
        near = [path.format(first + timedelta(at)) for at in (-1, 32)]
        shown = "".join(f"<li>{form.format(day)}</li>" for day in days)
        links = "".join(f'<a href="{link}">x</a>' for link in near)
        text = f"<title>{first:%B %Y}</title><main><ul>{shown}</ul>{links}</main>"
        return Site.answer(200, text.encode())

    clubs = {f"/club/{name}": (lambda path, _: html(f"The club {path}", "/")) for name in "abcdefgh"}
    site = {"/": start(*clubs, path.format(date(2026, 11, 1))), "*": month, **clubs}
    with served(site) as (_, origin):
        result = await crawl(origin, tmp_path, concurrency=16)
    assert result.ending is Ending.COMPLETE
    assert not [name for name in result.listed if "rooms" in name]


@pytest.mark.parametrize("says", ["canonical", "noindex", "moved"])
@pytest.mark.parametrize("item", ["/item?id={}", "/items/{}"])
async def test_pages_that_only_lists_lead_to_are_listed(tmp_path: Path, says: str, item: str) -> None:
    """The lists, or other addresses of the items, are not listed themselves, and are in a pattern."""
    items = [item.format(number) for number in range(300)]

    def listing(_: str, query: dict[str, str]) -> CannedResponse:
        at = int(query["n"])
        own = items[at * 3 : at * 3 + 3]
        if says == "moved":
            return moved(own[0])("", {})
        head = '<meta name="robots" content="noindex">'
        return html(
            f"List {at}", *own, head='<link rel="canonical" href="/">' if says == "canonical" else head
        )

    def one(path: str, query: dict[str, str]) -> CannedResponse:
        name = query.get("id", path.rpartition("/")[2])
        return html(f"Item {random.Random(name).randbytes(20).hex(' ')}", "/")

    expected = set(items[::3] if says == "moved" else items)
    found = {"/": start(*(f"/list?n={at}" for at in range(100))), "/list": listing}
    with served({**found, "/item": one, "/items/*": one}) as (_, origin):
        result = await crawl(origin, tmp_path, concurrency=16)
    assert expected <= set(result.listed)


@pytest.mark.parametrize(
    "form", ["/game?id={0}", "/game?id={0}&team={1}", "/game/{2:%Y-%m-%d}", "/games/{2:%Y/%m/%d}/"]
)
@pytest.mark.parametrize("status", [404, 200])
async def test_many_pages_that_say_the_same_are_listed(tmp_path: Path, form: str, status: int) -> None:
    """Results of 300 games, of which there are four, where other values are errors."""
    games = [form.format(at, at % 7, date(2024, 1, 1) + timedelta(at)) for at in range(300)]

    def game(path: str, query: dict[str, str]) -> CannedResponse:
        shown = path + "?" * bool(query) + "&".join(f"{name}={value}" for name, value in query.items())
        known = games.index(shown) if shown in games else None
        return (
            html(f"Result {known % 4}:1", "/") if known is not None else Site.answer(status, b"No such game")
        )

    site = {f"/round-{at}": start(*games[at * 30 : at * 30 + 30]) for at in range(10)}
    with served({"/": start(*site), **site, "*": game}) as (_, origin):
        result = await crawl(origin, tmp_path, concurrency=16)
    assert set(games) <= set(result.listed)
