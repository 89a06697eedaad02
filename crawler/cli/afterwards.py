"""What `crawl` does after a publication: delivers the files, and tells search engines what changed.

A signal ends it, and the next run does what is left.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import anyio

from crawler.app.job import Job
from crawler.app.submission import Submitted
from crawler.cli.signals import received
from crawler.cli.submission_words import due_words, result_words
from crawler.errors import CrawlerError
from crawler.settings.sections import Settings
from crawler.sitemap.publish.published import Published


@dataclass(frozen=True, slots=True)
class Afterwards:
    """What followed a publication. Errors are raised later: the summary comes first."""

    submitted: Submitted | None = None
    errors: Sequence[CrawlerError] = ()
    interrupted: bool = False

    def words(self, settings: Settings) -> Sequence[str]:
        """For the summary."""
        if self.submitted is None:
            return ()
        due = () if self.submitted.noted is not None else (due_words(self.submitted),)
        return (*due, *result_words(self.submitted, settings))


async def after_publication(
    job: Job, published: Published | None, scope: anyio.CancelScope, *, complete: bool
) -> Afterwards:
    """Does what the settings ask for after a publication, until `scope` is cancelled. `complete`: the crawl was."""
    if published is None or job.settings.guard.dry_run or received.first:
        return Afterwards()
    errors: list[CrawlerError] = []
    with scope:
        try:
            await job.deliver(published)
        except CrawlerError as error:
            errors.append(error)
        try:
            if job.settings.submit.submit and complete:
                await job.submit()
        except CrawlerError as error:
            errors.append(error)
    return Afterwards(job.submitted, errors, scope.cancelled_caught)
