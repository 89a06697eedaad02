"""Forked workers: they start like those of `spawn`, serve, and never outlive the main process."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from crawler.workers.forked import Forks
from tests.waiting import until

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="nothing is forked elsewhere"),
]

START = """
import anyio, json, os, signal, socket, sys, threading, time
from crawler.workers.forked import forks
from crawler.workers.framing import length_of, read

def serve(end):
    opened = [int(name) for name in os.listdir("/proc/self/fd")]
    known = {
        "files": [number for number in opened if os.path.exists(f"/proc/self/fd/{number}")],
        "out": os.readlink("/proc/self/fd/1"),
        "leads": os.getsid(0) == os.getpid(),
        "term": signal.getsignal(signal.SIGTERM) is signal.SIG_DFL,
        "int": signal.getsignal(signal.SIGINT) is signal.SIG_IGN,
    }
    answer = json.dumps(known).encode()
    end.sendall(length_of(answer) + answer)
    read(end.makefile("rb"))

signal.signal(signal.SIGTERM, lambda *_: None)
kept = open(sys.argv[0])
"""


def ran(tmp_path: Path, code: str) -> subprocess.Popen[str]:
    file = tmp_path / "main.py"
    file.write_text(START + code)
    return subprocess.Popen([sys.executable, str(file)], stdout=subprocess.PIPE, text=True)


def alive(pid: int) -> bool:
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False


def test_forked_process_is_like_a_spawned_one(tmp_path: Path) -> None:
    process = ran(
        tmp_path,
        """
forks.fork(serve, 2)
async def main():
    children = [forks.take(), forks.take()]
    assert forks.take() is None
    said = [[json.loads(text) for text in await child.channel.receive()] for child in children]
    for child in children:
        await child.exit(60)
    print(json.dumps([said, [child.process.returncode for child in children]]))
anyio.run(main)
""",
    )
    out, _ = process.communicate()
    said, codes = json.loads(out)
    known: dict[str, Any]
    for (known,) in said:
        assert known == {"files": [0, 1, 2], "out": "/dev/null", "leads": True, "term": True, "int": True}
    assert codes == [0, 0]


def test_forked_process_that_is_killed_is_waited_for(tmp_path: Path) -> None:
    process = ran(
        tmp_path,
        """
forks.fork(serve, 1)
async def main():
    child = forks.take()
    await child.end()
    child.kill()
    print(child.process.returncode)
anyio.run(main)
""",
    )
    assert int(process.communicate()[0]) == -signal.SIGKILL


def test_unused_processes_end_with_the_crawl(tmp_path: Path) -> None:
    process = ran(
        tmp_path,
        """
forks.fork(serve, 2)
pids = [process.pid for process, _ in forks._unused]
forks.end()
print(json.dumps(pids))
""",
    )
    assert not any(map(alive, json.loads(process.communicate()[0])))


def test_forked_processes_exit_when_the_main_process_is_killed(tmp_path: Path) -> None:
    process = ran(
        tmp_path,
        """
forks.fork(serve, 3)
print(json.dumps([process.pid for process, _ in forks._unused]), flush=True)
time.sleep(300)
""",
    )
    assert process.stdout is not None
    pids = json.loads(process.stdout.readline())
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    process.stdout.close()
    until(lambda: not any(map(alive, pids)))


def test_nothing_is_forked_beside_threads(tmp_path: Path) -> None:
    process = ran(
        tmp_path,
        """
waits = threading.Event()
threading.Thread(target=waits.wait).start()
forks.fork(serve, 2)
print(len(forks._unused))
waits.set()
""",
    )
    assert int(process.communicate()[0]) == 0


def test_no_process_is_taken_where_none_was_forked() -> None:
    assert Forks().take() is None
