"""Opens a crawl in a PostgreSQL database: its schema and its version, and the messages for errors.

Nothing outlives a transaction on the server (no `SET`, no prepared statements), so that a transaction pooler
may stand between.
"""

from typing import Any, Final

import psycopg
from psycopg import errors, sql
from psycopg.conninfo import make_conninfo
from psycopg.types.string import StrBinaryDumper, StrDumper

from crawler.errors import FrontierError, NoState, StateAway, StateBusy
from crawler.frontier import schema
from crawler.frontier.dialect import translated
from crawler.frontier.postgres.address import Address
from crawler.frontier.postgres.dialect import PostgresDialect
from crawler.rules import retries

# The version of the tables; the ids of URLs.
ABOUT: Final = "CREATE TABLE about (version integer NOT NULL); CREATE SEQUENCE url_id;"
_DIALECT: Final = PostgresDialect()
CONNECT_TIMEOUT: Final = 10  # seconds
RACES: Final = 5  # attempts to create tables that other members create at the same time
# Classes of errors after which the same may succeed; 25006: a replica that is not promoted yet, 55P03 and
# 57014: a time limit of the server for a lock or a statement.
_LOST: Final = ("08", "57P", "40001", "40P01", "25006", "55P03", "57014")


class _Text(StrBinaryDumper):
    """Text from the network may contain NUL, and text in PostgreSQL may not."""

    def dump(self, obj: str) -> Any:
        return super().dump(obj.replace("\0", "\ufffd") if "\0" in obj else obj)


class _PlainText(StrDumper):
    """The same for elements of arrays, which are sent as text."""

    def dump(self, obj: str) -> Any:
        return super().dump(obj.replace("\0", "\ufffd") if "\0" in obj else obj)


# A server that is promoted begins another timeline.
TIMELINE: Final = """
SELECT CASE WHEN pg_is_in_recovery() THEN '' ELSE substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8) END
"""


class FailedOver(psycopg.OperationalError):
    """The database is on another server, which may lack the last commits."""


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
        application_name="sitemap-crawler",
    )
    connection.adapters.register_dumper(str, _PlainText)
    connection.adapters.register_dumper(str, _Text)
    return connection


def begin(connection: "psycopg.Connection[Any]", address: Address, how: str = "") -> None:
    """Open a transaction in the schema of the crawl."""
    # Compiling a statement (jit) takes longer than any statement of a group of pages.
    connection.execute(
        f'BEGIN {how}; SET LOCAL search_path TO "{address.schema}"; SET LOCAL jit = off; '
        "SET LOCAL idle_in_transaction_session_timeout = 60000"
    )


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
    exists = connection.execute(
        "SELECT 1 FROM pg_catalog.pg_namespace WHERE nspname = %s", [address.schema]
    ).fetchone()
    if not exists:
        if not create:
            raise NoState(f"There is no state at {address}: crawl first, or name it with --state.")
        connection.execute(f'CREATE SCHEMA "{address.schema}"')
        name = sql.Literal(address.name).as_string(connection)
        connection.execute(f'COMMENT ON SCHEMA "{address.schema}" IS {name}')
        connection.execute(f'SET LOCAL search_path TO "{address.schema}"')
        connection.execute(f"{ABOUT} {_sql(schema.TABLES)} {_sql(schema.VIEWS)}".encode())
        connection.execute(f"INSERT INTO about VALUES ({schema.VERSION})")
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


def remove(address: Address, key: str = "") -> None:
    """Delete a crawl, for `--fresh`; but not if members are at work on the run `key`, which is to be joined.

    Raises `StateBusy` if members are at work on another run.
    """

    def attempt() -> None:
        with connect(address) as connection, connection.transaction():
            _remove(connection, address, key)

    again = retries.blocking(is_passing, tries=RACES)
    try:
        again(attempt)
    except psycopg.Error as error:
        raise unusable(address, error) from error


def _remove(connection: "psycopg.Connection[Any]", address: Address, key: str) -> None:
    exists = connection.execute("SELECT to_regclass(%s)", [f'"{address.schema}".run']).fetchone()
    if exists != (None,):
        connection.execute(f'SET LOCAL search_path TO "{address.schema}"')
        if _is_to_be_joined(connection, address, key):
            return
        connection.execute("LOCK TABLE run, member IN ACCESS EXCLUSIVE MODE")
        if _is_to_be_joined(connection, address, key):
            return
    connection.execute(f'DROP SCHEMA IF EXISTS "{address.schema}" CASCADE')


def _is_to_be_joined(connection: "psycopg.Connection[Any]", address: Address, key: str) -> bool:
    """Whether members are at work on the run `key`. Raises `StateBusy` if they are on another one."""
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


def unusable(address: Address, error: psycopg.Error) -> FrontierError:
    """The exception for an error of `connect`: `StateAway` if the server accepts no connections (yet)."""
    # If it accepts them, an error such as a wrong password will be the same a minute later.
    whole = make_conninfo(address.conninfo, connect_timeout=CONNECT_TIMEOUT)
    is_up = psycopg.pq.PGconn.ping(whole.encode()) == psycopg.pq.Ping.OK
    return (FrontierError if is_up else StateAway)(failure(address, error))


def is_passing(error: BaseException) -> bool:
    """Whether the same may succeed a little later: a lost connection, a restart, a deadlock."""
    if not isinstance(error, psycopg.Error):
        return False
    if error.sqlstate is None:
        return isinstance(error, psycopg.OperationalError | psycopg.InterfaceError)
    return error.sqlstate.startswith(_LOST)


def failure(address: Address, error: Exception) -> str:
    """What went wrong with a state, and what to do."""
    words = (str(error).strip().splitlines() or ["no reason given"])[0]
    if isinstance(error, psycopg.errors.DiskFull):
        return (
            f"The state {address} cannot be written: the disk of the database is full. "
            "Free some space and run again: nothing is lost."
        )
    if isinstance(error, psycopg.Error):
        return (
            f"The state {address} cannot be used: {words}. "
            "Run again when the database works again: nothing is lost."
        )
    return f"The state {address} is damaged ({words}): start over with --fresh."
