"""One exchange over HTTP: `HttpFetcher` asks, `Retrying` asks again, `AddressGuard` says where we may connect to."""

from crawler.fetch.exchange import HttpFetcher
from crawler.fetch.guard import AddressGuard
from crawler.fetch.retry import Retrying

__all__ = ["AddressGuard", "HttpFetcher", "Retrying"]
