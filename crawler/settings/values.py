"""Parses the values of settings, and formats them again.

A `Kind` parses text (a flag, an environment variable) or a TOML value, or raises `ValueError` with what was
expected. Parsing a parsed value returns it unchanged.
"""

import re
import shlex
from collections.abc import Callable
from fnmatch import translate
from ipaddress import IPv4Network, IPv6Network, ip_network
from math import nan
from os import PathLike, fspath
from typing import Any, Final, Generic, TypeVar

from msgspec import Struct

from crawler.parse.late import late
from crawler.parse.normalise import Normaliser

_WEB_ADDRESS: Final = late(r"https?://[^/?#\s@\\]+(/[^?#\s]*)?", re.IGNORECASE)
_HOST: Final = late(r"[^/\\?#@\s]+")
_KEY: Final = late(r"[A-Za-z0-9-]{8,128}", re.ASCII)
LOOPBACK: Final = "127.0.0.1"
LEAST_INTERVAL: Final = 60.0  # seconds from run to run
_MOST: Final = 2**53  # up to here a float represents every integer
_SIZES = {"": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "kib": 2**10, "mib": 2**20, "gib": 2**30}
_TIMES = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_TIME: Final = "seconds, or a time such as 90s, 30m or 2h"
_NAME: Final = "[!#$%&'*+.^_`|~0-9a-z-]+"  # a token (RFC 9110 5.6.2) in lower case
_DIRECTIVE: Final = rf'{_NAME}(?:=(?:{_NAME}|"[ !#-\[\]-~]*"))?'
_CACHE_CONTROL: Final = late(rf"{_DIRECTIVE}(?:\s*,\s*{_DIRECTIVE})*", re.IGNORECASE)  # RFC 9111 5.2


T = TypeVar("T")


class Kind(Struct, Generic[T], frozen=True):
    """Parser of a `T`: `read` parses text or a TOML value, `show` formats it, `metavar` names it in help."""

    metavar: str
    read: Callable[[Any], T]
    show: Callable[[Any], str] = str
    many: bool = False  # may be given more than once
    words: int = 1  # arguments of its flag, which are joined by a blank
    choices: tuple[str, ...] = ()
    tables: bool = False  # a TOML array of tables of its own, not a key of its section


def _text(value: object) -> str:
    value = fspath(value) if isinstance(value, PathLike) else value
    if not isinstance(value, str):
        raise ValueError("must be a text")  # noqa: TRY004 - the only error of a `Kind`
    if not value.strip():
        raise ValueError("must not be empty")
    if any(ord(c) < 32 or ord(c) == 127 for c in value):
        raise ValueError("must not contain control characters")
    return value.strip()


def _matching(pattern: re.Pattern[str], words: str) -> Callable[[object], str]:
    """What parses a text of that form. `words`: the end of a sentence on what it must be."""

    def read(value: object) -> str:
        text = _text(value)
        if not pattern.fullmatch(text):
            raise ValueError(f"must be {words}")
        return text

    return read


def show_state(value: str) -> str:
    """A state; if it is in a database, only host, database and name of the crawl."""
    return re.sub(r"^(postgres(?:ql)?://)(?:[^?]*@)?([^?#]*)(?:\?[^#]*)?", r"\1\2", value)


def _quantity(value: object, units: dict[str, Any], example: str) -> Any:
    amount: float = -1
    if isinstance(value, int | float) and not isinstance(value, bool):
        amount = value
    elif match := re.fullmatch(r"(\d+(?:\.\d+)?)\s*([a-z]*)", str(value).strip().lower()):
        amount = float(match[1]) * units.get(match[2], nan)
    if not 0 <= amount <= _MOST:
        raise ValueError(f"must be {example}")
    return amount


def _number(value: object, low: float, high: float | None, whole: bool) -> Any:
    wanted = "a whole number" if whole else "a number"
    bounds = f"{wanted} of at least {low}" if high is None else f"{wanted} from {low} to {high}"
    try:
        number = int(str(value)) if whole else float(str(value))
    except ValueError:
        raise ValueError(f"must be {bounds}") from None
    if isinstance(value, bool) or not low <= number <= (float("inf") if high is None else high):
        raise ValueError(f"must be {bounds}")
    return number


def _switch(value: object) -> bool:
    if isinstance(value, bool):
        return value
    word = str(value).strip().lower()
    if word in {"1", "true", "yes", "on"}:
        return True
    if word in {"0", "false", "no", "off", ""}:
        return False
    raise ValueError("must be true or false")


def _pattern(value: object) -> str:
    text = _text(value)
    compile_pattern(text)
    return text


def compile_pattern(text: str) -> re.Pattern[str]:
    """A pattern for path and query: `re:REGEX` (matches anywhere), else a glob (matches the whole text)."""
    try:
        # Anchored, because patterns are used with `search`, and a glob matches the whole text.
        return re.compile(text[3:] if text.startswith("re:") else rf"\A{translate(text)}")
    except (re.error, OverflowError, RecursionError) as error:
        raise ValueError(f"is not a valid regular expression: {error}") from None


def network_and_port(text: str) -> tuple[IPv4Network | IPv6Network, int | None]:
    """Parses `10.0.0.0/8`, `10.0.0.5:8080` or `[::1]:8080`; the port may be None. Raises `ValueError`."""
    match = re.fullmatch(r"(?:\[([^\]]+)\]|([^:]+)):([0-9]{1,5})", text)
    if match is None:
        return ip_network(text.removeprefix("[").removesuffix("]"), strict=False), None
    port = int(match[3])
    if not 0 < port < 65_536:
        raise ValueError("no port")
    return ip_network(match[1] or match[2], strict=False), port


def _network(value: object) -> str:
    try:
        network, port = network_and_port(_text(value))
    except ValueError:
        raise ValueError("must be a network such as 10.0.0.0/8, or an address, or one with :port") from None
    named = f"[{network}]" if port and network.version == 6 else str(network)
    return f"{named}:{port}" if port else named


def _variable(value: object) -> str:
    text = _text(value)
    if not re.fullmatch(r"[A-Za-z_]\w*", text, re.ASCII):  # it may be the secret itself
        raise InvalidValue("***", "must be the name of an environment variable, not its value")
    return text


def _listen(value: object) -> str:
    text = str(value) if isinstance(value, int) and not isinstance(value, bool) else _text(value)
    found = re.fullmatch(r"(?:(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]+):)?([0-9]{1,5})", text)
    if found is None or not 0 < int(found[2]) < 65_536:
        raise ValueError("must be a port such as 9464, or HOST:PORT")
    return f"{found[1] or LOOPBACK}:{int(found[2])}"


def host_and_port(text: str) -> tuple[str, int]:
    """The parts of a `LISTEN` value."""
    host, _, port = text.rpartition(":")
    return host.strip("[]"), int(port)


def _host_header(value: object) -> str:
    text = _text(" ".join(map(str, value)) if isinstance(value, list | tuple) else value)
    host, _, header = text.partition(" ")
    if re.search(r"[/\\?#@]", host) or not re.match(r"[^\s:]+:", header.strip()) or not host:
        raise InvalidValue("***", "must be a host and a header, as in: api.example.com 'Name: value'")
    return f"{host.lower()} {header.strip()}"


def _command(value: object) -> str:
    text = _text(value)
    try:
        words = shlex.split(text)
    except ValueError:
        words = []
    if not words or not words[0]:
        raise InvalidValue("***", "must be a command, with its quotes closed as for a shell")
    return text


def _url(value: object) -> str:
    text = _text(value)
    url = None if "@" in text else Normaliser(strip=(), sessions=None).literal(text)
    if not url:
        raise ValueError("must be a URL such as https://www.example.com/key.txt")
    return url


def _file_mode(value: object) -> str:
    text = value if isinstance(value, str) else ""  # as a number, 420 may mean 0o644, and 644 may mean 0644
    found = re.fullmatch(r"0?o?([0-7]{3})", text.strip())
    mode = int(found[1], 8) if found else 0
    if mode & 0o600 != 0o600 or mode & 0o111:
        raise ValueError("must be an octal mode as text, such as 0644 or 0640")
    return f"{mode:04o}"


def _web_address(value: object) -> str:
    text = _text(value)
    if "@" in text:
        raise InvalidValue(
            re.sub(r"(?<![^/@])[^/@]*@", "***@", text), "must not contain a user name or password"
        )
    url = Normaliser(strip=(), sessions=None).literal(text) if _WEB_ADDRESS.fullmatch(text) else None
    if not url:
        raise ValueError("must be an address such as https://www.example.com")
    return url.rstrip("/")


def _duration(value: object) -> float:
    return float(_quantity(value, _TIMES, _TIME))


def _age(value: object) -> float:
    words = "a time with its unit, such as 7d or 12h"
    seconds = float(_quantity(value, _TIMES, words))
    # A parsed value is a float.
    if 0 < seconds < _TIMES["h"] and not isinstance(value, float) and str(value).strip()[-1].isdigit():
        raise ValueError(f"must be {words}")
    return seconds


def _timeout(value: object) -> float:
    if seconds := _duration(value):
        return seconds
    raise ValueError(f"must be {_TIME}, above 0")


def _interval(value: object) -> float:
    seconds = _duration(value)
    if seconds < LEAST_INTERVAL:
        raise ValueError(f"must be a time of at least {LEAST_INTERVAL:.0f} seconds, such as 24h")
    return seconds


def duration_words(seconds: float) -> str:
    """A duration as it can be given: `90s`, `10m`, `2h`."""
    for unit, size in (("h", 3_600), ("m", 60)):
        if seconds and seconds % size == 0:
            return f"{seconds / size:g}{unit}"
    return f"{seconds:g}s"


def _show_number(value: float) -> str:
    return str(value).removesuffix(".0")


def _show_duration(value: float) -> str:
    unit = next((unit for unit in "dhm" if value and value % _TIMES[unit] == 0), "s")
    return f"{_show_number(value / _TIMES[unit])}{unit}"


def _share(value: object) -> float:
    text = str(value).strip()
    try:
        share = float(text[:-1]) / 100 if text.endswith("%") else float(text)
    except ValueError:
        share = -1.0
    if isinstance(value, bool) or not 0 <= share <= 1:
        raise ValueError("must be a share such as 20% or 0.2")
    return share


def COUNT(low: int, high: int | None = None) -> Kind[int]:  # noqa: N802 - named like the constants below
    """A whole number."""
    return Kind("N", lambda value: _number(value, low, high, whole=True))


def NUMBER(low: float, high: float) -> Kind[float]:  # noqa: N802
    """A number."""
    return Kind("X", lambda value: _number(value, low, high, whole=False), _show_number)


def BYTES(low: int, high: int | None = None) -> Kind[int]:  # noqa: N802
    """A size in bytes."""

    def read(value: object) -> int:
        size = int(_quantity(value, _SIZES, example := "bytes, or a size such as 10MB or 512KiB"))
        if size < low or (high is not None and size > high):
            raise ValueError(
                f"must be {example}, from {low} to {high}" if high else f"must be {example}, at least {low}"
            )
        return size

    return Kind("SIZE", read)


class InvalidValue(ValueError):  # noqa: N818 - the ValueError of a `Kind`
    """An invalid value, with the part that is wrong, and where that is within the setting."""

    def __init__(self, part: object, words: str, where: str = "") -> None:
        super().__init__(words)
        self.part, self.where = part, where


def CHOICE(*words: str) -> Kind[str]:  # noqa: N802
    """One of several words."""

    def read(value: object) -> str:
        if value not in words:
            from difflib import get_close_matches  # noqa: PLC0415 - for errors only

            near = get_close_matches(str(value), words, 1)
            hint = f" (did you mean {near[0]}?)" if near else ""
            raise ValueError(f"must be one of {', '.join(words)}{hint}")
        return str(value)

    return Kind("|".join(words), read, choices=words)


def MEDIA_TYPE(*names: str) -> Kind[str]:  # noqa: N802
    """A media type (RFC 9110 8.3.1, without parameters), or one of a few names."""

    def read(value: object) -> str:
        text = _text(value).lower()
        if text not in names and not re.fullmatch(f"{_NAME}/{_NAME}", text):
            raise ValueError(f"must be {', '.join(names)} or a media type such as text/plain")
        return text

    return Kind("TYPE", read)


def LIST(kind: Kind[T], separator: str | None = None) -> Kind[tuple[T, ...]]:  # noqa: N802
    """A list of a kind. A text is split like a shell command, or at `separator` and blanks."""

    def read(value: object) -> tuple[T, ...]:
        if isinstance(value, str):
            parts: Any = shlex.split(value) if separator is None else [value]
        elif isinstance(value, list | tuple):
            parts = value
        else:
            raise ValueError("must be a list")  # noqa: TRY004 - the only error of a `Kind`
        if separator is not None:
            parts = [piece for part in parts for piece in str(part).replace(separator, " ").split() or [part]]
        return tuple(one(part) for part in parts)

    def one(part: object) -> T:
        try:
            return kind.read(part)
        except ValueError as error:
            raise InvalidValue(part, str(error)) from None

    def show(value: tuple[T, ...]) -> str:
        return (separator or " ").join(kind.show(part) for part in value)

    return Kind(kind.metavar, read, show, many=True, words=kind.words, choices=kind.choices)


def ABSENT(kind: Kind[T], none: str | None = None) -> Kind[T | None]:  # noqa: N802
    """An optional value. None has no text form, unless `none` is a word for it, to overrule a file."""

    def read(value: object) -> T | None:
        return None if value in (None, none) else kind.read(value)

    words = (none,) if none and kind.choices else ()
    metavar = f"{kind.metavar}|{none}" if none else kind.metavar
    choices = (*kind.choices, *words)
    return Kind(metavar, read, lambda v: "" if v is None else kind.show(v), choices=choices)


TEXT = Kind("TEXT", _text)
PATTERN = Kind("PATTERN", _pattern)
NETWORK = Kind("CIDR", _network)
HOST = Kind("HOST", _matching(_HOST, "a host name such as blog.example.com"))
FILE_MODE = Kind("MODE", _file_mode)
COMMAND = Kind("CMD", _command)
HOST_HEADER = Kind("HOST HEADER", _host_header, words=2)
KEY = Kind("KEY", _matching(_KEY, "8 to 128 letters, digits and hyphens"))
URL = Kind("URL", _url)
VARIABLE = Kind("VARIABLE", _variable)
SWITCH = Kind("", _switch, lambda value: str(value).lower())
SECONDS = Kind("SECONDS", _duration, _show_number)
TIMEOUT = Kind("SECONDS", _timeout, _show_number)
INTERVAL = Kind("TIME", _interval, _show_duration)
DURATION = Kind("TIME", _duration, _show_duration)
AGE = Kind("TIME", _age, _show_duration)
"""A time of days: a small number without a unit is a mistake."""
LISTEN = Kind("[HOST:]PORT", _listen)
WEB_ADDRESS = Kind("URL", _web_address)
CACHE_CONTROL = Kind("DIRECTIVES", _matching(_CACHE_CONTROL, "directives such as 'public, max-age=3600'"))
SHARE = Kind("SHARE", _share, lambda value: f"{value * 100:g}%")
