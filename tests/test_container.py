"""The container and the examples in config/: as far as they can be tried without an engine, a cluster or a boot."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
import tomllib
from collections.abc import Sequence
from pathlib import Path

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from crawler.cli.commands import cli
from crawler.cli.demo.site import Site
from crawler.cli.options import typed
from crawler.fetch.render import chromium
from crawler.frontier.postgres.address import parsed
from crawler.settings import load
from tests.cli.test_webhook import Receiver
from tests.sites import star

ROOT = Path(__file__).parent.parent
CONFIG = ROOT / "config"
DOCKERFILE = (ROOT / "Dockerfile").read_text()
PLAIN = DOCKERFILE.partition(" AS build-render")[0]  # what all images have
PROGRAM = [sys.executable, "-m", "crawler"]


def check(words: Sequence[str], environ: dict[str, str]) -> None:
    """A command line of ours, under these variables: every flag and value must be one the program takes."""
    command = cli.get_command(None, words[0])  # type: ignore[arg-type]  # a plain group needs no context
    assert command is not None, words
    context = command.make_context(words[0], list(words[1:]))
    load.resolve(None, environ, typed(context.params))


def instruction(name: str, text: str) -> str:
    """The last one of that name."""
    found: str = re.findall(rf"^{name} (.+?)(?<!\\)$", text, re.MULTILINE | re.DOTALL)[-1]
    return found.replace("\\\n", " ")


# -- the image -------------------------------------------------------------------------------------------


def test_last_stage_is_slim_and_runs_program_unprivileged() -> None:
    plain = re.sub(r"@sha256:[0-9a-f]+", "", DOCKERFILE)
    *_, last = stages = dict(stage.partition("\n")[::2] for stage in plain.split("\nFROM ")[1:])
    base = stages["python:3.13-slim AS base"]
    assert last == "base AS plain"
    assert stages[last] == "COPY --from=build /opt/crawler /opt/crawler\n"
    for stage in (base, stages["base AS render"]):
        assert re.fullmatch(r"[1-9]\d+:[1-9]\d+", instruction("USER", stage)), (
            "a number, so that runAsNonRoot can see it"
        )
    assert json.loads(instruction("VOLUME", base)) == ["/state", "/output"]
    assert instruction("STOPSIGNAL", base) == "SIGTERM"
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    assert json.loads(instruction("ENTRYPOINT", base))[0] in scripts
    assert [name for name, stage in stages.items() if "apt-get" in stage] == ["base AS render"]
    assert "uninstall --yes pip" in base


def test_stage_with_browser_has_extra_and_browser_that_is_found() -> None:
    render = DOCKERFILE.partition("FROM base AS render\n")[2].partition("\nFROM ")[0]
    assert any(f" {name} " in render for name in chromium.NAMES)
    assert "COPY --from=build-render" in render
    assert "--requirement .ci/image-render.txt" in DOCKERFILE
    environ = dict(pair.split("=", 1) for pair in shlex.split(instruction("ENV", render)))
    check(["crawl", "https://example.com/"], environ)


def test_variables_and_commands_in_the_image_are_valid() -> None:
    base = DOCKERFILE.partition("FROM base AS render")[0]
    environ = dict(pair.split("=", 1) for pair in shlex.split(instruction("ENV", base)))
    program, *words = json.loads(instruction("HEALTHCHECK", DOCKERFILE).partition("CMD ")[2])
    assert program == "sitemap-crawler"
    check(words, environ)
    check(["crawl", "https://example.com/"], environ)


def test_copied_files_are_not_ignored() -> None:
    lines = (ROOT / ".dockerignore").read_text().splitlines()
    let_through = {line[1:] for line in lines if line.startswith("!")}
    build = DOCKERFILE.rpartition("\nFROM ")[0]
    copied = {
        word
        for line in re.findall(r"^COPY (?!--from)(.+)$", build, re.MULTILINE)
        for word in line.split()[:-1]
    }
    assert "*" in lines
    assert copied == let_through
    assert all((ROOT / name).exists() for name in copied)


@pytest.mark.slow
def test_nothing_is_written_outside_state_and_output(tmp_path: Path) -> None:
    """What makes a read-only root possible."""
    elsewhere = {name: tmp_path / name for name in ("HOME", "TMPDIR", "cwd")}
    for folder in elsewhere.values():
        folder.mkdir()
    site = star("/a")
    environ = os.environ | {
        "HOME": str(elsewhere["HOME"]),
        "TMPDIR": str(elsewhere["TMPDIR"]),
        "PYTHONPATH": str(ROOT),
        "PYTHONDONTWRITEBYTECODE": "1",
        "SITEMAP_CRAWLER_STATE": str(tmp_path / "state/crawl.db"),
        "SITEMAP_CRAWLER_OUTPUT": str(tmp_path / "output"),
    }
    with site.serve() as origin:
        words = [*PROGRAM, "crawl", origin + "/", "--rate", "0", "--log-format", "json"]
        done = subprocess.run(
            words, cwd=elsewhere["cwd"], env=environ, capture_output=True, text=True, check=False
        )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "output/sitemap.xml.gz").exists()
    assert [list(folder.iterdir()) for folder in elsewhere.values()] == [[], [], []]
    assert all(json.loads(line) for line in done.stderr.splitlines())


@pytest.mark.slow
def test_healthcheck_distinguishes_hung_crawl_from_running_one(tmp_path: Path) -> None:
    state = tmp_path / "crawl.db"

    def healthy(seconds: str) -> int:
        words = [*PROGRAM, "status", "--state", str(state), "--alive", seconds]
        return subprocess.run(words, cwd=ROOT, capture_output=True, check=False).returncode

    site = star("/a", "/b")
    crawl = [*PROGRAM, "crawl", "--rate", "0", "--state", str(state), "-o", str(tmp_path / "out")]
    assert healthy("60") == 3, "there is no state yet"
    with site.serve() as origin:
        partial = subprocess.run(
            [*crawl, origin + "/", "--max-pages", "1"], cwd=ROOT, capture_output=True, check=False
        )
        assert partial.returncode == 7
        assert healthy("60") == 0, "worked on a moment ago"
        old = time.time() - 100
        os.utime(state.with_name("crawl.db.lock"), (old, old))
        assert healthy("60") == 0, "it ended at a limit, and --every begins the next session"

        def crash(_: object) -> object:
            process.kill()
            return Site.answer()

        site.respond("/b", crash)
        with subprocess.Popen([*crawl, origin + "/"], cwd=ROOT, stderr=subprocess.DEVNULL) as process:
            pass
        assert healthy("60") == 0, "worked on a moment ago"
        os.utime(state.with_name("crawl.db.lock"), (old, old))
        assert healthy("60") == 8, "unfinished, and nobody works on it"
        site.page("/b")
        subprocess.run([*crawl, origin + "/"], cwd=ROOT, capture_output=True, check=True)
        os.utime(state.with_name("crawl.db.lock"), (old, old))
        assert healthy("60") == 0, "nothing is left to do"


# -- the examples ----------------------------------------------------------------------------------------


def test_the_cron_job_runs_one_at_a_time_without_privileges() -> None:
    claim, job = yaml.safe_load_all((CONFIG / "kubernetes-cronjob.yaml").read_text())
    assert (claim["kind"], job["kind"], job["apiVersion"]) == ("PersistentVolumeClaim", "CronJob", "batch/v1")
    assert job["spec"]["concurrencyPolicy"] == "Forbid"
    pod = job["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    [container] = pod["containers"]
    assert pod["restartPolicy"] == "Never", "podFailurePolicy asks for it"
    assert pod["terminationGracePeriodSeconds"] > 10
    assert pod["securityContext"]["runAsUser"] == int(instruction("USER", DOCKERFILE).partition(":")[0])
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    environ = {item["name"]: item["value"] for item in container["env"]}
    check([str(word) for word in container["args"]], environ)
    check(container["livenessProbe"]["exec"]["command"][1:], environ)
    mounts = {mount["mountPath"]: mount["name"] for mount in container["volumeMounts"]}
    assert {volume["name"] for volume in pod["volumes"]} == set(mounts.values())
    assert all(any(path.startswith(mount) for mount in mounts) for path in environ.values())
    rules = job["spec"]["jobTemplate"]["spec"]["podFailurePolicy"]["rules"]
    assert rules[0]["onExitCodes"]["containerName"] == container["name"]


def test_the_compose_file_keeps_the_root_read_only() -> None:
    compose = yaml.safe_load((CONFIG / "compose.yaml").read_text())
    assert [service["profiles"] for service in compose["services"].values()] == [["nightly"], ["daily"]]
    for service in compose["services"].values():
        assert service["read_only"] is True
        assert service["pids_limit"] >= 64
        assert service["build"]["context"] == ".."
        assert service["cap_drop"] == ["ALL"]
        assert {mount.split(":")[1] for mount in service["volumes"]} == {"/state", "/output"}
        assert {mount.split(":")[0] for mount in service["volumes"]} == set(compose["volumes"])
        check(service["command"], service["environment"])
    assert compose["services"]["daily"]["restart"] == "always"


# -- every night -----------------------------------------------------------------------------------------


class Night:
    """The job of `config/compose.yaml` as its container runs it: its command, its variables, and the two volumes."""

    def __init__(self, folder: Path, site: str, webhook: str) -> None:
        service = yaml.safe_load((CONFIG / "compose.yaml").read_text())["services"]["sitemap-crawler"]
        image = dict(pair.split("=", 1) for pair in shlex.split(instruction("ENV", PLAIN)))
        given = image | service["environment"] | {"SITEMAP_WEBHOOK": webhook, "SITEMAP_CRAWLER_RATE": "0"}
        volumes = {mount.split(":")[1]: folder / mount.split(":")[0] for mount in service["volumes"]}
        for place, real in volumes.items():
            real.mkdir()
            given = {
                name: value.replace(place, str(real)) if value.startswith(place) else value
                for name, value in given.items()
            }
        self.output: Path = volumes["/output"]
        self._metrics = given["SITEMAP_CRAWLER_METRICS_FILE"]
        self._words = [word.replace("https://www.example.com/", site) for word in service["command"]]
        self._environ = os.environ | given | {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT)}

    def run(self) -> int:
        words = [*PROGRAM, *self._words, "--retries", "0"]
        return subprocess.run(words, env=self._environ, capture_output=True, check=False).returncode

    def metric(self, name: str, **labels: str) -> float:
        [value] = [
            sample.value
            for family in text_string_to_metric_families(Path(self._metrics).read_text())
            for sample in family.samples
            if sample.name == f"sitemap_crawler_{name}" and labels.items() <= sample.labels.items()
        ]
        return value

    def sitemap(self) -> bytes:
        return (self.output / "sitemap.xml.gz").read_bytes()


@pytest.mark.slow
def test_nights_of_the_scheduled_job(tmp_path: Path) -> None:
    """The first night, one after the site changed, one on which it is down, and one on which it is well again."""
    site = Site()
    hook = Receiver()
    site.page("/", links=[f"/{n}" for n in range(20)])
    for n in range(21):
        site.page(f"/{n}", text=f"<p>{n} has a text of its own</p>")
    with site.serve() as origin:
        port = int(origin.rpartition(":")[2])
        night = Night(tmp_path, origin + "/", hook.url)
        assert night.run() == 0
        first = night.sitemap()
        assert night.metric("sitemap_urls") == 21

        site.page("/", links=[f"/{n}" for n in range(21)] + ["/gone"])
        assert night.run() == 0
        second = night.sitemap()
        assert second != first
        assert night.metric("sitemap_urls") == 22
        assert night.metric("sitemap_changes", change="added") == 1
        assert night.metric("findings", code="broken-link") == 1
        success = night.metric("last_success_timestamp_seconds")
    assert night.run() == 4, "down"
    assert night.sitemap() == second
    assert night.metric("exit_code") == 4
    assert night.metric("last_success_timestamp_seconds") == success
    assert night.metric("last_completion_timestamp_seconds") > success
    assert night.metric("sitemap_urls") == 22
    with site.serve(port=port):
        assert night.run() == 0
    assert night.sitemap() == second, "nothing changed"
    assert night.metric("exit_code") == 0
    assert night.metric("last_success_timestamp_seconds") > success
    assert night.metric("last_publication_timestamp_seconds") < success
    hook.close()
    messages = [body["text"].splitlines() for body in hook.bodies]
    assert [lines[0].partition("` ")[2] for lines in messages] == [
        "is complete (exit 0)",
        "failed: the start URL is unreachable (exit 4)",
    ]
    assert messages[0][2:] == ["New errors: broken-link 1", f"• 404 `{origin}/gone`, linked from 1 page"]


def test_members_of_compose_file_share_database_key_and_output() -> None:
    compose = yaml.safe_load((CONFIG / "compose-many.yaml").read_text())
    db, service = compose["services"]["db"], compose["services"]["sitemap-crawler"]
    environ = service["environment"]
    alone = yaml.safe_load((CONFIG / "compose.yaml").read_text())["services"]["sitemap-crawler"]
    assert all(service[name] == alone[name] for name in ("read_only", "cap_drop", "security_opt", "tmpfs"))
    assert service["deploy"]["replicas"] == 3
    assert [mount.partition(":")[2].partition(" ")[0] for mount in service["volumes"]] == ["/output"]
    check(service["command"], environ)
    check(["status", "--alive", "120"], environ)  # of the image
    address = parsed(environ["SITEMAP_CRAWLER_STATE"])
    assert str(address) == "postgresql://db/crawls#www.example.com"
    assert environ["PGPASSWORD"] == db["environment"]["POSTGRES_PASSWORD"]
    assert environ["PGPASSWORD"].startswith("${DB_PASSWORD:?"), "not in the file"
    assert environ["SITEMAP_CRAWLER_RUN"].startswith("${RUN:?")


def test_pods_of_the_job_are_members_of_one_run() -> None:
    claim, job = yaml.safe_load_all((CONFIG / "kubernetes-job-many.yaml").read_text())
    assert (claim["spec"]["accessModes"], job["kind"]) == (["ReadWriteMany"], "Job")
    assert (job["spec"]["parallelism"], "completions" in job["spec"]) == (3, False)
    moved, elsewhere, final = job["spec"]["podFailurePolicy"]["rules"]
    assert (moved["action"], moved["onPodConditions"]) == ("Ignore", [{"type": "DisruptionTarget"}])
    assert (elsewhere["action"], elsewhere["onExitCodes"]["values"]) == ("Ignore", [3, 9])
    assert (final["action"], final["onExitCodes"]["values"]) == ("FailJob", [2, 5, 6, 7])
    pod = job["spec"]["template"]["spec"]
    [container] = pod["containers"]
    _, nightly = yaml.safe_load_all((CONFIG / "kubernetes-cronjob.yaml").read_text())
    alone = nightly["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    for name in ("restartPolicy", "securityContext", "automountServiceAccountToken"):
        assert pod[name] == alone[name]
    assert container["securityContext"] == alone["containers"][0]["securityContext"]
    environ = {item["name"]: item.get("value", "x") for item in container["env"]}
    sources = {item["name"]: item["valueFrom"] for item in container["env"] if "valueFrom" in item}
    assert sources["SITEMAP_CRAWLER_RUN"] == {
        "fieldRef": {"fieldPath": "metadata.labels['batch.kubernetes.io/job-name']"}
    }
    assert set(sources["PGPASSWORD"]) == {"secretKeyRef"}
    check([str(word) for word in container["args"]], environ)
    check(container["livenessProbe"]["exec"]["command"][1:], environ)
    address = parsed(environ["SITEMAP_CRAWLER_STATE"])
    assert str(address) == "postgresql://db.internal/crawls#www.example.com"
    assert "sslmode=verify-full" in address.conninfo
    mounts = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
    assert {volume["name"] for volume in pod["volumes"]} == set(mounts)
    assert environ["SITEMAP_CRAWLER_OUTPUT"] == mounts["output"]
    assert f"sslrootcert={mounts['ca']}/" in address.conninfo


def test_the_crontab_line_is_valid_shell() -> None:
    [line] = [line for line in (CONFIG / "crontab.example").read_text().splitlines() if line[:1].isdigit()]
    *when, command = line.split(maxsplit=5)
    assert all(re.fullmatch(r"[\d*/,-]+", field) for field in when)
    assert "%" not in command, "cron ends a line there"
    subprocess.run(["sh", "-n", "-c", command], check=True)


def unit(name: str) -> dict[str, list[str]]:
    pairs = re.findall(r"^(\w+)=(.*)$", (CONFIG / name).read_text(), re.MULTILINE)
    found: dict[str, list[str]] = {}
    for key, value in pairs:
        found.setdefault(key, []).append(value)
    return found


def test_the_service_runs_a_valid_command() -> None:
    service = unit("sitemap-crawler.service")
    program, *words = shlex.split(service["ExecStart"][0])
    assert program.endswith("/sitemap-crawler")
    check(words, dict(value.split("=", 1) for value in service["Environment"]))
    assert service["SuccessExitStatus"] == ["143"]


def test_systemd_accepts_the_units(tmp_path: Path) -> None:
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        if os.environ.get("CI"):
            pytest.fail("systemd-analyze is missing")
        pytest.skip("systemd-analyze is not here")
    for name in ("sitemap-crawler.service", "sitemap-crawler.timer"):
        text = re.sub(
            r"^ExecStart=\S+", "ExecStart=/bin/true", (CONFIG / name).read_text(), flags=re.MULTILINE
        )
        (tmp_path / name).write_text(text)
    units = [str(path) for path in tmp_path.iterdir()]
    done = subprocess.run([analyze, "verify", *units], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_service_writes_sitemap_where_web_server_can_read_it() -> None:
    service = unit("sitemap-crawler.service")
    environ = dict(value.split("=", 1) for value in service["Environment"])
    assert "DynamicUser" not in service, "its files lie below /var/lib/private, which is root's alone"
    assert environ["SITEMAP_CRAWLER_OUTPUT"] == "%S/sitemaps"
    assert "sitemaps" in service["StateDirectory"][0].split()
    assert service["StateDirectoryMode"] == ["0755"]
    assert service["UMask"] == ["0077"], "the state is for its user alone"


def test_the_service_is_sandboxed() -> None:
    service = unit("sitemap-crawler.service")
    for word in (
        "NoNewPrivileges",
        "RestrictNamespaces",
        "LockPersonality",
        "RestrictSUIDSGID",
        "PrivateUsers",
    ):
        assert service[word] == ["yes"], word
    assert service["SystemCallFilter"] == ["@system-service", "~@privileged"]
    assert "MemoryDenyWriteExecute" not in service, "ctypes and compiled modules may need it"
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        pytest.skip("systemd-analyze is not here")
    done = subprocess.run(
        [analyze, "security", "--offline=true", "--threshold=20", str(CONFIG / "sitemap-crawler.service")],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
