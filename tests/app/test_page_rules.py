"""`[[rule]]` over real sockets: what is listed, followed and written; changed rules on 304, resume and export."""

import gzip
import json
from pathlib import Path

import pytest
from msgspec.structs import replace

from crawler.app.job import open_job
from crawler.cli.demo.site import Site
from crawler.settings.sections import Settings
from crawler.settings.tables import PageRule
from tests.commands import Run
from tests.engine.test_crawl import crawl, settings

pytestmark = pytest.mark.anyio

HIDDEN = PageRule("/blog/2*", list=False, follow=False)
RULES = (PageRule("/blog/1"), HIDDEN, PageRule("/blog/*", "weekly", 0.8), PageRule("re:^/$", priority=1))


def site() -> Site:
    made = Site()
    made.page("/", links=["/blog/", "/about"], headers={"ETag": '"1"'})
    made.page("/about", headers={"ETag": '"2"'})
    made.page("/blog/", links=["/blog/1", "/blog/2", "/blog/2-old"], headers={"ETag": '"3"'})
    made.page("/blog/1", headers={"ETag": '"4"'})
    made.page("/blog/2", links=["/about", "/behind"], headers={"ETag": '"5"'})
    made.redirect("/blog/2-old", "/moved")
    made.page("/moved", headers={"ETag": '"6"'})
    made.page("/behind", headers={"ETag": '"7"'})
    return made


LISTED = ["/", "/about", "/blog/", "/blog/1", "/moved"]


async def published(chosen: Settings, folder: Path, origin: str) -> list[str]:
    """The entries of the sitemap of a crawl, without the origin."""
    async with open_job(chosen) as job:
        await job.crawl()
        await job.publish()
    text = gzip.decompress((folder / "out/sitemap.xml.gz").read_bytes()).decode()
    return [line.replace(origin, "") for line in text.splitlines() if line.startswith("<url>")]


def ruled(origin: str, folder: Path, *rules: PageRule, **chosen: object) -> Settings:
    return settings(origin, folder, rule=rules, lastmod="none", **chosen)


async def test_rules_decide_what_is_listed_followed_and_written(tmp_path: Path) -> None:
    with site().serve() as origin:
        result = await crawl(ruled(origin, tmp_path, *RULES))
        assert result.listed == LISTED
        assert result.counts == {"listed": 5, "moved": 1, "unlisted:no-list": 1, "unlisted:nofollow": 1}
        assert await published(ruled(origin, tmp_path, *RULES), tmp_path, origin) == [
            "<url><loc>/</loc><priority>1.0</priority></url>",
            "<url><loc>/about</loc></url>",
            "<url><loc>/blog/</loc><changefreq>weekly</changefreq><priority>0.8</priority></url>",
            "<url><loc>/blog/1</loc></url>",
            "<url><loc>/moved</loc></url>",
        ]


async def test_a_rule_overrides_changefreq_and_priority_of_all_pages(tmp_path: Path) -> None:
    rules = (PageRule("/", priority=0), PageRule("/a*", "never"))
    with site().serve() as origin:
        chosen = ruled(origin, tmp_path, *rules, changefreq="daily", priority=0.5)
        [home, about, behind, *_] = await published(chosen, tmp_path, origin)
    assert home == "<url><loc>/</loc><changefreq>daily</changefreq><priority>0.0</priority></url>"
    assert about == "<url><loc>/about</loc><changefreq>never</changefreq><priority>0.5</priority></url>"
    assert behind == "<url><loc>/behind</loc><changefreq>daily</changefreq><priority>0.5</priority></url>"


async def test_changed_rules_apply_to_unchanged_pages(tmp_path: Path) -> None:
    state = {"state": str(tmp_path / "s"), "allow_partial": True, "force": True}
    follows, hidden = replace(HIDDEN, follow=True), "unlisted:no-list"
    made = site()
    with made.serve() as origin:
        statuses = []
        for rules, expected in [
            ((), {"listed": 7, "moved": 1}),
            ((follows,), {"listed": 6, "moved": 1, hidden: 1}),
            ((HIDDEN,), {"listed": 5, "moved": 1, hidden: 1, "unlisted:nofollow": 1}),
            ((HIDDEN,), {"listed": 5, "moved": 1, hidden: 1, "unlisted:nofollow": 1}),
            ((PageRule("/blog/2"), HIDDEN), {"listed": 7, "moved": 1}),
            ((PageRule("*", "daily"),), {"listed": 7, "moved": 1}),
        ]:
            made.log.clear()
            chosen = ruled(origin, tmp_path, *rules, **state)
            result = await crawl(chosen)
            assert result.counts == expected, rules
            await published(chosen, tmp_path, origin)
            statuses.append({asked.status for asked in made.log if asked.target == "/blog/2"})
    # Links are stored as they were followed, so pages are read again when that changes, and only then.
    assert statuses == [{200}, {304}, {200}, {304}, {200}, {200}]


async def test_files_stay_until_a_rule_changes_them(tmp_path: Path) -> None:
    with site().serve() as origin:
        changed = []
        for rules in (
            (),
            (PageRule("/nothing", "daily"),),
            (PageRule("/", "daily"),),
            (PageRule("/", "daily"),),
        ):
            async with open_job(ruled(origin, tmp_path, *rules, state=str(tmp_path / "s"))) as job:
                await job.crawl()
                changed.append(not (await job.publish()).files[0].unchanged)
    assert changed == [True, False, True, False]


async def test_unfinished_crawl_is_resumed_unless_rules_say_otherwise(tmp_path: Path) -> None:
    with site().serve() as origin:
        resumed = []
        for rules in ((), (PageRule("/", "daily"),), (HIDDEN,), (HIDDEN,)):
            chosen = ruled(origin, tmp_path, *rules, state=str(tmp_path / "s"), max_pages=1)
            async with open_job(chosen) as job:
                await job.crawl()
                resumed.append(job.run.resumed)
    assert resumed == [False, True, False, True]


@pytest.mark.slow
async def test_processes_give_the_same_bytes(tmp_path: Path) -> None:
    found = []
    with site().serve() as origin:
        for processes in (1, 2):
            chosen = ruled(origin, tmp_path / str(processes), *RULES, processes=processes, concurrency=4)
            found.append(await published(chosen, tmp_path / str(processes), origin))
    assert found[0] == found[1]
    assert len(found[0]) == 5


async def test_rules_match_the_crawled_path(tmp_path: Path) -> None:
    with site().serve() as origin:
        base = "https://www.example.com/shop"
        chosen = ruled(origin, tmp_path, PageRule("/about", "daily"), publish_base=base)
        found = await published(chosen, tmp_path, base)
    assert "<url><loc>/about</loc><changefreq>daily</changefreq></url>" in found


def test_export_explain_and_unmatched_patterns(run: Run, tmp_path: Path) -> None:
    rules = tmp_path / "rules.toml"
    rules.write_text(
        '[[rule]]\nmatch = "/blog/2*"\nlist = false\n[[rule]]\nmatch = "/blgo/*"\npriority = 0.1\n'
    )
    with site().serve() as origin:
        _, err = run.ok(
            "crawl", f"{origin}/", "--rate", "0", "--state", "s.db", "--config", str(rules), "--no-gzip"
        )
        assert "[[rule]] /blgo/*" in err
        for more in ((), ("--config", str(rules))):
            _, out, _ = run("explain", f"{origin}/blog/2", "--state", "s.db", *more)
            assert '  because    [[rule]] match = "/blog/2*", list = false\n' in out
            assert '  rule       match = "/blog/2*", list = false\n' in out
        _, out, _ = run("explain", f"{origin}/blog/2", "--state", "s.db", "--format", "json")
        assert json.loads(out)["rule"]["match"] == "/blog/2*"
        _, out, _ = run("explain", f"{origin}/about", "--state", "s.db")
        assert "  rule " not in out
        rules.write_text('[[rule]]\nmatch = "/about"\nlist = false\n[[rule]]\nmatch = "/"\npriority = 0.1\n')
        run("export", "--state", "s.db", "--config", str(rules), "--no-gzip", "-o", "exported")
    text = (tmp_path / "exported/sitemap.xml").read_text()
    assert f"<url><loc>{origin}/</loc>" in text
    assert text.count("<priority>0.1</priority>") == 1
    assert f"{origin}/about" not in text
