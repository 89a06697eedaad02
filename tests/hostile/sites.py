"""The hostile sites: what each serves, and what is right to make of it.

`listed`: in the sitemap. `asked`: requested at all. `most`: requests at most. What is not given may be either.
"""

import gzip
import re
import zlib
from calendar import month_name
from email.utils import formatdate
from itertools import product

import brotli

from tests.server import Answer, Origin, Talk, http, moved, page

MANY = 100_000


def site(number: int, name: str) -> Origin:
    """An origin whose home page links to every path that `finish` finds."""
    return Origin(name, f"127.0.{number}.1")


def finish(origin: Origin, *unlinked: str) -> Origin:
    """Give it a home page with links to all that it serves."""
    links = [path for path in origin.answers if path not in unlinked and path != "/robots.txt"]
    origin.put("/", http(page(*links, text=f"the {origin.name} site")), listed=True, most=1)
    return origin


# -- 1 crawler traps ----------------------------------------------------------------------------------------


def crawler_traps() -> Origin:
    """Calendars, paths and queries that go on for ever, beside real pages."""
    here = site(1, "endless")
    for number in range(20):
        here.put(f"/event/{number}", http(page(text=f"event number {number} with a story")), listed=True)
    links = [f"/event/{number}" for number in range(20)]
    here.put("/cal/2026/11", http(page("/event/0", "/cal/2026/12", "/cal/2026/10")), most=1)
    here.put("/agenda?month=2026-11", http(page("/agenda?month=2026-12", "/agenda?month=2026-10")), most=1)
    here.put("/a/", http(page("a/")), asked=True)
    here.put("/x/", http(page("y/")))
    here.put("/grow?p0=1", http(page("/grow?p0=1&p1=1")))
    here.put("/jump?n=1", moved("/jump?n=1&n=1"))
    here.put("/index.html/", http(page("index.html/", "/index.html")))

    def others(path: str) -> Answer | None:
        if found := re.fullmatch(r"/cal/(\d+)/(\d+)(?:/(\d+))?", path):
            return _calendar(*map(int, found.groups(default="0")))
        if found := re.fullmatch(r"/agenda\?month=(\d+)-(\d+)", path):
            year, month = int(found[1]), int(found[2])
            after, before = _next(year, month), _before(year, month)
            return http(
                page(f"/agenda?month={after[0]}-{after[1]:02}", f"/agenda?month={before[0]}-{before[1]:02}",
                     "/", text=f"Agenda of {month:02}/{year}: nothing to do.")
            )  # fmt: skip
        if path.startswith("/a/a/"):
            return http(page("a/", text=f"deep {len(path)}"))
        if path.startswith("/x/"):
            return http(page("y/" if path.endswith("x/") else "x/", text=f"deeper {len(path)}"))
        if path.startswith("/grow?"):
            return http(page(f"{path}&p{path.count('&') + 1}=1"))
        if path.startswith("/jump?"):
            return moved(path + "&n=1")
        if path.startswith("/index.html/"):
            return http(page("index.html/", text="the index again"))
        return None

    here.others = others
    here.bound("calendar", lambda path: path.startswith(("/cal", "/agenda")), 2_000)
    here.bound("a/a", lambda path: path.startswith("/a/"), 30)
    here.bound("x/y", lambda path: path.startswith("/x/"), 60)
    here.bound("growing query", lambda path: path.startswith("/grow"), 60)
    here.bound("growing redirect", lambda path: path.startswith("/jump"), 40)
    here.bound("echo", lambda path: path.startswith("/index.html/"), 30)
    here.put("/", http(page(*here.answers, *links)), listed=True)
    return here


def _next(year: int, month: int) -> tuple[int, int]:
    return (year, month + 1) if month < 12 else (year + 1, 1)


def _before(year: int, month: int) -> tuple[int, int]:
    return (year, month - 1) if month > 1 else (year - 1, 12)


def _calendar(year: int, month: int, day: int) -> bytes:
    name = f"{month_name[(month - 1) % 12 + 1]} {year}"
    after, before = _next(year, month), _before(year, month)
    if day:
        return http(page("/", f"/cal/{year}/{month:02}", text=f"{name}, day {day}: no events"))
    days = [f"/cal/{year}/{month:02}/{number:02}" for number in range(1, 29)]
    failpoint = [f"/cal/{after[0]}/{after[1]:02}", f"/cal/{before[0]}/{before[1]:02}"]
    return http(page("/", *days, *failpoint, text=f"{name} 1 2 3 4 5 6 7 8 9"))


def sessions() -> Origin:
    """A new session id at every view, in the query and in the path."""
    here = site(2, "sessions")
    names = [f"/page{number}" for number in range(8)]
    views = iter(range(10**9))

    def view(path: str) -> Answer:
        def answer(talk: Talk) -> None:
            links = []
            for name in ["/start", *names]:
                number = next(views)
                links += [
                    f"{name}?PHPSESSID=abc{number:013x}",
                    f"{name};jsessionid={number:08X}ABCD",
                    f"{name}?sid={number:x}ffffffff1",
                ]
            talk.say(http(page(*links, text=f"this is {path}")))

        return answer

    def others(path: str) -> Answer | None:
        bare = re.split(r"[?;]", path)[0]
        return view(bare) if bare in {"/start", *names} else None

    here.others = others
    here.put("/", view("/"), listed=True)
    for name in ["/start", *names]:
        here.expect[name] = here.expect.get(name) or type(here.expect["/"])(listed=True)
        here.bound(f"sessions of {name}", lambda path, name=name: re.split(r"[?;]", path)[0] == name, 200)  # type: ignore[misc]
    return here


def nameless_sessions() -> Origin:
    """A session id in a parameter of unknown name: the same page under endless URLs."""
    here = site(3, "nameless")
    views = iter(range(10**9))

    def view(talk: Talk) -> None:
        links = [f"/shop?basket={next(views):x}" for _ in range(5)]
        talk.say(http(page(*links, "/real", text="the same shop, as ever")))

    here.others = lambda path: view if path.startswith("/shop?") else None
    here.put("/shop", view, listed=True)
    here.put("/real", http(page(text="a real page")), listed=True)
    here.bound("baskets", lambda path: path.startswith("/shop?"), 200)
    return finish(here)


def facets() -> Origin:
    """Three values of nine parameters; each page names one canonical and shows some items."""
    here = site(4, "facets")
    names = "abcdefghi"

    def others(path: str) -> Answer | None:
        if not path.startswith("/list"):
            return None
        given = dict(part.split("=") for part in path.partition("?")[2].split("&") if part)
        links = [
            "/list?" + "&".join(f"{n}={v}" for n, v in sorted((given | {name: str(value)}).items()))
            for name, value in product(names, range(3))
        ]
        items = [f"/item/{sum(map(int, given.values())) * 7 % 40 + number}" for number in range(3)]
        return http(page(*links, *items, head='<link rel="canonical" href="/list">', text="a list of items"))

    here.others = others
    here.put("/list", others("/list") or b"", listed=True)
    for number in range(43):
        here.put(f"/item/{number}", http(page(text=f"item {number} in detail")))
    for number in range(3):
        here.expect[f"/item/{number}"].listed = True
    here.bound("facets", lambda path: path.startswith("/list?"), 750)
    here.put("/", http(page("/list", text="facets")), listed=True)
    return here


def soft_404() -> Origin:
    """Any path is a page that says sorry, with 200."""
    here = site(5, "soft 404")
    sorry = http(page("/", text="Sorry, we could not find that"))
    here.others = lambda path: None if path == "/robots.txt" else sorry
    here.put("/real", http(page(text="a real page")), listed=True)
    gone = [f"/gone/{number}" for number in range(30)]
    here.put("/", http(page("/real", *gone)), listed=True)
    for path in gone:
        here.expect[path] = type(here.expect["/"])(listed=False)
    return here


# -- 2 redirects -------------------------------------------------------------------------------------------


def redirects(offsite: str, secret: str) -> Origin:
    """Redirect chains, loops, and redirects to forbidden destinations in every form."""
    here = site(6, "redirects")
    for length in (3, 10, 25):
        for hop in range(length):
            here.put(f"/r{length}-{hop}", moved(f"/r{length}-{hop + 1}"), listed=False, most=1)
        here.put(
            f"/r{length}-{length}", http(page(text=f"end of {length}")), listed=None if length > 10 else True
        )
    here.put("/self", moved("/self"), listed=False, most=3)
    here.put("/one", moved("/two"), listed=False, most=3)
    here.put("/two", moved("/one"), listed=False, most=3)
    for status in ("301 x", "302 x", "303 x", "307 x", "308 x"):
        here.put(f"/s{status[:3]}", moved(f"to/{status[:3]}#part", status), listed=False)
        here.put(f"/to/{status[:3]}", http(page(text=status)), listed=True)
    here.put("/blank", moved("/to/with space"), listed=False)
    here.put("/to/with%20space", http(page(text="blank")), listed=True)
    here.put("/raw", moved("/to/\u00c3\u00bc"), listed=False)  # UTF-8 of \u00fc, byte for byte
    here.put("/to/%C3%BC", http(page(text="umlaut")), listed=True)
    for number, location in enumerate(["", "http://", "http://[", "//", "http://x:99999/"]):
        here.put(f"/bad{number}", http("", "302 x", Location=location), listed=False)
    host, _, port = secret.partition(":")
    a, b, c, d = map(int, host.split("."))
    number = (a << 24) + (b << 16) + (c << 8) + d
    spellings = [
        secret, f"{number}:{port}", f"{number:#x}:{port}", f"0{number:o}:{port}", f"127.{(b << 16) + (c << 8) + d}:{port}",
        f"0177.0.{c}.{d}:{port}", f"[::ffff:{host}]:{port}", f"[::ffff:{a:x}{b:02x}:{c:x}{d:02x}]:{port}",
        f"%31%32%37.0.{c}.{d}:{port}", f"{here.address}:{port}@{secret}", f"\uff11\uff12\uff17.0.{c}.{d}:{port}".encode().decode("latin-1"),
        f"x\\@{secret}", f"[::1]:{port}", f"localhost:{port}", f"0:{port}", f"[::]:{port}",
    ]  # fmt: skip
    for place, spelling in enumerate(spellings):
        here.put(f"/secret{place}", moved(f"http://{spelling}/s"), listed=False)
    schemes = (
        "javascript:alert(1)",
        "file:///etc/passwd",
        "data:text/html,x",
        "ftp://127.0.0.1/",
        "gopher://127.0.0.1/",
    )
    for place, target in enumerate(
        [*schemes, f"http://{offsite}/o", f"//{offsite}/o", f"HTTP://{offsite}/o"]
    ):
        here.put(f"/away{place}", moved(target), listed=False)
    here.put("/capital", moved("/TO/x"), listed=False)
    here.put("/TO/x", http(page(text="capital")), listed=True)
    here.put("/into", moved("/private/x"), listed=False)
    here.put("/private/x", http(page()), listed=False, asked=False)
    here.put("/wall", http("", "302 x", Location="/wall", Set_Cookie="seen=1"), listed=False, most=4)
    for name, content, listed in (
        ("now", "0;url=/to/301", False), ("later", "5;url=/to/302", None), ("minus", "-1;url=/to/303", True),
    ):  # fmt: skip
        head = f"<meta http-equiv=refresh content='{content}'>"
        here.put(f"/refresh-{name}", http(page(head=head, text=f"refresh {name}")), listed=listed)
    head = "<!-- <meta http-equiv=refresh content='0;url=/to/303'> --><script>'<meta http-equiv=refresh content=\"0;url=/\">'</script>"
    here.put("/refresh-comment", http(page(head=head, text="refresh comment")), listed=True)
    here.put("/robots.txt", http("User-agent: *\nDisallow: /private/\n", Content_Type="text/plain"))
    return finish(
        here,
        *[
            p
            for p in here.answers
            if p.startswith(("/to/", "/TO/", "/private", "/r3-", "/r10-", "/r25-")) and not p.endswith("-0")
        ],
    )


# -- 3 saying what to list ---------------------------------------------------------------------------------


def indexing(offsite: str) -> Origin:
    """Canonicals and robots directives, right, wrong and absurd."""
    here = site(7, "indexing")

    def canonical(path: str, to: str, listed: bool | None, where: str = "head") -> None:
        tag = f'<LINK REL="Canonical" HREF="{to}">'
        body = page(head=tag if where == "head" else "", text=path)
        here.put(path, http(body if where == "head" else body + tag), listed=listed, most=1)

    here.put("/home", http(page(text="home")), listed=True)
    canonical("/c/self", "/c/self", listed=True)
    canonical("/c/other", "/home", listed=False)
    canonical("/c/1", "/c/2", listed=False)
    canonical("/c/2", "/c/3", listed=False)
    canonical("/c/3", "/c/3", listed=True)
    canonical("/c/loop1", "/c/loop2", listed=None)
    canonical("/c/loop2", "/c/loop1", listed=None)
    canonical("/c/body", "/home", listed=True, where="body")
    canonical("/c/script", "javascript:x", listed=True)
    canonical("/c/invalid", "http://[", listed=True)
    canonical("/c/away", f"http://{offsite}/x", listed=False)
    two = "<link rel=canonical href=/home><link rel=canonical href=/c/3>"
    here.put("/c/two", http(page(head=two, text="two")), listed=True)
    here.put(
        "/c/comment", http(page(head="<!-- <link rel=canonical href=/home> -->", text="comment")), listed=True
    )
    here.put(
        "/c/header",
        http(page(text="h"), Link='</x>; rel="next, a"; title="a, b", </home>; rel="canonical"'),
        listed=False,
    )
    for number, (name, content, listed) in enumerate([
        ("robots", "noindex", False), ("ROBOTS", "NoIndex, follow", False), ("sitemap-crawler", "noindex", False),
        ("robots", "none", False), ("googlebot", "noindex", False), ("robots", "index, follow", True),
        ("robots", "max-snippet:5, noindex", False), ("robots", "nonsense", True), ("otherbot", "noindex", True),
    ]):  # fmt: skip
        head = f'<meta NAME="{name}" content="{content}">'
        here.put(
            f"/m/{number}", http(page(f"/behind/{number}", head=head, text=f"meta {number}")), listed=listed
        )
        here.put(
            f"/behind/{number}",
            http(page(text=f"behind {number}")),
            listed=None if content == "none" else True,
        )
    for number, (tag, listed) in enumerate([
        ("noindex", False), ("index, NOINDEX", False), ("otherbot: noindex", True), ("sitemap-crawler: noindex", False),
        ("unavailable_after: 25 Jun 2010 15:00:00 PST, noindex", False), ("junk;;;:,", True),
        ("otherbot: nofollow\r\nX-Robots-Tag: noindex", False), ("none", False),
    ]):  # fmt: skip
        here.put(f"/x/{number}", http(page(text=f"header {number}"), X_Robots_Tag=tag), listed=listed)
    here.put(
        "/n/page",
        http(page("/n/unfollowed", head="<meta name=robots content=nofollow>", text="nf")),
        listed=True,
    )
    here.put("/n/unfollowed", http(page()), asked=False)
    return finish(here, "/n/unfollowed", *[path for path in here.answers if path.startswith("/behind/")])


# -- 4 statuses --------------------------------------------------------------------------------------------


def statuses() -> Origin:
    """Every status, some that pass, and every Retry-After."""
    here = site(8, "statuses")
    for status in (
        400,
        401,
        402,
        403,
        404,
        405,
        406,
        410,
        418,
        451,
        499,
        501,
        505,
        511,
        599,
        204,
        205,
        600,
        999,
    ):
        here.put(f"/s/{status}", http("x", f"{status} x"), listed=False, most=10)
    for status in (201, 202, 203, 206, 299):
        here.put(f"/s/{status}", http(page(text=str(status)), f"{status} x"), most=10)
    for status in (500, 502, 503, 504):
        here.put(f"/never/{status}", http("x", f"{status} x"), listed=False, most=10)
        here.put(
            f"/third/{status}",
            _from(3, http("x", f"{status} x"), http(page(text=f"third {status}"))),
            listed=True,
            most=6,
        )
    for number, value in enumerate(["0", formatdate(0, usegmt=True), "garbage", "-5", "1"]):
        broken = http("x", "503 x", Retry_After=value)
        here.put(
            f"/after/{number}", _from(2, broken, http(page(text=f"after {number}"))), listed=True, most=6
        )
    here.put("/after/huge", http("x", "503 x", Retry_After="1" + "0" * 20), listed=False, most=10)
    early = b"HTTP/1.1 103 Early Hints\r\nLink: </style.css>; rel=preload\r\n\r\n"
    here.put("/early", early * 3 + http(page(text="early")), listed=True)
    here.put("/phrase", http(page(text="phrase")).replace(b"200 OK", b"200 "), listed=True)
    return finish(here)


def _from(count: int, before: bytes, then: bytes) -> Answer:
    return lambda talk: talk.say(then if talk.count >= count else before)


# -- 5 bodies ----------------------------------------------------------------------------------------------


def codings() -> Origin:
    """Content codings, true and false, and bombs."""
    here = site(9, "codings")

    def coded(path: str, coding: str, body: bytes, listed: bool | None) -> None:
        here.put(path, http(body, Content_Encoding=coding), listed=listed, most=8)

    def text(path: str) -> bytes:
        return page(text=f"coded as {path}").encode()

    coded("/gzip", "gzip", gzip.compress(text("gzip")), listed=True)
    coded(
        "/members",
        "gzip",
        gzip.compress(text("members")[:20]) + gzip.compress(text("members")[20:]),
        listed=True,
    )
    coded("/capitals", "GZip", gzip.compress(text("capitals")), listed=True)
    coded("/x-gzip", "x-gzip", gzip.compress(text("x-gzip")), listed=True)
    coded("/deflate", "deflate", zlib.compress(text("deflate")), listed=True)
    coded("/bare", "deflate", zlib.compress(text("bare"))[2:-4], listed=True)
    coded("/br", "br", brotli.compress(text("br")), listed=True)
    coded("/double", "gzip, gzip", gzip.compress(gzip.compress(text("double"))), listed=None)
    coded("/hundred", ", ".join(["gzip"] * 100), gzip.compress(text("hundred")), listed=False)
    coded("/unknown", "snappy", b"????", listed=False)
    coded("/mislabelled", "gzip", text("mislabelled"), listed=None)
    coded("/badcrc", "gzip", gzip.compress(text("badcrc"))[:-8] + b"badcrc!!", listed=None)
    coded("/cut", "gzip", gzip.compress(b"x" * 20_000 + text("cut"))[:-20], listed=False)
    bomb = gzip.compress(bytes(200_000_000), 9)
    coded("/bomb", "gzip", bomb, listed=False)
    coded("/bomb2", "gzip, gzip", gzip.compress(bomb, 9), listed=False)
    coded("/bomb-br", "br", brotli.compress(bytes(200_000_000), quality=4), listed=False)
    here.put("/after", http(page(text="after the bombs")), listed=True)
    return finish(here)


def framing() -> Origin:
    """Where an answer ends, or does not, and what comes after it."""
    here = site(10, "framing")
    good = page(text="well framed").encode()
    chunked = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nTransfer-Encoding: chunked\r\n\r\n"

    def ends(data: bytes) -> Answer:
        def answer(talk: Talk) -> None:
            talk.say(data)
            talk.raw.close()

        return answer

    for name, data in {
        "short": http("x" * 10, Content_Length="50"),
        "no-last-chunk": chunked + b"5\r\nhello\r\n",
        "bad-chunk": chunked + b"zz\r\nhello\r\n0\r\n\r\n",
        "two-lengths": http("hello", Content_Length="5\r\nContent-Length: 6"),
        "negative": http("hello", Content_Length="-5"),
    }.items():
        here.put(f"/bad/{name}", ends(data), listed=False, most=8)
    here.put("/bad/reset", lambda talk: talk.reset(), listed=False, most=8)
    here.put(
        "/once",
        lambda talk: talk.reset() if talk.count == 1 else talk.say(http(page(text="once"))),
        listed=True,
        most=8,
    )
    size = f"{len(good):x}".encode()
    for name, answer in {
        "by-end": ends(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n" + good),
        "old": ends(b"HTTP/1.0 200 OK\r\nContent-Type: text/html\r\n\r\n" + good),
        "extension": chunked + size + b";name=value\r\n" + good + b"\r\n0\r\n\r\n",
        "trailer": chunked + size + b"\r\n" + good + b"\r\n0\r\nX-Trailer: x\r\n\r\n",
        "closed-after": ends(http(page(text="promised to stay"), Connection="keep-alive")),
    }.items():
        here.put(f"/good/{name}", answer, listed=True)
    fake = http(page("/forged", text="forged"), X_Forged="yes")
    for number in range(6):
        after = [fake, b"x" * 50, fake[:30], b"\0" * 70_000, fake * 3, b"HTTP/1.1 200 OK\r\n\r\n"][number]
        here.put(f"/surplus/{number}", http(page(text=f"surplus {number}")) + after, listed=True)
        here.put(f"/next/{number}", http(page(text=f"next {number}")), listed=True)
    here.put("/forged", http(page(text="nobody links here")), listed=False, asked=False)
    heads = {
        "many": b"".join(b"X-%d: y\r\n" % number for number in range(5_000)),
        "large": b"X: " + b"x" * 1_000_000 + b"\r\n",
        "endless": b"X: " + b"x" * 3_000_000,
        "colon": b"No colon here\r\n",
        "nul": b"X: a\0b\r\n",
        "folded": b"X: a\r\n b\r\n",
    }
    for name, fields in heads.items():
        here.put(f"/head/{name}", ends(b"HTTP/1.1 200 OK\r\n" + fields + http(page(text=name))[17:]), most=8)
    here.put("/head/status", ends(b"HTTP/1.1 200 " + b"O" * 3_000_000), listed=False, most=8)
    here.put("/head/lf", ends(http(page(text="lf")).replace(b"\r\n", b"\n")), most=8)
    cookies = "".join(f"\r\nSet-Cookie: c{number}={'x' * 100}" for number in range(500))
    here.put("/cookies", http(page(text="cookies"), X="y" + cookies), listed=True)
    return finish(here, "/forged")


def processing() -> Origin:
    """A hundred thousand interim answers: never silent, and a lot of work for a client."""
    here = site(28, "processing")
    here.put(
        "/informed", lambda talk: talk.say(b"HTTP/1.1 102 Processing\r\n\r\n" * MANY), listed=False, most=8
    )
    return finish(here)


def slow() -> Origin:
    """Answers that take for ever, each in its own way."""
    here = site(11, "slow")
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n"
    here.put(
        "/drip/head",
        lambda talk: talk.drip(b"HTTP/1.1 200 OK\r\nX-Slow: " + b"x" * MANY),
        listed=False,
        most=4,
    )

    def after(start: bytes, drop: bytes) -> Answer:
        def answer(talk: Talk) -> None:
            talk.say(start)
            talk.drip(drop)

        return answer

    here.put("/drip/body", after(head + b"Content-Length: 100000\r\n\r\n", b"x"), listed=False, most=4)
    here.put(
        "/drip/chunks",
        after(head + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\nx\r\n"),
        listed=False,
        most=4,
    )
    here.put("/silence", lambda talk: talk.hold(), listed=False, most=4)
    here.put(
        "/huge", after(head + b"Content-Length: 9223372036854775807\r\n\r\n", b"x"), listed=False, most=4
    )
    here.put("/good", http(page(text="good")), listed=True)
    return finish(here)


def large() -> Origin:
    """Pages that are too large, and markup that stalls parsers."""
    here = site(12, "large")

    def endless(talk: Talk) -> None:
        talk.say(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n")
        while True:
            talk.say(b"<p>more and more</p>" * 50_000)

    here.put("/endless", endless, listed=False, most=4)
    here.put("/hundred", http(b"x" * 50_000_000), listed=False, most=4)
    here.put("/links", http("<title>links</title>" + "".join(f"<a href=/l/{n}>" for n in range(60_000))))
    here.others = lambda path: http("x", "404 x") if path.startswith("/l/") else None
    here.put("/nested", http(b"<div>" * MANY), listed=None, most=4)
    here.put("/attributes", http(b"<p " + b" ".join(b"a%d" % n for n in range(MANY)) + b">"), most=4)
    mutated = b"".join(b"<b %d>" % n for n in range(20_000)) + b"".join(b"<i %d>" % n for n in range(20_000))
    here.put("/mutated", http(mutated + b"x</b>" * 20_000), most=4)
    here.put("/options", http(b"<select>" + b"<option>x" * 50_000), most=4)
    here.put("/pdf", http(b"%PDF-1.4\n\0\xff\xfe"), listed=False)
    for name, kind in (
        ("text", "text/plain"),
        ("octets", "application/octet-stream"),
        ("png", "image/png"),
        ("json", "application/json"),
    ):
        here.put(f"/t/{name}", http(page("/hidden"), Content_Type=kind), listed=False)
    here.put("/t/none", http(page("/shown", text="no type"), Content_Type=""), listed=True)
    here.put(
        "/t/xhtml", http(page("/shown2", text="xhtml"), Content_Type="application/xhtml+xml"), listed=True
    )
    here.put("/hidden", http(page()), asked=False)
    here.put("/shown", http(page(text="shown")), listed=True)
    here.put("/shown2", http(page(text="shown2")), listed=True)
    here.put("/good", http(page(text="good")), listed=True)
    return finish(here, "/hidden", "/shown", "/shown2")


# -- 8 to 12 -----------------------------------------------------------------------------------------------


def markup(offsite: str) -> Origin:
    """Where links are, and where they are not."""
    here = site(13, "markup")
    yes = {
        "unclosed": "<a href=/yes/unclosed", "area": "<map><area href=/yes/area></map>", "nested": "<a href=/yes/nested><a href=/x>",
        "table": "<table><a href=/yes/table>x", "hidden": "<div hidden><a href=/yes/hidden>x</a></div>",
        "noscript": "<noscript><a href=/yes/noscript>x</a></noscript>", "twice": "<a href=/yes/twice href=/no/twice>x</a>",
        "entity": "<a href='/yes/a&amp;b'>x</a>", "bare": "<a href='/yes/?a=1&copy=1'>x</a>", "blanks": "<a href='\n /yes/bla\tnks\r '>x</a>",
        "backslash": "<a href='\\yes\\backslash'>x</a>", "dots": "<a href='/no/../yes/./dots/%2e%2e/dots'>x</a>",
        "idn": "<a href='/yes/\u00fcber?q=\u00fc'>x</a>", "nul": "<a href='/yes/n&#0;l'>x</a>",
    }  # fmt: skip
    no = (
        "<!-- <a href=/no/comment> --><script>'<a href=/no/script>'</script><style><a href=/no/style></style>"
        "<textarea><a href=/no/textarea></textarea><title><a href=/no/title></title><xmp><a href=/no/xmp></xmp>"
        "<form method=post action=/no/post><button formaction=/no/formaction></form><img src=/no/img srcset='/no/srcset 2x'>"
        "<a ping=/no/ping data-href=/no/data onclick='go(\"/no/click\")'>x</a><script><!--<script>'<a href=/no/double>'</script>--></script>"
        "<a href='JavaScript:alert(1)'>x</a><a href='java\nscript:x'>x</a><a href=mailto:a@b>x</a><a href=tel:1>x</a><a href=data:,x>x</a>"
        "<a href='blob:x'>x</a><a href='http://[/'>x</a><a href='http://x:99999/'>x</a><a href='http:///'>x</a><a href='weird:x'>x</a>"
        "<!--><a href=/yes/quick>x</a><plaintext><a href=/no/plaintext>"
    )
    paths = [
        "/yes/area", "/yes/nested", "/yes/table", "/yes/hidden", "/yes/noscript", "/yes/twice", "/yes/a&b", "/yes/?a=1&copy=1",
        "/yes/blanks", "/yes/backslash", "/yes/dots", "/yes/%C3%BCber?q=%C3%BC", "/yes/quick",
    ]  # fmt: skip
    for path in paths:
        here.put(path, http(page(text=path)), listed=True)
    credentials = f"<a href='http://user:secret@{here.address}:PORT/yes/credentials'>x</a>"
    here.put("/yes/credentials", http(page(text="credentials")), listed=True)
    here.put("/x", http(page(text="x")), listed=True)
    here.others = lambda path: http(page(text="never"), "200 OK") if path.startswith("/no/") else None
    here.bound("what is no link", lambda path: path.startswith("/no/"), 0)
    long_ok, long_bad = "/long/" + "o" * 2_000, "/long/" + "b" * 2_100
    here.put(long_ok, http(page(text="long")), listed=True)
    here.put(long_bad, http(page(text="too long")), listed=False)

    def home(talk: Talk) -> None:
        body = "<!doctype html><title>markup</title>" + credentials.replace("PORT", str(here.port))
        body += f"<a href={long_ok}>x</a><a href={long_bad}>x</a><a href=/based/>x</a><a href=/away/>x</a>"
        talk.say(http(body + "".join(yes.values()) + no))

    here.put("/", home, listed=True)
    here.put(
        "/based/",
        http("<title>b</title><body><a href=one>x</a><base href='/based/deep/'><base href=/no/>"),
        listed=True,
    )
    here.put("/based/deep/one", http(page(text="based")), listed=True)
    here.put(
        "/away/", http(f"<title>a</title><base href='http://{offsite}/'><a href=gone>x</a>"), listed=True
    )
    return here


def dates() -> Origin:
    """Last-Modified in every form and malformation."""
    here = site(14, "dates")
    for number, (value, expected) in enumerate([
        ("Sun, 06 Nov 1994 08:49:37 GMT", "1994-11-06T08:49:37+00:00"), ("Sunday, 06-Nov-94 08:49:37 GMT", "1994-11-06T08:49:37+00:00"),
        ("Sun Nov  6 08:49:37 1994", "1994-11-06T08:49:37+00:00"), ("Fri, 01 Jan 2100 00:00:00 GMT", ""), ("garbage", ""), ("0", ""), ("-1", ""),
        ("Sun, 30 Feb 2020 00:00:00 GMT", ""), ("Sat, 01 Jan 0000 00:00:00 GMT", ""), ("Fri, 31 Dec 9999 23:59:59 GMT", ""),
        ("Fri, 31 Dec 10000 23:59:59 GMT", ""), ("x" * MANY, ""),
    ]):  # fmt: skip
        here.put(
            f"/d/{number}",
            http(page(text=f"date {number}"), Last_Modified=value, ETag=f'W/"{number}"'),
            listed=True,
            lastmod=expected,
        )
    return finish(here)


def robots(number: int, answer: Answer, *, allowed: bool | None, name: str) -> Origin:
    """A site whose robots.txt is `answer`; whether its pages may be asked for."""
    here = site(number, f"robots {name}")
    here.put("/robots.txt", answer)
    here.put("/page", http(page(text=f"page of {name}")), asked=None if allowed else allowed, listed=allowed)
    here.put("/private/x", http(page(text="private")), asked=None)
    here.put(
        "/", http(page("/page", "/private/x", text=name)), listed=allowed, asked=None if allowed else allowed
    )
    return here


def sitemaps(offsite: str, secret: str) -> Origin:
    """Sitemaps as seeds: what is read, and what is bounded."""
    here = site(15, "sitemaps")
    names: list[str] = []

    def plain(path: str) -> str:
        here.put(path, http(page(text=f"page {path}")), listed=True)
        return f"http://{here.address}:PORT{path}"

    def urlset(*locs: str, space: str = 'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"') -> str:
        return (
            f"<?xml version='1.0'?><urlset {space}>"
            + "".join(f"<url><loc>{loc}</loc></url>" for loc in locs)
            + "</urlset>"
        )

    def named(path: str, body: str | bytes, *, listed: bool = True) -> None:
        def answer(talk: Talk) -> None:
            data = body.encode() if isinstance(body, str) else body
            talk.say(http(data.replace(b"PORT", str(here.port).encode()), Content_Type="application/xml"))

        here.put(path, answer, listed=False, most=8)
        if listed:
            names.append(path)

    named("/m/plain.xml", urlset(plain("/p/1")))
    named("/m/old.xml", urlset(plain("/p/2"), space='xmlns="http://www.google.com/schemas/sitemap/0.84"'))
    named("/m/none.xml", urlset(plain("/p/3"), space=""))
    named("/m/bom.xml", "\ufeff" + urlset(plain("/p/4")))
    named("/m/cdata.xml", urlset(f"<![CDATA[ {plain('/p/5')} ]]>"))
    named("/m/text.txt", f"\ufeff{plain('/p/6')}\r\n{plain('/p/7')}\r\n")
    named("/m/cut.xml", urlset(plain("/p/8"), "http://x/")[:-40])
    named(
        "/m/self.xml",
        f"<sitemapindex><sitemap><loc>http://{here.address}:PORT/m/self.xml</loc></sitemap></sitemapindex>",
    )
    named(
        "/m/laughs.xml",
        "<!DOCTYPE l [<!ENTITY a 'ha'>"
        + "".join(f"<!ENTITY {chr(98 + n)} '{('&' + chr(97 + n) + ';') * 10}'>" for n in range(10))
        + "]>"
        + urlset("&k;"),
    )
    named(
        "/m/external.xml",
        f"<!DOCTYPE l SYSTEM 'http://{secret}/dtd' [<!ENTITY x SYSTEM 'file:///etc/passwd'>]>"
        + urlset("&x;"),
    )
    named(
        "/m/xinclude.xml",
        f"<urlset xmlns:xi='http://www.w3.org/2001/XInclude'><xi:include href='http://{secret}/x'/></urlset>",
    )
    named(
        "/m/away.xml",
        urlset(f"http://{offsite}/x", "file:///etc/passwd", "javascript:x", f"http://{secret}/y"),
    )
    named("/m/html.xml", page(text="not a sitemap"))
    named("/m/bomb.xml.gz", gzip.compress(b"<urlset>" + b" " * 80_000_000, 1))
    named("/m/notgzip.xml.gz", "not gzip")
    here.put("/deep/0", b"", listed=False)
    for level in range(60):
        named(
            f"/deep/{level}",
            f"<sitemapindex><sitemap><loc>http://{here.address}:PORT/deep/{level + 1}</loc></sitemap></sitemapindex>",
            listed=level == 0,
        )
    wide = "".join(f"<sitemap><loc>http://{here.address}:PORT/wide/{n}</loc></sitemap>" for n in range(200))
    named("/m/wide.xml", f"<sitemapindex>{wide}</sitemapindex>")
    here.others = lambda path: http(urlset()) if path.startswith("/wide/") else None

    def robots_txt(talk: Talk) -> None:
        lines = [f"Sitemap: http://{here.address}:{here.port}{name}" for name in names]
        talk.say(http("User-agent: *\nAllow: /\n" + "\n".join(lines), Content_Type="text/plain"))

    here.put("/robots.txt", robots_txt)
    here.put("/", http(page(text="sitemaps")), listed=True)
    return here


def failing() -> Origin:
    """A host that fails in the middle of the crawl, until `well` is set."""
    here = site(16, "failing")
    here.well = False  # type: ignore[attr-defined]

    def answer(talk: Talk) -> None:
        number = int(talk.asked.path[3:])
        well = here.well or len(here.log) < 50  # type: ignore[attr-defined]
        talk.say(http(page(f"/p/{number + 1}", text=f"page {number}")) if well else http("x", "500 x"))

    for number in range(400):
        here.put(f"/p/{number}", answer, listed=True)
    return finish(here)


def shouting() -> Origin:
    """Texts with control characters, markup and formulas that would take effect where they are displayed."""
    here = site(17, "shouting")
    evil = [
        "\x1b[2J\x1b]0;owned\x07",
        "\u202egnp.exe",
        "<script>alert(1)</script>",
        "=cmd|' /C calc'!A0",
        "\x00\x08\x7f",
        "%1b%5b2J",
    ]
    for number, text in enumerate(evil):
        here.put(
            f"/t/{number}",
            http(page(f"/e/{text}", head=f"<title>{text}</title>", text=f"evil {number}")),
            listed=True,
        )
    here.put("/type", http("x", Content_Type="text/\x1b[31mred"), listed=False)
    here.put("/canonical", http(page(head="<link rel=canonical href='/\x1b[31m'>", text="c")), listed=False)
    here.put("/where", http("", "302 x", Location="/\x1b]8;;http://evil/\x07"), listed=False)
    return finish(here)
