"""The text of a robots.txt, and which of its lines decides for one agent and one path. Pure.

RFC 9309 rules; where it leaves room (spelling mistakes, a forgotten colon) we read what Google's parser reads.
Any bytes may come in: a line that says nothing is passed over (2.3.1.5), nothing raises, reading takes time in
proportion to the file, and matching in proportion to the path (see `rule_index`).
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from crawler.parse.robots_index import END, Rule, RuleIndex, TooMuchWork

LIMIT: Final = 500 * 1024
"""Bytes of a robots.txt that count (RFC 9309 2.5)."""

_SHOWN: Final = 200  # bytes of a line that are kept to be shown
_NAMED: Final = 5  # lines that are named in a list of them
INTRICATE: Final = "rules too complex for this URL; to be safe, it is not fetched"

_NAMES: Final = {
    spelling: name
    for name, spellings in {
        "user-agent": (b"user-agent", b"useragent", b"user agent"),
        "allow": (b"allow",),
        "disallow": (b"disallow", b"dissallow", b"dissalow", b"disalow", b"diasllow", b"disallaw"),
        "crawl-delay": (b"crawl-delay", b"crawldelay", b"crawl delay"),
        "sitemap": (b"sitemap", b"site-map"),
    }.items()
    for spelling in spellings
}
_BOM: Final = re.compile(rb"\xef(?:\xbb\xbf?)?")  # also one that lost its end
_TOKEN: Final = re.compile(rb"\*(?!\S)|[A-Za-z_-]*")
_SECONDS: Final = re.compile(rb"[0-9]{1,12}(?:\.[0-9]{0,20})?|\.[0-9]{1,20}")

# What is spelled differently in the normal form: an escape, and an octet that has to be one (RFC 3986 3.3, 3.4).
# `*` and `$` have to be: a rule spells the octets themselves so, the bare signs being its wildcards (2.2.3).
_ODD: Final = re.compile(rb"%[0-9A-Fa-f]{2}|[^A-Za-z0-9._~/?%:@!&'()+,;=-]")
_UNRESERVED: Final = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")


@dataclass(frozen=True, slots=True)
class Decision:
    """Whether a path is allowed, and who says so, for a person to look up in the file."""

    allowed: bool
    line: str = ""  # "line 7: Disallow: /private"; empty: no rule matches
    group: str = ""  # "line 5: User-agent: *"; empty: no group speaks to us


@dataclass(frozen=True, slots=True)
class Record:
    """A line that says something."""

    line: int
    name: str  # a value of `_NAMES`
    value: bytes
    text: bytes  # as written, without the comment
    colon: bool = True

    def __str__(self) -> str:
        """`line 7: Disallow: /private`."""
        return f"line {self.line}: {self.text[:_SHOWN].decode('utf-8', 'replace')}"


@dataclass(slots=True)
class Group:
    """User-agent lines in a row, and what is said to them (RFC 9309 2.2.1)."""

    agents: list[Record] = field(default_factory=list)
    tokens: list[bytes] = field(default_factory=list)  # of the agents, in lower case
    rules: list[Record] = field(default_factory=list)
    delays: list[tuple[int, float]] = field(default_factory=list)  # agents named so far, seconds

    def delays_for(self, token: bytes) -> list[float]:
        """A Crawl-delay is no rule and ends no group: it holds for the agents above it, not for those below."""
        first = self.tokens.index(token)
        return [seconds for named, seconds in self.delays if named > first]


class Rules:
    """What a robots.txt says to one agent. Made by `parse`."""

    def __init__(
        self,
        rules: Iterable[Rule] = (),
        group: str = "",
        delay: float | None = None,
        sitemaps: Sequence[str] = (),
    ) -> None:
        self.delay = delay  # Crawl-delay in seconds
        self.sitemaps = list(sitemaps)  # as written
        self.weight = 1_000 + sum(100 + 2 * len(text) for text in sitemaps)  # bytes of memory, about
        self._group = group
        self.index = RuleIndex(rules)
        self.weight += self.index.weight

    def permit(self, target: str) -> Decision:
        """Whether `target`, the path and query of a URL, may be asked for (RFC 9309 2.2.2).

        /robots.txt always may.
        """
        path = _normal(target.partition("#")[0].encode("utf-8", "surrogatepass"))
        if path == b"/robots.txt":
            return Decision(allowed=True)
        try:
            rule = self.index.deciding(path if path.startswith(b"/") else b"/" + path)
        except TooMuchWork:
            return Decision(allowed=False, line=INTRICATE, group=self._group)
        if rule is None:
            return Decision(allowed=True, group=self._group)
        return Decision(rule.allow, rule.line, rule.group)


def parse(text: bytes, agent: str) -> Rules:
    """What `text` says to `agent` (a product token; of a whole User-Agent header its beginning counts).

    All groups that name the agent are one; those of `*` count when there is none (RFC 9309 2.2.1). The longest
    of several Crawl-delays holds. Never raises.
    """
    groups, sitemaps = _read(text)
    token = _token(agent.encode("utf-8", "replace"))
    ours = [group for group in groups if token in group.tokens] if token else []
    if not ours:
        token = b"*"
        ours = [group for group in groups if token in group.tokens]
    names = [_few(group.agents, ", ") for group in ours]
    return Rules(
        [rule for group, name in zip(ours, names, strict=True) for rule in rules_of(group, name)],
        group=_few(names, "; "),
        delay=max((seconds for group in ours for seconds in group.delays_for(token)), default=None),
        sitemaps=sitemaps,
    )


def _read(text: bytes) -> tuple[list[Group], list[str]]:
    """The groups of a file, and the sitemaps, which belong to none."""
    groups: list[Group] = []
    sitemaps: list[str] = []
    open_to_agents = False  # only a rule ends a row of agents
    for record in _records(text):
        if record.name == "sitemap":
            sitemaps.append(record.value.decode("utf-8", "replace"))
        elif record.name == "user-agent":
            if not open_to_agents:
                groups.append(Group())
            open_to_agents = True
            groups[-1].agents.append(record)
            groups[-1].tokens.append(_token(record.value))
        elif groups and (record.colon or not groups[-1].agents[0].colon):
            # The colon may be missing where whoever wrote the group knows none; elsewhere such a line is prose.
            if record.name == "crawl-delay":
                if _SECONDS.fullmatch(record.value):
                    groups[-1].delays.append((len(groups[-1].agents), float(record.value)))
            else:
                open_to_agents = False
                if record.value:
                    groups[-1].rules.append(record)
    return groups, sitemaps


def _records(text: bytes) -> Iterator[Record]:
    for number, line in enumerate(_whole_lines(text).splitlines(), 1):
        written = line.partition(b"#")[0].strip()
        name, colon, value = written.partition(b":")
        if not colon:
            words = written.split(maxsplit=2)
            if len(words) != 2:
                continue
            name, value = words
        known = _NAMES.get(name.rstrip().lower())
        if known:
            yield Record(number, known, value.strip(), written, bool(colon))


def _whole_lines(text: bytes) -> bytes:
    """The text that counts. A line the limit cuts is dropped: half a path is another rule."""
    if len(text) > LIMIT:
        text = text[: LIMIT + 1]
        text = text[: max(text.rfind(b"\n"), text.rfind(b"\r")) + 1]
    bom = _BOM.match(text)
    return text[bom.end() :] if bom else text


def _token(text: bytes) -> bytes:
    """The product token that `text` begins with, in lower case; `*` for everybody."""
    match = _TOKEN.match(text)
    return match[0].lower() if match else b""


def rules_of(group: Group, name: str) -> Iterator[Rule]:
    """The rules of a group in the form in which they are compared."""
    for record in group.rules:
        anchored = record.value.endswith(b"$")
        head, *behind = (record.value[:-1] if anchored else record.value).split(b"*")
        literals = [_normal(head), *(_normal(literal) for literal in behind if literal)]
        octets = sum(map(len, literals)) + len(behind) + anchored
        if anchored:
            _anchor(literals, floating=bool(behind) and not behind[-1])
        allow = record.name == "allow"
        yield Rule(allow, str(record), name, (octets, allow, -record.line), tuple(literals))


def _anchor(literals: list[bytes], *, floating: bool) -> None:
    """Let a rule end with the path. `floating`: anything may stand before the end."""
    if floating:
        literals.append(END)
    else:
        literals[-1] += END


def _normal(path: bytes) -> bytes:
    """The one spelling in which paths are compared (RFC 9309 2.2.2).

    Unreserved characters bare, every other escape in capitals, and escapes for what a URL cannot hold. An
    escaped delimiter is not the delimiter: `%2F` stays apart from `/`.
    """
    return _ODD.sub(_respell, path)


def _respell(match: re.Match[bytes]) -> bytes:
    odd = match[0]
    if len(odd) == 1:
        return b"%%%02X" % odd[0]
    octet = int(odd[1:], 16)
    return bytes([octet]) if octet in _UNRESERVED else odd.upper()


def _few(parts: Sequence[object], between: str) -> str:
    shown = between.join(str(part) for part in parts[:_NAMED])
    return f"{shown}{between}and {len(parts) - _NAMED} more" if len(parts) > _NAMED else shown
