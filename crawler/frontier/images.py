"""The images of pages: each URL once, and with each page the ids of its images.

New images go in sorted by fingerprint, after the URLs of the same transaction, so that members which find the
same ones wait for each other, and never in a circle.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import islice
from typing import Final

from crawler.frontier import queries
from crawler.frontier.database import Database
from crawler.frontier.queries import OF_SITEMAP, Stream
from crawler.model.facts import Image
from crawler.parse.url import Url

_KNOWN: Final = "SELECT url, id FROM image WHERE @key @any(keys, key)"
_ADD: Final = """
INSERT INTO image (@columns_of_url) SELECT @columns_of_url
    FROM @rows(@columns_of_url) WHERE true ORDER BY @key
ON CONFLICT (@key) DO NOTHING
"""
_OF: Final = """
SELECT u.url, i.id, i.url, u.id, @place
FROM url AS u JOIN page AS p ON p.id = u.id @each(p.images) JOIN image AS i ON i.id = j.value
WHERE u.@key @any(keys, key) AND u.run = :run AND NOT EXISTS (SELECT 1 FROM visit AS v WHERE v.id = u.id)
ORDER BY 4, 5
"""
_COMMON: Final = f"""
SELECT j.value FROM known AS u @each(u.images) WHERE {OF_SITEMAP}
GROUP BY 1 HAVING count(*) >= :fewest
AND count(*) * 100 >= :percent * (SELECT count(*) FROM known WHERE {OF_SITEMAP})
"""
MANY_IMAGES: Final = Stream(
    f"SELECT u.url, u.id, u.outcome, u.was FROM known AS u WHERE {OF_SITEMAP} AND @size(u.images) > :most"
)
_UNUSED: Final = """
DELETE FROM image WHERE id IN (SELECT id FROM image EXCEPT SELECT j.value FROM page AS p @each(p.images))
"""
PORTION: Final = 10_000  # URLs in one statement


def ids_of(db: Database, images: Iterable[Url]) -> Mapping[Url, int]:
    """The ids of images. Adds those that are not known."""
    ids: dict[Url, int] = {}
    distinct = iter(dict.fromkeys(images))
    while some := list(islice(distinct, PORTION)):
        ids |= _known(db, some)
        if new := [image for image in some if image not in ids]:
            columns = dict.fromkeys((db.dialect.column, "url"))
            rows = [(db.dialect.key_of(image), image)[-len(columns) :] for image in new]
            db.do_rows(_ADD, tuple(columns), rows)
            ids |= _known(db, new)  # other members may have added some of them
    return ids


def _known(db: Database, images: Iterable[Url]) -> dict[Url, int]:
    return {Url(url): number for url, number in db.packed(_KNOWN, {"keys": db.dialect.keys(images)})}


def of_pages(db: Database, urls: Sequence[Url]) -> Mapping[Url, Sequence[Image]]:
    """See `ports.Rows.images_of`."""
    rows = db.all(_OF, {"keys": db.dialect.keys(urls), "run": db.run})
    return queries.images_by_page(row[:3] for row in rows)


def common(db: Database, fewest: int, percent: int) -> Collection[int]:
    """See `ports.Rows.common_images`."""
    given = {"run": db.run, "fewest": fewest, "percent": percent}
    return frozenset(number for (number,) in db.all(_COMMON, given))


def prune(db: Database) -> None:
    """Deletes images that no page has."""
    db.do(_UNUSED)
