"""What `crawl` does after a publication: delivers the files, tells search engines what changed, checks links to other sites.

A signal ends it, and the next run does what is left.
"""

from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

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


def _steps(
    job: Job, published: Published | None, *, complete: bool
) -> Iterator[Callable[[], Awaitable[object]]]:
    if published and not job.settings.guard.dry_run:
        yield partial(job.deliver, published)
        if job.settings.submit.submit and complete:
            yield job.submit
    yield job.check_links


async def after_publication(
    job: Job, published: Published | None, scope: anyio.CancelScope, *, complete: bool
) -> Afterwards:
    """Does what the settings ask for after a publication, until `scope` is cancelled. `complete`: the crawl was.

    Links to other sites are also checked if nothing was published.
    """
    if received.first:
        return Afterwards()
    errors: list[CrawlerError] = []
    with scope:
        for step in _steps(job, published, complete=complete):
            try:
                await step()
            except CrawlerError as error:
                errors.append(error)
    return Afterwards(job.submitted, errors, scope.cancelled_caught)
