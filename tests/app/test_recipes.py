"""The recipes of docs/use/recipes.md, each run against a small site of the kind that it is for."""

import re
import shlex
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from crawler.cli.commands import cli
from crawler.cli.demo.site import Site
from crawler.parse.url import Url
from crawler.rules.scope import SiteScope
from crawler.settings import recipe
from crawler.settings.load import resolve
from crawler.settings.values import PATTERN
from tests.cli.test_cli import locs
from tests.commands import Run
from tests.render.conftest import browser  # noqa: F401 - a fixture

RECIPES = (Path(__file__).parents[2] / "docs/use/recipes.md").read_text()
PROSE = "<p>" + "A page that says what it has to say. " * 10 + "</p>"


def commands(heading: str) -> list[list[str]]:
    """The commands below a heading, as words, without the program's own."""
    text = RECIPES.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    return [shlex.split(line)[1:] for line in re.findall(r"^    (sitemap-crawler .+)$", text, re.MULTILINE)]


def site_of(pages: Sequence[str], start: str = "/", **more: Sequence[str]) -> Site:
    """Every page links to all pages."""
    site = Site()
    for page in pages:
        site.page(page, text=PROSE, links=pages, nofollow=more.get("nofollow", ()))
    if start not in pages:
        site.page(start, text=PROSE, links=pages)
    return site


def wordpress() -> tuple[Site, list[str]]:
    listed = ["/", "/2024/05/17/hello/", "/2024/05/hello/", "/about/", "/hello-world/", "/news/2024/"]
    lists = [
        "/category/a/",
        "/category/a/page/2/",
        "/tag/b/",
        "/author/me/",
        "/2024/",
        "/2024/05/",
        "/2024/05/17/",
        "/page/2/",
        "/hello-world/comment-page-1/",
    ]
    avoided = ["/hello-world/?replytocom=5", "/wp-json/wp/v2/posts", "/wp-json/"]
    site = site_of([*listed, *lists, *avoided])
    site.page("/page/2/", links=["/only-there/"])
    site.page("/only-there/")
    site.raw("/feed/", body=b"<rss/>", headers=[("Content-Type", "application/rss+xml")])
    return site, sorted([*listed, "/only-there/"])


def mediawiki() -> tuple[Site, list[str]]:
    listed = [
        "/wiki/Main_Page",
        "/wiki/Cat",
        "/wiki/Category:Animals",
        "/wiki/Star_Trek:_The_Next_Generation",
    ]
    others = [
        "/wiki/Special:RecentChanges", "/wiki/Talk:Cat", "/wiki/User_talk:Me", "/wiki/User:Me", "/wiki/File:Cat.jpg",
        "/wiki/Template:Box", "/wiki/Help:Contents",
    ]  # fmt: skip
    queries = [
        "/index.php?title=Cat&action=edit",
        "/w/index.php?title=Cat&oldid=12",
        "/index.php?title=Cat&action=history",
    ]
    return site_of([*listed, *others, *queries], "/wiki/Main_Page"), sorted(listed)


def dokuwiki() -> tuple[Site, list[str]]:
    listed = ["/doku.php?id=start", "/doku.php?id=wiki:syntax"]
    others = [
        "/doku.php?id=start&do=edit", "/doku.php?id=start&rev=17", "/doku.php?do=media&ns=wiki", "/doku.php?id=start&idx=wiki",
        "/lib/exe/detail.php?id=start&media=a.png", "/lib/exe/fetch.php?media=a.png", "/feed.php", "/feed.php?mode=recent",
    ]  # fmt: skip
    site = site_of([*listed, *others])
    site.page("/doku.php", links=listed, canonical="/doku.php?id=start")
    return site, listed


def hugo() -> tuple[Site, list[str]]:
    listed = ["/", "/posts/", "/posts/a/", "/about/"]
    others = ["/tags/", "/tags/x/", "/categories/y/", "/page/2/", "/posts/page/2/", "/page2/", "/series/z/"]
    site = site_of([*listed, *others])
    site.page("/posts/page/2/", links=["/posts/old/"])
    site.page("/posts/old/")
    return site, sorted([*listed, "/posts/old/"])


def sphinx() -> tuple[Site, list[str]]:
    listed = ["/", "/library/os.html", "/library/generic.html"]
    others = [
        "/genindex.html",
        "/genindex-A.html",
        "/py-modindex.html",
        "/search.html",
        "/_modules/os.html",
        "/print.html",
    ]
    site = site_of([*listed, *others])
    site.raw("/_sources/index.rst.txt", body=b"x", headers=[("Content-Type", "text/plain")])
    return site, sorted(listed)


def drupal() -> tuple[Site, list[str]]:
    listed = ["/", "/about-us", "/articles", "/node/5"]
    others = [
        "/taxonomy/term/3",
        "/articles?page=1",
        "/user/login",
        "/search/node",
        "/comment/reply/5",
        "/user",
    ]
    site = site_of([*listed, *others])
    site.page("/articles?page=1", links=["/node/1"])
    site.page("/node/1")
    return site, sorted([*listed, "/node/1"])


def shopify() -> tuple[Site, list[str]]:
    listed = [
        "/", "/products/lamp", "/collections/all", "/collections/all/products/oil", "/pages/about",
        "/blogs/news", "/blogs/news/hello",
    ]  # fmt: skip
    others = [
        "/collections/all/red", "/blogs/news/tagged/new", "/collections/all?page=2", "/products/lamp?variant=7",
        "/collections/all?sort_by=price", "/collections/all?filter.v.price=5", "/cart", "/account/login", "/search?q=a",
    ]  # fmt: skip
    return site_of([*listed, *others]), sorted(listed)


def ghost() -> tuple[Site, list[str]]:
    listed = ["/", "/hello/", "/tags-i-like/"]
    return site_of([*listed, "/tag/a/", "/author/me/", "/page/2/", "/ghost/", "/p/17/"]), listed


def documents() -> tuple[Site, list[str]]:
    site = site_of(["/", "/a"], nofollow=())
    site.page("/a", links=["/one.pdf"])
    site.raw("/one.pdf", body=b"%PDF-1.7", headers=[("Content-Type", "application/pdf")])
    return site, ["/one.pdf"]


def members() -> tuple[Site, list[str]]:
    site = Site()

    def home(request: object) -> object:
        given = getattr(request, "headers", {})
        inside = given.get("Authorization") == "Bearer abc" or given.get("Cookie") == "sid=42"
        return site.answer(200, b"<a href=/a>a</a><a href=/logout>out</a>") if inside else site.answer(403)

    site.respond("/", home)
    site.page("/a")
    return site, ["/", "/a"]


def walled() -> tuple[Site, list[str]]:
    site = site_of([])

    def home(request: object) -> object:
        if getattr(request, "headers", {}).get("X-Crawl-Key") == "a-long-secret":
            return site.answer(200, b"<a href=/a>a</a>")
        return site.answer(403, b"", [("cf-mitigated", "challenge")])

    site.respond("/", home)
    site.page("/a")
    return site, ["/", "/a"]


def rendered() -> tuple[Site, list[str]]:
    site = Site()
    site.raw(
        "/",
        body=b"<title>x</title><div></div><script src=/a.js></script>",
        headers=[("Content-Type", "text/html")],
    )
    script = f"document.body.innerHTML = `<a href=/a>a</a><p>{PROSE}</p>`".encode()
    site.raw("/a.js", body=script, headers=[("Content-Type", "text/javascript")])
    site.sitemap("/sitemap.xml", ["/", "/a"])
    site.page("/a", text=PROSE)
    return site, ["/", "/a"]


SHAPES: dict[str, Callable[[], tuple[Site, list[str]]]] = {
    "WordPress": wordpress,
    "MediaWiki": mediawiki,
    "DokuWiki": dokuwiki,
    "Hugo, Jekyll, Eleventy": hugo,
    "Sphinx, MkDocs, mdBook": sphinx,
    "Drupal": drupal,
    "Shopify": shopify,
    "Ghost": ghost,
    "Documents": documents,
    "A site behind a login": members,
    "Behind a firewall": walled,
    "A site that is rendered by scripts": rendered,
}


def test_every_recipe_is_tested() -> None:
    assert re.findall(r"^## (.+)$", RECIPES, re.MULTILINE) == list(SHAPES)
    assert all(commands(heading) for heading in SHAPES)


@pytest.mark.parametrize("heading", SHAPES)
def test_a_recipe_works(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest, heading: str
) -> None:
    monkeypatch.setenv("SITE_LOGIN", "Bearer abc")
    (tmp_path / "cookies.txt").write_text(
        "# Netscape HTTP Cookie File\n127.0.0.1\tFALSE\t/\tFALSE\t0\tsid\t42\n"
    )
    for name, *words in commands(heading):
        if "--render" in words:
            request.getfixturevalue("browser")
        site, listed = SHAPES[heading]()
        cli.commands[name].make_context(name, list(words))
        with site.serve() as origin:
            there = [word.replace("https://example.com", origin) for word in words]
            run.ok(name, *there, "--rate", "0", "--retries", "0", "--fresh")
            published = [loc.removeprefix(origin) for loc in locs(tmp_path / "sitemaps/sitemap.xml.gz")]
            assert published == listed
            assert not [asked for asked in site.log if "logout" in asked.target]
        for file in (tmp_path / "sitemaps").iterdir():
            file.unlink()


@pytest.mark.parametrize(
    ("name", "start", "left_out", "listed"),
    [
        ("wordpress", "/", "/de/category/a/ /en-us/tag/b/ /blog/author/me/ /index.php/2024/05/ /blog/2024/05/", "/de/hello/"),
        ("wordpress", "/", "/?cat=3 /?m=202405 /?author=1 /?x=1&paged=2 /?tag=a /2024/05/page/2 /date/2024/", "/?p=17 /?page_id=2"),
        ("wordpress", "/", "/hello/feed/ /feed/ /?feed=rss2 /?s=lamp /a/wp-json/wp/v2 /hello/?share=x /?rest_route=/", "/feed-the-cat/"),
        ("wordpress", "/", "", "/news/2024/ /category-theory/ /tagged/ /2024/05/hello/ /2024-05-01/ /item?category=a"),
        ("wordpress", "/news/", "/news/2024/ /news/category/a/ /news/tag/b/", "/news/2024/05/hello/ /about/"),
        ("mediawiki", "/wiki/Main_Page", "/wiki/Special:Log /wiki/Benutzer:Ich /wiki/Diskussion:Katze", "/wiki/Katze"),
        ("mediawiki", "/index.php/Main_Page", "/index.php/Special:Log /index.php/User_talk:Me", "/index.php/Cat"),
        ("mediawiki", "/Main_Page", "/Special:Log /File:Cat.jpg /Project_talk:Cat", "/Cat /Star_Trek:_Nemesis"),
        ("mediawiki", "/index.php?title=Main_Page", "/index.php?title=Special:Log /index.php?title=Cat&oldid=3", "/index.php?title=Cat"),
        ("dokuwiki", "/wiki/doku.php?id=start", "/wiki/lib/exe/fetch.php?media=a /wiki/feed.php /wiki/start?do=edit", "/wiki/start"),
        ("hugo", "/project/", "/project/tags/x/ /project/posts/page/2/", "/docs/tags/if/"),
        ("hugo", "/", "/de/tags/x/ /zh-hans/categories/ /tag/x/", "/docs/tags/if/ /tags-and-more/"),
        ("sphinx", "/en/latest/", "/en/latest/genindex/ /en/latest/search.html /print.html", "/printing.html /research.html /search/api.html"),
        ("drupal", "/de", "/de/taxonomy/term/3 /de/user/login /en/search", "/de/userland /de/suche"),
        ("shopify", "/", "/en-gb/collections/all/red /fr/cart /de/blogs/news/tagged/new", "/fr/collections/all /fr/collections/all/products/oil"),
        ("ghost", "/blog/", "/blog/tag/a/ /blog/author/me/ /blog/page/2/", "/blog/hello/ /tag-a/"),
    ],
)  # fmt: skip
def test_a_recipe_holds_where_such_sites_put_their_lists(
    name: str, start: str, left_out: str, listed: str
) -> None:
    one = recipe.recipe_of(name).at([start])
    assert [path for path in left_out.split() if one.pattern_of(path) is None] == []
    assert [path for path in listed.split() if one.pattern_of(path)] == []
    scope = SiteScope.of([Url(f"https://x.y{start}")], resolve(None, {}, {"recipe": (name,)})[0].scope)
    assert (len(scope.no_list), len(scope.exclude)) == (len(one.no_list), len(one.exclude))


def test_every_recipe_is_a_file_with_valid_patterns() -> None:
    folder = Path(recipe.__file__).parent / "recipes"
    assert {path.stem for path in folder.iterdir()} == set(recipe.NAMES)
    named = {word for heading in SHAPES for line in commands(heading) for word in line}
    for name in recipe.NAMES:
        one = recipe.recipe_of(name)
        assert all(map(PATTERN.read, one.no_list + one.exclude))
        assert all(mark == mark.lower() for mark in one.marks)
        assert name in named


@pytest.mark.parametrize(
    ("head", "name"),
    [
        ('<meta name="generator" content="WordPress 6.8.1">', "wordpress"),
        ("<META CONTENT='MediaWiki 1.43' NAME='generator'>", "mediawiki"),
        ('<meta name=generator content="Hugo 0.140">', "hugo"),
        ('<meta name="generator" content="mkdocs-1.6, mkdocs-material-9">', "sphinx"),
        ('<meta name="Generator" content="Drupal 11 (https://www.drupal.org)">', "drupal"),
        ('<script src="//cdn.shopify.com/s/a.js"></script>', "shopify"),
        ('<link href="/wp-content/themes/a.css" rel="stylesheet">', "wordpress"),
        ('<meta name="description" content="WordPress is a generator">', None),
        ('<meta name="generator" content="Wix.com">', None),
    ],
)
def test_a_system_is_recognised_by_its_first_page(head: str, name: str | None) -> None:
    found = recipe.recognised(f"<html><head>{head}</head><p>drupal, ghost, hugo</p></html>".encode())
    assert (found and found.name) == name


def test_init_writes_the_recipe_and_config_shows_it(run: Run) -> None:
    site, _ = wordpress()
    site.page("/", head='<meta name="generator" content="WordPress 6.8">', text=PROSE, links=["/tag/b/"])
    with site.serve() as origin:
        _, out, _ = run("init", origin)
        assert "The site is made by WordPress: the recipe wordpress is used." in out
        run.ok("crawl", "--rate", "0")
        _, out, _ = run("explain", f"{origin}/tag/b/")
    assert "recipe     wordpress, --no-list /tag/*" in out
    _, out, _ = run("config")
    assert re.search(r"^recipe +=.* wordpress .* # sitemap-crawler.toml", out, re.MULTILINE)
    assert re.search(r"^  no-list +\+ /tag/\* +# WordPress$", out, re.MULTILINE)


def test_recipes_are_joined_and_config_shows_them(run: Run) -> None:
    _, out, _ = run("config", "--recipe", "wordpress", "--recipe", "shopify")
    assert re.search(r"^recipe +=.* wordpress,shopify .* # --recipe$", out, re.MULTILINE)
    for name in ("wordpress", "shopify"):
        one = recipe.recipe_of(name)
        assert all(f"+ {pattern} " in out for pattern in (*one.no_list, *one.exclude))
    chosen = resolve(None, {}, {"recipe": ("wordpress", "shopify")})[0].scope
    scope = SiteScope.of([Url("https://x.y/")], chosen)
    both = [recipe.recipe_of(name) for name in chosen.recipe]
    assert len(scope.no_list) == sum(len(one.no_list) for one in both)
    assert len(scope.exclude) == sum(len(one.exclude) for one in both)


def test_what_a_recipe_leaves_out_is_looked_at() -> None:
    targets = [target for build in SHAPES.values() for target in build()[0].answers]
    targets += ["/?cat=1", "/?a=b&paged=2", "/index.php?author=1", "/en/tag/x/", "/fr/categories/y/"]
    for one in map(recipe.recipe_of, recipe.NAMES):
        unlisted = [target for target in targets if one.at(["/en/"]).count_unlisted([target])]
        assert all(map(recipe.UNLISTED.search, unlisted))
        assert unlisted or not one.no_list
    plain = ("/", "/section-1/page-7.html", "/about-us", "/wiki/Cat", "/?id=3")
    assert not any(map(recipe.UNLISTED.search, plain))


def test_a_crawl_that_lists_many_archives_names_the_recipe(run: Run) -> None:
    posts, tags = [f"/post-{n}/" for n in range(30)], [f"/tag/{n}/" for n in range(25)]
    with site_of(["/", *posts, *tags]).serve() as origin:
        words = ("crawl", origin, "--rate", "0")
        _, _, err = run(*words)
        said = "25 of 56 listed pages are archives and lists as WordPress makes them: to leave them out, --recipe wordpress."
        assert said in " ".join(err.split())
        _, _, err = run(*words, "--recipe", "wordpress", "--max-shrink", "1")
    assert "to leave them out" not in err
