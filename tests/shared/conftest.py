"""Sites, members, and what one process with a file publishes of a site."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.server import Origin, http, page, serving
from tests.shared.members import Crew, crew
from tests.shared.sites import files, put, words


@pytest.fixture(scope="session")
def site() -> Iterator[Origin]:
    here, there = Origin("here", "127.0.77.1"), Origin("there", "127.0.77.2")
    with serving(here, there):
        put(here, there)
        yield here


@pytest.fixture(scope="session")
def small() -> Iterator[Origin]:
    here = Origin("small", "127.0.77.5")
    here.put("/", http(page("/a", "/b", text="home")))
    for path in "/a", "/b":
        here.put(path, http(page("/", text=path), Last_Modified="Sat, 01 Nov 2025 00:00:00 GMT"))
    with serving(here):
        listed = f"<urlset><url><loc>{here.url('/c')}</loc></url></urlset>"
        here.put("/sitemap.xml", http(listed, Content_Type="application/xml"))
        here.put("/c", http(page("/", text="c")))
        yield here


@pytest.fixture
def members(tmp_path: Path) -> Iterator[Crew]:
    with crew(tmp_path / "members") as found:
        yield found


@pytest.fixture(scope="session")
def alone(site: Origin, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What one process with a file publishes, in the folder `0`."""
    folder = tmp_path_factory.mktemp("alone")
    with crew(folder / "members") as found:
        member = found.start(words(site, str(folder / "state.db"), folder / "0"))
        assert member.wait() == 0, member.said
    assert files(folder / "0")
    return folder
