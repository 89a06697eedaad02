"""Temporary folders: removed on exit, and those of killed processes by the next process."""

import errno
import fcntl
import tempfile
from pathlib import Path

import pytest

from crawler import scratch


@pytest.fixture(autouse=True)
def _place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


def test_folders_of_killed_processes_are_removed_and_no_others(tmp_path: Path) -> None:
    left, link, other = (tmp_path / f"{scratch.PREFIX}{name}" for name in ("left", "link", "other"))
    left.mkdir()
    (left / "profile").write_text("stored")
    other.write_text("a file")
    link.symlink_to(tmp_path / "elsewhere", target_is_directory=True)
    (tmp_path / "elsewhere").mkdir()
    with scratch.folder() as first, scratch.folder() as second:
        assert first.is_dir()
        assert second.is_dir()
        assert not left.exists()
    assert not first.exists()
    assert link.is_symlink()
    assert other.exists()
    assert (tmp_path / "elsewhere").exists()


def test_a_folder_that_is_taken_before_it_is_locked_is_made_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    made, makes = list[Path](), tempfile.mkdtemp

    def taken(prefix: str) -> str:
        made.append(Path(makes(prefix=prefix)))
        if len(made) == 1:
            made[0].rmdir()
        return str(made[-1])

    monkeypatch.setattr(tempfile, "mkdtemp", taken)
    with scratch.folder() as place:
        assert place == made[1]


def test_without_locks_folders_are_made_and_none_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuses(*_: object) -> None:
        raise OSError(errno.ENOLCK, "no locks")

    (left := tmp_path / f"{scratch.PREFIX}left").mkdir()
    monkeypatch.setattr(fcntl, "flock", refuses)
    with scratch.folder() as place:
        assert place.is_dir()
    assert not place.exists()
    assert left.exists()
