"""Which addresses and ports a connection may use."""

import socket
from ipaddress import ip_address

import pytest

from crawler.fetch.address_guard import AddressGuard, AddressRefused, NoAddress, is_public
from crawler.fetch.bad_ports import BAD_PORTS

pytestmark = [pytest.mark.anyio, pytest.mark.both_loops]


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
        "64:ff9b:1:7f00:0:100:808:808",  # a network's own NAT64 prefix (/48): 127.0.0.1
        "64:ff9b:1::101:101",
        "2001:0:101:101::80ff:fffe",  # Teredo: a public server, and 127.0.0.1 as the client
        "2606:4700::5efe:a00:1",  # ISATAP: 10.0.0.1
        "2606:4700::200:5efe:7f00:1",
    ],
)
def test_non_global_address_is_refused_in_every_notation(text: str) -> None:
    assert not is_public(ip_address(text))


@pytest.mark.parametrize("text", ["1.1.1.1", "2606:4700::1111", "::ffff:1.1.1.1", "64:ff9b::101:101"])
def test_public_addresses_are_allowed(text: str) -> None:
    assert is_public(ip_address(text))


class Names:
    """A resolver that gives each of these answers once."""

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


async def test_private_addresses_are_dropped_from_mixed_dns_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    resolver(monkeypatch, ["10.0.0.1", "1.1.1.1", "1.1.1.1", "::1"])
    assert await AddressGuard().resolve("mixed.example", 80) == ["1.1.1.1"]


async def test_name_with_only_private_addresses_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    resolver(monkeypatch, ["10.0.0.1", "::1"])
    with pytest.raises(AddressRefused, match=r"evil\.example is 10\.0\.0\.1, ::1"):
        await AddressGuard().resolve("evil.example", 80)


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "169.254.169.254", "fe80::1%eth0"])
async def test_literal_address_is_checked_without_dns(host: str) -> None:
    with pytest.raises(AddressRefused):
        await AddressGuard().resolve(host, 80)


async def test_only_first_address_of_start_host_is_exempt(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = [0.0]
    resolver(monkeypatch, ["10.0.0.1"], ["10.0.0.1"], ["10.0.0.2"])
    guard = AddressGuard(["http://intranet.example/"], clock=lambda: now[0])
    assert await guard.resolve("Intranet.example", 80) == ["10.0.0.1"]
    now[0] += 100
    assert await guard.resolve("intranet.example.", 80) == ["10.0.0.1"]
    now[0] += 100
    with pytest.raises(AddressRefused):
        await guard.resolve("intranet.example", 80)


async def test_exemption_applies_to_start_host_name_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither a link to evil.example nor one to the address itself benefits from the exemption of the start host."""
    resolver(monkeypatch, ["10.0.0.1"], ["10.0.0.1"])
    guard = AddressGuard(["http://intranet.example/"])
    await guard.resolve("intranet.example", 80)
    for other in ("evil.example", "10.0.0.1", "[::ffff:10.0.0.1]"):
        with pytest.raises(AddressRefused):
            await guard.resolve(other.strip("[]"), 80)


@pytest.mark.parametrize(
    ("start", "allow_hosts", "port", "permitted"),
    [
        ("http://10.0.0.1/", (), 80, True),
        ("http://10.0.0.1/", (), 443, True),  # a site moves from http to https
        ("https://10.0.0.1/", (), 80, True),
        ("http://10.0.0.1/", (), 9200, False),
        ("http://10.0.0.1:8080/", (), 8080, True),
        ("http://10.0.0.1:8080/", (), 80, False),
        ("http://10.0.0.1:8080/", ("10.0.0.1:9200",), 9200, True),
        ("http://10.0.0.1:8080/", ("10.0.0.1",), 443, True),
        ("http://10.0.0.1:8080/", ("other:9200", "10.0.0.1:x", "[", ""), 9200, False),
    ],
)
async def test_other_ports_of_private_start_host_are_refused(
    start: str, allow_hosts: tuple[str, ...], port: int, permitted: bool
) -> None:
    guard = AddressGuard([start], allow_hosts=allow_hosts)
    if permitted:
        assert await guard.resolve("10.0.0.1", port) == ["10.0.0.1"]
        guard.check_literal("10.0.0.1", port)
        return
    with pytest.raises(AddressRefused, match=f"allow-host 10.0.0.1:{port}"):
        await guard.resolve("10.0.0.1", port)
    with pytest.raises(AddressRefused):
        guard.check_literal("10.0.0.1", port)


async def test_port_of_start_host_does_not_exempt_other_hosts() -> None:
    guard = AddressGuard(["http://10.0.0.1:8080/"], allow_hosts=["10.0.0.2:8080"])
    with pytest.raises(AddressRefused):
        await guard.resolve("10.0.0.2", 8080)


async def test_start_host_with_public_and_private_addresses_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    resolver(monkeypatch, ["1.1.1.1", "10.0.0.1"], ["10.0.0.1"], ["1.1.1.1"])
    guard = AddressGuard(["http://both.example/"])
    with pytest.raises(AddressRefused, match="resolves to both public and private addresses"):
        await guard.resolve("both.example", 80)
    with pytest.raises(AddressRefused):  # later answers exempt nothing
        await guard.resolve("both.example", 80)
    assert await guard.resolve("both.example", 80) == ["1.1.1.1"]


async def test_start_host_of_mixed_addresses_needs_allow_address(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    resolver(monkeypatch, ["1.1.1.1", "10.0.0.1"])
    guard = AddressGuard(["http://both.example/"], ["10.0.0.0/8"])
    assert await guard.resolve("both.example", 80) == ["1.1.1.1", "10.0.0.1"]


async def test_dns_rebinding_of_start_host_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    resolver(monkeypatch, ["1.1.1.1"], ["127.0.0.1"], ["1.1.1.1", "127.0.0.1"])
    guard = AddressGuard(["http://rebinding.example/"], clock=lambda: now[0])
    await guard.resolve("rebinding.example", 80)
    for _ in range(2):
        now[0] += 100
        with pytest.raises(AddressRefused):
            await guard.resolve("rebinding.example", 80)


@pytest.mark.parametrize("port", [0, 22, 25, 6000, 6667, 10080])
async def test_bad_ports_are_refused_even_if_address_is_allowed(port: int) -> None:
    """https://fetch.spec.whatwg.org/#port-blocking: an HTTP request may be a command of another protocol."""
    guard = AddressGuard([f"http://10.0.0.1:{port}/"], ["10.0.0.0/8"])
    for host in ("10.0.0.1", "1.1.1.1"):
        with pytest.raises(AddressRefused, match=f"port {port} is reserved for another protocol"):
            await guard.resolve(host, port)
    with pytest.raises(AddressRefused, match=f"port {port}"):
        guard.check_literal("public.example", port)


def test_bad_ports_match_fetch_standard() -> None:
    assert len(BAD_PORTS) == 83
    assert {80, 443, 8000, 8080, 8443, 3000} & BAD_PORTS == set()


@pytest.mark.parametrize("host", ["localhost", "app.localhost", "LOCALHOST.", "127.0.0.1", "::1"])
def test_localhost_is_not_requested_through_proxy(host: str) -> None:
    with pytest.raises(AddressRefused):
        AddressGuard(["http://public.example/"]).check_literal(host, 80)


@pytest.mark.parametrize(
    ("allowed", "port", "permitted"),
    [("10.0.0.0/8:8080", 8080, True), ("10.0.0.0/8:8080", 9200, False), ("10.0.0.1", 9200, True)],
)
async def test_network_may_be_allowed_for_one_port(allowed: str, port: int, permitted: bool) -> None:
    guard = AddressGuard(allowed=[allowed])
    if permitted:
        assert await guard.resolve("10.0.0.1", port) == ["10.0.0.1"]
    else:
        with pytest.raises(AddressRefused):
            await guard.resolve("10.0.0.1", port)


async def test_allowed_network_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    resolver(monkeypatch, ["10.1.2.3", "10.2.0.1"])
    assert await AddressGuard(allowed=["10.1.0.0/16"]).resolve("x.example", 80) == ["10.1.2.3"]


async def test_dns_answer_is_cached_for_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    names = resolver(monkeypatch, ["1.1.1.1"], ["1.0.0.1"])
    guard = AddressGuard(clock=lambda: now[0])
    for _ in range(3):
        assert await guard.resolve("x.example", 80) == ["1.1.1.1"]
    assert names.asked == 1
    now[0] = 61
    assert await guard.resolve("x.example", 80) == ["1.0.0.1"]


@pytest.mark.parametrize(("number", "transient"), [(socket.EAI_AGAIN, True), (socket.EAI_NONAME, False)])
async def test_temporary_dns_failure_is_transient(
    monkeypatch: pytest.MonkeyPatch, number: int, transient: bool
) -> None:
    resolver(monkeypatch, socket.gaierror(number, "no"))
    with pytest.raises(NoAddress) as caught:
        await AddressGuard().resolve("x.example", 80)
    assert caught.value.transient is transient
