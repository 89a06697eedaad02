"""The crawls of a database, for its operators: lists, creates, migrates and drops them. Each is a schema.

Nothing here reads or changes what a crawl has found.
"""

from collections.abc import Callable, Sequence
from contextlib import closing
from typing import Any, Final, TypeVar

import psycopg
from msgspec.structs import replace
from psycopg import sql

from crawler.errors import FrontierError, StateBusy
from crawler.frontier.postgres.address import PREFIX, Address
from crawler.frontier.postgres.connection import RELATIONS, connect, prepare, remove
from crawler.frontier.postgres.errors import failure
from crawler.model.run import StoredCrawl

T = TypeVar("T")

SCHEMAS: Final = f"""
SELECT coalesce(obj_description(n.oid, 'pg_namespace'), substr(n.nspname, {len(PREFIX) + 1})), n.nspname,
    (SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint FROM pg_class AS c
     WHERE c.relnamespace = n.oid AND c.relkind = 'r'),
    has_schema_privilege(n.oid, 'USAGE') AND has_table_privilege(a.oid, 'SELECT')
FROM pg_namespace AS n JOIN pg_class AS a ON a.relnamespace = n.oid AND a.relname = 'about'
WHERE n.nspname ~ '^{PREFIX}[a-z0-9_]+$'
ORDER BY 1, 2
"""

# Only columns of the first version.
NEWEST: Final = """
SELECT (SELECT version FROM about),
    (SELECT count(*) FROM member WHERE NOT gone AND until > extract(epoch
        FROM clock_timestamp())), r.number, r.status, r.started
FROM (SELECT max(number) AS number FROM run) AS last LEFT JOIN run AS r ON r.number = last.number
"""


def crawls(address: Address) -> Sequence[StoredCrawl]:
    """The crawls of a database, by name. Raises `FrontierError`."""
    return _connected(address, _crawls)


def create(address: Address, owner: str | None) -> bool:
    """Create the tables of a crawl; False if they exist. `owner`: the role that owns them, if it is another.

    Raises `FrontierError`.
    """

    def make(connection: "psycopg.Connection[Any]") -> bool:
        with connection.transaction():
            is_new = connection.execute("SELECT to_regnamespace(%s)", [address.schema]).fetchone() == (None,)
            prepare(connection, address, create=True)
            if owner is not None:
                _give(connection, address, owner)
        return is_new

    return _connected(address, make)


def upgrade(address: Address) -> Sequence[str]:
    """Migrate the tables of a crawl, or of all if the address has no name; their names.

    Raises `FrontierError`, `StateBusy`.
    """

    def migrate(connection: "psycopg.Connection[Any]") -> Sequence[str]:
        found = _crawls(connection) if not address.name else [_named(connection, address)]
        for crawl in found:
            prepare(connection, replace(address, name=crawl.name), create=False)
        return [crawl.name for crawl in found]

    return _connected(address, migrate)


def drop(address: Address) -> StoredCrawl:
    """Delete a crawl and all that is known of its site.

    Raises `FrontierError`; `StateBusy` while members are at work.
    """
    crawl = _connected(address, lambda connection: _named(connection, address))
    if crawl.members:
        raise StateBusy(f"{crawl.members} members are at work on {crawl.name}: wait for them, or stop them.")
    remove(address)
    return crawl


def _connected(address: Address, work: Callable[["psycopg.Connection[Any]"], T]) -> T:
    try:
        with closing(connect(address)) as connection:
            return work(connection)
    except psycopg.Error as error:
        raise FrontierError(failure(address, error)) from error


def _crawls(connection: "psycopg.Connection[Any]") -> Sequence[StoredCrawl]:
    return [
        _crawl(connection, name, schema, size) if is_readable else StoredCrawl(name, schema, size, None)
        for name, schema, size, is_readable in connection.execute(SCHEMAS).fetchall()
    ]


def _crawl(connection: "psycopg.Connection[Any]", name: str, schema: str, size: int) -> StoredCrawl:
    with connection.transaction():
        connection.execute(f'SET LOCAL search_path TO "{schema}"')
        [row] = connection.execute(NEWEST).fetchall()
    return StoredCrawl(name, schema, size, *row)


def _named(connection: "psycopg.Connection[Any]", address: Address) -> StoredCrawl:
    for crawl in _crawls(connection):
        if crawl.schema == address.schema:
            return crawl
    raise FrontierError(
        f"There is no crawl {address.name} in this database: `state list` shows those that there are."
    )


def _give(connection: "psycopg.Connection[Any]", address: Address, owner: str) -> None:
    schema, role = address.schema, sql.Identifier(owner).as_string(connection)
    for _, relation in connection.execute(RELATIONS, [schema]).fetchall():
        connection.execute(f'ALTER TABLE "{schema}".{relation} OWNER TO {role}')
    connection.execute(f'ALTER SCHEMA "{schema}" OWNER TO {role}')
