"""Several sites in one settings file: each with its own state and files, one after the other."""

import csv
import json
import os
import re
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import anyio
import pytest

from crawler.app.state import open_frontier
from crawler.cli.demo.site import Site
from crawler.errors import Exit, worst
from crawler.model.visit import Visit
from crawler.parse.url import Url
from crawler.settings.load import FILE
from crawler.settings.sections import Settings, State
from tests.commands import Run


def site_of(*pages: str) -> Site:
    site = Site()
    for page in ("/", *pages):
        site.page(page, links=pages)
    return site


@pytest.fixture
def origins() -> Iterator[list[str]]:
    with ExitStack() as stack:
        yield [stack.enter_context(site_of(*pages).serve()) for pages in (["/a"], ["/b", "/no"])]


COMMON = '[output]\ngzip = false\n[pace]\nrate = 0\n[report]\nreport = ["r.json"]\n'


def write(origins: list[str], *more: str, common: str = COMMON) -> None:
    names = ("shop", "docs")
    tables = [
        f'[[site]]\nname = "{name}"\nstart = "{origin}"\n{rest}\n'
        for name, origin, rest in zip(names, origins, (*more, "", ""), strict=False)
    ]
    Path(FILE).write_text(common + "\n".join(tables))


def paths(file: str, origin: str) -> list[str]:
    pieces = Path(file).read_text().split("<loc>")[1:]
    return [piece.partition("</loc>")[0].removeprefix(origin) for piece in pieces]


def test_each_site_has_its_own_state_and_files(run: Run, origins: list[str]) -> None:
    write(origins, "", 'exclude = "/no"')
    _, err = run.ok("crawl")
    assert paths("sitemaps/shop/sitemap.xml", origins[0]) == ["/", "/a"]
    assert paths("sitemaps/docs/sitemap.xml", origins[1]) == ["/", "/b"]
    assert sorted(path.name for path in Path(".sitemap-crawler").glob("*.db")) == ["docs.db", "shop.db"]
    assert sorted(path.name for path in Path().glob("r*")) == ["r-docs.json", "r-shop.json"]
    ends = [line for line in err.splitlines() if "site ended" in line]
    assert [line.partition("site ended ")[2] for line in ends] == [
        "site=shop exit=0 code=ok listed=2",
        "site=docs exit=0 code=ok listed=2",
    ]
    assert err.count("found in this folder") == 1


def test_one_site_by_name_or_by_url(run: Run, origins: list[str]) -> None:
    write(origins, 'output = "public"')
    run.ok("crawl", "--site", "docs")
    assert (Path("sitemaps/docs").exists(), Path("public").exists()) == (True, False)
    run.ok("crawl", f"{origins[0]}/")
    assert Path("public/sitemap.xml").exists()
    assert (
        json.loads(run("list", "pages", "--site", "shop", "--format", "json")[1])[0]["url"]
        == origins[0] + "/"
    )
    run.ok("explain", "/b", "--site", "docs")
    assert re.search(r"\noutput += public ", run("config", "--site", "shop")[1])
    assert run("config", "check", FILE)[1] == f"{FILE}: valid, 3 settings, 2 sites.\n"
    code, _, err = run("crawl", f"{origins[0]}/", "--site", "docs")
    assert (code, "is not on that site" in err) == (2, True)
    code, _, err = run("crawl", "--site", "nope")
    assert (code, "choose one of shop, docs" in err) == (2, True)
    Path(FILE).write_text("")
    code, _, err = run("crawl", "--site", "shop")
    assert (code, "has no [[site]] tables" in err) == (2, True)


def test_the_worst_exit_code_and_every_site_counts(run: Run, origins: list[str]) -> None:
    ill = Site()
    ill.respond("/", lambda _: Site.answer(500))
    with ill.serve() as origin:
        write([origin, origins[1]])
        code, _, err = run("crawl", "--retries", "0")
    assert code == Exit.UNREACHABLE
    assert Path("sitemaps/docs/sitemap.xml").exists()
    assert "shop: " in err
    code, out, _ = run("status", "--format", "json")
    known = json.loads(out)
    assert [one["name"] for one in known] == ["shop", "docs"]
    assert known[1]["complete"]
    lines = [json.loads(line) for line in run("status", "--format", "jsonl")[1].splitlines()]
    assert [one | {"silent": 0} for one in lines[1:]] == [one | {"silent": 0} for one in known[1:]]
    assert lines[0] == known[0] == {"name": "shop", "error": known[0]["error"]}
    code, out, _ = run("status")
    assert out.index("shop\n") < out.index("docs\n")
    assert not Path(".sitemap-crawler/shop.db").exists(), "a site that never answered leaves no state"
    code, out, _ = run("status")
    assert (code, "There is no state at .sitemap-crawler/shop.db" in out) == (Exit.OK, True)
    assert "all accounted for" in out


def test_the_site_worked_on_last_decides_what_is_alive(run: Run, origins: list[str]) -> None:
    write(origins)
    alive = ("status", "--alive", "100")

    def crashed(name: str, seconds: float) -> None:
        """The run of a site is unfinished, and the last progress is so long ago."""
        state = f".sitemap-crawler/{name}.db"

        async def begin() -> None:
            frontier = open_frontier(Settings(state=State(state=state, fresh=True)), None)
            await frontier.begin("settings", "reading")
            await frontier.add([Visit(Url("https://a.example/"))])
            await frontier.close()

        anyio.run(begin)
        os.utime(f"{state}.lock", (time.time() - seconds,) * 2)

    assert run(*alive)[0] == Exit.STORAGE, "no site has a state"
    crashed("shop", 0)
    assert run(*alive)[0] == Exit.OK, "the other waits for its turn"
    crashed("shop", 200)
    assert run(*alive)[0] == Exit.FINDINGS
    crashed("docs", 0)
    assert run(*alive)[0] == Exit.OK, "the second is at work"
    crashed("docs", 150)
    assert run(*alive)[0] == Exit.FINDINGS
    run("crawl", "--site", "docs", "--max-pages", "1", "--fresh")
    os.utime(".sitemap-crawler/docs.db.lock", (time.time() - 150,) * 2)
    assert run(*alive)[0] == Exit.OK, "the last one stopped at a limit: --every waits"


def test_commands_for_one_site_name_the_sites(run: Run, origins: list[str]) -> None:
    write(origins)
    run("crawl", "-q")
    for words in (["list", "pages"], ["explain", "/a"], ["export"], ["submit", "--dry-run"]):
        code, out, err = run(*words)
        assert (code, out) == (2, "")
        assert err.endswith(f"There are 2 sites in {FILE}: choose one of --site shop, --site docs.\n")
    assert f"{origins[1]}/b\n" in run("explain", f"{origins[1]}/b")[1]
    assert "outcome    not known" in run("explain", "https://a.example/", "--site", "docs")[1]
    assert f"{origins[1]}/b\n" in run("explain", "b", "--site", "docs")[1]
    for state in (".sitemap-crawler/docs.db", "copy.db"):
        code, out, _ = run("status", "--state", state)
        assert (code, out.count("all accounted for")) == (0, 1), "one state is of one site at most"
        Path("copy.db").write_bytes(Path(".sitemap-crawler/shop.db").read_bytes())
    code, out, err = run("robots", f"{origins[1]}/b", "--format", "json")
    assert json.loads(out)["sitemaps"], "the published sitemap is that of the site"
    assert err.count("found in this folder") == 1


def test_several_sites_by_name(run: Run, origins: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    write(origins)
    with Path(FILE).open("a") as file:
        file.write('[[site]]\nname = "third"\nstart = "https://third.invalid/"\n')
    _, err = run.ok("crawl", "--site", "docs", "--site", "shop")
    assert sorted(path.name for path in Path("sitemaps").iterdir()) == ["docs", "shop"]
    for name in ("shop", "docs"):
        assert f"\n\n{name}\nPublished  " in err, "each summary names its site"
    assert run("status", "--site", "shop", "--site", "docs")[1].count("all accounted for") == 2
    monkeypatch.setenv("SITEMAP_CRAWLER_SITE", "shop docs")
    assert run("status")[1].count("all accounted for") == 2
    code, _, err = run("list", "pages")
    assert (code, "There are 2 sites" in err, "third" in err) == (2, True, False)
    code, _, err = run("crawl", f"{origins[0]}/")
    assert (code, f"--site docs: {origins[0]}/ is not on that site" in err) == (2, True)


def test_the_site_whose_folder_is_longest_is_meant(run: Run) -> None:
    site = Site()
    for page in ("/", "/shop/", "/shop/a", "/docs/", "/docs/b"):
        site.page(page, links=["a", "b"])
    with site.serve() as origin:
        write([f"{origin}/shop/", f"{origin}/docs/"], common=COMMON + '[scope]\nscope = "path"\n')
        run.ok("crawl", "-q")
        for path, name in (("shop/a", "shop"), ("docs/b", "docs"), ("docs/none", "docs")):
            assert f".sitemap-crawler/{name}.db" in run("status", f"{origin}/{path}")[1]
        run.ok("explain", f"{origin}/docs/b")
        assert run("explain", f"{origin}/b")[0] == 8, (
            "the reason for a URL outside of its folder is asked, too"
        )
        _, _, err = run("report", "https://a.example/")
        assert f"https://a.example/ is on none of --site shop, --site docs in {FILE}\n" in err


def test_a_state_that_is_of_no_site_cannot_be_crawled(run: Run, origins: list[str]) -> None:
    write(origins)
    code, _, err = run("crawl", "--state", "x.db")
    said = f"--state x.db is of no site in {FILE}: add one of --site shop, --site docs, or a URL."
    assert (code, said in err, Path("x.db").exists()) == (2, True, False)
    run.ok("crawl", "--state", "x.db", "--site", "shop", "-q")
    assert Path("x.db").exists()


@pytest.mark.parametrize("config", [(), ("--config", "two.toml")])
def test_what_next_names_the_site(run: Run, origins: list[str], config: tuple[str, ...]) -> None:
    gone = Site()
    gone.page("/", links=["/gone"])
    with gone.serve() as origin:
        write([origin, origins[1]])
        if config:
            Path(FILE).rename(config[1])
        _, _, err = run("crawl", *config, "--retries", "0")
    commands = [line.split()[1:] for line in err.splitlines() if line.startswith("    sitemap-crawler ")]
    named = [*config, "--site", "shop"]
    assert [command for command in commands if "shop" in command] == [
        ["explain", *named, f"{origin}/gone"],
        ["report", *named],
    ]
    assert ["report", *config, "--site", "docs"] in commands
    assert [run(*command)[0] for command in commands] == [0] * len(commands)


def test_a_state_of_the_environment_is_one_for_each_site(
    run: Run, origins: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in the image, which sets it."""
    write(origins)
    monkeypatch.setenv("SITEMAP_CRAWLER_STATE", "crawl.db")
    assert run("crawl", "-q") == (0, "", "")
    assert sorted(path.name for path in Path().glob("*.db")) == ["crawl-docs.db", "crawl-shop.db"]
    assert run("status", "--alive", "100")[1].count("all accounted for") == 2
    monkeypatch.setenv("SITEMAP_CRAWLER_SITE", "docs")
    assert run("list", "pages")[1].count(origins[1]) == 3
    run.ok("validate", "sitemaps/docs")


def test_config_shows_what_each_site_has_of_its_own(run: Run, origins: list[str]) -> None:
    write(origins, "rate = 3", 'indexnow-key-location = "https://a.example/key.txt"')
    _, out, _ = run("config")
    common, shop, docs = re.split(r"\n\[\[site\]\] # \w+\n", out)
    assert "start  " in common
    assert [line.split()[0] for line in shop.splitlines()] == ["start", "rate", "output", "report", "state"]
    assert re.search(r"(?m)^rate += 3 +# sitemap-crawler.toml \[\[site\]\] 1 \(shop\) rate$", shop)
    assert re.search(r"(?m)^output += ./sitemaps/docs +# default, for the site docs$", docs)
    assert len({line.index(" = ") for line in out.splitlines() if " = " in line}) == 1, "one column"
    _, out, _ = run("config", "--format", "json")
    rates = [(one["site"], one["value"]) for one in json.loads(out) if one["name"] == "rate"]
    assert rates == [(None, 0), ("shop", 3)]
    [state] = [
        one
        for one in json.loads(run("config", "--site", "docs", "--format", "json")[1])
        if one["name"] == "state"
    ]
    assert (state["site"], state["value"]) == ("docs", ".sitemap-crawler/docs.db")


def test_config_check_refuses_flags_in_front_of_it(run: Run) -> None:
    Path(FILE).write_text("")
    for flags in (["--recipe", "hugo"], ["--config", "other.toml"], ["--format", "json"], ["--site", "a"]):
        code, _, err = run("config", *flags, "check", FILE)
        assert (code, "check takes only a FILE" in err) == (2, True)
    for words in (["--log-format", "json", "check"], ["check", "--log-format", "json"]):
        assert json.loads(run("config", *words, "nofile")[2])["exit"] == 2


def test_config_has_the_patterns_of_recipes(run: Run) -> None:
    [recipe] = [
        one
        for one in json.loads(run("config", "--recipe", "mediawiki", "--format", "json")[1])
        if "patterns" in one
    ]
    assert recipe["value"] == ["mediawiki"]
    shown = run("config", "--recipe", "mediawiki")[1]
    patterns = recipe["patterns"]["mediawiki"]
    assert all(f" + {one} " in shown for one in patterns["no-list"] + patterns["exclude"])


def test_config_check_takes_the_file_as_other_commands_do(run: Run, origins: list[str]) -> None:
    write(origins)
    Path("other.toml").write_text("[pace]\nrate = 1\n")
    for words in ((), (FILE,), ("--config", FILE)):
        assert run("config", "check", *words)[:2] == (0, f"{FILE}: valid, 3 settings, 2 sites.\n")
    assert run("config", "check", "--config", "other.toml")[1] == "other.toml: valid, 1 setting.\n"
    Path(FILE).unlink()
    code, _, err = run("config", "check")
    assert (code, err) == (2, f"sitemap-crawler: {FILE}: cannot be read (No such file or directory).\n")


def test_status_and_report_show_every_site(run: Run, origins: list[str]) -> None:
    write(origins, common=COMMON.partition("[report]")[0])
    assert run("crawl", "-q") == (0, "", "")
    code, out, _ = run("status")
    assert (code, out.count("all accounted for")) == (0, 2)
    code, out, _ = run("report", "--format", "json")
    assert [(one["name"], one["site"]) for one in json.loads(out)] == [
        ("shop", f"{origins[0]}/"),
        ("docs", f"{origins[1]}/"),
    ]
    for form in ("jsonl", "csv"):
        lines = run("report", "--format", form)[1].splitlines()
        rows = map(json.loads, lines) if form == "jsonl" else csv.DictReader(lines)
        codes = {(row["name"], row["code"]) for row in rows if "code" in row}
        assert codes >= {("shop", "no-lastmod"), ("docs", "no-lastmod")}
    run.ok("report", "--site", "shop", "--report", "x.json")
    assert Path("x.json").exists()
    run.ok("report", "--report", "y.json")
    assert sorted(path.name for path in Path().glob("y*")) == ["y-docs.json", "y-shop.json"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[site]\nname = 'a'", "must be tables, each as [[site]]"),
        ("[[site]]\nname = '../a'", "name: '../a' must be letters, digits"),
        ("[[site]]\nname = 'a'\n", "[[site]] 1 (a): has no start"),
        ("[[site]]\nstart = 'https://a.example'\nratee = 1", "there is no setting 'ratee'; did you mean rate?"),
        ("[[site]]\nstart = 'https://a.example'\nevery = '1d'", "every is one for all sites"),
        ("[[site]]\nstart = 'https://a.example'\nmetrics-port = '9464'", "metrics-port is one for all sites"),
        ("[[site]]\nstart = 'https://a.example'\nrate = 'x'", "[[site]] 1 rate: 'x' must be"),
        ("[[site]]\nstart='https://a.example'\n[[site]]\nstart='https://a.example/b'", "[[site]]: 1 and 2 have the same name, a.example: give one of them another name"),
        ("[output]\noutput='-'\n[[site]]\nstart='https://a.example'", "cannot be written to stdout"),
        (
            "[[site]]\nname='a'\noutput='x'\nstart='https://a.example'\n[[site]]\nname='b'\noutput='x'\nstart='https://b.example'",
            "1 and 2 have the same output, x",
        ),
    ],
)  # fmt: skip
def test_wrong_tables_are_one_sentence(run: Run, text: str, said: str) -> None:
    Path(FILE).write_text(text)
    code, _, err = run("crawl")
    assert (code, said in err, err.count("\n")) == (2, True, 1), err


def test_a_named_file_counts_and_not_the_one_found(
    run: Run, origins: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    write(origins)
    Path("other.toml").write_text(f'[scope]\nstart = "{origins[1]}"\n[output]\noutput = "named"\n')
    monkeypatch.setenv("SITEMAP_CRAWLER_CONFIG", "other.toml")
    code, _, err = run("crawl")
    assert (code, "found in this folder" in err) == (0, False)
    assert (Path("named").exists(), Path("sitemaps").exists()) == (True, False)


def test_worst_exit_code() -> None:
    assert worst([0, 8, 7, 0]) == Exit.PARTIAL
    assert worst([8, 3, 6]) == Exit.STORAGE
    assert worst([]) == Exit.OK
    assert all(worst([code, Exit.OK]) == code for code in Exit)
