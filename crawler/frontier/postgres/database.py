"""The open crawl in a database: a connection of psycopg as a `Database`."""

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from crawler.frontier.database import Database
from crawler.frontier.dialect import translated
from crawler.frontier.postgres.connection import TIMELINE, pipelined
from crawler.frontier.postgres.dialect import ARRAYS, PostgresDialect
from crawler.frontier.postgres.errors import FailedOver

if TYPE_CHECKING:
    import psycopg

_NAME: Final = re.compile(r"(?<![:\w]):([a-z_]+)")


class _Unanswered(Exception):  # noqa: N818 - no error
    """A verb needs an answer that has not come yet."""


class _Question:
    """A statement, and its result once it was sent."""

    def __init__(self, sql: str, given: Mapping[str, Any]) -> None:
        self.sql, self.given = sql, given
        self.cursor: psycopg.Cursor[Any] | None = None


@cache
def statement(sql: str) -> bytes:
    """A statement in the syntax of the driver, with binary parameters. There are some two hundred."""
    return _NAME.sub(r"%(\1)b", translated(PostgresDatabase.dialect, sql).replace("%", "%%")).encode()


class PostgresDatabase(Database):
    """See `Database`."""

    dialect = PostgresDialect()
    is_shared = True
    ids_ahead = 32
    life = 30.0

    def __init__(self, connection: "psycopg.Connection[Any]", clock: Callable[[], float]) -> None:
        super().__init__(clock)
        self.connection = connection
        self.timeline = ""
        """Of the server when this process connected; empty where the server does not tell."""
        self.pipeline: psycopg.Pipeline | None = None
        """Of the transaction: statements are sent at once, and results waited for when they are read."""
        self.enter: Callable[[], None] | None = None
        """Where there is no explicit transaction: what is sent before those statements that go together."""
        self._open = list[_Question]()  # not sent yet
        self._known: dict[tuple[str, int], _Question] | None = None  # what one of several verbs has asked
        self._times = Counter[str]()

    def check(self) -> Callable[[], None]:
        """See `Database.check`.

        Raises `FailedOver` if the server was replaced since this process connected or joined again. Then
        record numbers that this process knows may be those of other URLs, and its pages must be visited
        again.
        """
        if not self.timeline:
            return lambda: None
        now = self.ask(TIMELINE)

        def compare() -> None:
            if now() != [(self.timeline,)]:
                raise FailedOver("the database failed over")

        return compare

    def by_index(self) -> None:
        """See `Database.by_index`.

        For small groups of rows: the planner guesses how many they are, and would read a whole table for each
        group.
        """
        self.do("SET LOCAL enable_seqscan = off")

    def lock_runs(self) -> None:
        self.do("LOCK TABLE run IN SHARE ROW EXCLUSIVE MODE")

    def execute(self, sql: str, given: Mapping[str, Any]) -> "psycopg.Cursor[Any]":
        if self.enter is None:
            return self.connection.execute(statement(sql), given)
        return self._answer(self._question(sql, given))

    def changed(self, sql: str, given: Mapping[str, Any] | None = None) -> int:
        cursor = self.execute(sql, given or {})
        if self.pipeline:
            self.pipeline.sync()
        return cursor.rowcount

    def ask(
        self, sql: str, given: Mapping[str, Any] | None = None, *, packed: bool = False
    ) -> Callable[[], list[Any]]:
        _ = packed
        if self.enter is None:
            return self.execute(sql, given or {}).fetchall
        question = self._question(sql, given or {})
        return lambda: self._answer(question).fetchall()

    def ask_whole(self, sql: str, given: Mapping[str, Any]) -> Callable[[], list[Any]]:
        """See `Database.ask_whole`.

        Until statistics are gathered, the planner takes a new run for one row, and would compare each row of
        it with each.
        """
        self.ask("SELECT set_config('enable_nestloop', 'off', true)")
        asked = self.ask(sql, given)
        self.ask("SELECT set_config('enable_nestloop', 'on', true)")
        return asked

    # -- without an explicit transaction: what is asked is sent when an answer is needed

    def together(self, enter: Callable[[], None], verbs: Sequence[Callable[[], Any]]) -> Sequence[Any]:
        """The answers of verbs, without an explicit transaction: what they ask shares round trips.

        Where there are several, each is called until it needs an answer, and called again, from its
        beginning, once the answers for all of them have come.
        """
        self.enter = enter
        try:
            return [verbs[0]()] if len(verbs) == 1 else self._in_turns(verbs)
        finally:
            self._open, self._known, self.enter = [], None, None

    def _in_turns(self, verbs: Sequence[Callable[[], Any]]) -> Sequence[Any]:
        asked, answers = [dict[tuple[str, int], _Question]() for _ in verbs], dict[int, Any]()
        while len(answers) < len(verbs):
            for place, verb in enumerate(verbs):
                if place not in answers:
                    self._known, self._times = asked[place], Counter()
                    with suppress(_Unanswered):
                        answers[place] = verb()
            self._send()
        return [answers[place] for place in range(len(verbs))]

    def _question(self, sql: str, given: Mapping[str, Any]) -> "_Question":
        """What is asked the nth time in a call is what was asked the nth time in the call before."""
        if self._known is None:
            self._open.append(question := _Question(sql, given))
            return question
        key = sql, self._times[sql]
        self._times[sql] += 1
        if key not in self._known:
            self._known[key] = _Question(sql, given)
            self._open.append(self._known[key])
        return self._known[key]

    def _answer(self, question: "_Question") -> "psycopg.Cursor[Any]":
        while question.cursor is None:
            if self._known is not None:
                raise _Unanswered
            self._send()
        if question.cursor.rownumber:  # it was read in an earlier call
            question.cursor.scroll(0, "absolute")
        return question.cursor

    def _send(self) -> None:
        asked, self._open = self._open, []
        if not asked or not self.enter:
            return
        with pipelined(self.connection):
            self.enter()
            for one in asked:
                one.cursor = self.connection.execute(statement(one.sql), one.given)

    def upsert(self, table: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
        if rows:
            self.do(_upsert(table, tuple(columns)), self.dialect.given(columns, rows))


@cache
def _upsert(table: str, columns: tuple[str, ...]) -> str:
    """Without ON CONFLICT, which writes a record more for each row, new or not, to the log of the server."""
    values = ", ".join(f"r.{column}::bigint[]" if column in ARRAYS else f"r.{column}" for column in columns)
    key, names = columns[0], ", ".join(columns)
    return f"""
WITH r AS (SELECT {values} FROM @rows({names})),
    changed AS (
        UPDATE {table} SET {", ".join(f"{column} = r.{column}" for column in columns[1:])}
        FROM r WHERE {table}.{key} = r.{key} RETURNING r.{key}
    )
INSERT INTO {table} ({names}) SELECT {names} FROM r WHERE {key} NOT IN (SELECT {key} FROM changed)
"""
