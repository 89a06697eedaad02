"""What optional features read of pages: URLs with a label. Their meaning is up to `app.features`."""

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

from crawler.frontier.database import Database
from crawler.frontier.queries import OF_SITEMAP, Stream
from crawler.model.rows import FeatureRow
from crawler.model.settlement import Settlement
from crawler.parse.url import Url
from crawler.rules.record import SETTLED

_FORGET: Final = "DELETE FROM feature WHERE id @any(ids)"
_STORE: Final = "INSERT INTO feature (id, name, read) SELECT r.id, r.name, r.read FROM @rows(id, name, read)"
_READ_OF: Final = f"""
SELECT u.id, u.url, u.outcome, u.was, f.read FROM known AS u
LEFT JOIN feature AS f ON f.id = u.id AND f.name = :name
WHERE u.@key @any(keys, key) AND u.run = :run AND u.state = {SETTLED}
"""
_COMMON: Final = f"""
SELECT j.value ->> 1 FROM known AS u JOIN feature AS f ON f.id = u.id AND f.name = :name @each_json(f.read)
WHERE {OF_SITEMAP} GROUP BY 1 HAVING count(*) >= :fewest
AND count(*) * 100 >= :percent * (SELECT count(*) FROM known WHERE {OF_SITEMAP})
"""
_COUNT: Final = f"""
SELECT count(DISTINCT j.value ->> 1)
FROM known AS u JOIN feature AS f ON f.id = u.id AND f.name = :name @each_json(f.read) WHERE {OF_SITEMAP}
"""
READING_PAGES: Final = Stream(
    f"""
SELECT u.url, u.id, u.outcome, u.was FROM known AS u JOIN feature AS f ON f.id = u.id AND f.name = :name
WHERE {OF_SITEMAP} AND @json_size(f.read) > :more_than
"""
)


def store(db: Database, settled: Sequence[Settlement], before: Sequence[int]) -> None:
    """Stores what was read of these pages. `before`: ids of those of which something was read before."""
    if before:
        db.do(_FORGET, {"ids": db.dialect.all_of(before)})
    rows = [
        (one.lease.id, name, json.dumps(found, separators=(",", ":")))
        for one in settled
        for name, found in one.verdict.features.items()
    ]
    if rows:
        db.do_rows(_STORE, ("id", "name", "read"), rows)


def read_of(db: Database, name: str, urls: Sequence[Url]) -> Mapping[Url, FeatureRow]:
    """See `ports.reads.FeaturesOf`."""
    rows = db.all(_READ_OF, {"name": name, "keys": db.dialect.keys(urls), "run": db.run})
    found = [
        FeatureRow(number, Url(url), outcome, was, _read(text)) for number, url, outcome, was, text in rows
    ]
    return {row.url: row for row in found}


def _read(text: str | None) -> tuple[tuple[str, Url], ...]:
    return tuple((label, Url(url)) for label, url in json.loads(text)) if text else ()


def reading_page(row: Sequence[Any]) -> FeatureRow:
    """A row of `READING_PAGES`."""
    url, number, outcome, was = row
    return FeatureRow(number, Url(url), outcome, was)


def count_urls(db: Database, name: str) -> int:
    """See `ports.reads.CountUrls`."""
    (count,) = db.one(_COUNT, {"name": name, "run": db.run})
    return int(count)


def common_urls(db: Database, name: str, fewest: int, percent: int) -> Collection[Url]:
    """See `ports.reads.CommonUrls`."""
    rows = db.all(_COMMON, {"name": name, "run": db.run, "fewest": fewest, "percent": percent})
    return frozenset(Url(url) for (url,) in rows)
