"""What every test starts from: an empty environment, a fresh log, what `--quick` leaves out, and the slow tests first."""

import gc
import logging
import math
import os
import re
import signal
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import settings

from crawler.app import robots_line
from crawler.engine.robots import ask_robots
from crawler.fetch.politeness import Politeness
from crawler.model.reply import RobotsFile
from crawler.rules import retries
from tests import measuring, postgres
from tests.commands import Run

# No deadlines: the machine may be busy with other things. A property that needs more examples takes a multiple.
settings.register_profile("all", deadline=None)
settings.register_profile("quick", deadline=None, max_examples=10)
# Their tests run whole commands and jobs.
SYSTEM = {"app", "cli", "shared"}
# Where slow tests take longest: by waiting for members and kills, and by computing.
WAITING = {"shared", "test_compose_many.py", "test_container.py", "test_nothing_lost.py"}
COMPUTING = {"test_zoo.py", "test_memory.py"}
# Databases of the frontier that need a server or a disk; `--quick` runs its tests on one in memory.
DATABASES = ("postgres", "sqlite file")


def pytest_configure(config: pytest.Config) -> None:
    """Before any test module is imported: its `@given` takes the profile as it is then."""
    gc.disable()  # until all tests are collected: what is made meanwhile stays
    chosen = config.getoption("--hypothesis-profile")
    settings.load_profile(chosen or ("quick" if config.option.markexpr.startswith("not slow") else "all"))
    measuring.register(config)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "anyio_backend" in metafunc.fixturenames and metafunc.definition.get_closest_marker("both_loops"):
        metafunc.parametrize("anyio_backend", ["asyncio", "trio"])


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs the program in an empty folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(signal, "SIGINT", signal.SIGINT)
    return Run(capsys)


@pytest.fixture
def anyio_backend() -> str:
    """Most coroutines do not depend on the event loop; what does is marked `both_loops`."""
    return "asyncio"


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """What `--quick` leaves out, and modules of quick tests alone where only slow ones run, are not even imported."""
    if config.option.markexpr == "slow" and collection_path.match("test_*.py"):
        return None if has_slow_tests(collection_path) else True
    is_quick = "not system" in config.option.markexpr
    return True if is_quick and collection_path.name in SYSTEM and collection_path.is_dir() else None


@cache
def has_slow_tests(module: Path) -> bool:
    """Whether a module may have some: it names the mark, or what brings it."""
    return re.search("slow|both_loops|trio", module.read_text()) is not None


@pytest.hookimpl(tryfirst=True)  # before the selection by marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks what `./dev test --quick` leaves out: tests on trio, of whole commands, and on a database server or disk.

    Slow tests run first, and of these the ones that take longest, so that none is left at the end: after each that waits
    two that compute meanwhile. The order must be the same in each test process: pytest-xdist compares them.
    """
    for item in items:
        params = (
            item.callspec.params if isinstance(item, pytest.Function) and hasattr(item, "callspec") else {}
        )
        if params.get("anyio_backend") == "trio":
            item.add_marker(pytest.mark.slow)
        if item.path.parent.name in SYSTEM or any(value in DATABASES for value in params.values()):
            item.add_marker(pytest.mark.system)
        assert item.get_closest_marker("slow") is None or has_slow_tests(item.path), item
    slow = [item for item in items if item.get_closest_marker("slow")]
    turns = {item: float(number) for number, item in enumerate(_of(WAITING, slow))}
    turns |= {item: number / 2 + 0.5 for number, item in enumerate(_of(COMPUTING, slow))}
    items.sort(key=lambda item: (item.get_closest_marker("slow") is None, turns.get(item, math.inf)))


def _of(places: set[str], items: list[pytest.Item]) -> list[pytest.Item]:
    """Those of these folders and modules."""
    return [item for item in items if places & {item.path.name, item.path.parent.name}]


def pytest_collection_finish() -> None:
    """Thousands of tests and all modules stay until the end: the garbage collector need not look at them again and again."""
    gc.freeze()
    gc.set_threshold(20_000)  # as the program does
    gc.enable()


@pytest.fixture(scope="session", autouse=True)
def _no_database_server(request: pytest.FixtureRequest) -> Iterator[None]:
    """A test that starts PostgreSQL is no quick one."""
    with pytest.MonkeyPatch.context() as patch:
        if "not system" in request.config.option.markexpr:
            patch.setattr(postgres, "Server", lambda *_: pytest.fail("it needs the mark `system`"))
        yield


@pytest.fixture(autouse=True)
def _quiet_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ignores settings, proxies and colours in the environment."""
    for name in list(os.environ):
        if (
            name.startswith("SITEMAP_CRAWLER_")
            or name.lower().endswith("_proxy")
            or name in {"NO_COLOR", "FORCE_COLOR"}
        ):
            monkeypatch.delenv(name)


@pytest.fixture(autouse=True)
def _no_published_site(monkeypatch: pytest.MonkeyPatch) -> None:
    """The published site of a copy is asked for its robots.txt only if it is on this machine."""
    real = ask_robots

    async def ask(origin: str, *rest: Any) -> RobotsFile:
        is_here = "//127." in origin or "//localhost" in origin
        return await real(origin, *rest) if is_here else RobotsFile("unreachable", fetched=time.time())

    monkeypatch.setattr(robots_line, "ask_robots", ask)


@pytest.fixture(autouse=True)
def _unmeasured_children(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Coverage makes a child process two to four times as expensive, and imports modules of its own."""
    if request.node.get_closest_marker("measured") is None:
        for name in [name for name in os.environ if name.startswith("COVERAGE_")]:
            monkeypatch.delenv(name)


@pytest.fixture
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pauses of this process pass at once, and its clock is moved by them. For crawls whose tests do not poll."""
    clock, pause, moved = time.time, anyio.sleep, 0.0

    async def sleep(seconds: float) -> None:
        nonlocal moved
        over = time.time() + seconds
        await pause(0)
        moved += max(0.0, over - time.time())  # not twice where others pause at the same time

    monkeypatch.setattr(anyio, "sleep", sleep)
    monkeypatch.setattr(time, "time", lambda: clock() + moved)


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """What this process tries again, it tries at once, unless the answer names a time."""
    monkeypatch.setattr(retries, "FIRST", 0.001)
    monkeypatch.setattr(retries, "LONGEST", 0.001)


@pytest.fixture
def turns(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """When the requests of this process were let go (seconds since the epoch), as `Politeness` took it down.

    What a server notes, a busy machine notes late, and then the next request seems close.
    """
    taken: list[float] = []
    real = Politeness.__call__

    async def call(self: Politeness, origin: str, at: float) -> None:
        await real(self, origin, at)
        taken.append(self._last[origin][1])

    monkeypatch.setattr(Politeness, "__call__", call)
    return taken


@pytest.fixture(autouse=True)
def _fresh_log() -> Iterator[None]:
    """The command line configures our logger for the whole process; the next test starts from none."""
    yield
    log = logging.getLogger("crawler")
    log.handlers.clear()
    log.propagate = True
    log.setLevel(logging.NOTSET)
