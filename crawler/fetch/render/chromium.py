"""Finds the browser of the system, which starts without a network, with a new profile, in its sandbox.

Requests go through the DevTools protocol to `tab`. Whatever got past that would meet a proxy that refuses
every connection and a resolver that knows no name, loopback included.
"""

import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from crawler.errors import ConfigError

NAMES: Final = (
    "chromium-headless-shell", "chromium", "chromium-browser", "chrome-headless-shell", "google-chrome",
    "google-chrome-stable",
)  # fmt: skip
HEAP: Final = 512  # megabytes of JavaScript objects of one page
DEAD_PROXY: Final = "http://127.0.0.1:1"  # tcpmux, a port that Chromium itself never connects to
# The last list counts, so that of playwright is repeated. Ours: Chromium, unlike its headless shell, has a
# window for each page, with an address bar whose own pages cost more than ours; and a process in reserve.
_WITHOUT: Final = (
    "AvoidUnnecessaryBeforeUnloadCheckSync", "DestroyProfileOnBrowserClose", "HttpsUpgrades",
    "HttpsFirstBalancedModeAutoEnable", "LensOverlay", "MediaRouter", "PaintHolding",
    "ThirdPartyStoragePartitioning", "AvoidCorsURLLoaderRestartOnRedirect", "TcpPortRandomizationWin",
    "OptimizationHints", "NetworkTimeServiceQuerying", "AimEnabled", "PreconnectToSearch",
    "msForceBrowserSignIn", "msEdgeUpdateLaunchServicesPreferredVersion",
    "WebUIOmniboxPopup", "WebUIOmniboxAimPopup", "WebUIOmniboxFullPopup", "SpareRendererForSitePerProcess",
)  # fmt: skip
ARGUMENTS: Final = (
    f"--disable-features={','.join(_WITHOUT)}",
    "--host-resolver-rules=MAP * ~NOTFOUND",
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--disable-quic",
    "--no-pings",
    "--disable-background-networking",
    "--disable-domain-reliability",
    "--disable-dev-shm-usage",
    "--blink-settings=imagesEnabled=false",
    "--mute-audio",
    f"--js-flags=--random-seed=1 --max-old-space-size={HEAP}",
)
"""In addition to those of playwright. The seed makes `Math.random` return the same numbers in every page."""
# What a browser needs of our environment, which may hold secrets.
_PLAIN: Final = (
    "PATH", "HOME", "TMPDIR", "LANG", "TZ", "LD_LIBRARY_PATH", "FONTCONFIG_PATH", "XDG_RUNTIME_DIR",
)  # fmt: skip


def find(named: str | None) -> str:
    """The path of the browser: `named`, or the one of the system. Raises `ConfigError`."""
    if find_spec("playwright") is None:
        raise ConfigError("--render needs the render extra: pip install 'sitemap-crawler[render]'.")
    if named is not None:
        found = shutil.which(named)
        if found is None:
            raise ConfigError(f"--browser: {named} is not a program that can be run.")
        return str(Path(found).absolute())
    for name in NAMES:
        if found := shutil.which(name):
            return found
    raise ConfigError(
        "--render needs a browser: apt-get install chromium-headless-shell, "
        "or name another Chromium with --browser PATH."
    )


def has_sandbox() -> bool:
    """Whether the browser's own sandbox can be used: it refuses to start as root with it."""
    return not (hasattr(os, "geteuid") and os.geteuid() == 0)


def environment(environ: Mapping[str, str] = os.environ) -> dict[str, str | float | bool]:
    """The environment of the browser: ours without secrets."""
    return {name: environ[name] for name in _PLAIN if name in environ}


# -- the driver ----------------------------------------------------------------------------------------------


# The driver passes on messages, nearly all of which is garbage at once: with a nursery of a megabyte and not
# 16 it takes 88 MB and not 110, in the same time.
LITTLE_GARBAGE: Final = "--max-semi-space-size=1"
STARTS: Final = 10.0  # seconds, at most


@contextmanager
def environment_of_driver(place: Path) -> Iterator[None]:
    """Processes that are started meanwhile keep their temporary files there, and Node.js little garbage.

    This process has chosen its own place before (`tempfile` remembers it).
    """
    options = os.environ.get("NODE_OPTIONS", "")
    home = os.environ.get("HOME") or str(place)  # without one, a user with no name cannot start Node.js
    new = {"HOME": home, "TMPDIR": str(place), "NODE_OPTIONS": f"{LITTLE_GARBAGE} {options}".strip()}
    if (node := os.environ.get("PLAYWRIGHT_NODEJS_PATH")) and not _takes(node, new["NODE_OPTIONS"]):
        new["NODE_OPTIONS"] = options
    before = {name: os.environ.get(name) for name in new}
    os.environ.update(new)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _takes(node: str, options: str) -> bool:
    """Whether a Node.js starts with these options: an old one refuses those that it does not know."""
    with suppress(OSError, subprocess.SubprocessError):
        given = os.environ | {"NODE_OPTIONS": options}
        subprocess.run([node, "-e", ""], env=given, capture_output=True, timeout=STARTS, check=True)  # noqa: S603 - the user's own program
        return True
    return False
