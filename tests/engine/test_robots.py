import gzip
import re
import threading
from collections.abc import Callable
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler.engine import robots as permits
from crawler.engine.robots import MAX_BODY, CacheSize, Robots, origin_rules
from crawler.model.reasons import Cause, Why
from crawler.model.reply import Broken, Headers, Reply, Response, RobotsFile
from crawler.parse.robots_index import END, LEAST_STEPS, STEPS, Rule, RuleIndex
from crawler.parse.robots_txt import INTRICATE, LIMIT, Group, _records, parse, rules_of
from crawler.parse.url import Url
from crawler.ports import Request

US = "sitemap-crawler"
SITE = "https://example.com"


def allowed(text: str | bytes, path: str, agent: str = US) -> bool:
    text = text if isinstance(text, bytes) else text.encode()
    return parse(text, agent).permit(path).allowed


def for_us(*rules: str) -> str:
    return "\n".join(["User-agent: *", *rules])


# -- groups --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "agents",
    ["sitemap-crawler", "SITEMAP-CRAWLER", "Sitemap-Crawler/2.1", "sitemap-crawler bot", "sitemap-crawler2"],
)
def test_user_agent_matches_regardless_of_case_and_version(agents: str) -> None:
    assert not allowed(f"User-agent: *\nAllow: /\nUser-agent: {agents}\nDisallow: /", "/x")


@pytest.mark.parametrize("agents", ["sitemap", "sitemap-crawler-x", "crawler", "*bot", "", "2"])
def test_similar_product_token_does_not_match(agents: str) -> None:
    assert allowed(f"User-agent: {agents}\nDisallow: /", "/x")


def test_groups_of_same_user_agent_are_merged() -> None:
    text = f"User-agent: {US}\nDisallow: /a\nUser-agent: *\nDisallow: /b\nUser-agent: {US}\nDisallow: /c"
    assert [allowed(text, path) for path in ("/a", "/b", "/c")] == [False, True, False]


def test_own_group_without_rules_allows_all() -> None:
    assert allowed(f"User-agent: *\nDisallow: /\n\nUser-agent: {US}\n", "/x")


@pytest.mark.parametrize("line", ["Sitemap: http://a/b", "Crawl-delay: 1", "Noindex: /x", "junk", "", "# c"])
def test_only_a_rule_ends_consecutive_user_agent_lines(line: str) -> None:
    assert not allowed(f"User-agent: {US}\n{line}\nUser-agent: other\nDisallow: /", "/x")


def test_empty_disallow_ends_user_agent_lines_and_allows_all() -> None:
    assert allowed(f"User-agent: {US}\nDisallow:\nUser-agent: other\nDisallow: /", "/x")


def test_rules_before_first_user_agent_are_ignored() -> None:
    assert allowed("Disallow: /\nUser-agent: *\nDisallow: /x", "/y")


# -- lines ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("end", ["\n", "\r", "\r\n"])
@pytest.mark.parametrize("start", [b"", b"\xef\xbb\xbf", b"\xef\xbb"])
def test_line_endings_and_byte_order_marks(end: str, start: bytes) -> None:
    assert not allowed(start + end.join(["User-agent: *", "Disallow: /x"]).encode(), "/x")


@pytest.mark.parametrize("junk", [b"\0\0: \0", b"\xff\xfe\x80: \xff", b": /", b"\0", b"<html>", b"a" * 9_999])
def test_junk_lines_are_ignored(junk: bytes) -> None:
    assert not allowed(b"\n".join([junk, b"User-agent: *", junk, b"Disallow: /x", junk]), "/x")


@pytest.mark.parametrize(
    "rule",
    [
        "Disallow:/x",
        "disallow : /x",
        "\tDISALLOW:\t/x # why",
        "disalow: /x",
        "Dissallow: /x",
        "Disallow: /x#y",
    ],
)
def test_misspelt_disallow_still_disallows(rule: str) -> None:
    assert not allowed(for_us(rule), "/x")


@pytest.mark.parametrize("name", ["useragent:", "User Agent:", "user-agent", "USER-AGENT :"])
def test_misspelt_user_agent_is_recognised(name: str) -> None:
    assert not allowed(f"{name} *\nDisallow: /x", "/x")


def test_missing_colons_are_accepted_if_whole_group_has_none() -> None:
    assert not allowed("user-agent *\ndisallow /x", "/x")
    assert allowed("User-agent: *\nDisallow /x", "/x")
    assert allowed("user-agent *\ndisallow /x and /y", "/x")


def test_only_complete_lines_within_500_kib_count() -> None:
    start = b"User-agent: *\nDisallow: /x\n#"
    inside = start + b"c" * (LIMIT - len(start) - 12) + b"\nAllow: /x/y"
    assert len(inside) == LIMIT
    assert allowed(inside, "/x/y")
    assert allowed(inside + b"\nDisallow: /x/y/z", "/x/y/z")
    assert not allowed(inside + b"/z", "/x/y")
    assert not allowed(inside + b"/z", "/x/y/z")


# -- paths ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pattern", "path", "matches"),
    [
        ("/fish", "/fish.html", True),
        ("/fish", "/Fish", False),
        ("fish", "/fish", False),  # no path (RFC 9309 2.2.2)
        ("*fish", "/a/fish", True),
        ("/a*/b", "/a/x/b/c", True),
        ("/a*/b$", "/a/x/b/c", False),
        ("/a*/b$", "/a/b/c/b", True),
        ("/a*b*b$", "/ab", False),
        ("/ab*b$", "/ab", False),
        ("/a*$", "/abc", True),
        ("/a$", "/a?b", False),
        ("/a$b", "/a$b", True),
        ("/a%24", "/a$", True),
        ("/a%2A", "/a*", True),
        ("/a%2A", "/ab", False),
        ("/$", "/", True),
        ("/**a", "/xa", True),
        ("/%70", "/p", True),
        ("/p", "/%70", True),
        ("/%7Ejoe", "/~joe", True),
        ("/a%2fb", "/a%2Fb", True),
        ("/a%2fb", "/a/b", False),
        ("/a/b", "/a%2Fb", False),
        ("/ä", "/%C3%A4", True),
        ("/%c3%a4", "/ä", True),
        ("/ツ", "/%E3%83%84", True),
        ("/a b", "/a%20b", True),
        ("/a|b[c]", "/a%7Cb%5Bc%5D", True),
        ("/100%", "/100%", True),
        ("/100%$", "/100%25", False),
        ("/?q=", "/?q=1", True),
    ],
)
def test_path_matching(pattern: str, path: str, matches: bool) -> None:
    assert allowed(for_us(f"Disallow: {pattern}"), path) is not matches


@pytest.mark.parametrize(
    ("rules", "line"),
    [
        (["Disallow: /a", "Allow: /a/b"], "line 3: Allow: /a/b"),
        (["Allow: /a/b/c", "Disallow: /a"], "line 2: Allow: /a/b/c"),
        (["Disallow: /a/b/c", "Allow: /a/b/c"], "line 3: Allow: /a/b/c"),
        (["Allow: /a/b", "Disallow: /*/c"], "line 2: Allow: /a/b"),
        (["Allow: /a/b", "Disallow: /*/b/c"], "line 3: Disallow: /*/b/c"),
        (["Allow: /%61/%62/", "Disallow: /a/b/c"], "line 3: Disallow: /a/b/c"),  # octets of the normal form
        (["Disallow: /a/b/c # why", "Disallow: /x"], "line 2: Disallow: /a/b/c"),
        (["Disallow: /x"], ""),
    ],
)
def test_longest_rule_wins_and_is_reported(rules: list[str], line: str) -> None:
    decision = parse(for_us(*rules).encode(), US).permit("/a/b/c")
    assert decision.line == line
    assert decision.group == "line 1: User-agent: *"
    assert decision.allowed is ("Disallow" not in line)


def test_decision_reports_group_of_its_rule() -> None:
    text = f"User-agent: other\nUser-agent: {US}/2\nDisallow: /a\n\nUser-agent: {US}\nDisallow: /b".encode()
    rules = parse(text, US)
    both = "line 1: User-agent: other, line 2: User-agent: sitemap-crawler/2"
    assert rules.permit("/a").group == both
    assert rules.permit("/b").group == "line 5: User-agent: sitemap-crawler"
    assert rules.permit("/c").group == f"{both}; line 5: User-agent: sitemap-crawler"


def test_robots_txt_itself_is_always_allowed() -> None:
    assert allowed(for_us("Disallow: /"), "/robots.txt")
    assert not allowed(for_us("Disallow: /"), "/robots.txt.gz")


# -- Crawl-delay ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "delay"),
    [("5", 5.0), (".3", 0.3), ("1.5", 1.5), ("0", 0.0), ("86400", 86_400.0)]
    + [(bad, None) for bad in ("", "soon", "-1", "1_0", "inf", "nan", "1e9", "9" * 400, "10 s")],
)
def test_crawl_delay_is_parsed_as_seconds_or_ignored(value: str, delay: float | None) -> None:
    assert parse(for_us(f"Crawl-delay: {value}").encode(), US).delay == delay


@pytest.mark.parametrize(
    ("text", "delay"),
    [
        ("User-agent: a\nCrawl-delay: 9\nUser-agent: *\nDisallow: /x", None),
        ("User-agent: *\nUser-agent: a\nCrawl-delay: 9", 9.0),
        (f"User-agent: {US}\nDisallow: /x\nUser-agent: *\nCrawl-delay: 9", None),
        ("User-agent: *\nCrawl-delay: 1\nCrawl-delay: 9\nDisallow: /\nCrawl-delay: 3", 9.0),
        ("Crawl-delay: 9\nUser-agent: *", None),
    ],
)
def test_crawl_delay_applies_to_user_agents_above_it(text: str, delay: float | None) -> None:
    assert parse(text.encode(), US).delay == delay


# -- laws ----------------------------------------------------------------------------------------------

PIECES = st.sampled_from(["/", "a", "b", "*", "$", "%61", "%2F", "%2f", "%", "ä", "?", " ", ".", "#"])
PATHS = st.lists(PIECES, max_size=8).map("".join)


@given(st.lists(st.tuples(st.sampled_from(["Allow", "Disallow"]), PATHS), max_size=6), PATHS, PATHS)
def test_adding_an_allow_rule_never_disallows_a_path(
    rules: list[tuple[str, str]], more: str, path: str
) -> None:
    lines = [": ".join(rule) for rule in rules]
    if allowed(for_us(*lines), "/" + path):
        assert allowed(for_us(*lines, f"Allow: /{more}"), "/" + path)


@given(st.text("ab*$", max_size=8), st.text("ab", max_size=12))
def test_matching_equals_regular_expression(pattern: str, path: str) -> None:
    anchored = pattern.endswith("$")
    literals = (pattern[:-1] if anchored else pattern).split("*")
    obvious = "/" + ".*".join(map(re.escape, literals)) + ("$" if anchored else "")
    assert allowed(for_us(f"Disallow: /{pattern}"), "/" + path) is (re.match(obvious, "/" + path) is None)


# -- work ----------------------------------------------------------------------------------------------


def matches(rule: Rule, path: bytes) -> bool:
    """Whether a rule matches, without an index."""
    text, (head, *behind) = path + END, rule.literals
    at = len(head) if text.startswith(head) else -1
    for literal in behind:
        if at < 0:
            break
        found = text.find(literal, at)
        at = found + len(literal) if found >= 0 else -1
    return at >= 0


def rules_within(lines: list[str]) -> list[Rule]:
    """All rules of a group, for a linear search."""
    records = list(_records("\n".join(lines).encode()))
    return list(rules_of(Group(rules=[record for record in records if record.value]), ""))


@given(
    st.lists(st.tuples(st.sampled_from(["Allow", "Disallow"]), st.text("ab*$/", max_size=6)), max_size=40),
    st.text("ab/", max_size=12),
)
def test_rule_index_agrees_with_linear_search(rules: list[tuple[str, str]], path: str) -> None:
    ours = rules_within([f"{name}: {value}" for name, value in rules])
    text = ("/" + path).encode()
    matching = [rule for rule in ours if matches(rule, text)]
    assert RuleIndex(ours).deciding(text) is max(matching, key=lambda rule: rule.rank, default=None)


LONG = "/" + "".join(str(number) for number in range(2_000))  # 6,891 octets
SAME = "/" + "a" * 8_000


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rule", "path"),
    [
        (lambda n: f"*folder{n}x", LONG),
        (lambda n: f"*{'a' * 12}{n}", SAME),
        (lambda n: f"/*/folder{n}/*.html$", "/shop/a/page.html?id=7"),
        (lambda n: f"/folder{n}/", "/shop/a/page.html?id=7"),
        (lambda n: f"*a*b{n}$", SAME),
        (lambda n: f"*{'b' * (n % 90)}{n}*x*y", LONG),
    ],
)
def test_lookup_cost_does_not_grow_with_number_of_rules(rule: Callable[[int], str], path: str) -> None:
    """22,000 rules that begin with `*` and a link of 7,000 characters once blocked the event loop for 7.5 s."""

    def steps(count: int) -> int:
        index = parse(for_us(*(f"Disallow: {rule(number)}" for number in range(count))).encode(), US).index
        index.deciding(path.encode())
        return index.steps

    few, many = steps(500), steps(5_000)
    assert many <= 1.1 * few + 8 * len(path)
    assert many <= 3 * len(path)


@pytest.mark.slow
@pytest.mark.parametrize(
    "lines",
    [
        ["*" + "a" * number for number in range(1, 900)],
        ["*" + "a" * number + "*b" for number in range(1, 900)],
        ["/" + "a" * number + "*b" for number in range(1, 900)],
        ["*" + "a" * number + "b*c" for number in range(1, 900)],
        ["/" + "*a" * 2_000 + "*b$"],
        ["/" + "a*" * 120_000],
        ["*" * 400_000 + "b$"],
        pytest.param([f"*{number:04}*zz$" for number in range(9_000)], marks=pytest.mark.slow),
        pytest.param(
            [
                "*" + "*".join(format(number, "012b").translate({48: "a", 49: "b"})) + "*b"
                for number in range(4_096)
            ],
            marks=pytest.mark.slow,
        ),
    ],
    ids=[
        "nested",
        "nested, then a star",
        "nested prefixes",
        "nested suffixes",
        "literals between stars",
        "many stars",
        "only stars",
        "many prefixes match",
        "tree",
    ],
)
@pytest.mark.parametrize("path", [LONG, SAME, "/" + "ab" * 4_000, "/" + ("a" * 899 + "c") * 8])
def test_hostile_rules_take_bounded_work_and_match_exactly(lines: list[str], path: str) -> None:
    ours = rules_within([f"Disallow: {line}" for line in lines])
    index = RuleIndex(ours)
    found = index.deciding(path.encode())
    assert index.steps <= LEAST_STEPS + STEPS * (len(path) + 1)
    if len(lines) < 1_000:  # the others take minutes one by one
        assert found is max(
            (rule for rule in ours if matches(rule, path.encode())), key=lambda rule: rule.rank, default=None
        )


def test_rules_exceeding_work_limit_disallow_and_say_so() -> None:
    """Thousands of rules that all match half way, and then search for the slowest possible literal."""
    slow = "a" * 50 + "b" + "a" * 20
    lines = [f"Disallow: *{LONG[at : at + 8]}*{at}{slow}" for at in range(4_000)]
    rules = parse(for_us(*lines).encode(), US)
    decision = rules.permit(LONG[:4_000] + "a" * 4_000)
    assert (decision.allowed, decision.line) == (False, INTRICATE)
    assert rules.index.steps <= 2 * (LEAST_STEPS + STEPS * 8_001)
    assert rules.permit("/robots.txt").allowed
    assert rules.permit("/short").allowed


@pytest.mark.both_loops
async def test_large_robots_txt_is_parsed_once_in_a_thread() -> None:
    """Parsing 500 KiB of rules takes a second, which must not block the event loop."""
    threads: list[int] = []

    def noted(*given: Any) -> Any:
        threads.append(threading.get_ident())
        return parse(*given)

    large = RobotsFile("rules", for_us(*(f"Disallow: /{n}" for n in range(20_000))).encode())
    small = RobotsFile("rules", FORBID)
    robots = Web(lambda _: Broken(Cause.CONNECT)).robots()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(permits, "parse", noted)
        async with anyio.create_task_group() as tasks:
            for _ in range(8):
                tasks.start_soon(robots.learn, SITE, large)
        await robots.learn("https://small.test", small)
    here = threading.get_ident()
    assert [thread == here for thread in threads] == [False, True]
    assert not robots.permit(Url(f"{SITE}/19999")).allowed


@pytest.mark.slow
@pytest.mark.parametrize("line", ["a", "a:", "Allow:*a", "User-agent: *\nAllow: /\n", "Crawl-delay: 1"])
def test_memory_of_hostile_robots_txt_is_bounded(line: str) -> None:
    text = ("User-agent: *\n" + f"{line}\n" * (LIMIT // len(line))).encode()
    assert parse(text, US).weight < 64 * 1024 * 1024


# -- fetching --------------------------------------------------------------------------------------------


class Web:
    """A fetcher and a pacer in one; `log` has the requests, booked slots and waits in order."""

    def __init__(self, answer: Callable[[str], Reply]) -> None:
        self.answer = answer
        self.log: list[str] = []

    async def fetch(self, request: Request) -> Reply:
        assert request.limit == MAX_BODY
        self.log.append(request.url)
        return self.answer(request.url)

    async def slot(self, origin: str) -> None:
        self.log.append(f"slot {origin}")

    def robots(self, **options: Any) -> Robots:
        return Robots(US, self, self.slot, now=lambda: 7.0, **options)


def moved(to: str) -> Response:
    return Response(302, Headers([("location", to)]))


def no_request(url: str) -> Reply:
    raise AssertionError(f"requested {url}")


FORBID = b"User-agent: *\nDisallow: /private"


@pytest.mark.parametrize(
    ("reply", "status"),
    [
        (Response(200, body=FORBID), "rules"),
        *((Response(code), "none") for code in (400, 401, 403, 404, 410, 451)),
        *((Response(code, body=FORBID), "down") for code in (429, 500, 503, 599, 304, 300, 600)),
        (moved(""), "down"),
        (moved("javascript:1"), "down"),
        (Response(301), "down"),
        *((Broken(cause), "down" if cause is Cause.WALL else "unreachable") for cause in Cause),
        (Response(200, body=gzip.compress(FORBID)), "rules"),
        (Response(200, body=gzip.compress(FORBID)[:-5]), "down"),
        (Response(200, body=gzip.compress(b"") * 5_000 + gzip.compress(FORBID)), "down"),
        (Response(200, body=gzip.compress(FORBID)[:-8] + b"badcrc!!"), "down"),
        (Response(200, body=b"\x1f\x8b" + b"\xff" * 99), "down"),
    ],
)
async def test_unreadable_robots_txt_never_allows_all(reply: Reply, status: str) -> None:
    file = await Web(lambda _: reply).robots().ask(SITE)
    assert (file.status, file.fetched) == (status, 7.0)
    assert file.text == (FORBID if status == "rules" else b"")
    assert file.detail or status == "rules"


async def test_empty_robots_txt_allows_all() -> None:
    robots = Web(lambda _: Response(204)).robots()
    await robots.learn(SITE, await robots.ask(SITE))
    assert robots.permit(Url(f"{SITE}/x")).allowed


async def test_gzip_bomb_and_long_robots_txt_are_truncated() -> None:
    bomb = gzip.compress(FORBID + b"\n" + b"#" * 50_000_000)
    for body in (bomb, FORBID + b"\n" + b"#" * 3_000_000):
        file = await Web(lambda _, body=body: Response(200, body=body)).robots().ask(SITE)  # type: ignore[misc]
        assert (file.status, len(file.text)) == ("rules", LIMIT + 1)
        assert not allowed(file.text, "/private")


async def test_robots_txt_redirect_elsewhere_books_slot_for_each_hop() -> None:
    pages: dict[str, Reply] = {
        f"{SITE}/robots.txt": moved("/r"),
        f"{SITE}/r": moved("//other.test/robots.txt"),
        "https://other.test/robots.txt": Response(200, body=FORBID),
    }
    web = Web(pages.__getitem__)
    file = await web.robots().ask(SITE)
    assert file == RobotsFile("rules", FORBID, "at https://other.test/robots.txt", 7.0)
    assert web.log == [
        f"{SITE}/robots.txt", f"slot {SITE}", f"{SITE}/r",
        "slot https://other.test", "https://other.test/robots.txt",
    ]  # fmt: skip


@pytest.mark.parametrize(("hops", "status"), [(5, "rules"), (6, "none")])
async def test_at_most_five_robots_txt_redirects_are_followed(hops: int, status: str) -> None:
    chain: list[Reply] = [*(moved(f"/{n}") for n in range(hops)), Response(200, body=FORBID)]
    answers = iter(chain)
    web = Web(lambda _: next(answers))
    assert (await web.robots().ask(SITE)).status == status
    assert sum(entry.startswith("https") for entry in web.log) == 6


async def test_robots_txt_redirect_loop_ends_at_once() -> None:
    web = Web(lambda _: moved("/robots.txt"))
    assert (await web.robots().ask(SITE)).status == "none"
    assert web.log == [f"{SITE}/robots.txt"]


# -- deciding -----------------------------------------------------------------------------------------


async def learned(file: RobotsFile, **options: Any) -> Robots:
    robots = Web(no_request).robots(**options)
    await robots.learn(SITE, file)
    return robots


async def test_permit_has_reason_and_rule_line() -> None:
    robots = await learned(RobotsFile("rules", FORBID))
    no, yes = robots.permit(Url(f"{SITE}/private/x")), robots.permit(Url(f"{SITE}/x"))
    assert (no.allowed, no.why, no.line) == (False, Why.ROBOTS, "line 2: Disallow: /private")
    assert (yes.allowed, yes.why, yes.line) == (True, None, "")
    assert (
        origin_rules(RobotsFile("rules", FORBID), "me", SITE).decide(Url(f"{SITE}/private")).group
        == "line 1: User-agent: *"
    )


async def test_missing_robots_txt_allows_all_and_failing_one_nothing() -> None:
    assert (await learned(RobotsFile("none"))).permit(Url(f"{SITE}/x")).allowed
    no = (await learned(RobotsFile("down", detail="HTTP 503"))).permit(Url(f"{SITE}/x"))
    assert (no.allowed, no.why, no.line) == (False, Why.ROBOTS_DOWN, "HTTP 503")
    assert not origin_rules(RobotsFile("down"), "me", SITE).decide(Url(f"{SITE}/x")).allowed


async def test_unknown_origin_is_disallowed() -> None:
    robots = await learned(RobotsFile("none"))
    assert (robots.knows(SITE), robots.knows("https://other.test")) == (True, False)
    assert not robots.permit(Url("https://other.test/")).allowed
    assert robots.delay("https://other.test") is None
    assert robots.sitemaps("https://other.test") == []


async def test_ignore_robots_still_reads_sitemaps_and_crawl_delay() -> None:
    text = b"Sitemap: /s.xml\nUser-agent: *\nDisallow: /\nCrawl-delay: 2"
    robots = await learned(RobotsFile("rules", text), ignore=True)
    assert robots.permit(Url(f"{SITE}/x")).allowed
    assert robots.sitemaps(SITE) == [f"{SITE}/s.xml"]
    assert robots.delay(SITE) == 2.0
    assert (await learned(RobotsFile("down"), ignore=True)).permit(Url(f"{SITE}/x")).allowed


async def test_sitemap_urls_are_resolved_and_limited_to_http() -> None:
    named = [
        "https://a.test/s.xml?utm_source=x",
        "/s.xml",
        "file:///etc/passwd",
        "javascript:1",
        "//",
        "/s.xml#",
    ]
    robots = await learned(RobotsFile("rules", "\n".join(f"Sitemap: {text}" for text in named).encode()))
    assert robots.sitemaps(SITE) == ["https://a.test/s.xml?utm_source=x", f"{SITE}/s.xml"]


async def test_least_recently_used_origin_is_evicted_first() -> None:
    robots = await learned(RobotsFile("none"), size=CacheSize(origins=2))
    await robots.learn("https://b.test", RobotsFile("none"))
    robots.permit(Url(f"{SITE}/x"))
    await robots.learn("https://c.test", RobotsFile("none"))
    assert [robots.knows(site) for site in (SITE, "https://b.test", "https://c.test")] == [True, False, True]


async def test_large_robots_files_are_evicted_before_memory_limit() -> None:
    large = RobotsFile("rules", for_us(*(f"Disallow: /{n}" for n in range(1_000))).encode())
    robots = await learned(large, size=CacheSize(memory=1_400_000))
    for name in "abc":
        await robots.learn(f"https://{name}.test", large)
        await robots.learn(f"https://{name}.test", large)
    assert [robots.knows(f"https://{name}.test") for name in "abc"] == [False, True, True]
    await robots.learn("https://a.test", RobotsFile("none"))
    assert robots.knows("https://b.test")


async def test_newest_origin_is_kept_whatever_its_size() -> None:
    robots = await learned(RobotsFile("rules", FORBID), size=CacheSize(memory=1))
    assert robots.knows(SITE)
