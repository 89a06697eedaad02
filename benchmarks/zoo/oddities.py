"""Pages that say hardly more than their address, true and worthless ones, and traps that repeat it in words."""

from datetime import date, timedelta

from benchmarks.zoo.site import MISSING, Reply, Request, Site, html_page, number, page, token, worthless

SHOWN = date(2026, 11, 25)
POEMS = tuple(f"/poem-{n}" for n in range(40))
SHARED = POEMS[:15]  # by all servers


def diary(asked: Request) -> Reply:
    """A diary with a page for any day, before and after it the next ones; nothing was ever written in it."""
    if asked.path == "/" or asked.path in POEMS:
        return page(asked.path.strip("/") or "poems", [*POEMS, f"/diary/{SHOWN:%Y/%m/%d}"])
    if asked.segments[:1] != ["diary"] or len(asked.segments) != 4:
        return MISSING
    day = date(*map(int, asked.segments[1:]))
    near = [day + timedelta(n) for n in (-1, 1)]
    text = f"Nothing was written on {day:%A}, the {day.day} of {day:%B} {day.year}."
    return worthless(f"Diary of {day:%d %B %Y}", text, [f"/diary/{one:%Y/%m/%d}" for one in near])


def log(asked: Request) -> Reply:
    """The same in eight digits, with the number of the day and of the week."""
    if asked.path == "/" or asked.path in POEMS:
        return page(asked.path.strip("/") or "poems", [*POEMS, f"/log/{SHOWN:%Y%m%d}"])
    if len(asked.segments) != 2 or asked.segments[0] != "log" or len(asked.segments[1]) != 8:
        return MISSING
    day = date.fromisoformat(asked.segments[1])
    to = [f"/log/{day + timedelta(n):%Y%m%d}" for n in (-1, 1)]
    return worthless("Log", f"{day:%A}, {day:%B} {day.day}, day {day:%j}, week {day:%V}: at anchor.", to)


READINGS = tuple(f"/meter/{date(2025, 12, 1) + timedelta(n):%Y%m%d}" for n in range(200))


def readings(asked: Request) -> Reply:
    """A meter that was read each day: the pages have a number each, and lead to the next day only."""
    if asked.path == "/":
        return page("meter", READINGS[::40])
    if asked.path not in READINGS:
        return MISSING
    at = READINGS.index(asked.path)
    body = html_page("Meter", f"{4_000 + 17 * at + number(at, below=17)} kWh", READINGS[at + 1 : at + 2])
    return Reply(body, content=asked.path)


WINES = tuple(f"/wine-{n}" for n in range(90))


def senders(asked: Request) -> Reply:
    """A guest posts 120 links with a sender, which the page greets and hands on to two more."""
    if asked.target == "/":
        return page("cellar", [*WINES, "/guests"])
    if asked.target == "/guests":
        return page("guests", [f"{WINES[number(n, below=90)]}?via={token(n)[:6]}" for n in range(120)])
    if asked.path not in WINES:
        return MISSING
    via = asked.query.get("via", "")
    to = [f"{asked.path}?via={via}.{end}" for end in ("mail", "print")] if via else []
    shown = page(asked.path.strip("/"), ["/", *to])
    greeting = f"<p>Welcome, friend of {via}!</p></main>" if via else "</main>"
    return Reply(shown.body.replace("</main>", greeting), content=shown.content)


MEMBERS = tuple(f"/members/{first}-{n}" for n in range(100) for first in ("anna", "boris", "chloe", "dinesh"))


def members(asked: Request) -> Reply:
    """Members of a forum who have not written anything; each page leads to the next one only."""
    if asked.path == "/":
        return page("forum", MEMBERS[::40])
    if asked.path not in MEMBERS:
        return MISSING
    at = MEMBERS.index(asked.path)
    name = asked.segments[-1].replace("-", " ").title()
    body = html_page(f"{name} - Forum", f"{name} has not written anything yet.", MEMBERS[at + 1 : at + 2])
    return Reply(body, content=asked.path)


KINDS = ("lamp", "chair", "table", "sofa", "desk", "shelf", "rug", "vase")
TOWNS = ("bonn", "ulm", "kiel", "trier", "essen", "mainz", "gera", "hamm", "jena", "celle", "fulda", "hof")
BRANCHES = tuple(f"/{kind}-shop/{kind}-shop-{town}" for kind in KINDS for town in TOWNS)


def branches(asked: Request) -> Reply:
    """Branches of a shop, of which the word for the shop stands in the address twice and the text says no more."""
    if asked.path == "/":
        return page("shops", [f"/{kind}-shop" for kind in KINDS])
    if asked.path in {f"/{kind}-shop" for kind in KINDS}:
        return page(asked.path, [to for to in BRANCHES if to.startswith(f"{asked.path}/")])
    if asked.path not in BRANCHES:
        return MISSING
    name = asked.segments[-1].replace("-", " ").capitalize()
    return Reply(html_page(name, f"{name}: opening soon.", ["/"]), content=asked.path)


SIGNS = tuple(f"/sign?code={0x4E00 + n:X}" for n in range(400))


def signs(asked: Request) -> Reply:
    """A table of characters: each page shows a code, which is in its address, and one character."""
    if asked.path == "/":
        return page("signs", [f"/block-{n}" for n in range(20)])
    if asked.path.startswith("/block-"):
        at = int(asked.path.removeprefix("/block-"))
        return page(f"block {at}", SIGNS[20 * at : 20 * at + 20]) if at < 20 else MISSING
    if asked.target not in SIGNS:
        return MISSING
    code = asked.query["code"]
    return Reply(html_page(f"U+{code}", f"Code {code}: {chr(int(code, 16))}", ["/"]), content=asked.target)


STOCK = tuple(f"/stock?sku={1_000 + n}" for n in range(480))


def stock(asked: Request) -> Reply:
    """Articles by number of which nothing is said but that they are there; other numbers are no articles."""
    if asked.path == "/":
        return page("stock", [f"/aisle-{n}" for n in range(24)])
    if asked.path.startswith("/aisle-"):
        at = int(asked.path.removeprefix("/aisle-"))
        return page(f"aisle {at}", STOCK[20 * at : 20 * at + 20]) if at < 24 else MISSING
    if asked.target not in STOCK:
        return MISSING
    number_of = asked.query["sku"]
    return Reply(html_page(number_of, f"{number_of}: available.", ["/"]), content=asked.target)


COINS = tuple(f"/coin?no={n}" for n in range(1, 151))


def coins(asked: Request) -> Reply:
    """Coins of which nothing is said but their numbers; each leads to the next one, and nothing else does."""
    if asked.path == "/":
        return page("coins", COINS[:1])
    if asked.target not in COINS:
        return MISSING
    at = COINS.index(asked.target) + 1
    return Reply(html_page(f"Coin {at}", f"Number {at}", COINS[at : at + 1]), content=asked.target)


def weeks(asked: Request) -> Reply:
    """An empty calendar by week, spelt as no other one, which reads only names like its own."""
    if asked.target in POEMS or asked.path == "/":
        return page(asked.path, [*POEMS, "/plan/kw12-2026"] if asked.path == "/" else ["/"])
    if not asked.path.startswith("/plan/kw"):
        return MISSING
    week, year = map(int, asked.path.removeprefix("/plan/kw").split("-"))
    near = [divmod(year * 52 + week - 1 + step, 52) for step in (-1, 1)]
    to = [f"/plan/kw{at + 1}-{of}" for of, at in near]
    return worthless(f"KW {week} {year}", "Nothing is planned for this week.", [*to, "/"])


def numbered(asked: Request) -> Reply:
    """A server of many by its number, in a folder of its own; all show the same."""
    server, _, name = asked.path.strip("/").partition("/")
    if server and not server.removeprefix("node-").isdigit():
        return MISSING
    new = f"/node-{number(asked.target, below=10**6)}"
    if f"/{name}" not in SHARED and name:
        return MISSING
    return page(name or "poems", [f"{new}{poem}" for poem in SHARED])


def refreshes(asked: Request) -> Reply:
    """A tree of pages that refresh to one page and link to another one."""
    if asked.target in POEMS or asked.path == "/":
        return page(asked.path, [*POEMS, "/wait/1"] if asked.path == "/" else ["/"])
    at = int(asked.path.removeprefix("/wait/"))
    head = f'<meta http-equiv="refresh" content="0;url=/wait/{2 * at}">'
    return Reply(f'<title>Wait</title>{head}<p>One moment</p><a href="/wait/{2 * at + 1}">go on</a>')


SITES = (
    Site("diary-days", diary, ("/", *POEMS), "an empty diary by day, in words", endless=True),
    Site("ship-log", log, ("/", *POEMS), "an empty log by day in eight digits, with days of the year", endless=True),
    Site("readings", readings, ("/", *READINGS), "true pages by day in eight digits, one number each"),
    Site("next-coins", coins, ("/", *COINS), "a chain of true pages that say only the value of their parameter"),
    Site("plan-weeks", weeks, ("/", *POEMS), "an empty calendar by week in a spelling of its own", endless=True),
    Site("numbered-servers", numbered, ("/", *(f"/node-1{poem}" for poem in SHARED)), "a new number in the first folder of each link", endless=True),
    Site("refresh-tree", refreshes, ("/", *POEMS), "pages that refresh to one page and link to another", endless=True),
    Site("posted-senders", senders, ("/", "/guests", *WINES), "120 posted links whose sender is greeted and handed on", endless=True),
    Site("silent-members", members, ("/", *MEMBERS), "true pages that say nothing but their name"),
    Site("shop-branches", branches, ("/", *(f"/{kind}-shop" for kind in KINDS), *BRANCHES), "the same with words that come again in their address"),
    Site("signs", signs, ("/", *(f"/block-{n}" for n in range(20)), *SIGNS), "true pages that differ in one character and their parameter"),
    Site("stock-numbers", stock, ("/", *(f"/aisle-{n}" for n in range(24)), *STOCK), "true pages that say only the value of their parameter"),
)  # fmt: skip
