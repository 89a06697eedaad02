"""What an error of the database means: whether it may pass, and the sentence for it. Pure, but for one ping.

The driver gives no code for an error of a connection, so its words decide; they are English. A server may
speak another language: what it says to a program whose connections it accepts is taken for final.
"""

import os
import re
import socket
import stat
from pathlib import Path
from typing import Final, NamedTuple

import psycopg
from psycopg import errors
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from crawler.errors import FrontierError, StateAway
from crawler.frontier.postgres.address import Address

CONNECT_TIMEOUT: Final = 10  # seconds
# Classes of errors after which the same may succeed; 25006: a replica that is not promoted yet; 55P03 and
# 57014: a time limit of the server for a lock or a statement; 53300: too many connections.
_PASSING: Final = ("08", "57P", "40001", "40P01", "25006", "55P03", "57014", "53300")


class FailedOver(psycopg.OperationalError):
    """The database is on another server, which may lack the last commits."""


class _Cause(NamedTuple):
    """Why no connection is made, and what to do."""

    words: "re.Pattern[str]"
    advice: str


# Later causes are more general.
_FINAL: Final = tuple(
    _Cause(re.compile(words), advice)
    for words, advice in (
        ("does not match host name", "Give the host name that its certificate has, or sslmode=verify-ca."),
        (
            "certificate verify failed|root certificate",
            "Give the certificate of the authority that signed the server's in sslrootcert.",
        ),
        (
            "certificate file|private key|certificate present|alert (?:bad|unknown|unsupported) ?c",
            "Check sslcert and sslkey, which must be readable by you only.",
        ),
        (
            "does not support SSL",
            "Let the server speak TLS; sslmode=disable where the network is trusted.",
        ),
        (
            "no encryption|SSL off",
            "Connect with TLS (sslmode=verify-full), or allow this host in its pg_hba.conf.",
        ),
        ("no pg_hba.conf entry|pg_hba.conf rejects", "Allow host, role and database in its pg_hba.conf."),
        ("no password supplied", "Give its password in PGPASSWORD, or in the file that PGPASSFILE names."),
        ("password authentication failed", "Correct the password in PGPASSWORD or PGPASSFILE."),
        ('role "[^"]*" does not exist', "Create the role, or correct its name in --state."),
        ('database "[^"]*" does not exist', "Create the database, or correct its name in --state."),
        (
            "bouncer config error|no such database",
            "Name the database in [databases] of the pooler, or correct its name in --state.",
        ),
        ("permission denied for database", "GRANT CONNECT ON DATABASE … to this role."),
        ("invalid port number", "Correct the port in --state."),
        ("invalid response to SSL", "What answers there is not PostgreSQL: correct host and port."),
    )
)
_UNKNOWN_HOST: Final = _Cause(
    re.compile(rf"\[Errno ({socket.EAI_NONAME}|{getattr(socket, 'EAI_NODATA', socket.EAI_NONAME)})\]"),
    "Correct the host name in --state.",
)
# The server, or a pooler before it, accepts no more connections for now.
_FULL: Final = _Cause(
    re.compile("too many (clients|connections)|connection slots|no more connections allowed"),
    "Use fewer members, a pooler, or a higher max_connections.",
)
_REPLICA: Final = _Cause(
    re.compile("read-only transaction"),
    "It takes no writes: name the primary in --state, such as with target_session_attrs=read-write.",
)
_PAST_POOLER: Final = re.compile("server login has been failing|cannot connect to server|query_wait_timeout")
_REFUSED: Final = re.compile("Connection refused|timeout expired")
_PREFIX: Final = re.compile(r"connection (?:failed|is bad): (?:connection to server .*? failed: )?")


def unusable(address: Address, error: psycopg.Error) -> FrontierError:
    """The exception for an error of the first connection: `StateAway` if waiting may heal it."""
    words = str(error)
    is_final = _cause(words, (*_FINAL, _UNKNOWN_HOST)) is not None
    if is_final or not any(cause.search(words) for cause in (_FULL.words, _PAST_POOLER, _REFUSED)):
        is_final = is_final or _answers(address)
    return (
        FrontierError(failure(address, error, is_final=True))
        if is_final
        else StateAway(failure(address, error))
    )


def _answers(address: Address) -> bool:
    """Whether the server accepts connections, or none was tried since the address is wrong: final, too."""
    try:
        whole = make_conninfo(address.conninfo, connect_timeout=CONNECT_TIMEOUT)
    except psycopg.Error:
        return True
    return psycopg.pq.PGconn.ping(whole.encode()) in {psycopg.pq.Ping.OK, psycopg.pq.Ping.NO_ATTEMPT}


def is_passing(error: BaseException) -> bool:
    """Whether the same may succeed a little later: a lost connection, a restart, a deadlock.

    If the state was open before, an unknown host counts, too: its name may be missing while it restarts.
    """
    if not isinstance(error, psycopg.Error):
        return False
    if error.sqlstate is None:
        is_connection = isinstance(error, psycopg.OperationalError | psycopg.InterfaceError)
        return is_connection and _cause(str(error), _FINAL) is None
    return error.sqlstate.startswith(_PASSING)


def is_lost(error: psycopg.Error) -> bool:
    """Whether the connection was lost, or none is to be had for now."""
    return (
        is_passing(error)
        and not isinstance(error, FailedOver)
        and (error.sqlstate or "08").startswith(("08", "57P", "53"))
    )


def failure(address: Address, error: Exception, *, is_final: bool = False) -> str:
    """What went wrong with a state, and what to do. `is_final`: waiting does not heal it."""
    words = _PREFIX.sub("", (str(error).strip().splitlines() or ["no reason given"])[0])
    if not isinstance(error, psycopg.Error):
        return f"The state {address} is damaged ({words}): start over with --fresh."
    if isinstance(error, errors.DiskFull):
        return (
            f"The state {address} cannot be written: the disk of the database is full. "
            "Free some space and run again: nothing is lost."
        )
    advice = _advice(address, error, is_final=is_final)
    return f"The state {address} cannot be used: {words.rstrip('.')}. {advice}"


def _advice(address: Address, error: psycopg.Error, *, is_final: bool) -> str:
    if isinstance(error, errors.InsufficientPrivilege):
        name = address.name
        return f"Its role must own its schema: `sitemap-crawler state init {name} --state … --owner ROLE`."
    if "password" in str(error) and (file := _open_to_others(address)):
        return f"The password file {file} is ignored, as others may read it: chmod 600 {file}."
    if cause := _cause(str(error), (*_FINAL, _UNKNOWN_HOST, _FULL, _REPLICA)):
        return cause.advice
    if is_final or not is_passing(error):
        return "Correct that, then run again."
    return "Run again when the database works again: nothing is lost."


def _cause(words: str, causes: tuple[_Cause, ...]) -> _Cause | None:
    return next((cause for cause in causes if cause.words.search(words)), None)


def _open_to_others(address: Address) -> Path | None:
    """The password file, if libpq ignores it since others may read it."""
    try:
        named = conninfo_to_dict(address.conninfo).get("passfile")
        file = Path(str(named or os.environ.get("PGPASSFILE") or Path.home() / ".pgpass"))
        mode = file.stat().st_mode
    except (OSError, RuntimeError, psycopg.Error):
        return None
    return file if mode & (stat.S_IRWXG | stat.S_IRWXO) else None
