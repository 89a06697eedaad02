"""What a command loads. `status` runs each minute as a healthcheck, so it must not load what only a crawl needs.

Held by the names of modules, not by a time: in a process of its own, as nothing is loaded there yet.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import crawler
from crawler.app.state import open_frontier
from crawler.model.visit import Visit
from crawler.parse.url import Url
from crawler.settings.sections import Settings, State

pytestmark = pytest.mark.slow

HEAVY = frozenset(
    {
        "httpx",
        "httpcore",
        "h11",
        "lxml",
        "selectolax",
        "rich",
        "brotli",
        "zstandard",
        "certifi",
        "psycopg",
        "obstore",
    }
)
LOOP = frozenset({"asyncio", "anyio", "uvloop"})
SELDOM = frozenset({"tomllib", "difflib", "tempfile"})  # for a settings file, an error, a read-only place
ASK = """
import sys
from crawler.cli.main import run
code = run(sys.argv[1:])
print(code, *{name.partition(".")[0] for name, module in sys.modules.items() if module}, file=sys.stderr)
"""


def loaded(*words: str) -> tuple[int, set[str]]:
    """The exit code of a command, and the top-level modules that its process has loaded at the end."""
    done = subprocess.run([sys.executable, "-c", ASK, *words], capture_output=True, text=True, check=True)
    code, *modules = done.stderr.split()
    return int(code), set(modules)


@pytest.fixture
async def state(tmp_path: Path) -> str:
    """A state in which a run began."""
    path = str(tmp_path / "crawl.db")
    frontier = open_frontier(Settings(state=State(state=path)), None)
    await frontier.begin("settings", "reading")
    await frontier.add([Visit(Url("https://example.com/"))])
    await frontier.close()
    return path


async def test_status_loads_no_client_no_parser_and_no_event_loop(state: str) -> None:
    code, modules = loaded("status", "--state", state, "--alive", "60")
    assert code == 0
    assert not modules & (HEAVY | LOOP | SELDOM)


async def test_explain_loads_no_client(state: str) -> None:
    code, modules = loaded("explain", "https://example.com/", "--state", state)
    assert code == 0
    assert "httpx" not in modules


@pytest.mark.parametrize("words", [["report"], ["list", "pages"]], ids=" ".join)
async def test_report_and_list_load_no_client_parser_or_templates(words: list[str], state: str) -> None:
    code, modules = loaded(*words, "--state", state)
    assert code == 0
    assert not modules & (HEAVY - {"brotli"} | {"jinja2"})  # brotli: with the reader of robots.txt


@pytest.mark.parametrize("words", [["--help"], ["config"], ["crawl", "--help"]], ids=" ".join)
def test_help_and_config_load_no_event_loop(words: list[str]) -> None:
    code, modules = loaded(*words)
    assert code == 0
    assert not modules & (HEAVY | LOOP | SELDOM | {"sqlite3"})


def test_importing_the_library_leaves_the_modules_of_httpx_alone() -> None:
    """An application may use httpx's command line, which a None among the modules would take from it."""
    ask = "import sys, crawler.app.job, crawler.app.worker; print(sys.modules.get('httpx._main', sys))"
    done = subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True, check=True)
    assert done.stdout.strip() != "None"
    package = Path(crawler.__file__).parent
    written = re.compile(
        r"sys\.modules(\[[^\]]+\] = |\.(setdefault|update|pop|__setitem__)\()|del sys\.modules"
    )
    alone = {package / "__main__.py", package / "workers/sandbox_entry.py"}  # have the process for themselves
    library = set(package.rglob("*.py")) - alone
    assert not [path for path in library if written.search(path.read_text())]


OFF = frozenset(
    {
        "httpx", "rich", "pygments", "jinja2", "psycopg", "obstore", "playwright", "tenacity", "h2",
        "publicsuffixlist", "tomllib", "difflib", "crawler.engine.external", "crawler.workers.pool",
        "crawler.sitemap.publish.object_store", "crawler.sitemap.write.html_pages", "crawler.app.stored_state",
        "crawler.app.stored_frontier", "crawler.app.metrics", "crawler.app.webhook", "crawler.report.forms.as_html",
        "crawler.report.forms.as_text",
        "crawler.frontier.postgres.frontier", "crawler.app.external", "crawler.app.submission",
    }
)  # fmt: skip
"""What features need that are off: each took from 1 to 100 ms of a start."""
OFF_PACKAGES = ("crawler.fetch.render.", "crawler.cli.demo.")


def test_a_quiet_crawl_does_not_load_what_shows_progress(tmp_path: Path) -> None:
    ask = (
        "import sys; from crawler.__main__ import _run; "
        "_run(['crawl', 'http://127.0.0.1:1/', '--quiet', '--state', 's.db']); print(*sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", ask], cwd=tmp_path, env=ENV, capture_output=True, text=True, check=True
    )
    modules = set(done.stdout.split())
    assert not modules & OFF
    assert not {name for name in modules if name.startswith(OFF_PACKAGES)}


def test_a_worker_loads_no_client_but_its_own() -> None:
    ask = "import sys, crawler.app.worker; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True, check=True)
    modules = set(done.stdout.split())
    assert "crawler.fetch.transport" in modules
    assert not modules & {"httpx", "httpcore", "h2", "tenacity"}


def test_a_summary_does_not_load_the_names_of_emoji() -> None:
    ask = (
        "import sys; from crawler.cli.summary_text import _files; "
        "_files([{'name': 'sitemap.xml', 'urls': 1, 'size': 1, 'unchanged': False}], 80); print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", ask], env=ENV, capture_output=True, text=True, check=True)
    modules = set(done.stdout.split())
    assert "rich.table" in modules
    assert "rich._emoji_codes" not in modules


ENV = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}
TOLD = frozenset({"crawler.app.metrics", "crawler.app.metrics_server", "crawler.app.webhook"})
CRAWL = (
    "import sys; from crawler.cli.main import run; run(sys.argv[1:]); print(*sys.modules, file=sys.stderr)"
)


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        ((), set()),
        (("--metrics-file", "m.prom"), {"crawler.app.metrics"}),
        (("--metrics-port", "0.0.0.1:1"), {"crawler.app.metrics", "crawler.app.metrics_server"}),
    ],
    ids=["none", "file", "port"],
)
def test_crawl_loads_only_the_reports_that_its_settings_need(
    words: tuple[str, ...], wanted: set[str], tmp_path: Path
) -> None:
    command = [sys.executable, "-c", CRAWL, "crawl", "http://127.0.0.1:1/", "--retries", "0", "-q", *words]
    done = subprocess.run(command, cwd=tmp_path, env=ENV, capture_output=True, text=True, check=True)
    modules = set(done.stderr.split())
    assert TOLD & modules == wanted
    assert "obstore" not in modules
