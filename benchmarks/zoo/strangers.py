"""Guest books and templates with bad links: what one page, or a stranger who may write on it, does to a site."""

from collections.abc import Iterable
from datetime import date, timedelta

from benchmarks.zoo.calendars import NEWS
from benchmarks.zoo.site import MISSING, Reply, Request, Site, number, page, token, worthless

TRUE_NEWS = dict.fromkeys(f"/news{to}" for to in NEWS)
GOOD = tuple(f"/recipe-{n}" for n in range(100))


def _guests(asked: Request, posted: Iterable[str]) -> Reply | None:
    """A hundred recipes and a guest book."""
    if asked.target == "/":
        return page("kitchen", [*GOOD, "/guests"])
    if asked.target == "/guests":
        return page("guests", posted)
    return page(asked.target.strip("/"), ["/"]) if asked.target in GOOD else None


def parameters(asked: Request) -> Reply:
    """200 products by number; a guest posts 599 links that add a parameter to the first of them."""
    if asked.path == "/guests":
        return page("guests", [f"/product?id=1&{token(n)[:8]}=1" for n in range(599)])
    if asked.path == "/":
        return page("shop", ["/guests", *(f"/list-{n}" for n in range(20))])
    if asked.path.startswith("/list-"):
        at = int(asked.path.removeprefix("/list-"))
        return page(f"list {at}", [f"/product?id={n}" for n in range(at * 10 + 1, at * 10 + 11)])
    at = int(asked.query.get("id", "0"))
    return page(f"product {at}", ["/"]) if 0 < at < 201 else MISSING


def dates(asked: Request) -> Reply:
    """300 dated articles; a guest posts 599 other dates, which the site answers with the start of its archive."""
    if asked.path == "/":
        return page("news", ["/guests", *TRUE_NEWS])
    if asked.path == "/guests":
        return page("guests", [f"/news/{date(1980, 1, 1) + timedelta(n):%Y/%m/%d}" for n in range(599)])
    if asked.path in TRUE_NEWS:
        return page(f"news of {asked.path}", ["/"])
    return (
        worthless("Archive", "There was no news on this day.", ["/"])
        if asked.path.startswith("/news/")
        else MISSING
    )


def forbidden(asked: Request) -> Reply:
    """30 posted links to an area that answers 403."""
    return _guests(asked, [f"/admin/{token(n)[:6]}" for n in range(30)]) or Reply("Forbidden", 403)


def broken(asked: Request) -> Reply:
    """40 posted links to a program that answers 500."""
    found = _guests(asked, [f"/cgi-bin/old.pl?x={n}" for n in range(40)])
    return found or Reply("Error", 500 if asked.path.startswith("/cgi-bin/") else 404)


def gone(asked: Request) -> Reply:
    """150 posted links to nothing."""
    return _guests(asked, [f"/{token(n)[:8]}" for n in range(150)]) or MISSING


def busy(asked: Request) -> Reply:
    """20 posted links to a login that answers 429 for a while."""
    found = _guests(asked, [f"/account/{n}" for n in range(20)])
    return found or (
        Reply("Slow down", 429, {"Retry-After": "1"}) if asked.path.startswith("/account") else MISSING
    )


def bad_template(asked: Request) -> Reply:
    """Two relative links that lead nowhere on each of a hundred pages."""
    names = [f"/room-{n}/" for n in range(100)]
    if asked.path != "/" and asked.path not in names:
        return MISSING
    return page(
        asked.path.strip("/") or "hotel", [*names, *(["imprint", "terms"] if asked.path != "/" else [])]
    )


def deep_posts(asked: Request) -> Reply:
    """Posted links with parameters of any name, each of which the page repeats and links on to."""
    found = _guests(asked, (f"/recipe-{number(n, below=100)}?{token(n)[:5]}={n}" for n in range(150)))
    if found:
        return found
    name, more = asked.path, asked.target.partition("?")[2]
    return page(name.strip("/"), ["/", f"{name}?{more}&again=1"]) if name in GOOD else MISSING


ALL = ("/", "/guests", *GOOD)


def path_info(asked: Request) -> Reply:
    """300 posted links below true pages, which ignore what follows their address."""
    found = _guests(asked, [f"/recipe-{n % 100}/{token(n)[:7]}" for n in range(300)])
    name = "/" + "".join(asked.segments[:1])
    return found or (page(name.strip("/"), ["/"]) if name in GOOD else MISSING)


def sessions(asked: Request) -> Reply:
    """200 posted links to folders that look like sessions, which the site answers with its start page."""
    found = _guests(asked, [f"/{token(n)}/" for n in range(200)])
    return found or (page("kitchen", [*GOOD, "/guests"]) if len(asked.segments) == 1 else MISSING)


def unavailable(asked: Request) -> Reply:
    """60 posted links to a folder that is unavailable for a while."""
    found = _guests(asked, [f"/chat/{n}" for n in range(60)])
    return found or (Reply("Later", 503, {"Retry-After": "1"}) if asked.path.startswith("/chat") else MISSING)


def loops(asked: Request) -> Reply:
    """60 posted links to redirects that lead in a circle."""
    found = _guests(asked, [f"/r/{n}" for n in range(60)])
    if found or asked.segments[:1] != ["r"]:
        return found or MISSING
    return Reply("", 302, {"Location": f"/r/{(int(asked.segments[-1]) + 1) % 60}"})


def scattered(asked: Request) -> Reply:
    """Two links to failing programs on each of a hundred pages, each in a folder of its own."""
    names = [f"/dish-{n}" for n in range(100)]
    if asked.target == "/" or asked.target in names:
        at = int(asked.target.rpartition("-")[2] or -1) if "-" in asked.target else -1
        return page(
            asked.target.strip("/") or "dishes",
            [*names, *([f"/vote-{at}/up", f"/rate-{at}/5"] if at >= 0 else [])],
        )
    return Reply("Error", 500) if asked.path.startswith(("/vote-", "/rate-")) else MISSING


SITES = (
    Site("posted-parameters", parameters, ("/", "/guests", *(f"/list-{n}" for n in range(20)), *(f"/product?id={n}" for n in range(1, 201))), "599 posted links with parameters of their own"),
    Site("posted-dates", dates, ("/", "/guests", *TRUE_NEWS), "599 posted dates beside 300 true ones"),
    Site("posted-403", forbidden, ALL, "30 posted links that are forbidden"),
    Site("posted-500", broken, ALL, "40 posted links that fail"),
    Site("posted-404", gone, ALL, "150 posted links to nothing"),
    Site("posted-429", busy, ALL, "20 posted links to a login that is busy"),
    Site("posted-echoes", deep_posts, ALL, "150 posted links that the site repeats and extends", endless=True),
    Site("bad-template", bad_template, ("/", *(f"/room-{n}/" for n in range(100))), "two dead links on every page"),
    Site("posted-path-info", path_info, ALL, "300 posted links below true pages"),
    Site("posted-sessions", sessions, ALL, "200 posted links that are answered with the start page"),
    Site("posted-503", unavailable, ALL, "60 posted links to a folder that is unavailable"),
    Site("posted-loops", loops, ALL, "60 posted links to redirects in a circle"),
    Site("scattered-500", scattered, ("/", *(f"/dish-{n}" for n in range(100))), "two failing links on every page, each in its folder"),
)  # fmt: skip
