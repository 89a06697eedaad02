"""Where a connection may go."""

import socket
from ipaddress import ip_address

import pytest

from crawler.fetch.guard import AddressGuard, AddressRefused, NoAddress, is_public

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(
    "text",
    [
        "127.0.0.1",
        "10.0.0.1",
        "172.16.0.1",
        "192.168.1.1",
        "169.254.169.254",
        "100.64.0.1",
        "0.0.0.0",
        "255.255.255.255",
        "224.0.0.1",
        "192.0.2.1",
        "::1",
        "::",
        "fe80::1",
        "fc00::1",
        "ff02::1",
        "::ffff:127.0.0.1",
        "::ffff:10.0.0.1",
        "2002:7f00:1::1",
        "2002:a00:1::",
        "64:ff9b::7f00:1",
        "64:ff9b::a00:1",
        "2001:db8::1",
    ],
)
def test_what_is_not_global_is_refused_in_every_wrapping(text: str) -> None:
    assert not is_public(ip_address(text))


@pytest.mark.parametrize("text", ["1.1.1.1", "2606:4700::1111", "::ffff:1.1.1.1", "64:ff9b::101:101"])
def test_the_public_internet_is_not_refused(text: str) -> None:
    assert is_public(ip_address(text))


class Names:
    """A resolver that changes its mind."""

    def __init__(self, *answers: list[str] | OSError) -> None:
        self.answers = list(answers)
        self.asked = 0

    async def __call__(self, _host: str, port: int, **_: object) -> list[tuple[object, ...]]:
        self.asked += 1
        answer = self.answers.pop(0)
        if isinstance(answer, OSError):
            raise answer
        return [(0, 0, 0, "", (address, port)) for address in answer]


def resolver(monkeypatch: pytest.MonkeyPatch, *answers: list[str] | OSError) -> Names:
    names = Names(*answers)
    monkeypatch.setattr("anyio.getaddrinfo", names)
    return names


async def test_private_addresses_are_dropped_from_a_mixed_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    resolver(monkeypatch, ["10.0.0.1", "1.1.1.1", "1.1.1.1", "::1"])
    assert await AddressGuard().resolve("mixed.example", 80) == ["1.1.1.1"]


async def test_a_name_with_private_addresses_only_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    resolver(monkeypatch, ["10.0.0.1", "::1"])
    with pytest.raises(AddressRefused, match=r"evil\.example is 10\.0\.0\.1, ::1"):
        await AddressGuard().resolve("evil.example", 80)


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "169.254.169.254", "fe80::1%eth0"])
async def test_a_literal_address_is_checked_without_a_resolver(host: str) -> None:
    with pytest.raises(AddressRefused):
        await AddressGuard().resolve(host, 80)


async def test_what_a_start_host_resolves_to_first_is_exempt_and_stays_the_only_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = [0.0]
    resolver(monkeypatch, ["10.0.0.1"], ["10.0.0.1"], ["10.0.0.2"])
    guard = AddressGuard(["Intranet.example"], clock=lambda: now[0])
    assert await guard.resolve("intranet.example", 80) == ["10.0.0.1"]
    now[0] += 100
    assert await guard.resolve("intranet.example", 80) == ["10.0.0.1"]
    now[0] += 100
    with pytest.raises(AddressRefused):
        await guard.resolve("intranet.example", 80)


async def test_allowed_networks_are_let_through(monkeypatch: pytest.MonkeyPatch) -> None:
    resolver(monkeypatch, ["10.1.2.3", "10.2.0.1"])
    assert await AddressGuard(allowed=["10.1.0.0/16"]).resolve("x.example", 80) == ["10.1.2.3"]


async def test_an_answer_is_remembered_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    names = resolver(monkeypatch, ["1.1.1.1"], ["1.0.0.1"])
    guard = AddressGuard(clock=lambda: now[0])
    for _ in range(3):
        assert await guard.resolve("x.example", 80) == ["1.1.1.1"]
    assert names.asked == 1
    now[0] = 61
    assert await guard.resolve("x.example", 80) == ["1.0.0.1"]


@pytest.mark.parametrize(("number", "passing"), [(socket.EAI_AGAIN, True), (socket.EAI_NONAME, False)])
async def test_a_name_server_that_could_not_say_may_be_asked_again(
    monkeypatch: pytest.MonkeyPatch, number: int, passing: bool
) -> None:
    resolver(monkeypatch, socket.gaierror(number, "no"))
    with pytest.raises(NoAddress) as caught:
        await AddressGuard().resolve("x.example", 80)
    assert caught.value.passing is passing
