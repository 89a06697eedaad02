"""Error pages with status 200 that differ in what they repeat, and error pages of folders; walls and failures."""

import re
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
    token,
    worthless,
)

ARTICLES = tuple(f"/article-{n}" for n in range(40))
DEAD = tuple(f"/archive/{2000 + n}/{token(n)[:9]}" for n in range(48))
STAMP = "Mon, 23 Nov 2026 {:02}:{:02}:{:02} GMT"


def _article(asked: Request, dead: tuple[str, ...] = DEAD) -> Reply | None:
    """A site of 40 articles, each with links to pages that are gone."""
    if asked.path == "/":
        return page("start", ARTICLES)
    if asked.path in ARTICLES:
        at = ARTICLES.index(asked.path)
        return page(asked.path.strip("/"), [*dead[at : at + 9], "/"])
    return None


def echo(asked: Request) -> Reply:
    """The error page repeats the address in its title and its text."""
    words = asked.path.replace("/", " ").strip()
    return _article(asked) or worthless(
        f"{words} was not found", f"We have nothing at <b>{asked.path}</b>. Did you mean {words}?", ["/"]
    )


def incident(asked: Request) -> Reply:
    """The error page has a number and a time of its own each time."""
    at = number(asked.target)
    time = STAMP.format(at % 24, at % 60, at // 60 % 60)
    return _article(asked) or worthless(
        "Something went wrong",
        f"Please call us. Incident {token(asked.target)[:12].upper()}-{at}, {time}, {asked.path}",
        ["/"],
    )


def suggestions(asked: Request) -> Reply:
    """The error page suggests four articles, other ones at each address."""
    some = [ARTICLES[number(asked.target, n, below=40)] for n in range(4)]
    told = " ".join(
        f"<h2>{name.strip('/')}</h2><p>{page(name.strip('/')).body[-260:-90]}</p>" for name in some
    )
    return _article(asked) or worthless("Sorry, this page has moved on", f"You may like: {told}", some)


def search(asked: Request) -> Reply:
    """An unknown address becomes a search, with related searches that are unknown addresses too."""
    word = asked.segments[-1] if asked.segments else ""
    related = [f"/search/{word[:12]}-{end}" for end in ("cheap", "online", "new")]
    return _article(asked) or worthless(f"Results for {word}", f"0 results for {word}. Related:", related)


def in_many_folders(asked: Request) -> Reply:
    """Each of 40 folders has a page for any number, which leads to two more there."""
    if asked.path == "/":
        return page("start", [*ARTICLES, *(f"/hall-{n}/{n + 1}" for n in range(40))])
    folder, _, name = asked.path[1:].partition("/")
    if name and folder in {f"hall-{n}" for n in range(40)}:
        to = [f"/{folder}/{number(asked.path, n, below=10**7)}" for n in range(2)]
        return worthless("The halls", f"Nothing has the number {name} in this hall.", to)
    return _article(asked) or MISSING


def in_folder(asked: Request) -> Reply:
    """The site answers 404; one folder answers everything with an error page of its own."""
    dead = tuple(f"/shop/{token(n)[:6]}" for n in range(48))
    if reply := _article(asked, dead):
        return reply
    name = asked.path.rpartition("/")[2]
    if not asked.path.startswith("/shop/"):
        return MISSING
    return worthless(
        "Product unavailable",
        f"Article {name} is no longer sold.",
        [f"/shop/{name}-{n}" for n in (number(name, below=9), 9)],
    )


def login_next(asked: Request) -> Reply:
    """Each article links to a login form that repeats where to go next."""
    if asked.path == "/login":
        to = asked.query.get("next", "/")
        form = f'<form method="post"><input type="hidden" name="next" value="{to}"><input type="password"></form>'
        body = html_page("Log in", f"Members only. {form}", [f"/login?next=/login?next={to}", "/"])
        return Reply(body, content="log in")  # one page, whatever comes next
    reply = _article(asked, ())
    if reply is None:
        return MISSING
    return Reply(
        reply.body.replace("</main>", links([f"/login?next={asked.path}"]) + "</main>"), content=reply.content
    )


def redirects_home(asked: Request) -> Reply:
    """Unknown addresses are redirected to the start page."""
    return _article(asked) or Reply("", 302, {"Location": "/"})


def about_errors(asked: Request) -> Reply:
    """True pages about error pages, with the words of one; the site answers 404 to what is not there."""
    names = [f"{400 + n}" for n in range(40)]
    if asked.path == "/":
        return page("statuses", (f"/status/{name}" for name in names))
    name = asked.segments[-1]
    if asked.path != f"/status/{name}" or name not in names:
        return MISSING
    return page(
        f"Error {name}", ["/"], text=f"Page not found? Sorry! HTTP status {name} {page(name).body[-300:-120]}"
    )


def _unavailable(name: str) -> Reply:
    text = f"Article {name} is out of stock. Please come back later. {page(name).body[-180:-150]}"
    return Reply(html_page(f"Product {name}", text, ["/"]), content=name)


def sold_out(asked: Request) -> Reply:
    """Unknown products are answered by an error page; true ones that are sold out look much like it."""
    names = [f"ab{n}" for n in range(60)]
    if asked.path == "/":
        return page("shop", [*(f"/p/{name}" for name in names), *(f"/p/x{n}" for n in range(30))])
    name = asked.segments[-1]
    if name in names:
        return _unavailable(name)
    return worthless(f"Product {name}", f"Article {name} is unknown. Please check the number.", ["/"])


ALL = ("/", *ARTICLES)


def rotating(asked: Request) -> Reply:
    """One of five error pages, each with a text of its own, and the address."""
    dice = number(asked.path, below=5)
    joke = prose(("joke", dice), 50)
    return _article(asked) or worthless(f"Oops {dice}", f"{joke} Not here: {asked.path}", ["/"])


def big_template(asked: Request) -> Reply:
    """Pages of 2,000 common words and one sentence of their own; errors have the words, too."""
    names = [f"ware-{n}" for n in range(60)]
    name = asked.path.strip("/")
    common = prose("catalogue", 2_000)
    if name and name not in names:
        return worthless("Not in our catalogue", f"{common} There is no {name}.", ["/"])
    near = [f"/{to}" for to in names] if not name else [f"/{name}/reviews", "/"]
    return page(name or "catalogue", near, text=f"{common} {prose(name, 8)}")


def redirects_to_error(asked: Request) -> Reply:
    """Unknown addresses are redirected to an error page with status 200, which repeats them."""
    if asked.path == "/sorry":
        return worthless("Sorry", f"We could not find {asked.query.get('for')}.", ["/"])
    return _article(asked) or Reply("", 302, {"Location": f"/sorry?for={asked.path}"})


def unknown_numbers(asked: Request) -> Reply:
    """Any number is answered, also those that nobody has yet; a guest posted 300 of these."""
    at = asked.query.get("t", "")
    if asked.path == "/":
        return page("forum", ["/guests", *(f"/topics?t={n}" for n in range(1, 201))])
    if asked.path == "/guests":
        return page("guests", [f"/topics?t={number(n)}" for n in range(300)])
    if asked.path != "/topics" or not at.isdigit():
        return MISSING
    if 0 < int(at) < 201:
        return page(f"topic {at}", ["/"])
    return worthless(f"Topic {at}", f"Topic {at} does not exist, or was removed.", ["/"])


def in_words(asked: Request) -> Reply:
    """The error page speaks of the address in words, with capitals and without numbers."""
    words = re.sub("[^a-z]+", " ", asked.path).title()
    return _article(asked) or worthless(f"No {words}?", f"We looked for {words} everywhere.", ["/"])


def banner(asked: Request) -> Reply:
    """The error page is the start page, below a line about the address."""
    start = page("start", ARTICLES)
    line = f"<p>Sorry, {asked.path} is gone.</p>"
    return _article(asked) or Reply(start.body.replace("<main>", f"<main>{line}"))


def search_suggestions(asked: Request) -> Reply:
    """Any words can be searched for; each search shows three articles by chance and leads to two more."""
    if reply := _article(asked, ("/find/old-times",)):
        return reply
    if asked.segments[:1] != ["find"] or len(asked.segments) != 2:
        return MISSING
    some = [ARTICLES[number(asked.target, n, below=40)] for n in range(3)]
    more = [f"/find/{prose((asked.path, n), 2).strip('.').lower().replace(' ', '-')}" for n in range(2)]
    return worthless(f"Search: {asked.segments[1]}", links(some), more)


def error_names_folder(asked: Request) -> Reply:
    """One link is dead, to an address that has a word of the error in it."""
    pages = [f"/page/{name}" for name in WORDS[:30]]
    if asked.path == "/":
        return page("pages", [*pages, "/page/gone"])
    if asked.path in pages:
        return page(asked.path, ["/"])
    return worthless("Page not found", f"There is no page at {asked.path}.", ["/"])


def empty_template(asked: Request) -> Reply:
    """All products have one title; any other address shows an empty product, and a few links lead to such."""
    products = [f"/product-{n}" for n in range(60)]
    if asked.path in ("/", "/list"):
        return page(asked.path, ["/list", *products[:6]] if asked.path == "/" else products)
    if asked.path not in products:
        return worthless("Product", "", ["/list"])
    gone = [f"{asked.path}/parts"] if asked.path.endswith("7") else []
    return Reply(html_page("Product", prose(asked.path), ["/list", *gone]), content=asked.path)


def empty_template_and_tip(asked: Request) -> Reply:
    """The same, with a tip that changes on each page."""
    reply = empty_template(asked)
    tip = f"<p>Tip of the day: {prose((asked.target, 'tip'), 8)}</p></main>"
    return replace(reply, body=reply.body.replace("</main>", tip))


def dead_links(asked: Request) -> Reply:
    """Each post leads to the one before it, and to 60 pages of an old archive that are gone."""
    if asked.path != "/" and asked.segments[0] != "post":
        return MISSING
    at = int(asked.segments[1]) if asked.segments else 0
    gone = [f"/archive/{token(at, n)[:8]}" for n in range(60)]
    older = [f"/post/{at + 1}"] if at < 25 else []
    return page(f"post {at}", [*gone, *older]) if at < 26 else MISSING


def retired_products(asked: Request) -> Reply:
    """Whatever is no product has an error with 200, by name and by number; one link to each is dead."""
    if asked.path == "/":
        return page("shop", [*RETIRING[1:], "/lamp/gone", "/spare?part=812"])
    if asked.target in RETIRING:
        return page(asked.target, ["/"])
    if asked.path == "/spare" or asked.segments[:1] == ["lamp"]:
        name = asked.query.get("part") or asked.segments[-1]
        return worthless(f"{name} was not found", f"We do not have {name} any more. Ask us!", ["/"])
    return MISSING


RETIRING = ("/", *(f"/lamp/{name}" for name in WORDS[:20]), *(f"/spare?part={n}" for n in range(700, 720)))
EMPTY = ("/", "/list", *(f"/product-{n}" for n in range(60)))
SITES = (
    Site("error-echo", echo, ALL, "errors with 200 repeat the address"),
    Site("error-incident", incident, ALL, "errors with 200 have a number and a time"),
    Site("error-suggestions", suggestions, ALL, "errors with 200 suggest four pages, others each time"),
    Site("error-search", search, ALL, "unknown addresses become searches", endless=True),
    Site("error-folder", in_folder, ALL, "one folder answers everything", endless=True),
    Site("error-halls", in_many_folders, ALL, "each of 40 folders answers everything", endless=True),
    Site("login-next", login_next, ALL, "a login form for every page", endless=True),
    Site("redirects-home", redirects_home, ALL, "unknown addresses are redirected to the start"),
    Site("about-errors", about_errors, ("/", *(f"/status/{400 + n}" for n in range(40))), "true pages that read like error pages"),
    Site("sold-out", sold_out, ("/", *(f"/p/ab{n}" for n in range(60))), "products out of stock beside errors with 200"),
    Site("error-rotating", rotating, ALL, "five error pages with 200 in turn"),
    Site("big-template", big_template, ("/", *(f"/ware-{n}" for n in range(60))), "true pages and errors share 2,000 words"),
    Site("redirects-to-error", redirects_to_error, ALL, "unknown addresses are redirected to an error with 200"),
    Site("unknown-numbers", unknown_numbers, ("/", "/guests", *(f"/topics?t={n}" for n in range(1, 201))), "true and posted false numbers in one parameter"),
    Site("error-words", in_words, ALL, "errors with 200 speak of the address in words"),
    Site("error-banner", banner, ALL, "errors with 200 are the start page and one line"),
    Site("error-names-folder", error_names_folder, ("/", *(f"/page/{name}" for name in WORDS[:30])), "an error with 200 has a word of its address in it"),
    Site("empty-template", empty_template, EMPTY, "an empty product is shown for what is missing"),
    Site("empty-template-and-tip", empty_template_and_tip, EMPTY, "the same with a tip that changes"),
    Site("retired-products", retired_products, RETIRING, "one error with 200 by name, and one by number"),
    Site("dead-links", dead_links, ("/", *(f"/post/{n}" for n in range(1, 26))), "a chain of posts, each with 60 dead links"),
    Site("search-suggestions", search_suggestions, ALL, "any two words are a search with three results", endless=True),
)  # fmt: skip
