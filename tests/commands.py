"""The program as a test of its commands calls it: in this process, by words."""

import pytest


class Run:
    """Runs the program."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, *words: str) -> tuple[int, str, str]:
        """Its exit code, stdout, and stderr."""
        from crawler.__main__ import main  # noqa: PLC0415 - few tests run commands

        with pytest.raises(SystemExit) as left:
            main(words)
        out, err = self._capsys.readouterr()
        return int(left.value.code or 0), out, err

    def ok(self, *words: str) -> tuple[str, str]:
        """The same for a command that succeeds: stdout and stderr."""
        code, out, err = self(*words)
        assert code == 0, err
        return out, err

    def fails(self, expected: int, *words: str) -> str:
        """Stderr of a command that ends with this exit code."""
        code, _, err = self(*words)
        assert code == expected, err
        return err

    def lines(self, *words: str) -> tuple[int, list[str], str]:
        """The same as the first, with the lines of stdout."""
        code, out, err = self(*words)
        return code, out.splitlines(), err
