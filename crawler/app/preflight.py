"""Checks settings, once, before anything is opened or requested.

What a single value may be is checked by `settings`; here, whether settings fit each other and this machine.
"""

from crawler.app import report
from crawler.app.compose import check_extras
from crawler.app.descriptors import fitted
from crawler.app.settings_urls import sitemap_of
from crawler.errors import ConfigError
from crawler.parse.html import is_selector
from crawler.settings.load import checked
from crawler.settings.sections import Settings
from crawler.sitemap.publish.publish import check_settings


def preflight(settings: Settings) -> Settings:
    """The checked settings. Raises `ConfigError`, or `OutputError` if a report cannot be written."""
    settings = fitted(checked(settings))
    check_extras(settings)
    report.check(settings)
    check_settings(settings.output)
    if settings.submit.submit:
        from crawler.app import submission  # noqa: PLC0415 - most runs do not submit

        submission.check(settings)
    if settings.external.check_external and settings.urls.drop_query:
        raise ConfigError(
            "--check-external cannot be used with --drop-query, "
            "which also removes the queries of links to other sites."
        )
    sitemap_of(settings)
    for selector in settings.dates.lastmod_ignore:
        if not is_selector(selector):
            raise ConfigError(
                f"--lastmod-ignore: {selector!r} is not a CSS selector; give one as in .visitors or #clock."
            )
    return settings
