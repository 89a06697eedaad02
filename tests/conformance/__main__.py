"""The runner: `TOPIC passed/total` for what the standards say, and the differences on what projects chose apart."""

import argparse
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.conformance.cases import TOPICS, Case, Unreadable, read
from tests.conformance.checks import check_for

LONGEST = 300


class Score:
    """What came of all cases."""

    def __init__(self) -> None:
        self.total: Counter[tuple[str, bool]] = Counter()
        self.failed: Counter[tuple[str, bool]] = Counter()
        self.failures: list[tuple[Case, str]] = []

    def run(self, case: Case) -> None:
        """Count one case. Whatever it does, the next one comes."""
        self.total[case.topic, case.normative] += 1
        fault = difference(case)
        if fault:
            self.failed[case.topic, case.normative] += 1
            self.failures.append((case, fault))

    def lines(self) -> list[str]:
        """The report."""
        known = [*TOPICS, *sorted({topic for topic, _ in self.total} - set(TOPICS))]
        scores = [
            f"{topic} {total - self.failed[topic, True]}/{total}"
            for topic in known
            if (total := self.total[topic, True])
        ]
        differences = [
            f"not normative: {topic} {self.failed[topic, False]} differences of {total}"
            for topic in known
            if (total := self.total[topic, False])
        ]
        return scores + differences

    @property
    def passed(self) -> bool:
        """All that the standards say holds, and there was something to hold."""
        return bool(self.total) and not any(
            count for (_, normative), count in self.failed.items() if normative
        )


def difference(case: Case) -> str:
    """What is wrong with our answer; nothing when it is right."""
    try:
        check = check_for(case.topic, case.kind)
    except KeyError:
        return f"the kind {case.kind!r} of topic {case.topic!r} is not known"
    try:
        expected, got = check(case.given)
    except Exception as error:  # noqa: BLE001 - a crash is a failure of this case, not of the run
        return f"{type(error).__name__}: {error}"
    return "" if expected == got else f"expected {_short(expected)}, got {_short(got)}"


def _short(value: Any) -> str:
    text = ascii(value)
    return text if len(text) <= LONGEST else text[:LONGEST] + "…"


def main(words: Sequence[str] | None = None) -> int:
    """0 when all normative cases pass, 1 when not, 2 when there is nothing to run."""
    parser = argparse.ArgumentParser(prog="python -m tests.conformance", description=__doc__)
    parser.add_argument("folder", type=Path, metavar="DIR")
    parser.add_argument(
        "--topic", action="append", nargs="+", default=[], metavar="T", help="only these topics"
    )
    parser.add_argument("--failures", action="store_true", help="list every failure and difference")
    chosen = parser.parse_args(words)
    topics = {topic for group in chosen.topic for topic in group}
    score = Score()
    try:
        for case in read(chosen.folder):
            if not topics or case.topic in topics:
                score.run(case)
    except Unreadable as error:
        print(error, file=sys.stderr)
        return 2
    if not score.total:
        print(f"{chosen.folder}: no cases" + (" of these topics" if topics else ""), file=sys.stderr)
        return 2
    print("\n".join(score.lines()))
    if chosen.failures:
        for case, fault in score.failures:
            word = "FAILED" if case.normative else "differs"
            subject = next(
                (
                    case.given[key]
                    for key in ("input", "content", "date", "header", "name")
                    if case.given.get(key)
                ),
                "",
            )
            print(f"{word} {case.topic}/{case.kind} {case.given.get('id', '')} {_short(subject)}: {fault}")
    return 0 if score.passed else 1


if __name__ == "__main__":
    sys.exit(main())
