"""Opens a crawl in a PostgreSQL database: its schema and its version, and the messages for errors.

Nothing outlives a transaction on the server (no `SET`, no prepared statements), so that a transaction pooler
may stand between.
"""

import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final, TypeAlias

import psycopg
from psycopg import errors, sql
from psycopg.types.string import StrBinaryDumper, StrDumper

from crawler.errors import FrontierError, NoState, StateAway, StateBusy
from crawler.frontier import schema
from crawler.frontier.dialect import translated
from crawler.frontier.postgres.address import Address
from crawler.frontier.postgres.dialect import PostgresDialect
from crawler.frontier.postgres.errors import CONNECT_TIMEOUT, is_passing, unusable
from crawler.rules import retries

# The version of the tables; the ids of URLs.
ABOUT: Final = "CREATE TABLE about (version integer NOT NULL); CREATE SEQUENCE url_id;"
_DIALECT: Final = PostgresDialect()
PROGRAM: Final = "sitemap-crawler"  # the name of its sessions
Lend: TypeAlias = Callable[[Callable[["psycopg.Connection[Any]"], None]], None]
"""Calls what it is given with the connection of the work."""
RACES: Final = 5  # attempts to create tables that other members create at the same time
# Sequences of identity columns follow their table.
RELATIONS: Final = """
SELECT CASE c.relkind WHEN 'v' THEN 'VIEW' WHEN 'S' THEN 'SEQUENCE' ELSE 'TABLE' END, quote_ident(c.relname)
FROM pg_class AS c WHERE c.relnamespace = to_regnamespace(%s) AND c.relkind IN ('r', 'v', 'S')
AND NOT EXISTS (SELECT 1 FROM pg_depend AS d WHERE d.objid = c.oid AND d.deptype = 'i' AND c.relkind = 'S')
"""


class _Text(StrBinaryDumper):
    """Text from the network may contain NUL, and text in PostgreSQL may not."""

    def dump(self, obj: str) -> Any:
        return super().dump(obj.replace("\0", "\ufffd") if "\0" in obj else obj)


class _PlainText(StrDumper):
    """The same for elements of arrays, which are sent as text."""

    def dump(self, obj: str) -> Any:
        return super().dump(obj.replace("\0", "\ufffd") if "\0" in obj else obj)


# Compiling a statement (jit) takes longer than any statement of a group of pages.
LOCAL: Final = """
SELECT set_config('search_path', %s, true), set_config('jit', 'off', true),
    set_config('idle_in_transaction_session_timeout', '60000', true), set_config('application_name', %s, true)
"""

# A server that is promoted begins another timeline.
TIMELINE: Final = """
SELECT CASE WHEN pg_is_in_recovery() THEN '' ELSE substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8) END
"""


def timeline(connection: "psycopg.Connection[Any]") -> str:
    """The timeline of the server; empty on a replica, and where the server does not tell."""
    try:
        row = connection.execute(TIMELINE).fetchone()
    except psycopg.errors.Error:
        return ""
    return str(row[0]) if row else ""


def connect(address: Address) -> "psycopg.Connection[Any]":
    """A connection with explicit transactions. Raises `psycopg.OperationalError`."""
    connection = psycopg.connect(
        address.conninfo,
        autocommit=True,
        prepare_threshold=None,
        connect_timeout=CONNECT_TIMEOUT,
        application_name=PROGRAM,
    )
    connection.adapters.register_dumper(str, _PlainText)
    connection.adapters.register_dumper(str, _Text)
    return connection


def begin(
    connection: "psycopg.Connection[Any]", address: Address, how: str = "", member: int | None = None
) -> None:
    """Open a transaction in the schema of the crawl.

    `member`: whose it is, if it locks rows; others may end it when that member is dead (`heartbeat.FROZEN`).
    """
    connection.execute(f"BEGIN {how}".encode())
    enter(connection, address, member)


def enter(connection: "psycopg.Connection[Any]", address: Address, member: int | None = None) -> None:
    """Have the rest of a transaction work in the schema of the crawl."""
    name = PROGRAM if member is None else f"{PROGRAM} {member} {address.schema}"
    connection.execute(LOCAL, [f'"{address.schema}"', name])


@contextmanager
def pipelined(connection: "psycopg.Connection[Any]") -> Iterator["psycopg.Pipeline"]:
    """Send what is executed in the block at once, and wait for it at the end. The first error counts."""
    raised: BaseException | None = None
    try:
        with connection.pipeline() as pipeline:
            try:
                yield pipeline
            except BaseException as error:  # noqa: BLE001 - raised below
                raised = error
    except psycopg.Error as error:  # of what was sent after the first
        raised = raised or error
    if raised:
        raise raised


def prepare(connection: "psycopg.Connection[Any]", address: Address, *, create: bool = True) -> None:
    """Create or migrate the tables. Raises `FrontierError`, `StateBusy`."""

    def attempt() -> None:
        with connection.transaction():
            _prepare(connection, address, create=create)

    # Another member came first, and its tables are there now.
    raced = (errors.UniqueViolation, errors.DuplicateSchema, errors.DuplicateTable)
    try:
        retries.blocking(lambda error: isinstance(error, raced), tries=RACES)(attempt)
    except raced as error:
        raise FrontierError(
            f"The state {address} cannot be created: others create it again and again."
        ) from error


def _prepare(connection: "psycopg.Connection[Any]", address: Address, *, create: bool) -> None:
    if not _has_table(connection, address, "about"):
        if not create:
            raise NoState(f"There is no state at {address}: crawl first, or name it with --state.")
        _create(connection, address)
        return
    connection.execute(f'SET LOCAL search_path TO "{address.schema}"')
    if _version(connection) == schema.VERSION:
        return
    connection.execute("LOCK TABLE about IN ACCESS EXCLUSIVE MODE")
    version = _version(connection)
    if version not in {schema.VERSION, *schema.STEPS}:
        raise FrontierError(
            f"The state {address} is of version {version}, and this build reads version {schema.VERSION}: "
            "start over with --fresh, or keep it for the build that wrote it."
        )
    if _living(connection):
        raise StateBusy(
            f"Members of an earlier version are at work on the state {address}: "
            "wait for them, then run again."
        )
    views = connection.execute("SELECT viewname FROM pg_views WHERE schemaname = %s", [address.schema])
    for (view,) in views.fetchall():
        connection.execute(f'DROP VIEW IF EXISTS "{view}" CASCADE')
    for step in range(version, schema.VERSION):
        connection.execute(schema.STEPS[step].encode())
    connection.execute(_sql(schema.VIEWS).encode())
    connection.execute(f"UPDATE about SET version = {schema.VERSION}")


def _has_table(connection: "psycopg.Connection[Any]", address: Address, name: str) -> bool:
    found = connection.execute("SELECT to_regclass(%s)", [f'"{address.schema}".{name}']).fetchone()
    return found != (None,)


def _create(connection: "psycopg.Connection[Any]", address: Address) -> None:
    """Create the tables, and the schema unless it is there."""
    exists = connection.execute("SELECT to_regnamespace(%s)", [address.schema]).fetchone()
    if exists == (None,):
        try:
            connection.execute(f'CREATE SCHEMA "{address.schema}"')
        except errors.InsufficientPrivilege as error:
            raise FrontierError(
                f"There is no state at {address}, and its role may not create schemas: have an administrator "
                f"run `sitemap-crawler state init {address.name} --state … --owner ROLE`."
            ) from error
        name = sql.Literal(address.name).as_string(connection)
        connection.execute(f'COMMENT ON SCHEMA "{address.schema}" IS {name}')
    connection.execute(f'SET LOCAL search_path TO "{address.schema}"')
    connection.execute(f"{ABOUT} {_sql(schema.TABLES)} {_sql(schema.VIEWS)}".encode())
    connection.execute(f"INSERT INTO about VALUES ({schema.VERSION})")


def _sql(text: str) -> str:
    return translated(_DIALECT, text)


def _version(connection: "psycopg.Connection[Any]") -> int:
    row = connection.execute("SELECT version FROM about").fetchone()
    return row[0] if row else 0


def _living(connection: "psycopg.Connection[Any]") -> int:
    row = connection.execute(
        "SELECT count(*) FROM member WHERE NOT gone AND until > extract(epoch FROM clock_timestamp())"
    ).fetchone()
    return row[0] if row else 0


def remove(address: Address) -> None:
    """Delete a crawl. Raises `FrontierError`; `StateBusy` if members are at work."""

    def drop(connection: "psycopg.Connection[Any]") -> None:
        if not _is_to_be_joined(connection, address, ""):
            connection.execute(f'DROP SCHEMA IF EXISTS "{address.schema}" CASCADE')

    _transact(address, drop)


def renew(address: Address, key: str) -> None:
    """Begin a crawl anew, for `--fresh`; but not if members are at work on the run `key`, which is to be
    joined.

    The schema stays, since this role may not be allowed to create one. In one transaction, so that a failure
    leaves all as it was. Raises `FrontierError`, `StateAway`; `StateBusy` if members are at work on another
    run.
    """

    def make_anew(connection: "psycopg.Connection[Any]") -> None:
        if not _is_to_be_joined(connection, address, key):
            for kind, relation in connection.execute(RELATIONS, [address.schema]).fetchall():
                connection.execute(f'DROP {kind} IF EXISTS "{address.schema}".{relation} CASCADE')
            _create(connection, address)

    _transact(address, make_anew)


def _transact(address: Address, work: Callable[["psycopg.Connection[Any]"], None]) -> None:
    def attempt() -> None:
        with reach(address) as connection, connection.transaction():
            work(connection)

    try:
        retries.blocking(is_passing, tries=RACES)(attempt)
    except psycopg.Error as error:
        raise unusable(address, error) from error


def _is_to_be_joined(connection: "psycopg.Connection[Any]", address: Address, key: str) -> bool:
    """Whether members are at work on the run `key`, and none begins another until the transaction ends.

    Raises `StateBusy` if they are on another one.
    """
    if not _has_table(connection, address, "run"):
        return False
    connection.execute(f'SET LOCAL search_path TO "{address.schema}"')
    if _is_at_work(connection, address, key):
        return True
    connection.execute("LOCK TABLE run, member IN ACCESS EXCLUSIVE MODE")
    return _is_at_work(connection, address, key)


def _is_at_work(connection: "psycopg.Connection[Any]", address: Address, key: str) -> bool:
    if not _living(connection):
        return False
    if connection.execute("SELECT 1 FROM run_key WHERE key = %s", [key or None]).fetchone():
        return True
    raise StateBusy(f"--fresh: members are at work on the state {address}. Wait for them, or stop them.")


def reach(address: Address) -> "psycopg.Connection[Any]":
    """The first connection to a state. Raises `FrontierError`, `StateAway` if the server may answer later."""
    try:
        return connect(address)
    except psycopg.Error as error:
        unreached = unusable(address, error)
        if isinstance(unreached, StateAway):
            raise unreached from error
    try:
        # It has accepted connections since: the first attempt may have met a server that was just starting.
        return connect(address)
    except psycopg.Error as error:
        raise unusable(address, error) from error


# -- the clock -----------------------------------------------------------------------------------------------


SAMPLES: Final = 12  # round trips that count: a minute of heartbeats
ASK: Final = "SELECT extract(epoch FROM clock_timestamp())::double precision"


class ServerClock:
    """Seconds since the epoch, by the clock of the database, so that all members agree on the time.

    It is off by at most half the shortest of the last round trips. Call `measure` first.
    """

    def __init__(self) -> None:
        self._trips: deque[tuple[float, float]] = deque(maxlen=SAMPLES)
        self._ahead = 0.0

    def __call__(self) -> float:
        return time.monotonic() + self._ahead

    def measure(self, connection: "psycopg.Connection[Any]") -> None:
        """Ask the database for its time. The shortest of the last round trips counts."""
        sent = time.monotonic()
        row = connection.execute(ASK).fetchone()
        took = time.monotonic() - sent
        if row:
            self._trips.append((took, row[0] - sent - took / 2))
            self._ahead = min(self._trips)[1]
