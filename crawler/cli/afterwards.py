"""What `crawl` does after a publication: tells search engines what changed. A signal ends it, and the next run goes on."""

from collections.abc import Sequence
from dataclasses import dataclass

import anyio

from crawler.app.job import Job
from crawler.app.submission import Submitted
from crawler.cli.signals import received
from crawler.cli.submission_words import due_words, result_words
from crawler.errors import CrawlerError
from crawler.settings.sections import Settings
from crawler.sitemap.publish.publish import Published


@dataclass(frozen=True, slots=True)
class Afterwards:
    """What followed a publication. An error is kept for later: it must not keep anybody from the summary."""

    submitted: Submitted | None = None
    error: CrawlerError | None = None
    interrupted: bool = False

    def words(self, settings: Settings) -> Sequence[str]:
        """For the summary."""
        if self.submitted is None:
            return ()
        due = () if self.submitted.noted is not None else (due_words(self.submitted),)
        return (*due, *result_words(self.submitted, settings))


async def after_publication(job: Job, published: Published | None, scope: anyio.CancelScope) -> Afterwards:
    """Does what the settings ask for after the publication of a complete crawl, until `scope` is cancelled."""
    if published is None or job.settings.guard.dry_run or received.first:
        return Afterwards()
    error = None
    with scope:
        try:
            if job.settings.submit.submit:
                await job.submit()
        except CrawlerError as failed:
            error = failed
    return Afterwards(job.submitted, error, scope.cancelled_caught)
