"""Servers that answer any path: front controllers, path info, nested prefixes, letter case, slashes.

Their few true pages are linked relatively, so that each answer under a new path makes further paths.
"""

from dataclasses import replace

from benchmarks.zoo.site import (
    MISSING,
    WORDS,
    Reply,
    Request,
    Site,
    html_page,
    links,
    number,
    page,
    prose,
    worthless,
)

NEWS = ("about", "team", "prices", "contact", "history")


def last_segment(asked: Request) -> Reply:
    """A front controller that looks at the last segment only, and a menu of relative links."""
    name = asked.segments[-1] if asked.segments else "start"
    return page(name, (f"{to}/" for to in NEWS)) if name in (*NEWS, "start") else MISSING


def nearest_index(asked: Request) -> Reply:
    """PHP's own web server: an unknown path is answered by the nearest index page above it."""
    known = [int(part.removeprefix("unit-")) for part in asked.segments if part.startswith("unit-")]
    match asked.segments:
        case [] | ["old.html", *_]:
            return page("course", (f"unit-{n}/" for n in range(20)), text=links(["old.html/readme"]))
        case [unit, *rest] if known and unit == f"unit-{known[0]}" and known[0] < 20:
            if rest and rest[0] in {f"part-{n}.html" for n in range(6)}:
                return page(f"{unit} {rest[0]}", [f"part-{n}.html" for n in range(6)])
            return page(unit, [*(f"part-{n}.html" for n in range(6)), "handout/"])
        case _:
            return page("course", (f"unit-{n}/" for n in range(20)), text=links(["old.html/readme"]))


def nearest_route(asked: Request) -> Reply:
    """The same as routes in a query: a chapter without this route is the chapter, with links to routes below."""
    route = asked.query.get("r", "").strip("/")
    chapters = [f"chapter-{n}" for n in range(12)]
    first, _, rest = route.partition("/")
    if asked.path not in {"/", "/index.php"} or first not in chapters:
        return page("book", [f"/index.php?r={chapter}" for chapter in chapters])
    if rest in {f"verse-{n}" for n in range(7)}:
        return page(f"{first} {rest}", [f"/index.php?r={first}"])
    return page(first, [f"/index.php?r={route}/{to}" for to in (*(f"verse-{n}" for n in range(7)), "notes")])


def one_body(_: Request) -> Reply:
    """The same bytes for every path, with relative links: an application without its router."""
    return page("dashboard", ["orders/", "clients/", "orders/open", "settings/profile"])


def path_info(asked: Request) -> Reply:
    """A script that ignores what follows its name: `/view.php/anything`."""
    name = asked.query.get("page", "1")
    if not asked.path.startswith(("/view.php",)) and asked.path != "/":
        return MISSING
    if not name.isdigit() or not 1 <= int(name) <= 30:
        return MISSING
    to = [f"view.php?page={n}" for n in range(1, 31)]
    more = links([f"view.php/section?page={name}"])
    return page(f"view {name}", to, text=f"Chapter {name}. " + page(f"view {name}").body[-200:-120] + more)


def letter_case(asked: Request) -> Reply:
    """A server that ignores the case of letters, and editors who do not agree on it."""
    names = [f"product-{n}" for n in range(40)]
    name = asked.path.strip("/").lower()
    if name and name not in names:
        return MISSING
    at = names.index(name) if name else -1
    near = [f"/{names[(at + step) % 40]}" for step in (1, 2, 3)]
    return page(name or "shop", [near[0], near[1].title(), near[2].upper()])


def slashes(asked: Request) -> Reply:
    """Links are the folder, a slash, and a name that starts with a slash: each level has one slash more."""
    depth = len(asked.target) - len(asked.target.rstrip("/"))
    name = "/".join(asked.segments) or "start"
    names = [f"topic-{n}" for n in range(25)]
    if name not in (*names, "start"):
        return MISSING
    return page(name, [f"{'/' if depth > 1 else ''}{asked.path.rstrip('/')}//", *(f"/{to}/" for to in names)])


LANGUAGES = ("en", "de", "fr")


def languages(asked: Request) -> Reply:
    """A switch of languages puts its prefix before the current path; the server looks at the first one."""
    rest = [part for part in asked.segments if part not in LANGUAGES]
    language = next((part for part in asked.segments if part in LANGUAGES), "en")
    name = rest[-1] if rest else "start"
    if name not in {"start", *NEWS}:
        return MISSING
    switch = [f"/{to}{asked.path}" for to in LANGUAGES]
    return page(f"{language} {name}", [*(f"/{language}/{to}" for to in NEWS), *switch])


def spellings(asked: Request) -> Reply:
    """One page at /x, /x/, /x.html, /x/index.html and /x?."""
    name = asked.path.removesuffix("index.html").removesuffix(".html").strip("/")
    names = [f"lesson-{n}" for n in range(24)]
    if (name and name not in names) or asked.query:
        return MISSING
    at = names.index(name) if name else -1
    ends = ("", "/", ".html", "/index.html", "?")
    return page(name or "lessons", [f"/{names[(at + 1 + n // 5) % 24]}{ends[n % 5]}" for n in range(15)])


def dead_relative(asked: Request) -> Reply:
    """A template with one link too few slashes: below each page the missing folder is answered by the page."""
    names = [f"story-{n}" for n in range(60)]
    if not asked.segments:
        return page("stories", [f"/{name}" for name in names])
    if asked.segments[0] not in names:
        return MISSING
    return page(asked.segments[0], [f"{asked.path.rstrip('/')}/images/", "/"])


def matrix(asked: Request) -> Reply:
    """Each page appends the view to the path of the current one: /x;view=list;view=grid;..."""
    name = asked.path.partition(";")[0].strip("/")
    names = [f"item-{n}" for n in range(30)]
    if name and name not in names:
        return MISSING
    views = [f"{asked.path}{';' if name else 'item-0;'}view={view}" for view in ("list", "grid")]
    return page(name or "items", [*(f"/{to}" for to in names), *views])


def all_paths(asked: Request) -> Reply:
    """Echoes the path and links below it."""
    names = [f"guide-{n}" for n in range(15)]
    if asked.path == "/" or asked.path.strip("/") in names:
        return page(asked.path.strip("/") or "guides", [*(f"/{name}" for name in names), "/files/"])
    below = asked.path.rstrip("/")
    return worthless(f"Index of {below}", "This folder is empty.", [f"{below}/new/", f"{below}/old/"])


def first_segment(asked: Request) -> Reply:
    """A front controller that looks at the first segment only, and a menu that is relative as well."""
    name = asked.segments[0] if asked.segments else "start"
    return page(name, (f"{to}/" for to in NEWS)) if name in {*NEWS, "start"} else MISSING


def catch_all(asked: Request) -> Reply:
    """A file server that answers whatever it does not have with the start page."""
    names = [f"area-{n}" for n in range(40)]
    name = asked.path.strip("/")
    start = page("start", (f"/{to}" for to in names))
    return page(name, [f"see/{name}", "/"]) if name in names else start


def redirects_on(asked: Request) -> Reply:
    """Chains of redirects that never arrive, three from each page."""
    names = [f"offer-{n}" for n in range(20)]
    if asked.segments[:1] == ["go"] and asked.segments[-1].isdigit():
        return Reply("", 302, {"Location": f"/go/{int(asked.segments[-1]) + 1}"})
    name = asked.path.strip("/")
    if name and name not in names:
        return MISSING
    return page(
        name or "offers",
        [*(f"/{to}" for to in names), *(f"/go/{1000 * len(name) + 97 * n}" for n in range(3))],
    )


def bad_missing(asked: Request) -> Reply:
    """The error page, with status 404, has relative links; so have all others, with one that is dead."""
    names = [f"part-{n}" for n in range(30)]
    name = asked.path.strip("/")
    known = not name or name in names
    reply = page(name or "parts", [*(f"/{to}" for to in names), "more/files/"])
    return reply if known else Reply(reply.body, 404)


def near_spellings(asked: Request) -> Reply:
    """A server that takes letter case, slashes and endings seriously: each spelling is another page."""
    names = [form.format(n) for n in range(20) for form in ("/set-{}", "/Set-{}", "/set-{}/", "/set-{}.html")]
    if asked.target == "/":
        return page("sets", names)
    return (
        page(asked.target, ["/"], text=f"{asked.target.count('/')} of {page(asked.target).body[-120:-60]}")
        if asked.target in names
        else MISSING
    )


def escapes(asked: Request) -> Reply:
    """Addresses with letters beyond ASCII, which are escaped in several ways."""
    names = [f"/café-{n}" for n in range(24)]
    if asked.path == "/":
        forms = ("/caf%C3%A9-{}", "/caf%c3%a9-{}", "/café-{}", "/%63af%C3%A9-{}")
        return page("cafés", [form.format(n) for n in range(24) for form in forms])
    return page(asked.path.strip("/"), ["/"]) if asked.path in names else MISSING


def step_views(asked: Request) -> Reply:
    """A tour whose steps only name their number, which stands in the middle of their addresses."""
    names = [f"/guide-{n}" for n in range(30)]
    match asked.segments:
        case []:
            return page("tour", [*names, "/step/1/view"])
        case ["step", step, "view"]:
            now = int(step) if step.isdigit() and len(step) < 9 else 1
            to = [f"/step/{2 * now + n}/view" for n in (0, 1)]
            said = worthless("Tour", f"Step {step} of the tour.", to)
            return replace(said, content="a step", optional=True)
        case _:
            return page(asked.target, ["/"]) if asked.target in names else MISSING


def chain_and_topics(asked: Request) -> Reply:
    """Topics in a query, and pages without end that say the same and each lead to the next one."""
    topics = [f"/topic.php?name={name}" for name in WORDS[:30]]
    match asked.segments:
        case []:
            return page("topics", [*topics, "/more/1"])
        case ["more", at] if at.isdigit() and 0 < int(at) < 100_000:
            said = worthless("More", "Nothing to see here.", [f"/more/{int(at) + 1}"])
            return replace(said, content="more", optional=True)
        case _:
            return page(asked.target, ["/"]) if asked.target in topics else MISSING


def any_path(asked: Request) -> Reply:
    """The same topics; any path is a page without content that leads to two others, and some were posted."""
    topics, posted = [f"/?topic={name}" for name in WORDS[:30]], [f"/posted-{n}" for n in range(8)]
    if asked.target == "/" or asked.target in topics:
        return page(asked.target, [*topics, *posted, "/room/1/"] if asked.target == "/" else ["/"])
    at = number(asked.path)
    return worthless("Room", f"You are in {asked.path}.", [f"/room/{at % 9_973}/", f"/hall/{at % 9_967}/"])


def front_for_all(asked: Request) -> Reply:
    """A choice of languages; the front page of the first one is shown for anything that does not exist."""
    fronts = {
        f"/{language}/": [f"/{language}/{name}" for name in WORDS[at : at + 12]]
        for at, language in enumerate(LANGUAGES)
    }
    if asked.path == "/":
        return page("languages", [*fronts, "/old-prices"])
    if any(asked.path in pages for pages in fronts.values()):
        return page(asked.path, [f"{asked.path[:3]}/"])
    front = asked.path if asked.path in fronts else next(iter(fronts))
    shown = html_page("Welcome", prose(front), fronts[front], menu=fronts)
    return Reply(shown, content=front)


def menu_front(asked: Request) -> Reply:
    """A page of welcome leads to the front page, which alone leads to all others, and is shown for anything."""
    pages = [f"/{name}" for name in WORDS[:20]]
    if asked.path in ("/", "/news"):
        return page(asked.path, menu=["/home", "/news", *(["/old-prices"] if asked.path == "/" else [])])
    if asked.path in pages:
        return page(asked.path, menu=["/home"])
    return Reply(html_page("Home", prose("home"), pages, menu=["/home", "/news"]), content="home")


SITES = (
    Site("last-segment", last_segment, ("/", *(f"/{name}/" for name in NEWS)), "front controller, relative links", endless=True),
    Site(
        "nearest-index", nearest_index,
        ("/", *(f"/unit-{n}/" for n in range(20)), *(f"/unit-{n}/part-{m}.html" for n in range(20) for m in range(6))),
        "unknown paths get the nearest index page; a dead relative link", endless=True,
    ),
    Site(
        "nearest-route", nearest_route,
        ("/", *(f"/index.php?r=chapter-{n}{verse}" for n in range(12) for verse in ("", *(f"/verse-{m}" for m in range(7))))),
        "the same with routes in a query", endless=True,
    ),
    Site("one-body", one_body, ("/",), "the same bytes for every path", endless=True),
    Site("path-info", path_info, tuple(f"/view.php?page={n}" for n in range(1, 31)), "a script ignores what follows its name", endless=True),
    Site("menu-front", menu_front, ("/", "/home", "/news", *(f"/{name}" for name in WORDS[:20])), "what is missing is the front page, to which a menu leads"),
    Site("letter-case", letter_case, ("/", *(f"/product-{n}" for n in range(40))), "links in three cases to a server that ignores case"),
    Site("slashes", slashes, ("/", *(f"/topic-{n}/" for n in range(25))), "one slash more with every link", endless=True),
    Site(
        "languages", languages, tuple(f"/{language}/{name}" for language in LANGUAGES for name in (*NEWS, "")),
        "prefixes of languages pile up", endless=True,
    ),
    Site("spellings", spellings, ("/", *(f"/lesson-{n}" for n in range(24))), "five spellings of each page"),
    Site("dead-relative", dead_relative, ("/", *(f"/story-{n}" for n in range(60))), "below each page, any path is that page", endless=True),
    Site("matrix", matrix, ("/", *(f"/item-{n}" for n in range(30))), "matrix parameters pile up", endless=True),
    Site("empty-folders", all_paths, ("/", *(f"/guide-{n}" for n in range(15))), "empty folders in empty folders", endless=True),
    Site("first-segment", first_segment, ("/", *(f"/{name}/" for name in NEWS)), "front controller, the other way round", endless=True),
    Site("catch-all", catch_all, ("/", *(f"/area-{n}" for n in range(40))), "what is missing is the start page"),
    Site("redirects-on", redirects_on, ("/", *(f"/offer-{n}" for n in range(20))), "redirects that never arrive", endless=True),
    Site("links-on-404", bad_missing, ("/", *(f"/part-{n}" for n in range(30))), "relative links on errors with 404", endless=True),
    Site("near-spellings", near_spellings, ("/", *(form.format(n) for n in range(20) for form in ("/set-{}", "/Set-{}", "/set-{}/", "/set-{}.html"))), "true pages whose addresses nearly agree"),
    Site("step-views", step_views, ("/", *(f"/guide-{n}" for n in range(30))), "steps whose number stands in the middle of addresses", endless=True),
    Site("chain-and-topics", chain_and_topics, ("/", *(f"/topic.php?name={name}" for name in WORDS[:30])), "a chain of repeats beside pages in a query", endless=True),
    Site("any-path", any_path, ("/", *(f"/?topic={name}" for name in WORDS[:30])), "all true pages have a query, and any path is a page", endless=True),
    Site(
        "front-for-all", front_for_all,
        ("/", *(f"/{language}/{name}" for at, language in enumerate(LANGUAGES) for name in ("", *WORDS[at : at + 12]))),
        "what is missing is the front page of a language",
    ),
    Site("escapes", escapes, ("/", *(f"/caf%C3%A9-{n}" for n in range(24))), "four ways to escape one address"),
)  # fmt: skip
