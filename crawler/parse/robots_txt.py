"""Parses robots.txt and finds the line that decides for one agent and one path (RFC 9309). Pure and total.

Where the RFC leaves a choice (misspelled names, a missing colon), this reads what Google's parser reads.
Invalid lines are ignored (2.3.1.5). Parsing is linear in the file, matching linear in the path (see
`robots_index`).
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from msgspec import Struct, field

from crawler.parse.late import late
from crawler.parse.robots_index import END, Rule, RuleIndex, TooMuchWork

LIMIT: Final = 500 * 1024
"""Bytes of a robots.txt that are parsed (RFC 9309 2.5)."""

_SHOWN: Final = 200  # bytes of a line that are shown
_NAMED: Final = 5  # lines that are shown in a list of them
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
_BOM: Final = late(rb"\xef(?:\xbb\xbf?)?")  # also a truncated one
_TOKEN: Final = late(rb"\*(?!\S)|[A-Za-z_-]*")
_SECONDS: Final = late(rb"[0-9]{1,12}(?:\.[0-9]{0,20})?|\.[0-9]{1,20}")

# What changes in the normal form: escapes, and octets that must be escaped (RFC 3986 3.3, 3.4). `*` and `$`
# are among these, as in a rule the unescaped signs are wildcards (2.2.3).
_ODD: Final = re.compile(rb"%[0-9A-Fa-f]{2}|[^A-Za-z0-9._~/?%:@!&'()+,;=-]")
_UNRESERVED: Final = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")


class Decision(Struct, frozen=True):
    """Whether a path is allowed, and the lines of the file that decide it."""

    allowed: bool
    line: str = ""  # "line 7: Disallow: /private"; empty: no rule matches
    group: str = ""  # "line 5: User-agent: *"; empty: no group matches the agent


class RuleLine(Struct, frozen=True):
    """A line with a known name."""

    line: int
    name: str  # a value of `_NAMES`
    value: bytes
    text: bytes  # as written, without the comment
    colon: bool = True

    def __str__(self) -> str:
        """`line 7: Disallow: /private`."""
        return f"line {self.line}: {self.text[:_SHOWN].decode('utf-8', 'replace')}"


class Group(Struct, eq=False):
    """Consecutive User-agent lines and the rules for them (RFC 9309 2.2.1)."""

    agents: list[RuleLine] = field(default_factory=list)
    tokens: list[bytes] = field(default_factory=list)  # product tokens of the agents, in lower case
    rules: list[RuleLine] = field(default_factory=list)
    delays: list[tuple[int, float]] = field(default_factory=list)  # agents named before it, seconds

    def delays_for(self, token: bytes) -> list[float]:
        """The delays for an agent. A Crawl-delay ends no list of agents; it applies to those above it."""
        first = self.tokens.index(token)
        return [seconds for named, seconds in self.delays if named > first]


class RobotsRules:
    """The rules of a robots.txt for one agent. Made by `parse`."""

    def __init__(
        self,
        rules: Iterable[Rule] = (),
        group: str = "",
        delay: float | None = None,
        sitemaps: Sequence[str] = (),
    ) -> None:
        self.delay = delay  # Crawl-delay in seconds
        self.sitemaps = list(sitemaps)  # as written
        self.weight = 1_000 + sum(100 + 2 * len(text) for text in sitemaps)  # approximate bytes of memory
        self._group = group
        self.index = RuleIndex(rules)
        self.weight += self.index.weight

    def permit(self, target: str) -> Decision:
        """Whether `target`, path and query, may be fetched (RFC 9309 2.2.2). /robots.txt always may."""
        if not self.index.weight and target != "/robots.txt":  # it has no rules, as on many sites
            return Decision(allowed=True, group=self._group)
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


def parse(text: bytes, agent: str) -> RobotsRules:
    """The rules in `text` for `agent` (a product token, or a User-Agent header that starts with it).

    All groups that name the agent are combined; without one, those of `*` apply (RFC 9309 2.2.1). The longest
    of several Crawl-delays applies. Never raises.
    """
    groups, sitemaps = _read(text)
    token = _token(agent.encode("utf-8", "replace"))
    ours = [group for group in groups if token in group.tokens] if token else []
    if not ours:
        token = b"*"
        ours = [group for group in groups if token in group.tokens]
    names = [_few(group.agents, ", ") for group in ours]
    return RobotsRules(
        [rule for group, name in zip(ours, names, strict=True) for rule in rules_of(group, name)],
        group=_few(names, "; "),
        delay=max((seconds for group in ours for seconds in group.delays_for(token)), default=None),
        sitemaps=sitemaps,
    )


def _read(text: bytes) -> tuple[list[Group], list[str]]:
    """The groups of a file, and its sitemaps, which belong to no group."""
    groups: list[Group] = []
    sitemaps: list[str] = []
    open_to_agents = False  # only a rule ends a list of agents
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
            # A line without a colon counts only in a group that uses none; elsewhere it is prose.
            if record.name == "crawl-delay":
                if _SECONDS.fullmatch(record.value):
                    groups[-1].delays.append((len(groups[-1].agents), float(record.value)))
            else:
                open_to_agents = False
                if record.value:
                    groups[-1].rules.append(record)
    return groups, sitemaps


def _records(text: bytes) -> Iterator[RuleLine]:
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
            yield RuleLine(number, known, value.strip(), written, bool(colon))


def _whole_lines(text: bytes) -> bytes:
    """The text within the limit. A line that it cuts is dropped: half a path would be a different rule."""
    if len(text) > LIMIT:
        text = text[: LIMIT + 1]
        text = text[: max(text.rfind(b"\n"), text.rfind(b"\r")) + 1]
    bom = _BOM.match(text)
    return text[bom.end() :] if bom else text


def _token(text: bytes) -> bytes:
    """The product token at the start of `text`, in lower case, or `*`."""
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
    """Anchors a rule at the end of the path. `floating`: anything may come before the end."""
    if floating:
        literals.append(END)
    else:
        literals[-1] += END


def _normal(path: bytes) -> bytes:
    """The normal form in which paths are compared (RFC 9309 2.2.2).

    Unreserved characters are unescaped, every other escape is in capitals, and characters that a URL cannot
    contain are escaped. An escaped delimiter is not the delimiter: `%2F` and `/` differ.
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
