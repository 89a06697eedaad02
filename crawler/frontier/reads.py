"""What answers each query of `ports.reads`, and the statement of each stream.

An answer is called within a transaction, with the fields of its query. Those that need more than the database
are added by `frontier`.
"""

from collections.abc import Callable, Mapping
from functools import partial, update_wrapper
from typing import Any, Final

from crawler.frontier import (
    budget,
    dates,
    duplicates,
    externals,
    features,
    ledger,
    levels,
    patterns,
    publications,
    queries,
    revisits,
    runs,
    scripted,
    seeds,
    tallies,
    targets,
    waits,
)
from crawler.frontier.database import Database
from crawler.parse.url import Url
from crawler.ports import reads

Answer = Callable[..., Any]

_ANSWERS: Final[Mapping[type[reads.Query[Any]], Answer]] = {
    reads.NewestRun: queries.run,
    reads.ExitOfRun: runs.exit_of_run,
    reads.LastPublication: publications.newest,
    reads.PublishedOutcomes: publications.published_outcomes,
    reads.PagesTurnedAlike: publications.turned_alike,
    reads.FailuresOfRun: publications.failures,
    reads.AnsweringPages: publications.answering_pages,
    reads.LostPages: publications.lost_pages,
    reads.PublishedExamples: publications.published_examples,
    reads.SettledSoFar: budget.settled_so_far,
    reads.LeastDepth: levels.least_depth,
    reads.Waits: waits.waits,
    reads.RunBalance: queries.balance,
    reads.SiteSurvey: queries.survey,
    reads.ListedTallies: tallies.tallies,
    reads.GroupedPages: tallies.grouped_pages,
    reads.PagesWithFindings: tallies.with_findings,
    reads.WhatIsKnown: revisits.knowledge,
    reads.Sitemaps: seeds.sitemaps,
    reads.BusiestHosts: queries.host_rows,
    reads.TrapsOfRun: patterns.stored_traps,
    reads.RecordOf: queries.record,
    reads.NumberOf: queries.number_of,
    reads.KnownLinks: queries.known_links,
    reads.Linking: queries.linking,
    reads.FirstStart: runs.first_start,
    reads.StartNumbers: runs.start_numbers,
    reads.LastAnswered: queries.last_answered,
    reads.Examples: queries.examples,
    reads.Filtered: targets.list_filtered,
    reads.DateEvidence: dates.evidence,
    reads.CopyOfSeed: seeds.copy_of,
    reads.IsReadAnew: dates.is_read_anew,
    reads.HasNews: duplicates.has_news,
    reads.SameContentGroups: duplicates.same_content,
    reads.NamedErrors: duplicates.named_errors,
    reads.QuestionsLeft: budget.questions_left,
    reads.DoubtfulPlaces: duplicates.doubtful_places,
    reads.KindsOfScripted: scripted.kinds,
    reads.SameShell: scripted.same_shell,
    reads.UnrenderedPages: scripted.of_kinds,
    reads.RepeatedPages: duplicates.repeated,
    reads.PagesWithContent: duplicates.pages_with_content,
    reads.PagesOf: queries.rows_of,
    reads.TargetsOf: targets.targets_of,
    reads.LinksOf: queries.links_of,
    reads.AnchorsOf: targets.anchors_of,
    reads.FeaturesOf: features.read_of,
    reads.CountUrls: features.count_urls,
    reads.CommonUrls: features.common_urls,
    reads.LedgerState: ledger.ledger,
    reads.DueLinks: externals.due_links,
    reads.ExternalAnswer: externals.external,
    reads.CountAnswers: externals.count_answers,
    reads.BrokenFiles: externals.broken_files,
}

# Without edges, whose ids are looked up.
STREAMS: Final[Mapping[type[reads.RowKind[Any]], tuple[queries.Stream, Callable[[tuple[Any, ...]], Any]]]] = {
    reads.ListedEntries: (queries.ENTRIES, queries.entry),
    reads.AllUrls: (queries.KNOWN_HERE, lambda row: Url(row[0])),
    reads.Pages: (queries.PAGE_ROWS, queries.page),
    reads.Suspects: (queries.SUSPECT_ROWS, queries.suspect),
    reads.ReadingPages: (features.READING_PAGES, features.reading_page),
    reads.LedgerRows: (ledger.ROWS, ledger.ledger_row),
}


def answers(db: Database) -> dict[type[reads.Query[Any]], Answer]:
    """What answers each query from a database; a transaction is named after it."""
    return {kind: update_wrapper(partial(answer, db), answer) for kind, answer in _ANSWERS.items()}
