"""What a program gets from the library: pages and entries as values, errors in its words, a site for its tests."""

import re
import subprocess
import sys
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import anyio
import pytest

import crawler
from crawler import errors
from crawler.settings import Guard, Http, Output, Pace, Report, Scope, State
from crawler.settings.load import in_python
from crawler.testing import MemorySite

pytestmark = pytest.mark.anyio


@pytest.fixture
def site() -> MemorySite:
    site = MemorySite()
    site.page("/", links=["/a", "/moved", "/gone", "/hidden", "https://other.example/"])
    site.page("/a", lastmod="Tue, 03 Feb 2026 04:05:06 GMT")
    site.page("/hidden", noindex=True)
    site.redirect("/moved", "/a")
    return site


@pytest.mark.both_loops
async def test_pages_have_outcome_reason_status_and_date(site: MemorySite, tmp_path: Path) -> None:
    async with crawler.open_job(site.settings(tmp_path), transport=site.transport) as job:
        assert await job.crawl() is crawler.Ending.COMPLETE
        pages = {page.url.removeprefix(site.origin): page async for page in job.pages()}
    assert list(pages) == ["https://other.example/", "/", "/a", "/gone", "/hidden", "/moved"]
    assert [page.outcome for page in pages.values()] == [
        "unlisted:offsite", "listed", "listed", "failed:not-found", "unlisted:noindex", "moved",
    ]  # fmt: skip
    assert pages["/gone"].reason is crawler.Cause.NOT_FOUND
    assert pages["/hidden"].reason is crawler.Why.NOINDEX
    assert pages["/moved"] == (f"{site.origin}/moved", "moved", None, f"{site.origin}/a", 301, None)
    assert pages["/https://other.example/".removeprefix("/")].status is None
    assert str(pages["/a"].lastmod) == "2026-02-03 04:05:06+00:00"


@pytest.mark.both_loops
async def test_entries_are_those_that_are_published(site: MemorySite, tmp_path: Path) -> None:
    written = Output(output=str(tmp_path), format="txt", gzip=False, publish_base="https://www.site.example")
    chosen = site.settings(output=written)
    async with crawler.open_job(chosen, transport=site.transport) as job:
        await job.crawl()
        before = [entry async for entry in job.entries()]
        published = await job.publish()
        assert [entry async for entry in job.entries()] == before
    assert [entry.url for entry in before] == ["https://www.site.example/", "https://www.site.example/a"]
    assert [entry.url for entry in before] == (tmp_path / published.files[0].name).read_text().split()
    assert before[1].lastmod is not None


async def test_what_needs_a_crawl_says_so(site: MemorySite, tmp_path: Path) -> None:
    async with crawler.open_job(site.settings(tmp_path), transport=site.transport) as job:
        for call in (job.publish, job.submit):
            with pytest.raises(crawler.ConfigError, match=r"call crawl\(\) first"):
                await call()


async def test_a_closed_job_does_not_call_its_state_damaged(site: MemorySite, tmp_path: Path) -> None:
    async with crawler.open_job(site.settings(tmp_path), transport=site.transport) as job:
        await job.crawl()
    for call in (job.crawl, job.publish, job.pages().__anext__):
        with pytest.raises(
            crawler.FrontierError, match=r"is closed: use a job within the block of `open_job`"
        ):
            await call()


def test_every_exception_is_public_and_in_the_document() -> None:
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, Exception)]
    text = (Path(__file__).parents[2] / "docs/use/library.md").read_text().partition("## Errors")[2]
    assert len(kinds) > 10
    assert [kind.__name__ for kind in kinds if f"`{kind.__name__}`" not in text.replace("crawler.", "")] == []
    assert [kind.__name__ for kind in kinds if kind.__name__ not in crawler.__all__] == []


async def test_a_published_job_crawls_no_more(site: MemorySite, tmp_path: Path) -> None:
    chosen = site.settings(output=Output(output=str(tmp_path)))
    async with crawler.open_job(chosen, transport=site.transport) as job:
        await job.crawl()
        await job.publish()
        with pytest.raises(crawler.ConfigError, match="open another job"):
            await job.crawl()


async def test_pages_of_earlier_runs_are_left_out(site: MemorySite, tmp_path: Path) -> None:
    chosen = site.settings(tmp_path, state=State(state=str(tmp_path / "state.db")))
    chosen = replace(chosen, guard=Guard(max_shrink=1.0))
    for links in (["/a"], []):
        site.page("/", links=links)
        async with crawler.open_job(chosen, transport=site.transport) as job:
            assert [page async for page in job.pages()] == []
            await job.crawl()
            found = [page.url async for page in job.pages()]
            await job.publish()
    assert found == [f"{site.origin}/"]
    assert site.requests("/a") == 2  # a published page to which no link leads any more is asked once


async def test_site_in_memory_answers_conditional_requests(site: MemorySite, tmp_path: Path) -> None:
    chosen = site.settings(tmp_path, state=State(state=str(tmp_path / "state.db")))
    for _ in range(2):
        async with crawler.open_job(chosen, transport=site.transport) as job:
            await job.crawl()
            await job.publish()
    assert [asked.status for asked in site.log if asked.target == "/a"] == [200, 304]


async def test_errors_name_settings_as_the_library_does(site: MemorySite, tmp_path: Path) -> None:
    site.robots("User-agent: *\nDisallow: /")
    with pytest.raises(crawler.StartForbidden, match=r"or Settings\.pace\.ignore_robots\."):
        async with crawler.open_job(site.settings(tmp_path), transport=site.transport) as job:
            await job.crawl()
    with pytest.raises(
        crawler.ConfigError, match=r"^Settings\.output\.stylesheet .* Settings\.output\.gzip = False"
    ):
        async with crawler.open_job(site.settings(output=Output(stylesheet=True))):
            pass
    site.robots("")
    async with crawler.open_job(
        site.settings(tmp_path, scope=Scope(max_pages=1)), transport=site.transport
    ) as job:
        await job.crawl()
        with pytest.raises(crawler.PublishRefused, match=r"Settings\.guard\.allow_partial publishes anyway"):
            await job.publish()


async def test_errors_in_threads_and_tasks_are_worded_as_well(site: MemorySite, tmp_path: Path) -> None:
    async def fails() -> str:
        def raises() -> str:
            return str(crawler.FrontierError("Start over with --fresh."))

        return await anyio.to_thread.run_sync(raises)

    async with crawler.open_job(site.settings(tmp_path), transport=site.transport):
        assert await fails() == "Start over with Settings.state.fresh."
    assert await fails() == "Start over with --fresh."


@pytest.mark.parametrize(
    ("flags", "python"),
    [
        ("--max-shrink 100% publishes it.", "Settings.guard.max_shrink 100% publishes it."),
        ("add --no-gzip, and", "add Settings.output.gzip = False, and"),
        ("with --no-list '/a/*'", "with Settings.scope.no_list '/a/*'"),
        ("`submit --new-key` makes a key", "`submit --new-key` makes a key"),
        ("a--force or ---force", "a--force or ---force"),
    ],
)
def test_flags_in_a_sentence_become_settings(flags: str, python: str) -> None:
    assert in_python(flags) == python
    assert in_python(python) == python


@pytest.mark.parametrize(
    ("section", "field"),
    [(Scope, "start"), (Scope, "include"), (Http, "header"), (Report, "report"), (Report, "fail_on")],
)
def test_a_text_in_place_of_a_tuple_is_refused(section: type[Scope], field: str) -> None:
    for value in ("https://site.example/", Path("report.html")):
        with pytest.raises(crawler.ConfigError) as caught:
            section(**{field: value})  # type: ignore[arg-type]
        place = f"Settings.{section.__name__.lower()}.{field}"
        kind = type(value).__name__
        assert str(caught.value) == f"{place}: must be a tuple of str, as in (…,), not {kind}."


@pytest.mark.parametrize(
    ("section", "name", "value", "said"),
    [
        (Pace, "rate", "5", "must be a number, not str."),
        (Pace, "rate", True, "must be a number, not bool."),
        (Pace, "concurrency", 2.5, "must be a whole number, not float."),
        (Pace, "every", "24h", "must be a number or None, not str."),
        (Pace, "ignore_robots", "no", "must be True or False, not str."),
        (Http, "user_agent", None, "must be a text, not NoneType."),
        (Http, "header", ("X: y", 5), "must be a tuple of str, as in (…,), not tuple of int and str."),
        (Scope, "start", (b"https://a.example/",), "must be a tuple of str, as in (…,), not tuple of bytes."),
        (Guard, "max_shrink", "20%", "must be a number, not str."),
        (crawler.Settings, "pace", None, "must be a Pace (crawler.settings)."),
        (crawler.Settings, "pace", {"rate": 5}, "must be a Pace (crawler.settings)."),
    ],
)
def test_value_of_another_type_is_refused_when_it_is_made(
    section: type[Any], name: str, value: object, said: str
) -> None:
    with pytest.raises(crawler.ConfigError, match=re.escape(f"{name}: {said}")):
        section(**{name: value})


def test_settings_file_is_named_as_text_or_path(tmp_path: Path) -> None:
    file = tmp_path / "c.toml"
    file.write_text("[pace]\nrate = 2\n")
    assert crawler.resolve(str(file))[0] == crawler.resolve(file)[0]
    assert crawler.resolve(str(file))[0].pace.rate == 2
    with pytest.raises(crawler.ConfigError, match="cannot be read"):
        crawler.resolve("none.toml")


def test_path_is_a_text_and_a_list_is_a_tuple(tmp_path: Path) -> None:
    assert Output(output=tmp_path)  # type: ignore[arg-type]
    assert Scope(include=["/a"], input=[tmp_path])  # type: ignore[arg-type]
    assert Pace(rate=5)


def test_sections_of_all_settings_can_be_imported() -> None:
    names = [type(value).__name__ for value in vars_of(crawler.Settings())]
    assert [name for name in names if name not in crawler.settings.__all__] == []


def vars_of(settings: crawler.Settings) -> list[object]:
    return [getattr(settings, name) for name in settings.__dataclass_fields__]


def test_version_is_that_of_the_installed_package() -> None:
    assert crawler.__version__ == version("sitemap-crawler")


def test_import_of_the_library_loads_no_http_client() -> None:
    code = "import sys, crawler; crawler.CrawlerError, crawler.Why; print('httpx' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
