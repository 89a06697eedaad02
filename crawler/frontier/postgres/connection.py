"""Opening a crawl in a PostgreSQL database: its schema, its version, and what to say of errors.

Nothing here outlives a transaction on the server (no `SET`, no prepared statements),
so that a pooler of transactions may stand between.
"""

from hashlib import blake2b
from typing import Any, Final

import psycopg
from psycopg.types.string import StrBinaryDumper, StrDumper

from crawler.errors import FrontierError
from crawler.frontier.postgres import schema
from crawler.frontier.postgres.address import Address

_LOST: Final = ("08", "57P", "40001", "40P01")  # classes of errors after which the same may succeed


class _Text(StrBinaryDumper):
    """PostgreSQL has no NUL in its text; what is from the network may have."""

    def dump(self, obj: str) -> Any:
        return super().dump(obj.replace("\0", "\ufffd") if "\0" in obj else obj)


class _PlainText(StrDumper):
    """The same for elements of arrays that are sent as text."""

    def dump(self, obj: str) -> Any:
        return super().dump(obj.replace("\0", "\ufffd") if "\0" in obj else obj)


def connect(address: Address) -> "psycopg.Connection[Any]":
    """A connection, with transactions by hand. Raises `psycopg.OperationalError`."""
    connection = psycopg.connect(
        address.conninfo,
        autocommit=True,
        prepare_threshold=None,
        connect_timeout=10,
        application_name="sitemap-crawler",
    )
    connection.adapters.register_dumper(str, _PlainText)
    connection.adapters.register_dumper(str, _Text)
    return connection


def begin(connection: "psycopg.Connection[Any]", address: Address, how: str = "") -> None:
    """Open a transaction in the schema of the crawl."""
    connection.execute(
        f'BEGIN {how}; SET LOCAL search_path TO "{address.schema}"; SET LOCAL idle_in_transaction_session_timeout = 60000'
    )


def prepare(connection: "psycopg.Connection[Any]", address: Address, *, read_only: bool) -> None:
    """See to it that the tables are there. Raises `FrontierError`."""
    with connection.transaction():
        exists = connection.execute(
            "SELECT 1 FROM pg_catalog.pg_namespace WHERE nspname = %s", [address.schema]
        ).fetchone()
        if not exists:
            if read_only:
                raise FrontierError(f"There is no state at {address}: crawl first, or name it with --state.")
            _create(connection, address)
        row = connection.execute(f'SELECT version FROM "{address.schema}".about').fetchone()
    if row is None or row[0] != schema.VERSION:
        raise FrontierError(
            f"The state {address} is of version {row and row[0]}, and this sitemap-crawler needs {schema.VERSION}: "
            "upgrade the older of the two."
        )


def _create(connection: "psycopg.Connection[Any]", address: Address) -> None:
    # Two that come first at once: one makes it, the other waits here and finds it made.
    number = int.from_bytes(blake2b(address.schema.encode(), digest_size=8).digest(), "big", signed=True)
    connection.execute("SELECT pg_advisory_xact_lock(%s)", [number])
    connection.execute(f'CREATE SCHEMA IF NOT EXISTS "{address.schema}"')
    connection.execute(f'SET LOCAL search_path TO "{address.schema}"')
    if connection.execute("SELECT to_regclass('about')").fetchone() == (None,):
        connection.execute(schema.TABLES)
        connection.execute(f"INSERT INTO about VALUES ({schema.VERSION})")


def remove(address: Address) -> None:
    """Forget a crawl: `--fresh`."""
    with connect(address) as connection:
        connection.execute(f'DROP SCHEMA IF EXISTS "{address.schema}" CASCADE')


def is_passing(error: psycopg.Error) -> bool:
    """Whether the same may succeed a little later: a lost connection, a restart, a deadlock."""
    state = error.sqlstate
    return isinstance(error, psycopg.OperationalError | psycopg.InterfaceError) and (
        state is None or state.startswith(_LOST)
    )


def failure(address: Address, error: Exception) -> str:
    """What went wrong with a state, and what to do."""
    words = (str(error).strip().splitlines() or ["no reason given"])[0]
    if isinstance(error, psycopg.errors.DiskFull):
        return (
            f"The state {address} cannot be written: the disk of the database is full. Free some space and run again: "
            "nothing is lost."
        )
    if isinstance(error, psycopg.Error):
        return f"The state {address} cannot be used: {words}. Run again when the database works again: nothing is lost."
    return f"The state {address} is damaged ({words}): start over with --fresh."
