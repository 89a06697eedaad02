"""The crawls of the database that `--state` names, for those who operate it.

A crawl is given by its name, or by its start URL, of which the name is made; or in --state. Every function
raises `ConfigError` if --state is not a database, and `FrontierError`.
"""

from collections.abc import Sequence

from msgspec.structs import replace

from crawler.app.settings_urls import normaliser, start_url
from crawler.app.state import address_of, name_of
from crawler.errors import ConfigError
from crawler.frontier.postgres.address import Address
from crawler.model.run import StoredCrawl
from crawler.settings.sections import Settings
from crawler.sitemap.tree import is_web


def list_crawls(settings: Settings) -> Sequence[StoredCrawl]:
    """All crawls, by name."""
    address = _address(settings, None)
    from crawler.frontier.postgres import crawls  # noqa: PLC0415 - the driver is an extra

    return crawls.crawls(address)


def create(settings: Settings, name: str | None, owner: str | None) -> tuple[str, bool]:
    """Make the tables of a crawl. Its name, and whether there were none. `owner`: a role."""
    address = _one(settings, name)
    from crawler.frontier.postgres import crawls  # noqa: PLC0415 - the driver is an extra

    return address.name, crawls.create(address, owner)


def upgrade(settings: Settings, name: str | None) -> Sequence[str]:
    """Migrate the tables of a crawl, or of all if none is given. Their names."""
    address = _address(settings, name)
    from crawler.frontier.postgres import crawls  # noqa: PLC0415 - the driver is an extra

    return crawls.upgrade(address)


def drop(settings: Settings, name: str | None) -> StoredCrawl:
    """Delete a crawl with all its runs."""
    address = _one(settings, name)
    from crawler.frontier.postgres import crawls  # noqa: PLC0415 - the driver is an extra

    return crawls.drop(address)


def database_of(settings: Settings) -> str:
    """The address of the database, as it may be shown."""
    return str(_address(settings, None)).partition("#")[0]


def _one(settings: Settings, name: str | None) -> Address:
    address = _address(settings, name)
    if not address.name:
        raise ConfigError("Which crawl? Give its name, or the URL that it starts from.")
    return address


def _address(settings: Settings, name: str | None) -> Address:
    address = address_of(settings)
    if address is None:
        raise ConfigError(
            "`state` is for databases, not for files or object stores: give --state postgresql://USER@HOST/DATABASE."
        )
    if name is None:
        return address
    return replace(address, name=name_of(start_url(name, normaliser(settings))) if is_web(name) else name)
