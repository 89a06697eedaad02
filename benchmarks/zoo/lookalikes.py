"""True pages that look like a trap: near-equal texts, pictures only, one number, repeated segments."""

from datetime import date, timedelta

from benchmarks.zoo.site import (
    MISSING,
    Reply,
    Request,
    Site,
    html_page,
    name_of,
    number,
    page,
    prose,
    token,
    tree,
)

PHOTOS = tuple(f"/photo/{n}" for n in range(400))
PRODUCTS = tuple(f"/product?id={n}" for n in range(1, 201))


def _index(name: str, targets: tuple[str, ...], each: int = 50) -> dict[str, Reply]:
    """A start page and numbered lists of links to all."""
    lists = [f"/list-{n}" for n in range(0, len(targets), each)]
    pages = {"/": page(name, lists)}
    return pages | {
        to: page(f"{name} {to}", targets[n * each : (n + 1) * each]) for n, to in enumerate(lists)
    }


def _site(name: str, pages: dict[str, Reply], about: str) -> Site:
    """All of them in lists."""
    whole = _index(name, tuple(pages)) | pages
    return Site(name, tree(whole), tuple(whole), about)


def photo(to: str) -> Reply:
    """A picture without a word; the name of the page is in its address only."""
    shown = page("Gallery", ["/"], text=f'<img src="/files/{number(to)}.jpg">')
    return Reply(shown.body, content=to)


def product(to: str) -> Reply:
    """All products have one text; the price differs."""
    return Reply(
        page("Screw", ["/"], text=f"{prose('screw', 90)} Price: {number(to, below=90_000)} cents").body,
        content=to,
    )


def method(to: str) -> Reply:
    """A page of an API reference: a template, and the name of the method."""
    name = name_of(to).split()[-1]
    return Reply(
        page(f"{name} (API)", ["/"], text=f"Method {name}. Parameters: none. Returns: void.").body, content=to
    )


def office(to: str) -> Reply:
    """A branch office: the same text for all, and a telephone number."""
    return Reply(
        page("Our office", ["/"], text=f"{prose('office', 60)} Call {number(to):010}").body, content=to
    )


def same(to: str, group: str) -> Reply:
    """A page that says what another one says under an unrelated address."""
    return Reply(page(group, ["/"]).body, content=to)


def video(to: str) -> Reply:
    """A frame and no word."""
    shown = page("Watch", ["/"], text=f'<iframe src="https://video.test/embed/{token(to)[:11]}"></iframe>')
    return Reply(shown.body, content=to)


def swatch(to: str) -> Reply:
    """A colour: the page says nothing but its address."""
    name = to.rpartition("/")[2]
    shown = page(f"Colour {name}", ["/"], text=f'<span style="background:#{name}">{name}</span>')
    return Reply(shown.body, content=to)


VIDEOS = tuple(f"/watch?v={token('video', n)[:11]}" for n in range(120))


def record(to: str) -> Reply:
    """A record of a museum; most are not described yet."""
    at = int(to.rpartition("=")[2])
    if at % 12 == 5:
        return page(f"record {at}", ["/"])
    return Reply(page("Record", ["/"], text="No description yet.").body, optional=True)


RECORDS = {f"/record?inv={n}": record(f"/record?inv={n}") for n in range(480)}

ALBUMS = tuple(f"/album/{token('album', n)[:16]}" for n in range(30))


def album(to: str) -> Reply:
    """An album under an identifier; its cover page reads like that of all others."""
    album, _, leaf = to.removeprefix("/album/").partition("/")
    if leaf:
        return page(to, [f"/album/{album}/"])
    below = [f"/album/{album}/{n}" for n in range(4)]
    return Reply(page("Album", below, text=f'<img src="/covers/{album}.jpg">').body, content=to)


TIDES = tuple(f"/tides/{date(2025, 12, 29) + timedelta(n)}" for n in range(240))


def tide(to: str) -> Reply:
    """A day by the sea: whole dates, and the times of high water."""
    day = date.fromisoformat(to.rpartition("/")[2])
    times = (f"{day + timedelta(n):%A %d %B %Y}: {number(to, n, below=1440) / 100:05.2f}" for n in range(7))
    return Reply(page("Tides", ["/"], text="<br>".join(times)).body, content=to)


def numbered(asked: Request) -> Reply:
    """An honest archive of 250 records that say little but their number, each found by the one before."""
    name = asked.path.removeprefix("/record/")
    if asked.path == "/":
        return page("records", ["/record/1"])
    if not name.isdigit() or not 1 <= int(name) <= 250:
        return MISSING
    near = [f"/record/{at}" for at in (int(name) - 1, int(name) + 1) if 1 <= at <= 250]
    return Reply(html_page("Records", f"Sheet {name} of the register.", near), content=name)


SITES = (
    _site("photos", {to: photo(to) for to in PHOTOS}, "400 pages that differ in a picture"),
    _site("products", {to: product(to) for to in PRODUCTS}, "200 products that differ by one number"),
    _site("api-methods", {f"/api/{c}/{m}": method(f"/api/{c}/{m}") for c in ("list", "set", "map") for m in ("add", "clear", "copy", "find", "get", "has", "pop", "put", "size", "sort")}, "methods of an API, near-equal"),
    _site("offices", {f"/office/{n}": office(f"/office/{n}") for n in range(150)}, "offices that differ by a telephone number"),
    _site("releases", {f"/v{v}/guide-{n}": same(f"/v{v}/guide-{n}", f"guide {n}") for v in range(1, 6) for n in range(30)}, "the same pages in five releases"),
    _site("untranslated", {f"/{code}/help-{n}": same(f"/{code}/help-{n}", f"help {n}") for code in ("en", "it", "pl") for n in range(40)}, "translations that are not done yet"),
    _site("source-tree", {f"/src/main/lib/{a}/main/{b}/lib/{c}/main": page(f"{a} {b} {c}") for a in "abcd" for b in "abcd" for c in "abcd"}, "folders that are called the same at several depths"),
    _site("glossary", {f"/word/{prose(n, 1).strip('.')}-{n}": page(f"word {n}", ["/"], text=prose(("word", n), 2)) for n in range(200)}, "two words a page"),
    _site("houses", {f"/houses?id={n}&view=plan": page(f"house {n}", ["/"], text=f"{1 + n % 9} rooms, {40 + n} square metres") for n in range(160)}, "two parameters, and sizes"),
    _site("videos", {to: video(to) for to in VIDEOS}, "120 pages that differ in a frame"),
    _site("swatches", {f"/colour/{token(n)[:6]}": swatch(f"/colour/{token(n)[:6]}") for n in range(150)}, "pages that say nothing but their address"),
    _site("albums", {to: album(to) for at in ALBUMS for to in (f"{at}/", *(f"{at}/{n}" for n in range(4)))}, "folders under identifiers like sessions"),
    _site("tides", {to: tide(to) for to in TIDES}, "dates and times, and no other text"),
    _site("menus", {to: same(to, f"menu {n}") for n in range(40) for to in (f"/canteen-{n}", f"/canteen-{n}/today")}, "pages below others that say the same so far"),
    Site("museum", tree(_index("museum", tuple(RECORDS)) | RECORDS), (*_index("museum", tuple(RECORDS)), *(f"/record?inv={n}" for n in range(5, 480, 12))), "every twelfth page says something", distinct=480),
    Site("numbered-records", numbered, ("/", *(f"/record/{n}" for n in range(1, 251))), "true pages that say little but their number"),
)  # fmt: skip
