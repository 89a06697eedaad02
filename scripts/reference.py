"""Writes config/example.toml and docs/use/settings.md from the program itself. A test tells when to run it.

.venv/bin/python scripts/reference.py
"""

import json
from pathlib import Path

from crawler.cli.options import HEADINGS
from crawler.parse.normalise import TRACKING
from crawler.settings.option import Setting
from crawler.settings.sections import keys
from crawler.settings.tables import RULE_KEYS, SECTION_KEYS, PageRule

ROOT = Path(__file__).resolve().parent.parent

EXAMPLE = """\
# Every setting of sitemap-crawler, with its default. Remove the # before a line to change it.
#
#     sitemap-crawler crawl --config example.toml
#
# The same names work as flags (--max-depth) and in the environment (SITEMAP_CRAWLER_MAX_DEPTH).
# Precedence: flag > environment > this file > default. `sitemap-crawler config` shows the effective values.
# Secrets do not belong here: auth-env names the variable that holds one.
# Several sites: tables [[site]] at the end, each with a name, a start and any of these settings.
"""

REFERENCE = """\
# Settings

Every setting is a flag of `crawl`, a key in a TOML file (`--config`, `SITEMAP_CRAWLER_CONFIG`) and a variable.
`--config` and `--site` are no keys.
Precedence: flag > environment > file > default.
`--no-images` switches off what a file switches on.
A flag that has no effect is refused, as `--browser` without `--render`; of two values, the last counts.
`sitemap-crawler config` shows each value and where it came from.
Several values are a list in TOML, and separated by blanks in the environment, quoted as in a shell.
Types, rules, traps, hosts and networks may also be separated by commas: `--types html,pdf`.

In commands that print, `--format` is `text`, `json` (one document), `jsonl` (one object a line: each item of a list, then what else the document has) or `csv` (a row for each item).
In `crawl` and `export`, it is the format of the sitemap files.

Sizes are bytes, or `10MB`, `512KiB`; times are seconds, or `30m`, `2h`; shares are `20%` or `0.2`.
A pattern is a glob on all of path and query (`/blog/*`), or `re:` and a regex to search (`re:\\.pdf$`).
"""

TABLE_KEYS = {"rule": RULE_KEYS, "section": SECTION_KEYS}

RULES = """\
There is no flag; `SITEMAP_CRAWLER_RULE` takes a JSON array.
[how-to.md](how-to.md#treat-pages-by-pattern) has examples.
"""

SECTIONS = """\
There is no flag; `SITEMAP_CRAWLER_SECTION` takes a JSON array.
[how-to.md](how-to.md#split-the-sitemap-by-section) has an example.
"""

AFTER = {"rule": RULES, "section": SECTIONS}

TRACKED = """\
## Tracking parameters

Dropped from every URL unless `--keep-param` names them (`*` ends a prefix):
"""

COLUMNS = "| setting | default | what it does |\n|---|---|---|\n"


def example() -> str:
    lines, section = [EXAMPLE], ""
    for key in keys():
        if key.section != section:
            section = key.section
            if key.option.kind.tables:
                lines.append(_tables(key))
                continue
            lines.append(f"\n{key.heading} # {HEADINGS[section]}\n")
        lines.append(f"\n# {_what(key)}\n# {key.name} = {_toml(key)}\n")
    return "".join(lines)


def _tables(key: Setting) -> str:
    """Commented as a whole: a table without its keys would be wrong."""
    rows = [
        f"\n# {text}\n# {name} = {json.dumps(sample)}\n"
        for name, (_, sample, text) in TABLE_KEYS[key.name].items()
    ]
    return f"\n# {key.heading} # {HEADINGS[key.section]}: {key.option.help}; repeatable\n{''.join(rows)}"


def _toml(key: Setting) -> str:
    if key.default is None:
        return _SAMPLES.get(key.field, '""')
    if isinstance(key.default, tuple):
        return json.dumps(list(key.default) or [_SAMPLES[key.field]])
    is_time = key.option.kind.metavar == "TIME"
    return json.dumps(key.option.kind.show(key.default) if is_time else key.default)


# What a setting without a default may look like.
_SAMPLES = {
    "allow_trap": "calendar",
    "lastmod_ignore": ".visitors",
    "start": "https://example.com/",
    "allow_host": "static.example.com",
    "include": "/blog/*",
    "exclude": "/search*",
    "no_fetch": "*.pdf",
    "no_list": "/tag/*",
    "max_depth": "5",
    "recipe": "wordpress",
    "max_pages": "10000",
    "budget": "2000",
    "max_time": '"2h"',
    "input": "urls.txt",
    "strip_param": "ref",
    "keep_param": "utm_id",
    "header": "X-Environment: staging",
    "header_for": "api.example.com X-Token: 2c1a",
    "client_cert": '"client.pem"',
    "client_key": '"client.key"',
    "auth_env": '"SITE_LOGIN"',
    "cookie_file": '"cookies.txt"',
    "browser": '"/usr/bin/chromium"',
    "proxy": '"http://proxy.example.com:3128"',
    "ca_file": '"company-ca.pem"',
    "allow_address": "10.0.0.0/8",
    "no_rule": "canonical",
    "min_urls": "100",
    "report": "report.html",
    "metrics_file": '"/var/lib/node_exporter/sitemap-example.prom"',
    "metrics_port": '"9464"',
    "every": '"24h"',
    "webhook_env": '"SITEMAP_WEBHOOK"',
    "fail_on": "new:broken-link",
    "cache_control": '"public, max-age=3600"',
    "changefreq": '"weekly"',
    "priority": "0.5",
    "publish_base": '"https://www.example.com"',
    "publish_command": "'rsync -a sitemaps/ web:/var/www/html/'",
    "indexnow_key": '"0f3c9a51d2e84b7690c1a2b3c4d5e6f7"',
    "indexnow_key_location": '"https://www.example.com/indexnow/key.txt"',
    "state": '"state/example.com.db"',
    "run": '"nightly-2026-11-22"',
}


def reference() -> str:
    lines, section = [REFERENCE], ""
    for key in keys():
        if key.section != section:
            section = key.section
            lines.append(f"\n## {HEADINGS[section]} · `{key.heading}`\n\n{COLUMNS}")
        if key.option.kind.tables:
            rows = TABLE_KEYS[key.name].items()
            lines += [f"| `{name}` | {_default_of(name)} | {text} |\n" for name, (_, _, text) in rows]
            lines.append(f"\n{AFTER[key.name]}")
            continue
        lines.append(f"| `{_flag(key)}` | {_default(key)} | {_what(key)} |\n")
    names = " ".join(f"`{name}`" for name in sorted(TRACKING))
    lines.append(f"\n{TRACKED}{names}\n")
    return "".join(lines)


def _default_of(name: str) -> str:
    default = getattr(PageRule(""), name, None)
    return "none" if default in (None, "") else f"`{json.dumps(default)}`"


def _flag(key: Setting) -> str:
    if not key.option.flag:
        return "URL…"
    flag = f"--{key.name}" + (f"/--no-{key.name}" if key.default is True else "")
    return f"{key.option.short}, {flag}" if key.option.short else flag


def _default(key: Setting) -> str:
    return f"`{key.option.kind.show(key.default)}`" if key.default not in (None, ()) else "none"


def _what(key: Setting) -> str:
    choices = key.option.kind.choices
    return key.option.help + (f" ({', '.join(choices)})" if choices else "")


if __name__ == "__main__":
    (ROOT / "config" / "example.toml").write_text(example(), encoding="utf-8")
    (ROOT / "docs/use/settings.md").write_text(reference(), encoding="utf-8")
