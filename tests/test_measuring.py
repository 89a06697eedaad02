"""Coverage of several test processes is whole, or said not to be."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.measuring import missing

REPO = Path(__file__).parents[1]
CONFTEST = "from tests.measuring import Worker, register\npytest_configure = register\n"
UNSAVED = CONFTEST + "Worker.pytest_sessionfinish = lambda self, session: None\n"
# What runs after the session is saved too, and the file then has another name.
TWICE = (
    CONFTEST
    + """
import late
from tests.measuring import current
save = Worker.pytest_sessionfinish

def twice(self, session):
    save(self, session)
    late.runs()
    current().save()

Worker.pytest_sessionfinish = twice
"""
)
# A process that leaves before coverage saves of its own accord: functions of atexit run in the reverse order.
LEAVES = "import atexit, os\n\ndef test_leaves():\n    atexit.register(os._exit, 0)\n"
LATE = "def runs():\n    return 1\n"
SETTINGS = "[run]\nparallel = true\npatch = subprocess\nsource = .\n"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("conftest", "missed"),
    [(TWICE, False), (UNSAVED, True)],
    ids=["saved twice", "unsaved"],
)
def test_each_worker_saves_before_it_leaves(tmp_path: Path, conftest: str, *, missed: bool) -> None:
    files = {"conftest.py": conftest, "late.py": LATE, "test_leaves.py": LEAVES, ".coveragerc": SETTINGS}
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    command = [sys.executable, "-m", "coverage", "run", "-m", "pytest", "-p", "xdist", "-n", "2"]
    environment = {"PYTHONPATH": str(REPO), "PATH": "", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert ("coverage: data of 2 workers is missing" in done.stdout) is missed
    assert (done.returncode != 0) is missed


def test_data_that_is_not_there_is_counted() -> None:
    assert missing([{"saved": True}, {"saved": False}, {}]) == 2
    assert missing([{"saved": True}]) == missing([]) == 0
