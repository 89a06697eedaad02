"""The commands: each resolves its settings and makes one call to the file of the command."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final

import click
from click.core import ParameterSource

from crawler.app import event_loop
from crawler.cli.completion import completion
from crawler.cli.options import (
    InOrder,
    SettingCommand,
    SettingOption,
    examples,
    format_option,
    settings_options,
    site_option,
    typed,
)
from crawler.cli.read_settings import (
    read_crawled,
    read_given,
    read_layers,
    read_origins,
    read_settings,
    read_sites,
)
from crawler.errors import Exit
from crawler.settings import load
from crawler.settings.sections import Settings

# Heavy modules (httpx, lxml, rich) are imported inside the commands, so that --help is fast.


def _run(call: Callable[[], Awaitable[int]]) -> int:
    from crawler.cli.interrupt import run  # noqa: PLC0415

    return run(call)


ONE_SITE: Final = frozenset({"user-agent", "timeout", "proxy", "ca-file", "insecure", "allow-address"})
"""Settings of commands that request a few URLs."""
SITEMAPS: Final = ONE_SITE | {
    "total-timeout", "auth-env", "header", "header-for", "client-cert", "client-key", "rate",
}  # fmt: skip
"""Settings of commands that read sitemaps."""


@click.group(cls=InOrder, context_settings={"max_content_width": 100})
@click.version_option(package_name="sitemap-crawler", prog_name="sitemap-crawler")
def cli() -> None:
    """Crawl a site and publish a sitemap that search engines can trust.

    To start:  sitemap-crawler crawl https://example.com/

    Without a network:  sitemap-crawler demo
    """


@cli.command(cls=SettingCommand, epilog=examples(
    "crawl https://example.com/",
    "crawl https://example.com/docs/ --scope path --output /var/www/html",
    "crawl http://127.0.0.1:8000/ --publish-base https://www.example.com --rate 0",
))  # fmt: skip
@click.argument("urls", nargs=-1, metavar="URL...")
@site_option
@settings_options(
    "scope", "urls", "pace", "http", "verdicts", "render", "dates", "output", "guard", "submit", "external",
    "report", "state", "log",
)  # fmt: skip
def crawl(urls: tuple[str, ...], **params: Any) -> int:
    """Crawl a site, then publish its sitemap.

    An unfinished crawl is resumed; a finished one is repeated with conditional requests, so unchanged pages
    are not downloaded.
    """
    with event_loop.loading():
        from crawler.cli.crawl import crawl_sites  # noqa: PLC0415

    sites = read_crawled(params, *urls)
    if sites[0].settings.pace.processes == 1:
        return event_loop.run(crawl_sites, sites)
    with event_loop.loading():
        from crawler.app.worker import forked_workers  # noqa: PLC0415

    with forked_workers(sites[0].settings.pace):
        return event_loop.run(crawl_sites, sites)


@cli.command(cls=SettingCommand, epilog=examples(
    "init",
    "init https://www.example.com/",
))  # fmt: skip
@click.argument("url", required=False)
@settings_options("http", only=ONE_SITE)
def init(url: str | None, **params: Any) -> int:
    """Write a short settings file, sitemap-crawler.toml, for a site.

    Looks at robots.txt and the first page. Asks five questions on a terminal, and takes the defaults
    elsewhere. Never overwrites a file.
    """
    from crawler.cli.init import init_site  # noqa: PLC0415

    return init_site(read_given(params), url)


@cli.command(cls=SettingCommand, epilog=examples(
    "demo",
    "demo --serve 8000",
    "demo --faults --output /tmp/tidewater",
))  # fmt: skip
@settings_options("log")
@click.option(
    "-o", "--output", metavar="TEXT", cls=SettingOption, section="output",
    help="folder for the sitemap files; - writes to stdout [default: a temporary folder]",
)  # fmt: skip
@click.option(
    "--serve", metavar="PORT", type=click.IntRange(1, 65_535), cls=SettingOption,
    help="only serve the website on this port of 127.0.0.1 until interrupted",
)  # fmt: skip
@click.option(
    "--faults", is_flag=True, cls=SettingOption,
    help="another website, which has nearly every fault that a report can show",
)  # fmt: skip
def demo(serve: int | None, faults: bool, **params: Any) -> int:
    """Crawl a small built-in website and show the result.

    Serves it on this machine, needs no network, and writes only to --output (by default a temporary folder).
    """
    from crawler.cli.demo.command import crawl_demo, serve_demo  # noqa: PLC0415

    if serve is not None and params["output"]:
        raise click.UsageError("--serve writes nothing: leave out --output.")
    if serve is not None:
        return event_loop.run(lambda: serve_demo(serve, faults=faults))
    given = typed(params)
    return event_loop.run(lambda: crawl_demo(read_given(params), named="output" in given, faults=faults))


@cli.command(cls=SettingCommand, epilog=examples(
    "status",
    "status https://example.com/",
    "status --state crawl.db --alive 120",
))  # fmt: skip
@click.argument("url", required=False)
@site_option
@settings_options("state", only=frozenset({"state"}))
@format_option
@click.option(
    "--alive", metavar="SECONDS", type=click.FloatRange(min=0), cls=SettingOption,
    help="for health checks: exit 8 if a crawl has not ended and made no progress for SECONDS",
)  # fmt: skip
def status(url: str | None, form: str, alive: float | None, **params: Any) -> int:
    """Show the progress of a crawl, from the saved state. Give the URL that was crawled, or --state."""
    from crawler.cli.status import show_status  # noqa: PLC0415

    return show_status(read_sites(params, url), alive, form=form)


@cli.command(cls=SettingCommand, epilog=examples(
    "explain https://example.com/about",
    "explain /about --all",
    "explain https://example.com/about --format json",
))  # fmt: skip
@click.argument("url")
@site_option
@settings_options(
    "urls", "output", "state",
    only=frozenset({"strip-param", "keep-param", "drop-query", "output", "state"}),
)  # fmt: skip
@format_option
@click.option(
    "--all", "every_link", is_flag=True, cls=SettingOption,
    help="show all pages that link to it, not only the first 20",
)  # fmt: skip
def explain(url: str, form: str, every_link: bool, **params: Any) -> int:
    """Show what is known about one URL, and why.

    Also names the pages that link to it. A path, such as /about, is one of the site of the state.
    """
    from crawler.cli.explain import show_url  # noqa: PLC0415
    from crawler.cli.typed_url import is_path  # noqa: PLC0415

    settings = read_settings(params, None if params["site"] or is_path(url) else url)
    return _run(lambda: show_url(settings, url, form=form, every_link=every_link))


@cli.command(cls=SettingCommand, epilog=examples(
    "report https://example.com/",
    "report --report report.html --report summary.md",
    "report --fail-on new:broken-link --format json",
))  # fmt: skip
@click.argument("url", required=False)
@site_option
@settings_options("report", "state", only=frozenset({"report", "fail-on", "state"}))
@format_option
@click.option(
    "--most", metavar="N", type=click.IntRange(min=0), cls=SettingOption,
    help="maximum items per finding; 0 shows all [default: 10; in files 100; CSV has all]",
)  # fmt: skip
def report(url: str | None, form: str, most: int | None, **params: Any) -> int:
    """Show what is wrong with the site, from the saved state.

    Broken links with the pages that link to them, redirect chains, stale sitemaps, duplicates and more, worst
    first; docs/use/report.md says what to do about each.
    """
    from crawler.cli.report import show_report  # noqa: PLC0415
    from crawler.cli.several import show_each  # noqa: PLC0415

    def show(one: Settings) -> int:
        return _run(lambda: show_report(one, form=form, most=most))

    return show_each(read_sites(params, url), show, form=form)


@cli.command("list", cls=SettingCommand, epilog=examples(
    "list links --only broken-link --format csv",
    "list links https://example.com/ --to /old-page",
    "list pages --fields url,outcome,lastmod --format jsonl",
))  # fmt: skip
@click.argument("what", type=click.Choice(["pages", "links", "images", "findings", "runs"]))
@click.argument("url", required=False)
@site_option
@settings_options("state", only=frozenset({"state"}))
@format_option
@click.option(
    "--only", metavar="OUTCOME|CODE", multiple=True, cls=SettingOption,
    help="only rows with this outcome (failed, unlisted:noindex) or finding (broken-link); for links, that "
    "of the target [repeatable]",
)  # fmt: skip
@click.option(
    "--fields", metavar="NAMES", default="", cls=SettingOption,
    help="fields to show, separated by commas [default: all; as text the main ones]",
)  # fmt: skip
@click.option(
    "--all-kinds", is_flag=True, cls=SettingOption,
    help="for links: also redirects and canonical URLs",
)  # fmt: skip
@click.option(
    "--to", metavar="URL", cls=SettingOption, help="for links: only those to this URL, or path of the site"
)
@click.option("--from", "from_", metavar="URL", cls=SettingOption, help="for links: only those on this page")
def list_(what: str, url: str | None, **params: Any) -> int:
    """List pages, links, images, findings or runs.

    One line each, from the saved state, for pipes, spreadsheets and databases: by URL, or for findings
    in the order of the report, with all pages of a group.
    """
    from crawler.cli.list import list_rows  # noqa: PLC0415

    chosen = {name: params.pop(name) for name in ("form", "only", "fields", "all_kinds", "to", "from_")}
    return _run(lambda: list_rows(read_settings(params, url), what, **chosen))


@cli.command(cls=SettingCommand, epilog=examples(
    "export https://example.com/",
    "export --state crawl.db --format txt --output -",
))  # fmt: skip
@click.argument("url", required=False)
@site_option
@settings_options(
    "dates", "output", "guard", "state", "log",
    but=frozenset({"allow-partial", "fresh", "keep-runs", "lastmod", "publish-command", "publish-timeout"}),
)  # fmt: skip
def export(url: str | None, **params: Any) -> int:
    """Write the sitemap from the saved state.

    Needs no network, and works for an unfinished crawl as well, with the pages found so far. What is written
    is as the crawl was told, unless flags say otherwise.
    """
    from crawler.cli.export import export_sitemap  # noqa: PLC0415

    return _run(lambda: export_sitemap(*read_layers(params, url)))


@cli.command(cls=SettingCommand, epilog=examples(
    "submit https://example.com/ --indexnow-key 0f3c9a51d2e84b76 --dry-run",
    "submit --indexnow-key 0f3c9a51d2e84b76 --all",
    "submit --new-key",
))  # fmt: skip
@click.argument("url", required=False)
@site_option
@settings_options("http", "pace", "output", "submit", "state", "log", only=ONE_SITE | {
    "total-timeout", "retries", "max-wait", "publish-base", "output", "file-mode", "indexnow-key",
    "indexnow-key-location", "indexnow-endpoint", "state", "quiet", "verbose",
})  # fmt: skip
@format_option
@click.option(
    "--dry-run", "dry", is_flag=True, cls=SettingOption, section="submit",
    help="list the URLs that are due, by change; send nothing",
)  # fmt: skip
@click.option(
    "--all", "everything", is_flag=True, cls=SettingOption, section="submit",
    help="submit all listed pages, also those that did not change",
)  # fmt: skip
@click.option(
    "--new-key", is_flag=True, cls=SettingOption, section="submit",
    help="only make a new key and its file in the output folder",
)  # fmt: skip
def submit(url: str | None, form: str, dry: bool, everything: bool, new_key: bool, **params: Any) -> int:
    """Tell search engines which pages changed, by IndexNow.

    Submits the pages that were added, removed, or changed in content since the last submission, from the
    saved state; a new date alone is not a change. The first submission sends nothing, it only records the
    listed pages. Google does not take part in IndexNow.
    """
    from crawler.cli.submit import make_key, submit_changes  # noqa: PLC0415

    settings = read_settings(params, url)
    if new_key and (dry or everything):
        raise click.UsageError("--new-key only writes a file: leave out --dry-run and --all.")
    if new_key:
        return _run(lambda: make_key(settings, form=form))
    return _run(lambda: submit_changes(settings, form=form, dry=dry, everything=everything))


@cli.command(cls=SettingCommand, epilog=examples(
    "validate ./sitemaps",
    "validate https://example.com/sitemap.xml --format json",
    "validate ./public --publish-base https://www.example.com",
))  # fmt: skip
@click.argument("places", nargs=-1, required=True, metavar="FILE|URL...")
@settings_options("http", "pace", "output", only=SITEMAPS | {"publish-base"})
@format_option
@click.option(
    "--most", metavar="N", type=click.IntRange(min=0), default=10, cls=SettingOption,
    help="maximum lines per kind of finding and file; 0 shows all [default: 10]",
)  # fmt: skip
def validate(places: tuple[str, ...], form: str, most: int, **params: Any) -> int:
    """Check sitemaps and sitemap indexes against the protocol.

    The sitemaps in an index are checked as well. Each finding has a place, a code and a sentence. For files
    on disk, --publish-base is the URL where they are served. Exit 8 if there is any finding.
    """
    from crawler.cli.validate import validate_sitemaps  # noqa: PLC0415

    return _run(lambda: validate_sitemaps(read_settings(params), places, form=form, most=most))


@cli.command(cls=SettingCommand, epilog=examples(
    "diff old.xml.gz sitemaps/sitemap.xml.gz",
    "diff https://example.com/sitemap.xml .sitemap-crawler/example.com.db",
))  # fmt: skip
@click.argument("old")
@click.argument("new")
@settings_options("http", "pace", "state", only=SITEMAPS | {"state"})
@format_option
def diff(old: str, new: str, form: str, **params: Any) -> int:
    """Show the differences between two sitemaps.

    OLD and NEW are files, folders, URLs, or state files of a crawl. Prints added (+) and removed (-) URLs,
    and changed dates (~). If NEW is a state file, or with --state, also the reason for each. Exit 8 if there
    is any difference.
    """
    from crawler.cli.diff import compare  # noqa: PLC0415

    return _run(lambda: compare(read_settings(params), old, new, form=form))


@cli.command(cls=SettingCommand, epilog=examples(
    "state list --state postgresql://crawler@db.internal/crawls",
    "state init www.example.com --state postgresql://admin@db.internal/crawls --owner crawler",
    "state drop https://www.example.com/ --state postgresql://crawler@db.internal/crawls",
))  # fmt: skip
@click.argument("what", type=click.Choice(["init", "upgrade", "list", "drop"]))
@click.argument("name", required=False, metavar="[NAME|URL]")
@settings_options("state", only=frozenset({"state"}))
@format_option
@click.option(
    "--owner", metavar="ROLE", cls=SettingOption,
    help="for init: the role that will own the tables, if it is not allowed to create them itself",
)  # fmt: skip
def state(what: str, name: str | None, form: str, owner: str | None, **params: Any) -> int:
    """Manage the crawls in a PostgreSQL database.

    Creates, upgrades, lists or drops their tables. A crawl creates its own tables, so init is only needed
    where its role is not allowed to. A crawl is given by its name or its start URL; upgrade without a name
    upgrades all of them.
    """
    from crawler.cli.state import run_state  # noqa: PLC0415

    return run_state(read_settings(params), what, name, owner, form=form)


@cli.command(cls=SettingCommand, epilog=examples(
    "robots 'https://example.com/search?q=lamp'",
    "robots https://example.com/ --user-agent Googlebot",
))  # fmt: skip
@click.argument("url")
@site_option
@settings_options("http", "state", only=ONE_SITE | {"state"})
@format_option
def robots(url: str, form: str, **params: Any) -> int:
    """Show whether robots.txt allows a URL, and which line decides.

    Also shows the sitemaps that it names and the one that was published last, each with what is at its URL
    now. A path is one of the crawled site.
    """
    from crawler.cli.robots import show_permit  # noqa: PLC0415
    from crawler.cli.typed_url import is_path  # noqa: PLC0415

    settings = read_settings(params, None if params["site"] or is_path(url) else url)
    return _run(lambda: show_permit(settings, url, form=form))


@cli.group(cls=InOrder, invoke_without_command=True, epilog=examples(
    "config",
    "config --config crawl.toml",
    "config --recipe wordpress",
))  # fmt: skip
@settings_options("scope", only=frozenset({"recipe"}))
@site_option
@format_option
@click.pass_context
def config(ctx: click.Context, /, form: str, **params: Any) -> int:
    """Show the effective settings, and where each comes from."""
    if ctx.invoked_subcommand:
        given = [name for name in ctx.params if ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE]
        if given != [name for name in given if name == "log_format"]:
            raise click.UsageError("config check takes only a FILE, and flags behind it.")
        return Exit.OK
    from crawler.cli.config import show_settings  # noqa: PLC0415

    return show_settings(read_origins(params), form)


@config.command(cls=SettingCommand, epilog=examples("config check", "config check crawl.toml"))
@click.argument("file", required=False)
@settings_options()
def check(file: str | None, **params: Any) -> int:
    """Check a settings file, by default sitemap-crawler.toml, and report the first error in it."""
    from crawler.app.sites import sites_of  # noqa: PLC0415
    from crawler.report.formatting import counted  # noqa: PLC0415

    path = Path(file or params["config"] or load.FILE)
    origins = load.resolve(path)[1]
    changed = [origin for origin in origins if origin.place != "default"]
    sites = [site for site in sites_of(path, {}, {}) if site.name]
    more = f", {counted(len(sites), 'site')}" if sites else ""
    click.echo(f"{path}: valid, {counted(len(changed), 'setting')}{more}.")
    return Exit.OK


cli.add_command(completion)
