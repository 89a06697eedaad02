"""One exchange over HTTP: `HttpFetcher` asks, `Retrying` asks again, `Turns` says when, `AddressGuard` where."""

from crawler.fetch.exchange import HttpFetcher
from crawler.fetch.guard import AddressGuard
from crawler.fetch.retry import Retrying
from crawler.fetch.turns import Pacing, Turns

__all__ = ["AddressGuard", "HttpFetcher", "Pacing", "Retrying", "Turns"]
