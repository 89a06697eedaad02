"""Members that publish into an object store: one of them puts each publication, also when the leader is killed while it does."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.postgres import new_state
from tests.s3 import KEY, S3, SECRET, package, serving
from tests.server import Origin
from tests.shared.members import Crew, crew
from tests.shared.sites import words

package("obstore")
pytestmark = pytest.mark.slow


@pytest.fixture
def s3() -> Iterator[S3]:
    with serving() as store:
        store.new_bucket()
        yield store


@pytest.fixture
def members(s3: S3, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Crew]:
    """Members that know the store."""
    monkeypatch.setenv("AWS_ENDPOINT_URL", s3.address)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", KEY)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    with crew(tmp_path / "members") as found:
        yield found


def published(s3: S3) -> dict[str, bytes]:
    return {
        name.rpartition("/")[2]: s3.ask("GET", name)[0]
        for name in s3.objects()
        if not name.endswith("manifest.json")
    }


def as_files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.glob("*.xml*")}


def to_store(site: Origin, s3: S3, state: str) -> list[str]:
    command = words(site, state, Path("x"), "--run", "once")
    command[command.index("-o") + 1] = f"s3://{s3.bucket}/p"
    return command


def test_members_publish_into_bucket_what_one_process_writes(
    site: Origin, alone: Path, members: Crew, s3: S3
) -> None:
    command = to_store(site, s3, new_state())
    crawled = [members.start(command) for _ in range(3)]
    assert [member.wait() for member in crawled] == [0, 0, 0], [member.said for member in crawled]
    assert published(s3) == as_files(alone / "0")
    keys = [request.key for request in s3.log if request.method == "PUT" and "sitemap" in request.key]
    assert len(keys) == len(set(keys)) == len(published(s3)), "each file is put once, by one member"


def test_a_leader_killed_while_it_puts_is_replaced(site: Origin, alone: Path, members: Crew, s3: S3) -> None:
    command = to_store(site, s3, new_state())
    leader = members.start(command, "after put of sitemap-00002.xml.gz")
    assert leader.wait() == -9, leader.said
    assert "sitemap.xml.gz" not in published(s3)
    others = [members.start(command) for _ in range(2)]
    assert [member.wait() for member in others] == [0, 0], [member.said for member in others]
    assert published(s3) == as_files(alone / "0")
