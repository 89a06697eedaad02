"""Images that do not answer: a finding, and left out of the next sitemap until they are back."""

import csv
import gzip
import json
import re
from pathlib import Path
from typing import Any

import pytest

from crawler.model.protocol import MAX_IMAGES
from tests.cli.test_external import GONE, Web, methods, names, web  # noqa: F401 - fixtures
from tests.commands import Run
from tests.postgres import new_state
from tests.server import Talk, http, moved

FILE = http("fine", Content_Type="application/octet-stream")


def shows(web: Web, *images: str, path: str = "/", links: str = "") -> None:  # noqa: F811
    """A page of the site with these images."""
    elements = "".join(f'<img src="{web.url(image)}" alt="">' for image in images)
    web.home.put(path, http(f"<!doctype html><title>A page</title><p>Text of {path}</p>{links}{elements}"))


def written(web: Web) -> list[str]:  # noqa: F811
    """The images in the sitemap."""
    text = gzip.decompress(Path("sitemaps/sitemap.xml.gz").read_bytes()).decode()
    found = re.findall("<image:loc>([^<]*)", text)
    return [url.removeprefix("http://").replace(f".example:{web.port}", ":") for url in found]


def asked_for(web: Web) -> int:  # noqa: F811
    """How many images of the site were asked for."""
    return len({line.partition(" ")[2] for line in methods(web.home) if line.endswith(".png")})


def left_out() -> Any:
    return json.loads(Path("r.json").read_text())["left_out"]


def faulty(web: Web) -> dict[str, dict[str, str]]:  # noqa: F811
    """The findings about images, by image."""
    found = {row["url"]: row for row in web.rows("findings", "--only", "broken-image")}
    return {
        url.removeprefix("http://").replace(f".example:{web.port}", ":"): row for url, row in found.items()
    }


def test_broken_images_are_found_and_left_out(web: Web, run: Run) -> None:  # noqa: F811
    shows(web, "/ok.png", "/gone.png", "/moved.png", "good:/fine.png", "bad:/gone.png", "bad:/odd.png",
          links='<a href="/b">B</a>')  # fmt: skip
    shows(web, "/gone.png", "/secret/a.png", path="/b")
    web.home.put("/robots.txt", http("User-agent: *\nDisallow: /secret/\n", Content_Type="text/plain"))
    for path in ("/ok.png", "/there.png"):
        web.home.put(path, FILE)
    web.home.put("/moved.png", moved("/there.png"))
    web.home.put("/gone.png", GONE)
    web.good.put("/fine.png", FILE)
    web.bad.put("/gone.png", GONE)
    web.bad.put("/odd.png", http("", "500 Internal Server Error"))

    assert web.crawl("--images")[0] == 0
    first = written(web)
    assert "home:/gone.png" in first
    assert [(url, row["status"], row["links"], row["new"]) for url, row in faulty(web).items()] == [
        ("home:/gone.png", "404", "2", "false"),
        ("bad:/gone.png", "404", "1", "false"),
        ("bad:/odd.png", "500", "1", "false"),
    ]
    assert not [line for line in methods(web.home) if "/secret/" in line]

    web.home.put("/gone.png", FILE)
    assert web.crawl("--images")[0] == 0
    kept = {*first} - {"home:/secret/a.png"}
    assert set(written(web)) == kept - {"home:/gone.png", "bad:/gone.png"}, "as known before"
    assert faulty(web).keys() == {"bad:/gone.png", "bad:/odd.png"}
    places = {row["place"] for row in web.rows("images") if row["image"] == web.url("bad:/gone.png")}
    assert places == {"missing"}
    [secret] = {row["place"] for row in web.rows("images") if "/secret/" in row["image"]}
    assert secret == "forbidden"

    assert web.crawl("--images")[0] == 0
    assert set(written(web)) == kept - {"bad:/gone.png"}, "back again"
    run.ok("export", web.url("home:/"), "--state", "s.db", "-o", "again")


def test_an_image_that_the_crawl_did_not_find_is_left_out(web: Web, run: Run) -> None:  # noqa: F811
    """A gallery links to the pictures that it shows: what the crawl knows needs no `--check-external`."""
    pictures = ["/gone.png", "/ok.png", "/down.png", "/secret/a.png"]
    web.home.put("/robots.txt", http("User-agent: *\nDisallow: /secret/\n", Content_Type="text/plain"))
    shows(web, *pictures, links="".join(f'<a href="{path}">Large</a>' for path in pictures))
    web.home.put("/ok.png", FILE)
    web.home.put("/gone.png", GONE)
    web.home.put("/down.png", http("", "500 Internal Server Error"))
    site, settings = web.url("home:/"), ("--images", "--rate", "0", "--retries", "0")
    run.ok("crawl", site, "--state", "s.db", *settings)
    assert written(web) == ["home:/ok.png", "home:/down.png"]
    assert "home:/gone.png" not in {row["image"] for row in web.rows("images") if row["place"] == "sitemap"}


def test_an_image_that_is_left_out_is_not_one_too_many(web: Web, run: Run) -> None:  # noqa: F811
    shows(web, "/gone.png", *(f"/{n}.png" for n in range(MAX_IMAGES)), links='<a href="/gone.png">Large</a>')
    web.home.put("/gone.png", GONE)
    _, _, err = run("crawl", web.url("home:/"), "--state", "s.db", "--images", "--rate", "0")
    assert len(written(web)) == MAX_IMAGES
    assert "images-cut" not in err


def test_images_are_asked_for_only_with_both_settings(web: Web) -> None:  # noqa: F811
    shows(web, "/gone.png")
    assert web.crawl()[0] == 0
    assert "HEAD /gone.png" not in methods(web.home)


def test_a_failing_host_leaves_no_image_out(web: Web) -> None:  # noqa: F811
    """It may work again before the sitemap is read."""
    shows(web, "/a.png")
    web.home.put("/a.png", http("", "503 Service Unavailable"))
    for _ in range(2):
        assert web.crawl("--images")[0] == 0
        assert written(web) == ["home:/a.png"]
    assert faulty(web)["home:/a.png"]["status"] == "503"


def test_the_limit_on_external_links_holds_for_images(web: Web) -> None:  # noqa: F811
    shows(web, *(f"/{number}.png" for number in range(5)), links='<a href="/b">B</a>')
    shows(web, "/1.png", "/2.png", path="/b")
    reports = [f"--report=r.{suffix}" for suffix in ("json", "html", "md")]
    _, _, said = web.crawl("--images", "--max-external", "2", *reports)
    assert asked_for(web) == 2
    assert left_out() == {"images": {"count": 3, "because": "max-external"}}
    for text in (said, Path("r.html").read_text(), Path("r.md").read_text()):
        assert "3 images not checked (max-external)" in text
    web.home.log.clear()
    web.crawl("--images", "--max-external", "1", *reports)
    assert asked_for(web) == 1, "also of those that were broken"
    assert left_out()["images"]["count"] == 4
    assert len(faulty(web)) == 2
    assert "not checked" not in web.crawl("--images", "--max-external", "5", *reports)[2]
    assert left_out() == {}


def test_the_limit_on_other_hosts_holds_for_images(web: Web) -> None:  # noqa: F811
    shows(web, "good:/a.png", "good:/b.png", "bad:/a.png", "/c.png")
    for host in (web.good, web.bad, web.home):
        for path in ("/a.png", "/b.png", "/c.png"):
            host.put(path, FILE)
    assert web.crawl("--images", "--max-external-hosts", "1", "--report=r.json")[0] == 0
    assert [any(".png" in line for line in methods(host)) for host in (web.good, web.bad)].count(True) == 1
    assert "HEAD /c.png" in methods(web.home)
    assert left_out()["images"]["because"] == "max-external-hosts"


def test_a_site_that_falls_silent_has_no_broken_images(web: Web) -> None:  # noqa: F811
    shows(web, *(f"/{number}.png" for number in range(6)))
    for number in range(6):
        web.home.put(f"/{number}.png", Talk.close)
    assert web.crawl("--images")[0] == 0
    assert faulty(web) == {}
    assert len({line.partition(" ")[2] for line in methods(web.home) if ".png" in line}) == 3


def test_a_broken_image_says_its_text_and_place(web: Web) -> None:  # noqa: F811
    figure = '<main><img src="/lamp.png" srcset="/big.png 2x" alt="Our &#x202e;blue&#10; lamp"></main>'
    badge = '<footer><a href="/b">B</a><img src="/badge.png" alt=""></footer>'
    web.home.put("/", http(f"<!doctype html><title>A</title>{figure}{badge}"))
    web.home.put("/b", http(f"<!doctype html><title>B</title><p>Text.</p>{badge}"))
    assert web.crawl("--images", "--report=r.md")[0] == 0
    lamp, badge_row = faulty(web)["home:/big.png"], faulty(web)["home:/badge.png"]
    assert (lamp["text"], lamp["place"], lamp["links"]) == ("Our blue lamp", "main", "1")
    assert (badge_row["text"], badge_row["place"], badge_row["links"]) == ("", "footer", "2")
    text = Path("r.md").read_text()
    assert "“Our blue lamp”" in text
    assert "| `broken-image` | 2 images on 2 pages |" in text
    assert "No links to other sites." in text
    assert methods(web.home).count("GET /") == 2
    assert methods(web.home).count("GET /b") == 1, "one page tells of an image"
    web.home.log.clear()
    assert web.crawl("--images")[0] == 0
    assert methods(web.home).count("GET /") == 1, "all is known"
    assert faulty(web)["home:/big.png"]["text"] == "Our blue lamp"


def test_no_page_is_read_for_images_without_wish(web: Web) -> None:  # noqa: F811
    shows(web, "/gone.png")
    assert web.crawl("--images", "--link-pages", "0")[0] == 0
    assert methods(web.home).count("GET /") == 1
    assert faulty(web)["home:/gone.png"]["text"] == ""


@pytest.mark.system
def test_members_of_a_run_check_images(web: Web) -> None:  # noqa: F811
    shows(web, "/gone.png")
    state = new_state()
    for _ in range(2):
        assert web.crawl("--images", "--state", state)[0] == 0
    assert written(web) == []


def test_every_page_of_a_broken_image_is_a_row(web: Web) -> None:  # noqa: F811
    """The report names eight pages; its table has all, with what is said of the image where it was read."""
    for number in range(12):
        shows(web, "/gone.png", path=f"/{number}")
    shows(web, "/gone.png", links="".join(f'<a href="/{number}">{number}</a>' for number in range(12)))
    assert web.crawl("--images", "--report=r.csv", "--report=r.json", "--report=r.html")[0] == 0
    with Path("r.csv").open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["code"] == "broken-image"]
    paths = ["/", *(f"/{number}" for number in range(12))]
    assert sorted(row["source"] for row in rows) == sorted(web.url(f"home:{path}") for path in paths)
    assert {(row["url"], row["links"]) for row in rows} == {(web.url("home:/gone.png"), "13")}
    (found,) = (
        one for one in json.loads(Path("r.json").read_text())["findings"] if one["code"] == "broken-image"
    )
    assert (found["count"], found["links"], found["pages"]) == (1, 13, 13)
    assert (len(found["items"][0]["from"]), found["items"][0]["site_wide"]) == (8, True)
    assert "13 pages, nearly all: the template" in Path("r.html").read_text()


def test_an_image_is_new_in_the_night_in_which_it_broke(web: Web) -> None:  # noqa: F811
    shows(web, "/ok.png", "/gone.png")
    web.home.put("/ok.png", FILE)
    assert web.crawl("--images", "--fail-on", "new:broken-image")[0] == 0
    assert {url: row["new"] for url, row in faulty(web).items()} == {"home:/gone.png": "false"}
    web.home.put("/ok.png", GONE)
    assert web.crawl("--images", "--fail-on", "new:broken-image")[0] == 8
    assert {url: row["new"] for url, row in faulty(web).items()} == {
        "home:/gone.png": "false", "home:/ok.png": "true",
    }  # fmt: skip
    assert web.crawl("--images", "--fail-on", "new:broken-image")[0] == 0
    assert {row["new"] for row in faulty(web).values()} == {"false"}


@pytest.mark.parametrize("host", ["home", "good"])
def test_a_page_in_place_of_an_image_is_broken(web: Web, host: str) -> None:  # noqa: F811
    """Many sites answer with their start page, and status 200, for what does not exist."""
    shows(web, f"{host}:/page.png", f"{host}:/odd.png")
    server = web.home if host == "home" else web.good

    def odd(talk: Talk) -> None:  # wrong about what a GET would bring
        kind = "text/html" if talk.asked.method == "HEAD" else "image/png"
        talk.say(http("", Content_Type=kind))

    server.put("/page.png", http("<title>Home</title>"))
    server.put("/odd.png", odd)
    assert web.crawl("--images")[0] == 0
    found = faulty(web)
    assert found.keys() == {f"{host}:/page.png"}
    row = found[f"{host}:/page.png"]
    assert (row["status"], row["detail"]) == ("200", "a web page answers in its place")
    assert web.crawl("--images")[0] == 0
    assert written(web) == [f"{host}:/odd.png"]
