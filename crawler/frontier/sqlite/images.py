"""The images of pages in the SQLite frontier: each URL once, and with each page the ids of its images."""

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import islice
from typing import Final

from crawler.frontier import records
from crawler.frontier.sqlite.database import Database
from crawler.frontier.sqlite.streams import PAGES
from crawler.model.facts import Image
from crawler.model.rows import PageRow
from crawler.parse.url import Url

PORTION: Final = 10_000  # URLs in one statement

_KNOWN: Final = """
SELECT json_group_array(json_array(i.url, i.id)) FROM json_each(:urls) AS j JOIN image AS i ON i.url = j.value
"""
_ADD: Final = "INSERT INTO image (url) SELECT value FROM json_each(:urls) RETURNING url, id"
_OF: Final = """
SELECT json_group_array(json_array(p.url, i.id, i.url))
FROM json_each(:urls) AS l CROSS JOIN url AS p ON p.url = l.value CROSS JOIN json_each(p.images) AS j
CROSS JOIN image AS i ON i.id = j.value
WHERE p.run = :run AND p.state = 3
"""
_COMMON: Final = f"""
SELECT j.value FROM url AS u, json_each(u.images) AS j WHERE {records.LISTED}
GROUP BY 1 HAVING {records.COMMON.format(urls="url")}
"""
# An id and its comma take two characters at least: most arrays need not be read.
_MANY_IMAGES: Final = f"""
{records.MANY_IMAGES.format(urls="url")} AND length(u.images) > 2 * :most AND json_array_length(u.images) > :most
AND u.url > :after ORDER BY u.url LIMIT :limit
"""
_UNUSED: Final = "DELETE FROM image WHERE id NOT IN (SELECT j.value FROM url AS u, json_each(u.images) AS j)"


def ids_of(db: Database, images: Iterable[Url]) -> Mapping[Url, int]:
    """The ids of images. Adds those that are not known."""
    ids: dict[Url, int] = {}
    distinct = iter(dict.fromkeys(images))
    while some := list(islice(distinct, PORTION)):
        ids |= dict(json.loads(db.one(_KNOWN, {"urls": json.dumps(some)})[0]))
        if new := [image for image in some if image not in ids]:
            ids |= dict(db.all(_ADD, {"urls": json.dumps(new)}))
    return ids


def of_pages(db: Database, urls: Sequence[Url]) -> Mapping[Url, Sequence[Image]]:
    """See `ports.Rows.images_of`."""
    rows = db.one(_OF, {"urls": json.dumps(list(urls)), "run": db.run})[0]
    return records.images_by_page(json.loads(rows))


def common(db: Database, fewest: int, percent: int) -> Collection[int]:
    """See `ports.Rows.common_images`."""
    given = {"run": db.run, "fewest": fewest, "percent": percent}
    return frozenset(number for (number,) in db.all(_COMMON, given))


def many_images(db: Database, most: int, after: str) -> Sequence[PageRow]:
    """The next chunk of `ports.Rows.many_images_rows`, after the URL `after`."""
    given = {"run": db.run, "most": most, "after": after, "limit": PAGES}
    return [records.many_images(row, db.run) for row in db.all(_MANY_IMAGES, given)]


def prune(db: Database) -> None:
    """Deletes images that no page has."""
    db.do(_UNUSED)
