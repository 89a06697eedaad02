"""Parameters: searches, facets, orders, tracking, sessions, and pages that only differ by one."""

import re

from benchmarks.zoo.site import (
    MISSING,
    WORDS,
    Reply,
    Request,
    Site,
    links,
    name_of,
    number,
    page,
    prose,
    token,
    worthless,
)


def search(asked: Request) -> Reply:
    """Empty results that link to two more searches each."""
    term = asked.query.get("q", "")
    if asked.path == "/":
        return page("start", [*(f"/item-{n}" for n in range(30)), "/s?q=1"])
    if asked.path == "/s" and term.isdigit():
        return worthless(
            f"Results for {term}",
            f"Results for {term}. No results.",
            [f"/s?q={2 * int(term) + n}" for n in (0, 1)],
        )
    name = asked.path.strip("/")
    return page(name, ["/"]) if name in {f"item-{n}" for n in range(30)} else MISSING


THEMES = ("dark", "light")
COLOURS, SIZES, ORDERS = ("red", "blue", "green"), ("s", "m", "l"), ("name", "price")


def facets(asked: Request) -> Reply:
    """A shop with filters that can be combined: each subset is a list of its own, none is a page that must be listed."""
    if asked.path.startswith("/p/"):
        at = int(asked.segments[-1]) if asked.segments[-1].isdigit() else 99
        return page(f"product {at}", ["/"]) if at < 60 else MISSING
    if asked.path != "/":
        return MISSING
    chosen = asked.query
    found = [
        n for n in range(60)
        if chosen.get("colour", COLOURS[n % 3]) == COLOURS[n % 3] and chosen.get("size", SIZES[n // 3 % 3]) == SIZES[n // 3 % 3]
    ]  # fmt: skip
    found.sort(reverse=chosen.get("order") == "price")
    more = (
        [chosen | {"colour": c} for c in COLOURS]
        + [chosen | {"size": s} for s in SIZES]
        + [chosen | {"order": o} for o in ORDERS]
    )
    to = ["/?" + "&".join(f"{name}={value}" for name, value in one.items()) for one in more]
    reply = page("shop", [*(f"/p/{n}" for n in found), *to], text=f"{len(found)} products")
    return Reply(reply.body, content="" if chosen else "shop", optional=bool(chosen))


def orders(asked: Request) -> Reply:
    """Lists that can be sorted by any column, in both directions: the same rows."""
    folders = [f"/list-{n}" for n in range(8)]
    if asked.path == "/":
        return page("lists", folders)
    if asked.path not in folders:
        return MISSING
    rows = [prose((asked.path, n), 4) for n in range(20)]
    column, way = asked.query.get("by", "0"), asked.query.get("dir", "up")
    rows.sort(key=lambda row: row.split()[int(column) % 4], reverse=way == "down")
    to = [f"{asked.path}?by={n}&dir={turn}" for n in range(4) for turn in ("up", "down")]
    return Reply(page(asked.path, to, text="<br>".join(rows)).body, content=asked.path)


def origins(asked: Request) -> Reply:
    """Every link carries the page that it stands on: a parameter for tracking with a name of its own."""
    names = [f"tale-{n}" for n in range(40)]
    name = asked.path.strip("/")
    if name and name not in names:
        return MISSING
    at = names.index(name) if name else -1
    return page(
        name or "tales", [f"/{names[(at + step) % 40]}?cameby={name or 'home'}" for step in (1, 2, 5, 9)]
    )


def session_query(asked: Request) -> Reply:
    """A forum that puts a new session into every link, as its visitor takes no cookie."""
    new = token(asked.target)
    topic = asked.query.get("topic", "0")
    if asked.path != "/" or not topic.isdigit() or int(topic) > 50:
        return MISSING
    return page(f"topic {topic}", [f"/?topic={n}&zkey={new}" for n in range(51)])


def session_path(asked: Request) -> Reply:
    """A session in the first segment, another one with each answer."""
    names = [f"chapter-{n}" for n in range(10)]
    name = asked.segments[-1] if asked.segments else ""
    new = token(asked.target)
    if len(asked.segments) > 2 or (len(asked.segments) == 2 and name not in names):
        return MISSING
    shown = name if name in names else "contents"
    return page(shown, [f"/{new}/", *(f"/{new}/{to}" for to in names)])


def jsessionid(asked: Request) -> Reply:
    """A session after a semicolon, a new one with each answer."""
    name = asked.path.partition(";")[0].strip("/")
    names = [f"form-{n}" for n in range(40)]
    if name and name not in names:
        return MISSING
    return page(name or "forms", [f"/{to};jsessionid={token(asked.target).upper()}" for to in names])


def asp_session(asked: Request) -> Reply:
    """A session in brackets in the path, as ASP.NET has it."""
    names = [f"notice-{n}.aspx" for n in range(30)]
    name = asked.segments[-1] if asked.segments else ""
    mark = f"(S({token(asked.target)[:24]}))"
    if name.endswith(".aspx") and name not in names:
        return MISSING
    return page(name if name in names else "notices", [f"/{mark}/{to}" for to in names])


def clock(asked: Request) -> Reply:
    """Links carry a time, so that nothing is cached."""
    names = [f"report-{n}" for n in range(40)]
    name = asked.path.strip("/")
    if name and name not in names:
        return MISSING
    stamp = 1_790_000_000_000 + int(token(asked.target)[:8], 16)
    return page(name or "reports", [f"/{to}?nocache={stamp}" for to in names])


def replies(asked: Request) -> Reply:
    """Under each post a link to answer each of its comments: the post again, with a parameter."""
    names = [f"post-{n}" for n in range(40)]
    name = asked.path.strip("/")
    if name and name not in names:
        return MISSING
    answers = [f"/{name}?answer={1000 + 7 * n + len(name)}" for n in range(6)] if name else []
    return page(name or "blog", [*(f"/{to}" for to in names), *answers])


def wiki(asked: Request) -> Reply:
    """History, versions and print views of each article; the history has older pages without end."""
    names = [f"/Article_{n}" for n in range(40)]
    if asked.path == "/":
        return page("wiki", names)
    if asked.path not in names:
        return MISSING
    action, name = asked.query.get("action"), name_of(asked.path)
    views = [f"{asked.path}?action=history&offset=0", f"{asked.path}?printable=yes", f"{asked.path}?oldid=7"]
    if action == "history":
        offset = int(asked.query.get("offset", "0"))
        older = [f"{asked.path}?action=history&offset={offset + 50}"]
        reply = worthless(f"History of {name}", "No older versions.", older)
        return Reply(reply.body, content=f"history of {name}", optional=not offset)
    reply = page(name, [*names[:9], *views])
    return Reply(reply.body, content=name, optional=bool(asked.query))


def topics(asked: Request) -> Reply:
    """An honest forum: every topic is a number in a parameter, and has text of its own."""
    at = int(asked.query.get("t", "0"))
    if asked.path not in {"/", "/viewtopic"} or at > 400:
        return MISSING
    shown = int(asked.query.get("start", "0"))
    to = [f"/viewtopic?t={n}" for n in range(shown + 1, shown + 26) if n < 401]
    if asked.path == "/":
        return page(f"forum from {shown}", [*to, *([f"/?start={shown + 25}"] if shown < 375 else [])])
    return page(f"topic {at}", ["/"], text=prose(("topic", at), 80))


def combinations(asked: Request) -> Reply:
    """Tags that can be added to each other in any order; most combinations have no post."""
    tags = ["tea", "milk", "sugar", "lemon", "honey", "mint"]
    posts = [f"/post-{n}" for n in range(36)]
    if asked.path == "/":
        return page("posts", [*posts, *(f"/tag/{tag}" for tag in tags)])
    if asked.path in posts:
        return page(name_of(asked.path), [f"/tag/{tags[posts.index(asked.path) % 6]}"])
    if len(asked.segments) != 2 or not {*asked.segments[1].split("+")} <= {*tags}:
        return MISSING
    chosen = asked.segments[1].split("+")
    found = posts[tags.index(chosen[0]) :: 6] if len({*chosen}) == 1 else []
    more = links(f"/tag/{asked.segments[1]}+{tag}" for tag in tags)
    reply = page(f"Posts on {' and '.join(chosen)}", found, text=f"{len(found)} posts. {more}")
    return Reply(reply.body, content="", optional=len(chosen) == 1)


def cursors(asked: Request) -> Reply:
    """An honest list that goes on under a token: 60 steps, three posts each, to be found nowhere else."""
    cursors = ["", *(token("cursor", n)[:16] for n in range(1, 60))]
    if asked.path.startswith("/n/"):
        at = int(asked.segments[-1])
        return page(f"note {at}", ["/"]) if at < 180 else MISSING
    cursor = asked.query.get("after", "")
    if asked.path != "/" or cursor not in cursors:
        return MISSING
    at = cursors.index(cursor)
    more = [f"/?after={cursors[at + 1]}"] if at < 59 else []
    reply = page(f"notes {at}", [*(f"/n/{3 * at + n}" for n in range(3)), *more])
    return Reply(reply.body, content=reply.content, optional=at > 0)


def language_parameter(asked: Request) -> Reply:
    """Translations under a parameter, kept in every link."""
    names, language = [f"/topic-{n}" for n in range(25)], asked.query.get("lang")
    switch = [f"{asked.path}?lang={to}" for to in ("en", "es", "ja")]
    if asked.target == "/":
        return page("choose your language", switch)
    if asked.path not in {"/", *names} or language not in {"en", "es", "ja"}:
        return MISSING
    return page(f"{language} {asked.path}", [*(f"{to}?lang={language}" for to in names), *switch])


def parameter_order(asked: Request) -> Reply:
    """Two parameters in either order, and a third that is empty."""
    a, b = asked.query.get("floor", ""), asked.query.get("room", "")
    if (
        asked.path != "/"
        or not set(asked.query) <= {"floor", "room", "note"}
        or (asked.query and not (a in "12345" and b in "12345678"))
    ):
        return MISSING
    forms = ("/?floor={}&room={}", "/?room={1}&floor={0}", "/?floor={}&room={}&note=")
    return page(
        f"room {a}{b}", [form.format(f, r) for f in range(1, 6) for r in range(1, 9) for form in forms]
    )


def grown_value(asked: Request) -> Reply:
    """A parameter holds a path to which each link adds; the server looks at its end."""
    held = asked.query.get("go", "start")
    name = held.rpartition(".")[2]
    names = ("start", "news", "staff", "dates", "press")
    return (
        page(name, [f"/?go={held}.{to}" for to in names[1:]])
        if name in names and asked.path == "/"
        else MISSING
    )


def session_word(asked: Request) -> Reply:
    """A session of eight letters and digits before the name of the page, another one with each answer."""
    names = [f"lot-{n}.html" for n in range(25)]
    new = f"{number(asked.target, below=36**4):x}q{number(asked.target, 1, below=36**3):x}"
    name = asked.segments[-1] if asked.segments else "lots"
    if name not in {"lots", *names}:
        return MISSING
    return page(name, [f"/auction/{new}/{to}" for to in names])


def visit_quotes(asked: Request) -> Reply:
    """A number of the visit ends each address; each answer has a quote and links to four chance pages."""
    names = [f"essay-{n}" for n in range(20)]
    name = asked.segments[0] if asked.segments else "essays"
    if name not in {"essays", *names} or len(asked.segments) > 2:
        return MISSING
    new, quote = number(asked.target, below=10**6), prose((asked.target, "quote"), 12)
    chance = [f"/{names[number(asked.target, n, below=20)]}/{new}" for n in range(4)]
    to = chance if asked.segments else [f"/{to}/{new}" for to in names]
    return page(name, to, text=f"{prose(name)}<p>{quote}")


def facet_paths(asked: Request) -> Reply:
    """Filters as segments of the path, in any order and any number; most combinations have no goods."""
    if asked.path.startswith("/goods/"):
        return page(asked.path, ["/"]) if asked.segments[-1] in {f"{n}" for n in range(48)} else MISSING
    kinds = {"colour": COLOURS, "size": SIZES, "brand": ("north", "south", "east")}
    chosen = [part.partition("-")[::2] for part in asked.segments]
    if any(value not in kinds.get(name, ()) for name, value in chosen):
        return MISSING
    found = [
        n
        for n in range(48)
        if all(
            kinds[name][n // 3**at % 3] == value for name, value in chosen for at in [list(kinds).index(name)]
        )
    ]
    more = [f"{asked.path.rstrip('/')}/{name}-{value}" for name, values in kinds.items() for value in values]
    reply = page("goods", [*(f"/goods/{n}" for n in found), *more], text=f"{len(found)} goods")
    return Reply(reply.body, content="" if chosen else "goods", optional=bool(chosen and found))


def themes(asked: Request) -> Reply:
    """Every link carries the theme on that a visitor has chosen; the text of links does not say it."""
    names = [f"{word}-{n}" for n in range(3) for word in WORDS[:15]]
    name = asked.path.strip("/")
    if name and name not in names:
        return MISSING
    theme = asked.query.get("theme", "") if asked.query.get("theme") in THEMES else ""
    at = names.index(name) if name else 0
    near = {to: f"/{to}" + (f"?theme={theme}" if theme else "") for to in names[at : at + 20] + names[:4]}
    to = near | {theme: f"{asked.path}?theme={theme}" for theme in THEMES}
    shown = "".join(f'<li><a href="{target}">{text}</a>' for text, target in to.items())
    return page(name or "start", text=f"{prose(name)}<ul>{shown}</ul>")


def commits(asked: Request) -> Reply:
    """Pages under identifiers of 40 digits, which are what the page is about; many say the same."""
    names = [token("commit", n) + token(n)[:8] for n in range(150)]
    if asked.path == "/":
        return page("log", (f"/commit/{name}" for name in names))
    name = asked.segments[-1]
    if asked.path != f"/commit/{name}" or name not in names:
        return MISSING
    return page(name, ["/"], text=f"{prose(names.index(name) % 9, 3)} 1 file changed")


def rooms_in_routes(asked: Request) -> Reply:
    """A script that shows a page with a number for any route, and leads to two more."""
    pages = [f"/?r={name}" for name in WORDS[:30]]
    if asked.target == "/" or asked.target in pages:
        return page(asked.target, [*pages, "/?r=hut/1/in"] if asked.target == "/" else ["/"])
    if asked.path != "/":
        return MISSING
    found = re.search(r"hut/(\d{1,9})/in", asked.target)
    at = int(found[1]) if found else number(asked.target, below=9_000)
    to = [f"/?r=hut/{2 * at + more}/in" for more in (0, 1)]
    return worthless("Room", f"Room {at} has nothing in it.", to)


SITES = (
    Site("rooms-in-routes", rooms_in_routes, ("/", *(f"/?r={name}" for name in WORDS[:30])), "a script shows a page with a number for any route", endless=True),
    Site("search-doubling", search, ("/", *(f"/item-{n}" for n in range(30))), "each empty search links to two more", endless=True),
    Site("facets", facets, ("/", *(f"/p/{n}" for n in range(60))), "filters that combine, in any order", distinct=109),
    Site("sort-orders", orders, ("/", *(f"/list-{n}" for n in range(8))), "lists sorted by four columns, both ways"),
    Site("came-by", origins, ("/", *(f"/tale-{n}" for n in range(40))), "every link names the page that it stands on"),
    Site("session-query", session_query, tuple(f"/?topic={n}" for n in range(51)), "a new session in every link", endless=True),
    Site("session-path", session_path, ("/", *(f"/{token()}/chapter-{n}" for n in range(10))), "a new session in the path", endless=True),
    Site("jsessionid", jsessionid, ("/", *(f"/form-{n}" for n in range(40))), "a new session after a semicolon", endless=True),
    Site("asp-session", asp_session, ("/", *(f"/notice-{n}.aspx" for n in range(30))), "a new session in brackets", endless=True),
    Site("themes", themes, ("/", *(f"/{word}-{n}" for n in range(3) for word in WORDS[:15])), "every link carries on the chosen theme"),
    Site("no-cache", clock, ("/", *(f"/report-{n}" for n in range(40))), "the time in every link", endless=True),
    Site("comment-replies", replies, ("/", *(f"/post-{n}" for n in range(40))), "a link to answer each comment"),
    Site("wiki", wiki, ("/", *(f"/Article_{n}" for n in range(40))), "histories without end, versions, print views", endless=True, distinct=81),
    Site("forum-topics", topics, ("/", *(f"/?start={n}" for n in range(25, 400, 25)), *(f"/viewtopic?t={n}" for n in range(1, 401))), "400 true topics by number"),
    Site("tag-combinations", combinations, ("/", *(f"/post-{n}" for n in range(36))), "tags added to tags, mostly empty", endless=True),
    Site("cursors", cursors, ("/", *(f"/n/{n}" for n in range(180))), "a list that goes on under tokens", distinct=240),
    Site("language-parameter", language_parameter, ("/", *(f"{to}?lang={code}" for to in ("/", *(f"/topic-{n}" for n in range(25))) for code in ("en", "es", "ja"))), "translations under a parameter"),
    Site("parameter-order", parameter_order, ("/", *(f"/?floor={f}&room={r}" for f in range(1, 6) for r in range(1, 9))), "parameters in either order, or empty"),
    Site("grown-value", grown_value, ("/", *(f"/?go=start.{to}" for to in ("news", "staff", "dates", "press"))), "a parameter that grows with each link", endless=True),
    Site("session-word", session_word, ("/", *(f"/auction/x/lot-{n}.html" for n in range(25))), "a short session in the path", endless=True),
    Site("facet-paths", facet_paths, ("/", *(f"/goods/{n}" for n in range(48))), "filters as segments that pile up", endless=True, distinct=120),
    Site("visit-quotes", visit_quotes, ("/", *(f"/essay-{n}" for n in range(20))), "an address for each visit, with something random on each page", endless=True),
    Site("commits", commits, ("/", *(f"/commit/{token('commit', n)}{token(n)[:8]}" for n in range(150))), "true pages under identifiers like sessions"),
)  # fmt: skip
