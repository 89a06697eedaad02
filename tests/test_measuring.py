"""Coverage of several test processes is whole, or said not to be."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.measuring import missing

REPO = Path(__file__).parents[1]
# One worker saves nothing. What the other one runs after the session is saved too, and the file then has another name.
CONFTEST = """
import os
import late
from tests.measuring import Worker, current, register
pytest_configure = register
save = Worker.pytest_sessionfinish

def twice(self, session):
    if os.environ["PYTEST_XDIST_WORKER"] == "gw0":
        return
    save(self, session)
    late.runs()
    current().save()

Worker.pytest_sessionfinish = twice
"""
# A process that leaves before coverage saves of its own accord: functions of atexit run in the reverse order.
LEAVES = "import atexit, os\n\ndef test_leaves():\n    atexit.register(os._exit, 0)\n"
LATE = "def runs():\n    return 1\n"
SETTINGS = "[run]\nparallel = true\npatch = subprocess\nsource = .\n"


@pytest.mark.slow
def test_each_worker_saves_before_it_leaves(tmp_path: Path) -> None:
    files = {"conftest.py": CONFTEST, "late.py": LATE, "test_leaves.py": LEAVES, ".coveragerc": SETTINGS}
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    command = [sys.executable, "-m", "coverage", "run", "-m", "pytest", "-p", "xdist", "-n", "2"]
    environment = {"PYTHONPATH": str(REPO), "PATH": "", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert "coverage: data of 1 workers is missing" in done.stdout
    assert done.returncode != 0


def test_data_that_is_not_there_is_counted() -> None:
    assert missing([{"saved": True}, {"saved": False}, {}]) == 2
    assert missing([{"saved": True}]) == missing([]) == 0
