"""How many redirects lead to each URL: fewer are recorded when a shorter path is found, and handed on.

A URL that failed for too many redirects (`--max-redirects`) is due again then.
"""

from collections.abc import Sequence
from typing import Final

from crawler.frontier.database import Database
from crawler.frontier.visits import move
from crawler.rules.record import QUEUED

# The URLs of paths, and then what they redirect to, with how many redirects lead to them now. The steps are
# queries on their own, and not joins: the planner does not know how few the paths are, and would read all
# pages.
SHORTER: Final = """
SELECT u.id, CASE WHEN r.hops < u.hops THEN r.hops ELSE u.hops END FROM @rows(@key, hops, was_hops)
JOIN url AS u ON u.@key = r.@key
WHERE u.run = :run AND (r.hops < u.hops OR r.was_hops > u.hops)
"""
REDIRECTED: Final = """
SELECT t.id, min(r.hops) + 1 FROM @rows(id, hops)
JOIN page AS p ON p.id = r.id @each(p.links) JOIN url AS t ON t.id = j.value
WHERE p.outcome = 'moved' AND NOT EXISTS (SELECT 1 FROM visit WHERE visit.id = p.id)
AND t.run = :run AND t.hops > r.hops + 1 GROUP BY t.id
"""
LOWER_HOPS: Final = "UPDATE url SET hops = r.hops FROM @rows(id, hops) WHERE url.id = r.id"
# One that failed for too many redirects is due again.
TOO_MANY: Final = f"""
SELECT u.id, u.host, u.depth, u.trap, u.sample, {QUEUED}, NULL, NULL, NULL
    FROM url AS u JOIN page AS p ON p.id = u.id
WHERE u.id @any(ids) AND p.outcome = 'failed:redirects' AND NOT EXISTS (SELECT 1
    FROM visit WHERE visit.id = u.id)
"""


def lower_hops(db: Database, paths: Sequence[tuple[str, int, int]]) -> None:
    """Record fewer redirects for URLs that may be known already.

    A path is (URL, redirects, redirects that were recorded when the URL was fetched).
    """
    if not paths:
        return
    run, key = {"run": db.run}, db.dialect.column
    rows = [(db.dialect.key_of(url), hops, was) for url, hops, was in paths]
    step = dict(db.ask(SHORTER, db.dialect.given((key, "hops", "was_hops"), rows) | run, packed=True)())
    fewer = dict[int, int]()
    while step:
        for number, hops in step.items():
            fewer[number] = min(hops, fewer.get(number, hops))
        given = db.dialect.given(("id", "hops"), list(step.items()))
        step = {
            number: hops
            for number, hops in db.ask(REDIRECTED, given | run, packed=True)()
            if hops < fewer.get(number, hops + 1)
        }
    if fewer:
        db.do_rows(LOWER_HOPS, ("id", "hops"), sorted(fewer.items()))
        move(db, db.all(TOO_MANY, {"ids": db.dialect.all_of(fewer)}))
