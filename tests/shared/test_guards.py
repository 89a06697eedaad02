"""The checks before a publication and after it, by several members: killed in the middle of them, and from night to night."""

import signal
from pathlib import Path

import pytest

from tests.postgres import new_state
from tests.server import Origin, Talk, http, page, serving
from tests.shared.members import Crew, Member
from tests.shared.sites import asked, files, words
from tests.waiting import until

pytestmark = pytest.mark.slow

GOOD = [f"/{number}" for number in range(40)]
BAD = [f"/bad-{number}/x" for number in range(20)]


class Site(Origin):
    """A site with places that fail. From the second request for a page on, it is the guard that asks."""

    def __init__(self, address: str) -> None:
        super().__init__("site", address)
        self.is_well = self.answers_again = True
        self.leader: Member | None = None  # is killed by the first question of the guard
        self.questions = 0
        self.put(
            "/", http(page(*(link for pair in zip(GOOD, BAD * 2, strict=True) for link in pair), text="home"))
        )
        for path in GOOD:
            self.put(path, self.good)
        for path in BAD:
            self.put(path, self.bad)

    def good(self, talk: Talk) -> None:
        if talk.count > 1 and not self.is_well:
            self.questions += 1
            if self.leader:
                self.leader.kill()
                self.leader = None
                talk.reset()
                return
            if not self.answers_again:
                talk.say(http("", "503 Service Unavailable"))
                return
        talk.say(http(page("/", text=talk.asked.path)))

    def bad(self, talk: Talk) -> None:
        status = "200 OK" if self.is_well else "500 Oh"
        talk.say(http(page("/", text=talk.asked.path), status))


@pytest.mark.parametrize("answers", [True, False])
def test_a_leader_killed_while_it_asks_the_site_is_replaced(
    members: Crew, tmp_path: Path, answers: bool
) -> None:
    site, state, out = Site("127.0.77.11"), new_state(), tmp_path / "out"
    with serving(site):
        site.is_well, site.answers_again = False, answers
        crawl = words(site, state, out, "--run", "first")
        leader = site.leader = members.start(crawl)
        asked(site, 5, [leader])
        follower = members.start(crawl)
        assert leader.wait() == -signal.SIGKILL, leader.said
        code = 0 if answers else 6
        assert follower.wait() == code, follower.said
        assert site.questions > 1
        assert len(files(out)) == answers
        late = members.start(crawl)
        assert late.wait() == code, late.said
        if not answers:
            assert "do not any more" in follower.said
            assert "For example: " in follower.said

        site.is_well = True
        night = [members.start(words(site, state, out, "--run", "second")) for _ in range(2)]
        assert [member.wait() for member in night] == [0, 0], [member.said for member in night]
        calm = members.start(words(site, new_state(), tmp_path / "calm"))
        assert calm.wait() == 0, calm.said
        assert files(out) == files(tmp_path / "calm"), "nothing is left over from the first night"


def test_a_folder_that_answers_429_stops_no_member(members: Crew, tmp_path: Path) -> None:
    site = Origin("site", "127.0.77.12")
    site.others = lambda path: (
        http("", "429 Slow down", Retry_After="1") if "/login/" in path else http(page("/", text=path))
    )
    posted = [f"/login/{number}" for number in range(12)]
    site.put("/", http(page(*(link for pair in zip(GOOD[:12], posted, strict=True) for link in pair), *GOOD)))
    with serving(site):
        calm = members.start(words(site, str(tmp_path / "s.db"), tmp_path / "calm", "--retries", "2"))
        assert calm.wait() == 0, calm.said
        state, out = new_state(), tmp_path / "out"
        crawl = words(site, state, out, "--run", "once", "--retries", "2", "--processes", "2")
        found = [members.start(crawl) for _ in range(2)]
        assert [member.wait() for member in found] == [0, 0], [member.said for member in found]
    assert files(out) == files(tmp_path / "calm")


@pytest.mark.parametrize(
    ("moment", "code"), [("before commit of store_answers", 0), ("after commit of store_answers", 6)]
)
def test_a_leader_killed_while_links_are_checked(
    members: Crew, tmp_path: Path, moment: str, code: int
) -> None:
    home, there = Origin("home", "127.0.77.13"), Origin("there", "127.0.77.14")
    home.others = lambda path: http(page("/", text=path))
    there.put("/ok", http("fine"))
    more = ["--check-external", "--allow-address", "127.0.77.0/24", "--min-urls"]
    with serving(home, there):
        home.put("/", http(page(*GOOD, there.url("/ok"))))
        state, out = new_state(), tmp_path / "out"
        crawl = [*words(home, state, out, "--run", "first")]
        crawl = [*crawl[: crawl.index("--allow-host")], *crawl[crawl.index("--allow-host") + 2 :], *more]
        leader = members.start([*crawl, "100" if code else "1"], moment)
        asked(home, 5, [leader])
        follower = members.start([*crawl, "100" if code else "1"])
        assert leader.wait() == -signal.SIGKILL, leader.said
        assert follower.wait() == code, follower.said
        assert len(files(out)) == (not code)

        crawl[crawl.index("first")] = "second"
        second = members.start([*crawl, "1"])
        assert second.wait() == 0, second.said
        is_stored = moment.startswith("after")
        assert there.counts()["/ok"] == (1 if is_stored else 2), "what was stored is not asked again"
        crawl[crawl.index("second")] = "third"
        third = members.start([*crawl, "1", "--fail-on", "broken-external"])
        assert third.wait() == 0, third.said
        assert there.counts()["/ok"] == (2 if is_stored else 3), "a check that ended is made anew"
        until(lambda: len(files(out)) == 1)
