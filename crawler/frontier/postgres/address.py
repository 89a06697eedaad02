"""The address of a crawl in a PostgreSQL database, as given by `--state`.

Shown without user, password and parameters. Pure.
"""

import re
from hashlib import blake2b
from typing import Final
from urllib.parse import parse_qs, urlsplit

from msgspec import Struct

from crawler.errors import ConfigError

PREFIX: Final = "smc_"
_LONGEST: Final = 50  # characters of a name in the name of its schema, which PostgreSQL cuts at 63


class Address(Struct, frozen=True):
    """The address of a crawl: `postgresql://USER@HOST:PORT/DATABASE?PARAMETERS#NAME`."""

    conninfo: str  # without the name, as libpq reads it
    name: str

    @property
    def schema(self) -> str:
        plain = re.sub(r"[^a-z0-9]+", "_", self.name.lower()).strip("_")
        if plain == self.name and len(plain) <= _LONGEST:
            return PREFIX + plain
        return f"{PREFIX}{plain[:_LONGEST]}_{blake2b(self.name.encode(), digest_size=3).hexdigest()}"

    def __str__(self) -> str:
        parts = urlsplit(self.conninfo)
        return f"postgresql://{parts.netloc.rpartition('@')[2]}{parts.path or '/'}#{self.name}"

    def __repr__(self) -> str:
        return str(self)


def parsed(state: str, default: str = "crawl") -> Address:
    """The address that `--state` names; `default`: the name of the crawl, if it names none.

    Raises `ConfigError` for an address with a password: others see it in the list of processes.
    """
    conninfo, _, name = state.partition("#")
    parts = urlsplit(conninfo)
    if _has_password(state) or {"password", "sslpassword"} & set(parse_qs(parts.query)):
        raise ConfigError(
            "--state has a password, which others see in the list of processes: "
            "give it by PGPASSWORD or PGPASSFILE."
        )
    return Address(conninfo, name or default)


def _has_password(state: str) -> bool:
    """Whether a `:` and a later `@` follow `//`.

    A password may hold any character, also those that end a part of a URL.
    """
    after = (part.partition("//")[2] for part in state.split("?"))
    return any("@" in text.partition(":")[2] for text in after)
