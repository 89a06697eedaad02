"""How far a run on PostgreSQL has come."""

from crawler.frontier.postgres.database import Database
from crawler.model.run import Run
from crawler.model.serialise import outcome_of
from crawler.model.survey import Balance


def run(db: Database) -> Run | None:
    """See `ports.Runs.run`."""
    row = db.one_or_none("SELECT number, started, status FROM run WHERE number = :run", {"run": db.run})
    return Run(row[0], row[1], complete=row[2] in ("complete", "concluded", "refused")) if row else None


def balance(db: Database) -> Balance:
    """See `ports.Record.balance`."""
    discovered = db.count("SELECT coalesce(sum(discovered), 0) FROM member WHERE run = :run", {"run": db.run})
    counts = db.all(
        "SELECT state < 3, outcome, count(*) FROM known WHERE run = :run GROUP BY 1, 2 ORDER BY 2",
        {"run": db.run},
    )
    outcomes = {outcome: count for is_open, outcome, count in counts if not is_open and outcome}
    for outcome in outcomes:
        outcome_of(outcome, "", None)  # raises for a code that is none
    return Balance(discovered, outcomes, sum(count for is_open, _, count in counts if is_open))
