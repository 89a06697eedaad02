"""Crawls real documentation sites, and compares the sitemap with an independent reading of their files.

    sudo apt-get install --no-install-recommends nginx-light postgresql-doc-15 openjdk-17-doc
    .venv/bin/python benchmarks/real_sites.py            # both sites; `pg` or `jdk` for one

nginx serves a copy of each site on loopback. The truth is a walk over the files on disk with lxml: every page that
is reachable from / by <a> and <area>, with the date of its file. Prints, for each site: pages, what is missing or
too much, wrong dates, pages without one (all, where the files were built in the last 60 days), wall seconds, CPU
seconds, and the peak memory of the crawler's processes together: the sum of what is resident, shared pages counted
once, looked at fifty times a second.
With --kill SECONDS the crawl is killed (SIGKILL) after that time and run again; the bytes must be the same.
"""

import argparse
import gzip
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import quote, unquote, urljoin, urlsplit, urlunsplit

import lxml.html

DOC = Path("/usr/share/doc")
SITES = {
    "pg": ("PostgreSQL 15 manual", 8201, DOC / "postgresql-doc-15/html"),
    "jdk": ("OpenJDK 17 API", 8202, DOC / "openjdk-17-jre-headless/api"),
}
NGINX = """\
user {user}; worker_processes 1; daemon on; pid {work}/nginx.pid; error_log {work}/error.log crit;
events {{ worker_connections 1024; }}
http {{
    types {{ text/html html htm; text/css css; application/javascript js; image/png png; image/svg+xml svg; }}
    default_type application/octet-stream; charset utf-8; access_log off; sendfile on; tcp_nodelay on; gzip_static on;
    open_file_cache max=400 inactive=1m; open_file_cache_valid 1m;
    client_body_temp_path {work}/t1; proxy_temp_path {work}/t2; fastcgi_temp_path {work}/t3;
    uwsgi_temp_path {work}/t4; scgi_temp_path {work}/t5;
    {servers}
}}
"""


def serve(work: Path, names: list[str]) -> None:
    """A private copy of each site (links followed, times kept), behind nginx."""
    servers = []
    for name in names:
        _, port, source = SITES[name]
        if not (work / name).exists():
            shutil.copytree(source, work / name)
        for file in (work / name).rglob("*.html"):  # once, so that compressing costs the server nothing
            packed = file.with_name(file.name + ".gz")
            packed.write_bytes(gzip.compress(file.read_bytes(), 5, mtime=0))
            os.utime(packed, (file.stat().st_mtime,) * 2)
        servers.append(f"server {{ listen 127.0.0.1:{port}; root {work / name}; index index.html; }}")
    user = subprocess.check_output(["id", "-un"], text=True).strip()
    conf = work / "nginx.conf"
    conf.write_text(NGINX.format(user=user, work=work, servers="\n    ".join(servers)))
    subprocess.run(["nginx", "-c", conf], check=True)


def file_of(root: Path, path: str) -> tuple[Path | None, str | None]:
    """What nginx answers for a path: a page, a redirect to the folder, or neither."""
    file = Path(os.path.normpath(root / unquote(path).lstrip("/")))
    if not file.is_relative_to(root):
        return None, None
    if file.is_dir():
        return (file / "index.html", None) if path.endswith("/") else (None, path + "/")
    return (
        (file, None) if file.is_file() and file.suffix == ".html" and not path.endswith("/") else (None, None)
    )


def truth(root: Path, origin: str) -> dict[str, str]:
    """URL -> date of its file, by a reading of the files that shares nothing with the crawler."""
    start, pages, todo = origin + "/", {}, [origin + "/"]
    seen = {start}
    while todo:
        url = todo.pop()
        file, moved = file_of(root, urlsplit(url).path)
        found = [urlunsplit(urlsplit(url)._replace(path=moved))] if moved else []
        if file and file.is_file():
            at = datetime.fromtimestamp(int(file.stat().st_mtime), UTC)
            pages[url] = at.isoformat(timespec="seconds")
            found = links(file, url)
        for target in found:
            if target.startswith(start) and target not in seen:
                seen.add(target)
                todo.append(target)
    # A folder and its index page are the same file: one page, listed under the name of the folder.
    return {
        url: at for url, at in pages.items() if url.removesuffix("index.html") not in pages.keys() - {url}
    }


def links(file: Path, url: str) -> list[str]:
    doc = lxml.html.document_fromstring(
        file.read_bytes(), parser=lxml.html.HTMLParser(encoding="utf-8", huge_tree=True)
    )
    base = doc.find(".//base[@href]")
    base_url = url if base is None else urljoin(url, base.get("href"))
    found = []
    for element in doc.iter("a", "area"):
        try:
            parts = urlsplit(urljoin(base_url, element.get("href", "").strip()))
        except ValueError:
            continue
        path = quote(parts.path or "/", safe="/%:@!$&'()*+,;=~-._")
        found.append(urlunsplit(parts._replace(fragment="", path=path)))
    return found


def command(origin: str, folder: Path) -> list[str]:
    return [
        sys.executable, "-m", "crawler", "crawl", origin + "/", "--rate", "0", "--quiet",
        "--output", str(folder / "out"), "--state", str(folder / "state.db"),
    ]  # fmt: skip


def crawl(origin: str, folder: Path, kill: float | None) -> tuple[bytes, float, float, int]:
    """The sitemap, and wall seconds, CPU seconds and peak bytes of the whole crawl."""
    shutil.rmtree(folder, ignore_errors=True)
    began = time.monotonic()
    if kill:
        process = subprocess.Popen(command(origin, folder))
        time.sleep(kill)
        process.send_signal(signal.SIGKILL)
        process.wait()
    process = subprocess.Popen(command(origin, folder))
    ended, peak = 0, 0
    while not ended:
        time.sleep(0.02)
        peak = max(peak, sum(map(resident, family(process.pid))))
        ended, status, used = os.wait4(process.pid, os.WNOHANG)
    if status:
        sys.exit(f"the crawl ended with {os.waitstatus_to_exitcode(status)}")
    body = (folder / "out" / "sitemap.xml.gz").read_bytes()
    return body, time.monotonic() - began, used.ru_utime + used.ru_stime, peak


def family(number: int) -> list[int]:
    """A process and all below it."""
    try:
        children = Path(f"/proc/{number}/task/{number}/children").read_text().split()
    except OSError:  # it has ended
        children = []
    return [number, *(below for child in children for below in family(int(child)))]


def resident(number: int) -> int:
    """Bytes; of a page that several processes share, such as the interpreter's, a process has its share only (PSS)."""
    try:
        text = Path(f"/proc/{number}/smaps_rollup").read_text()
    except OSError:
        return 0
    return sum(int(line.split()[1]) * 1024 for line in text.splitlines() if line.startswith("Pss:"))


def entries(body: bytes) -> dict[str, str]:
    text = gzip.decompress(body).decode()
    return dict(re.findall(r"<loc>([^<]+)</loc>(?:<lastmod>([^<]+)</lastmod>)?", text.replace("&amp;", "&")))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("sites", nargs="*", default=list(SITES))
    parser.add_argument("--kill", type=float, metavar="SECONDS")
    chosen = parser.parse_args()
    work = Path(tempfile.mkdtemp(prefix="real-sites-"))
    serve(work, chosen.sites)
    try:
        for name in chosen.sites:
            title, port, _ = SITES[name]
            origin = f"http://127.0.0.1:{port}"
            expected = truth(work / name, origin)
            body, wall, cpu, peak = crawl(origin, work / f"{name}-crawl", None)
            got = entries(body)
            both = got.keys() & expected.keys()
            undated = sum(not got[url] for url in both)
            wrong = sum(got[url] != expected[url] for url in both) - undated
            print(
                f"{title}: {len(got):,} listed, {len(expected.keys() - got.keys())} missing, "
                f"{len(got.keys() - expected.keys())} too much, {wrong} wrong dates, {undated:,} none; {wall:.1f} s, "
                f"{len(got) / wall:,.0f} pages/s, {cpu / len(got) * 1e3:.2f} ms of CPU a page, peak {peak / 2**20:.0f} MB"
            )
            for url in sorted(expected.keys() ^ got.keys())[:10]:
                print("  ", "missing" if url in expected else "too much", url)
            if chosen.kill:
                again = crawl(origin, work / f"{name}-killed", chosen.kill)[0]
                print(
                    f"  killed after {chosen.kill:g} s and run again: {'the same bytes' if again == body else 'OTHER BYTES'}"
                )
    finally:
        os.kill(int((work / "nginx.pid").read_text()), signal.SIGTERM)
        shutil.rmtree(work, ignore_errors=True)


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_NOFILE, (4096, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    main()
