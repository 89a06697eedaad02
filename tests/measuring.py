"""Coverage of the test processes: saved by each at the end of its session, and missed if one did not.

Left to itself, coverage saves when a process has left; but pytest-xdist ends a process that takes ten seconds to leave.
"""

import sys
from pathlib import Path
from typing import Any

import pytest


def register(config: pytest.Config) -> None:
    """Take part in this session of pytest, if it is measured."""
    if current() is not None:
        config.pluginmanager.register(Worker() if hasattr(config, "workerinput") else Controller())


def current() -> Any:
    """The measurement of this process, if there is one. Without it, coverage is not imported."""
    coverage = sys.modules.get("coverage")
    return coverage and coverage.Coverage.current()


class Worker:
    """In a process that runs tests."""

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: Any) -> None:
        measured = current()
        measured.save()
        # Asked here: a second save, when the process has left, renames the file after its new contents.
        session.config.workeroutput["saved"] = Path(measured.get_data().data_filename()).exists()


class Controller:
    """In the process that hands out the tests."""

    def __init__(self) -> None:
        self.outputs: list[dict[str, Any]] = []

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        self.outputs.append(getattr(node, "workeroutput", {}))

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if missing(self.outputs):
            session.exitstatus = session.exitstatus or pytest.ExitCode.INTERNAL_ERROR

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if number := missing(self.outputs):
            terminalreporter.write_line(f"coverage: data of {number} workers is missing", red=True)


def missing(outputs: list[dict[str, Any]]) -> int:
    """The number of workers whose data was not saved. `outputs`: what each reported when it left."""
    return sum(not output.get("saved") for output in outputs)
