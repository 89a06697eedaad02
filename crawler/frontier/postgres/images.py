"""The images of pages in the PostgreSQL frontier: each URL once, and with each page the ids of its images.

New images go in sorted by fingerprint, after the URLs of the same transaction, so that members which find the same ones wait
for each other, and never in a circle.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

from crawler.frontier import records
from crawler.frontier.postgres.database import Database
from crawler.frontier.postgres.rows import fp, given, table
from crawler.model.facts import Image
from crawler.parse.url import Url

_KNOWN: Final = "SELECT url, id FROM image WHERE fp = ANY (:fps::uuid[])"
_ADD: Final = f"""
INSERT INTO image (fp, url) SELECT fp, url FROM {table(("fp", "url"))} ORDER BY fp ON CONFLICT (fp) DO NOTHING
"""
_OF: Final = """
SELECT u.url, i.id, i.url
FROM url AS u JOIN page AS p ON p.id = u.id CROSS JOIN LATERAL unnest(p.images) WITH ORDINALITY AS j (id, place)
JOIN image AS i ON i.id = j.id
WHERE u.fp = ANY (:fps::uuid[]) AND u.run = :run AND NOT EXISTS (SELECT 1 FROM visit AS v WHERE v.id = u.id)
ORDER BY u.id, j.place
"""
_COMMON: Final = f"""
SELECT j FROM known AS u CROSS JOIN LATERAL unnest(u.images) AS j WHERE {records.LISTED}
GROUP BY 1 HAVING {records.COMMON.format(urls="known")}
"""
MANY_IMAGES: Final = (
    f"{records.MANY_IMAGES.format(urls='known')} AND cardinality(u.images) > :most ORDER BY u.url"
)
_UNUSED: Final = """
DELETE FROM image USING (SELECT id FROM image EXCEPT SELECT unnest(images) FROM page) AS unused WHERE image.id = unused.id
"""


def ids_of(db: Database, images: Iterable[Url]) -> Mapping[Url, int]:
    """The ids of images. Adds those that are not known."""
    fps = {image: fp(image) for image in images}
    if not fps:
        return {}
    ids = _known(db, fps.values())
    if new := [(fps[image], image) for image in fps if image not in ids]:
        db.do(_ADD, given(("fp", "url"), new))
        ids |= _known(db, [number for number, _ in new])  # other members may have added some of them
    return ids


def _known(db: Database, fps: Iterable[str]) -> dict[Url, int]:
    return {Url(url): number for url, number in db.all(_KNOWN, {"fps": list(fps)})}


def of_pages(db: Database, urls: Sequence[Url]) -> Mapping[Url, Sequence[Image]]:
    """See `ports.Rows.images_of`."""
    return records.images_by_page(db.all(_OF, {"fps": [fp(url) for url in urls], "run": db.run}))


def common(db: Database, fewest: int, percent: int) -> Collection[int]:
    """See `ports.Rows.common_images`."""
    given = {"run": db.run, "fewest": fewest, "percent": percent}
    return frozenset(number for (number,) in db.all(_COMMON, given))


def prune(db: Database) -> None:
    """Deletes images that no page has."""
    db.do(_UNUSED)
