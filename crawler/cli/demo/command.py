"""`demo`: crawls a small built-in website, without network or arguments.

`--serve` only serves that website, for the commands of the tutorial.
"""

import errno
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from crawler.app.state import MEMORY
from crawler.cli.crawl import crawl_site
from crawler.cli.demo import demo_site, faults_site
from crawler.cli.interrupt import signalled
from crawler.cli.output import remark, suggested
from crawler.cli.summary import STDOUT
from crawler.errors import ConfigError, Exit
from crawler.settings.after_run import Report
from crawler.settings.object_url import is_object_url
from crawler.settings.sections import Settings

# --publish-base: the port on loopback differs in each run.
PUBLIC = {False: "https://lanterns.example", True: "https://tidewater.example"}
NAME = {False: "A small shop", True: "The site of a town, with many faults,"}
LAST_WORDS = """\
That was the demo: for each line above there is an example page in the site. Now crawl a site of your own:
  {command}
"""
RATE = 40.0  # requests per second: slow enough to watch, fast enough to wait for


@contextmanager
def _folder(settings: Settings, *, named: bool) -> Iterator[str]:
    """The output folder. A temporary one is kept if the summary names it and it is not empty."""
    if named:
        yield settings.output.output
        return
    folder = Path(tempfile.mkdtemp(prefix="sitemap-demo-"))
    try:
        yield str(folder)
    finally:
        if settings.log.quiet or not any(folder.iterdir()):
            shutil.rmtree(folder, ignore_errors=True)


def _report(settings: Settings, folder: str, *, named: bool) -> tuple[str, ...]:
    """The HTML report, beside the sitemap; none on stdout, or in a folder that does not stay."""
    if folder == STDOUT or (settings.log.quiet and not named):
        return ()
    Path(folder).mkdir(parents=True, exist_ok=True)
    return (str(Path(folder) / "report.html"),)


async def crawl_demo(settings: Settings, *, named: bool, faults: bool) -> Exit:
    """Serves the site and crawls it. `named`: --output was given; `faults`: that with the faults."""
    if is_object_url(settings.output.output):
        raise ConfigError("demo writes into a folder: leave --output out, or name one.")
    site = faults_site() if faults else demo_site()
    with _folder(settings, named=named) as folder, site.serve() as origin:
        if not settings.log.quiet:
            remark(f"{NAME[faults]} is served at {origin}/ while it is crawled.")
        code = await crawl_site(
            replace(
                settings,
                scope=replace(settings.scope, start=(origin + "/",)),
                pace=replace(settings.pace, rate=RATE, every=None),
                output=replace(settings.output, output=folder, publish_base=PUBLIC[faults]),
                report=Report(report=_report(settings, folder, named=named)),  # no metrics, no messages
                state=replace(settings.state, state=MEMORY),
            )
        )
    if not settings.log.quiet and settings.log.log_format == "text":
        remark(LAST_WORDS.format(command=suggested("crawl https://example.com/")))
    return code


async def serve_demo(port: int, *, faults: bool) -> Exit:
    """Serves the site on a port of 127.0.0.1 until a signal. Raises `ConfigError` if it cannot be used."""
    try:
        with (faults_site() if faults else demo_site()).serve(port=port) as origin:
            remark(f"{NAME[faults]} is served at {origin}/ until you press Ctrl-C.")
            await signalled()
    except OSError as error:
        if error.errno not in {errno.EADDRINUSE, errno.EACCES}:
            raise
        raise ConfigError(f"Port {port} cannot be used ({error.strerror}): choose another one.") from error
    return Exit.OK
