"""`export`: the sitemap that the crawl was told to write, again."""

import gzip
import json
import re
from pathlib import Path

import pytest

from crawler.cli.commands import cli
from crawler.cli.demo.site import Site
from crawler.cli.export import OF_THE_RUN
from crawler.settings.sections import keys
from tests.cli.test_cli import QUICK
from tests.commands import Run

RULES = '[[rule]]\nmatch = "/a"\npriority = 0.3\n'


def crawled(run: Run, *flags: str) -> str:
    site = Site()
    site.page("/", links=["/a"], text='<img src="/lamp.png" alt="">')
    site.page("/a")
    with site.serve() as origin:
        code, _, err = run("crawl", origin + "/", *QUICK, *flags)
    assert code == 0, err
    return origin


def text(folder: Path) -> str:
    return gzip.decompress((folder / "sitemap.xml.gz").read_bytes()).decode()


def test_export_writes_what_the_crawl_wrote(run: Run, tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text(RULES)
    flags = ("--config", "a.toml", "--changefreq", "daily", "--hreflang", "--images")
    origin = crawled(run, *flags)
    run.ok("export", origin, "-o", "again")
    again = text(tmp_path / "again")
    assert again == text(tmp_path / "sitemaps")
    assert "<changefreq>daily" in again
    assert "<priority>0.3" in again
    assert "lamp.png" in again


def test_flags_of_export_override_those_of_the_crawl(run: Run, tmp_path: Path) -> None:
    origin = crawled(run, "--format", "jsonl", "--no-gzip")
    run.ok("export", origin, "-o", "same")
    assert json.loads((tmp_path / "same/sitemap.jsonl").read_text().splitlines()[0])
    run.ok("export", origin, "-o", "xml", "--format", "xml", "--gzip", "--changefreq", "weekly")
    assert "<changefreq>weekly" in text(tmp_path / "xml")
    code, _, err = run("export", origin, "-o", "same", "--images")
    assert (code, "--images has no effect with --format txt or jsonl." in err) == (2, True)


def test_what_the_crawl_switched_on_can_be_switched_off(run: Run, tmp_path: Path) -> None:
    chosen = (
        "--changefreq",
        "daily",
        "--priority",
        "0.5",
        "--images",
        "--hreflang",
        "--no-gzip",
        "--stylesheet",
    )
    origin = crawled(run, *chosen)
    none = (
        "--changefreq",
        "none",
        "--priority",
        "none",
        "--no-images",
        "--no-hreflang",
        "--no-stylesheet",
        "--gzip",
    )
    run.ok("export", origin, "-o", "plain", *none)
    assert re.findall(r"<(\w+)", text(tmp_path / "plain")) == ["urlset", "url", "loc", "url", "loc"]
    assert "stylesheet" not in text(tmp_path / "plain")
    switches = {param.name for param in cli.commands["export"].params if getattr(param, "secondary_opts", ())}
    assert switches >= {
        key.field for key in keys() if key.name in OF_THE_RUN and isinstance(key.default, bool)
    }


def test_environment_overrides_settings_of_the_crawl(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    origin = crawled(run, "--images")
    monkeypatch.setenv("SITEMAP_CRAWLER_IMAGES", "false")
    run.ok("export", origin, "-o", "plain")
    assert "lamp.png" not in text(tmp_path / "plain")
