"""What TLS and HTTP/2 cost beside plain HTTP/1.1: the same crawl of the PostgreSQL manual over each, in turn.

    sudo apt-get install --no-install-recommends nginx-light postgresql-doc-15 openssl
    .venv/bin/python benchmarks/protocols.py            # --runs 5

nginx serves the site on loopback, with a certificate of its own. Prints the median CPU of a page (start included) and the
median of the ratios of each round.
"""

import argparse
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import real_sites

PORT = 8204
NAMES = {
    "HTTP/1.1": ["http://127.0.0.1:8201/"],
    "HTTP/1.1 over TLS": [f"https://127.0.0.1:{PORT}/", "--insecure"],
    "HTTP/2 over TLS": [f"https://127.0.0.1:{PORT}/", "--insecure", "--http2"],
}
CERTIFICATE = (
    "openssl req -x509 -newkey rsa:2048 -nodes -days 30 -subj /CN=localhost -keyout key.pem -out cert.pem"
)
SERVER = (
    "server {{ listen 127.0.0.1:{port} ssl http2; root {work}/pg; index index.html;"
    " ssl_certificate {work}/cert.pem; ssl_certificate_key {work}/key.pem; }}"
)


def serve(work: Path) -> None:
    """The site, plain and over TLS, from two servers."""
    real_sites.serve(work, ["pg"])
    subprocess.run(CERTIFICATE.split(), cwd=work, check=True, stderr=subprocess.DEVNULL)
    text = (work / "nginx.conf").read_text().replace("nginx.pid", "tls.pid")
    head = text[: text.index("server {")]
    (work / "tls.conf").write_text(head + SERVER.format(port=PORT, work=work) + "\n}\n")
    subprocess.run(["nginx", "-c", str(work / "tls.conf")], check=True, stderr=subprocess.DEVNULL)


def cost(words: list[str], folder: Path) -> float:
    """CPU seconds of a crawl."""
    shutil.rmtree(folder, ignore_errors=True)
    command = [sys.executable, "-m", "crawler", "crawl", *words, "--rate", "0", "--quiet"]
    command += ["--output", str(folder / "out"), "--state", str(folder / "state.db")]
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    if status:
        sys.exit(f"the crawl ended with {os.waitstatus_to_exitcode(status)}")
    return used.ru_utime + used.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=3)
    runs = parser.parse_args().runs
    work = Path(tempfile.mkdtemp(prefix="protocols-"))
    work.chmod(0o755)
    serve(work)
    try:
        cost(NAMES["HTTP/1.1"], work / "crawl")  # compiles what is imported
        rounds = [{name: cost(words, work / "crawl") for name, words in NAMES.items()} for _ in range(runs)]
        pages = len(list((work / "pg").rglob("*.html")))
        for name in NAMES:
            each = statistics.median(one[name] for one in rounds) / pages * 1e3
            ratio = statistics.median(one[name] / one["HTTP/1.1"] for one in rounds)
            print(f"{name}: {each:.2f} ms of CPU a page, {ratio:.2f} of HTTP/1.1")
    finally:
        for name in ("nginx.pid", "tls.pid"):
            os.kill(int((work / name).read_text()), signal.SIGTERM)
        shutil.rmtree(work, ignore_errors=True)


if __name__ == "__main__":
    main()
